"""The description of a machine, its name and its threads."""

import json
import re
from dataclasses import replace

import pytest

from sparsecast.errors import InputError
from sparsecast.machines import machine as machines
from sparsecast.machines.machine import Cache, Machine, detect
from sparsecast.machines.profile import Profile

from ..conftest import H200

CACHES = Cache(1, 32 << 10, 2), Cache(2, 1 << 20, 2), Cache(3, 32 << 20, 8)
PROCESSOR = "Example(R) Processor 9000 @ 3.00GHz"
MACHINE = Machine(PROCESSOR, "x86_64", 4, 8, CACHES, ("avx2", "fma"), 64 << 30, "Linux")

WITH_GPU = replace(MACHINE, device="cuda", gpu=H200)
MI100 = replace(
    H200, name="AMD Instinct MI100", multiprocessors=120, warps_per_multiprocessor=40, compute_capability=None
)
HIP = replace(MACHINE, device="hip", gpu=MI100)


def test_the_name_is_fit_for_a_file_and_says_processor_and_threads_or_device():
    assert re.fullmatch(r"example-r-processor-9000-3-00ghz-8t-[0-9a-f]{8}", MACHINE.name)
    assert re.fullmatch(r"nvidia-h200-[0-9a-f]{8}", WITH_GPU.name)


def test_the_name_stays_when_the_memory_differs():
    assert replace(MACHINE, memory_bytes=1).name == MACHINE.name
    assert replace(WITH_GPU, gpu=replace(H200, memory_bytes=141 << 30)).name == WITH_GPU.name


@pytest.mark.parametrize(
    "change",
    [
        {"caches": MACHINE.caches[:2]},
        {"caches": (Cache(1, 48 << 10, 2), *MACHINE.caches[1:])},
        {"caches": ()},
        {"threads": 4},
        {"cores": 8},
        {"simd": ("avx2",)},
        {"processor": "Other"},
        {"system": "Darwin"},
        {"device": "simulated"},
        {"gpu": replace(H200, multiprocessors=114)},
        {"gpu": replace(H200, memory_clock_hz=2_600_000_000)},
        {"gpu": replace(H200, l2_bytes=50 << 20)},
        {"gpu": MI100},
    ],
)
def test_the_name_changes_with_all_that_sets_the_speed(change):
    machine = WITH_GPU if "gpu" in change else MACHINE
    assert replace(machine, **change).name != machine.name


@pytest.mark.parametrize("machine", (WITH_GPU, HIP), ids=lambda machine: machine.device)
def test_a_machine_carries_its_device_through_a_profile(machine, tmp_path):
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine
    assert Profile.load(Profile(machine, ()).save(tmp_path / "with-device.parquet")).machine == machine


def test_caches_are_those_of_the_processor_or_of_its_gpu():
    assert MACHINE.product_caches == WITH_GPU.caches == MACHINE.caches
    assert WITH_GPU.product_caches == (Cache(2, H200.l2_bytes, 1),)
    assert (MACHINE.product_memory_bytes, WITH_GPU.product_memory_bytes) == (64 << 30, H200.memory_bytes)


def test_this_machine_is_described_alike_each_time():
    here = detect()
    assert here == detect()
    assert here.name == Machine.from_dict(here.to_dict()).name
    assert min(here.threads, here.cores, here.memory_bytes) >= 1
    assert [cache.level for cache in here.caches] == sorted(cache.level for cache in here.caches)


def test_a_system_that_tells_nothing_is_described_without_guesses(monkeypatch, tmp_path):
    monkeypatch.setattr(machines, "_cpuinfo", lambda key: None)
    monkeypatch.setattr(machines, "_CPU_FOLDER", tmp_path / "absent")
    here = detect()
    assert here.caches == here.simd == () and here.name


def test_threads_are_those_of_the_machine_or_fewer():
    assert [MACHINE.checked_threads(threads) for threads in (None, 1, 8)] == [8, 1, 8]
    for threads in (0, -1, 9, 10**6):
        with pytest.raises(InputError, match=f"threads {threads}: expected 1 to 8"):
            MACHINE.checked_threads(threads)
