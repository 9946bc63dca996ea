"""The description of a machine, its name and its threads."""

import dataclasses
import re

import pytest

from sparsecast.errors import InputError
from sparsecast.machines import machine as machines
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Cache, Machine, detect

CACHES = Cache(1, 32 << 10, 2), Cache(2, 1 << 20, 2), Cache(3, 32 << 20, 8)
PROCESSOR = "Example(R) Processor 9000 @ 3.00GHz"
MACHINE = Machine(PROCESSOR, "x86_64", 4, 8, CACHES, ("avx2", "fma"), 64 << 30, "Linux")

A_GPU = GPU("a device", 100, 64, 32, 1024, 1 << 36, 50 << 20, 1, 1, (9, 0))


def test_the_name_is_fit_for_a_file_and_says_processor_and_threads():
    assert re.fullmatch(r"example-r-processor-9000-3-00ghz-8t-[0-9a-f]{8}", MACHINE.name)


def test_the_name_stays_when_the_memory_differs():
    assert dataclasses.replace(MACHINE, memory_bytes=1).name == MACHINE.name


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
    ],
)
def test_the_name_changes_with_all_that_sets_the_speed(change):
    assert dataclasses.replace(MACHINE, **change).name != MACHINE.name


def test_caches_are_those_of_the_processor_or_of_its_gpu():
    with_gpu = dataclasses.replace(MACHINE, device="cuda", gpu=A_GPU)
    assert MACHINE.product_caches == with_gpu.caches == MACHINE.caches
    assert with_gpu.product_caches == (Cache(2, 50 << 20, 1),)
    assert (MACHINE.product_memory_bytes, with_gpu.product_memory_bytes) == (64 << 30, 1 << 36)


def test_this_machine_is_described_alike_each_time():
    here = detect()
    assert here == detect()
    assert here.name == Machine.from_dict(here.to_dict()).name
    assert here.threads >= 1
    assert here.cores >= 1
    assert here.memory_bytes > 0
    assert [cache.level for cache in here.caches] == sorted(cache.level for cache in here.caches)


def test_a_system_that_tells_nothing_is_described_without_guesses(monkeypatch, tmp_path):
    monkeypatch.setattr(machines, "_cpuinfo", lambda key: None)
    monkeypatch.setattr(machines, "_CPU_FOLDER", tmp_path / "absent")
    here = detect()
    assert here.caches == ()
    assert here.simd == ()
    assert here.name


def test_no_threads_named_are_all_of_the_machine():
    assert MACHINE.checked_threads(None) == 8
    assert [MACHINE.checked_threads(threads) for threads in (1, 8)] == [1, 8]


@pytest.mark.parametrize("threads", [0, -1, 9, 10**6])
def test_threads_beyond_the_machine_are_refused_with_value_and_range(threads):
    with pytest.raises(InputError):
        MACHINE.checked_threads(threads)
