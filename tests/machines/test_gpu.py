"""The description of a GPU, how it is found, and what is said where there is none."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from sparsecast.errors import DeviceError, InputError, MatrixSizeError
from sparsecast.machines.gpu import (
    Device,
    detect_device,
    device_uuid,
    driver_errors,
    numba_cuda,
    parse_device,
    parse_devices,
)
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile

H200 = Device(
    name="NVIDIA H200",
    multiprocessors=132,
    warps_per_multiprocessor=64,
    lanes=32,
    threads_per_block=1024,
    memory_bytes=140 << 30,
    l2_bytes=60 << 20,
    clock_hz=1_980_000_000,
    memory_clock_hz=3_201_000_000,
    compute_capability=(9, 0),
)
MI100 = dataclasses.replace(
    H200, name="AMD Instinct MI100", multiprocessors=120, warps_per_multiprocessor=40, lanes=64
)
MI100 = dataclasses.replace(MI100, compute_capability=None)


class Gpu(nullcontext):
    """What the detection asks a device of numba.cuda, with the answers of an H200."""

    name = "NVIDIA H200"
    compute_capability = (9, 0)
    MULTIPROCESSOR_COUNT, MAX_THREADS_PER_MULTIPROCESSOR, WARP_SIZE = 132, 2048, 32
    MAX_THREADS_PER_BLOCK, L2_CACHE_SIZE = 1024, 60 << 20
    CLOCK_RATE, MEMORY_CLOCK_RATE = 1_980_000, 3_201_000


@pytest.fixture
def cuda(monkeypatch):
    """A stand-in for the packages numba-cuda and numba.cuda, with two devices."""
    fake = ModuleType("numba.cuda")
    fake.gpus = [Gpu(), Gpu()]
    fake.selected = []
    fake.select_device = fake.selected.append
    fake.is_available, fake.cuda_error = lambda: True, lambda: None
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(total=140 << 30))
    fake.current_context = lambda: context
    package = ModuleType("numba_cuda")
    package.__spec__ = ModuleSpec("numba_cuda", None)
    monkeypatch.setitem(sys.modules, "numba_cuda", package)
    monkeypatch.setitem(sys.modules, "numba.cuda", fake)
    monkeypatch.setattr("numba.config.ENABLE_CUDASIM", 0)
    return fake


class CudaAPIError(Exception):
    """As numba-cuda raises it."""


class CUDAError(Exception):
    """As cuda.core raises it."""


LOST = "[719] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED"


NAMED = {"cpu": ("cpu", 0), "cuda": ("cuda", 0), "cuda:0": ("cuda", 0), "cuda:17": ("cuda", 17)}


@pytest.mark.parametrize("text", NAMED)
def test_devices_are_named_by_kind_and_number(text):
    assert parse_device(text) == NAMED[text]


def test_several_devices_are_of_different_kinds():
    assert parse_devices("cuda:3,cpu") == {"cuda:3": "cuda", "cpu": "cpu"}
    assert parse_devices("cuda:1") == {"cuda:1": "cuda"}
    for twice in ("cpu,cpu", "cuda,cuda:1", "cpu,cuda,cpu"):
        with pytest.raises(InputError, match=f"devices '{twice}': expected one of each kind"):
            parse_devices(twice)
    with pytest.raises(InputError, match="device '': expected cpu"):
        parse_devices("cpu,,cuda")


@pytest.mark.parametrize(
    "text", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1.0", "cuda:1\n", "cuda1", "cpu:0", "cuda:\u0661"]
)
def test_other_names_of_devices_are_refused_in_one_line(text):
    with pytest.raises(InputError, match=r"expected cpu, cuda, or cuda:N for") as refusal:
        parse_device(text)
    assert str(refusal.value).startswith(f"device {text!r}: ") and "\n" not in str(refusal.value)


@pytest.mark.parametrize("error", [CudaAPIError(LOST), CUDAError("CUDA_ERROR_UNKNOWN: an unknown\nerror")])
def test_a_device_that_is_lost_is_said_in_one_line(error):
    said = r"device 'cuda' was lost .* \(CUDA_ERROR_\w+\): .* is kept"
    with pytest.raises(DeviceError, match=said) as refusal, driver_errors():
        raise error
    assert refusal.value.__cause__ is error and "\n" not in str(refusal.value)


def test_a_full_device_and_an_old_driver_are_not_called_lost():
    with pytest.raises(MatrixSizeError, match=r"memory is full \(CUDA_ERROR_OUT_OF"), driver_errors():
        raise CudaAPIError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(DeviceError, match="update the driver"), driver_errors():
        raise CUDAError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX was compiled with a newer toolchain")


@pytest.mark.parametrize(
    "error",
    [
        CudaAPIError("[700] Call to cuCtxSynchronize results in CUDA_ERROR_ILLEGAL_ADDRESS"),
        CUDAError("CUDA_ERROR_INVALID_VALUE: one of the parameters is not in range"),
        ValueError("CUDA_ERROR_LAUNCH_FAILED"),
        CudaAPIError("an answer without a name"),
    ],
)
def test_our_own_faults_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised, driver_errors():
        raise error
    assert raised.value is error


def test_the_packages_raise_errors_of_these_names():
    pytest.importorskip("numba_cuda", reason="numba-cuda is missing")
    driver = importlib.import_module("numba.cuda.cudadrv.driver")
    assert driver.CudaAPIError.__name__ == CudaAPIError.__name__
    error = driver.CudaAPIError(719, "Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED")
    assert str(error) == LOST
    utils = pytest.importorskip("cuda.core._utils.cuda_utils", reason="cuda.core is missing")
    assert utils.CUDAError.__name__ == CUDAError.__name__


def test_the_uuid_is_that_of_the_current_device(cuda):
    uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef"
    cuda.current_context = lambda: SimpleNamespace(device=SimpleNamespace(uuid=uuid))
    assert device_uuid() == uuid


def test_a_device_is_described_in_si_units(cuda):
    assert detect_device() == detect_device(1) == H200
    assert cuda.selected == [0, 1], "what is described is computed on from then on"


def test_the_driver_knows_the_attributes_that_are_asked():
    driver = pytest.importorskip("cuda.bindings.driver", reason="the names are those of cuda-bindings")
    asked = [name for name in vars(Gpu) if name.isupper()]
    assert len(asked) == 7
    assert all(hasattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}") for name in asked)


def test_threads_are_those_of_the_warps():
    assert H200.threads_per_multiprocessor == 2048
    assert MI100.threads_per_multiprocessor == 2560


@pytest.mark.parametrize("index", (2, -1))
def test_an_index_that_is_not_there_is_refused_with_those_that_are(cuda, index):
    with pytest.raises(DeviceError, match=f"device cuda:{index}: expected 0 to 1, .* sees 2; "):
        detect_device(index)


def test_a_device_that_is_too_old_is_named(cuda):
    cuda.gpus[0].compute_capability = (7, 0)
    with pytest.raises(DeviceError, match=r"cuda:0 \(NVIDIA H200\) .* 7\.0: expected at least 7\.5; "):
        detect_device()


@pytest.mark.parametrize("why", ("no driver\n", "CUDA_ERROR_NO_DEVICE (100)", None))
def test_a_driver_that_does_not_answer_is_said_in_one_line(cuda, why):
    cuda.is_available, cuda.cuda_error = lambda: False, lambda: why
    with pytest.raises(DeviceError, match=r"device 'cuda' does not answer \(") as refusal:
        detect_device()
    assert "\n" not in str(refusal.value)
    assert (why or "NVVM").strip() in str(refusal.value)


def test_the_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(DeviceError, match=r"numba-cuda.*pip install 'sparsecast\[gpu\]'") as refusal:
        numba_cuda()
    assert isinstance(refusal.value, InputError) and "\n" not in str(refusal.value)


def test_the_simulator_is_no_device_to_describe(cuda, monkeypatch):
    monkeypatch.setattr("numba.config.ENABLE_CUDASIM", 1)
    with pytest.raises(DeviceError, match=r"simulator.*NUMBA_ENABLE_CUDASIM"):
        detect_device()


@pytest.mark.parametrize("device", (H200, MI100), ids=lambda device: device.name)
def test_a_machine_carries_its_device_through_a_profile(device, tmp_path):
    machine = dataclasses.replace(detect(), device=device)
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine
    path = Profile(machine, ()).save(tmp_path / "with-device.parquet")
    assert Profile.load(path).machine == machine


def test_a_machine_without_a_device_is_written_as_before_there_were_any():
    assert detect().device is None
    assert "device" not in detect().to_dict()


def test_the_name_is_that_of_the_device_and_changes_with_what_sets_its_speed():
    machine = dataclasses.replace(detect(), device=H200)
    assert machine.name.startswith("nvidia-h200-")
    others = [
        dataclasses.replace(H200, multiprocessors=114),
        dataclasses.replace(H200, memory_clock_hz=2_600_000_000),
        dataclasses.replace(H200, l2_bytes=50 << 20),
        MI100,
    ]
    names = {dataclasses.replace(machine, device=device).name for device in (H200, *others)}
    assert len(names) == 5
    larger = dataclasses.replace(H200, memory_bytes=141 << 30)
    assert dataclasses.replace(machine, device=larger).name == machine.name


def test_a_device_without_letters_still_has_a_name():
    machine = dataclasses.replace(detect(), device=dataclasses.replace(H200, name="?"))
    assert machine.name.startswith("device-")
