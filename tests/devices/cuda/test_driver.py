"""The driver of NVIDIA's GPUs: how one is found, and what is said where there is none."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from sparsecast.devices.cuda import detect_gpu, device_uuid, driver_errors, numba_cuda
from sparsecast.devices.gpu import launching
from sparsecast.errors import DeviceError, InputError, MatrixSizeError

from ...conftest import H200


class Gpu(nullcontext):
    """What the detection asks a device of numba.cuda, with the answers of an H200."""

    name = "NVIDIA H200"
    compute_capability = (9, 0)
    MULTIPROCESSOR_COUNT, MAX_THREADS_PER_MULTIPROCESSOR, WARP_SIZE = 132, 2048, 32
    MAX_THREADS_PER_BLOCK, L2_CACHE_SIZE = 1024, 60 << 20
    CLOCK_RATE, MEMORY_CLOCK_RATE = 1_980_000, 3_201_000


@pytest.fixture
def cuda(monkeypatch):
    """A stand-in for numba.cuda, with two devices."""
    device = SimpleNamespace(id=1, uuid="GPU-01234567-89ab-cdef-0123-456789abcdef")
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(total=140 << 30), device=device)
    selected = []
    fake = SimpleNamespace(
        gpus=[Gpu(), Gpu()],
        selected=selected,
        select_device=selected.append,
        is_available=lambda: True,
        cuda_error=lambda: None,
        current_context=lambda: context,
    )
    monkeypatch.setattr(launching, "cuda", fake)
    monkeypatch.setattr(launching, "SIMULATED", False)
    monkeypatch.setattr("numpy.__version__", "2.4.6")
    return fake


class CudaAPIError(Exception):
    """As numba-cuda raises it."""


class CUDAError(Exception):
    """As cuda.core raises it."""


LOST = CudaAPIError("[719] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_FAILED")
FULL = CudaAPIError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
TOO_OLD = CUDAError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the PTX was compiled with a newer toolchain")
#: Of the driver, but our own faults; and others that look like those of the driver.
OURS = [
    CudaAPIError("[700] Call to cuCtxSynchronize results in CUDA_ERROR_ILLEGAL_ADDRESS"),
    CUDAError("CUDA_ERROR_INVALID_VALUE: one of the parameters is not in range"),
    ValueError("CUDA_ERROR_LAUNCH_FAILED"),
    CudaAPIError("an answer without a name"),
]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (LOST, DeviceError),
        (CUDAError("CUDA_ERROR_UNKNOWN: an unknown\nerror"), DeviceError),
        (FULL, MatrixSizeError),
        (TOO_OLD, DeviceError),
        *((error, type(error)) for error in OURS),
    ],
)
def test_errors_of_the_driver_are_said_in_one_line_and_our_own_faults_stay_what_they_are(error, expected):
    with pytest.raises(expected) as raised, driver_errors():
        raise error
    assert raised.value is error if error in OURS else raised.value.__cause__ is error


def test_the_uuid_is_that_of_the_current_device(cuda):
    assert device_uuid() == cuda.current_context().device.uuid


def test_a_device_is_described_in_si_units(cuda):
    assert detect_gpu(0) == detect_gpu(1) == H200
    assert cuda.selected == [0, 1], "what is described is computed on from then on"
    assert detect_gpu() == H200
    assert cuda.selected == [0, 1, 1], "without a number, the current device stays the current one"


@pytest.mark.parametrize("index", (2, -1))
def test_an_index_that_is_not_there_is_refused_with_those_that_are(cuda, index):
    with pytest.raises(DeviceError):
        detect_gpu(index)


@pytest.mark.parametrize("version", ["2.5.0", "2.5.0rc1", "3.0.0"])
def test_a_numpy_that_numba_cuda_cannot_compile_beside_is_refused(cuda, monkeypatch, version):
    assert numba_cuda() is cuda
    monkeypatch.setattr("numpy.__version__", version)
    with pytest.raises(DeviceError):
        numba_cuda()


def test_a_device_that_is_too_old_is_named(cuda):
    cuda.gpus[0].compute_capability = (7, 0)
    with pytest.raises(DeviceError):
        detect_gpu(0)


@pytest.mark.parametrize("why", ("no driver\n", "CUDA_ERROR_NO_DEVICE (100)", None))
def test_a_driver_that_does_not_answer_is_said_in_one_line(cuda, why):
    cuda.is_available, cuda.cuda_error = lambda: False, lambda: why
    with pytest.raises(DeviceError) as refusal:
        detect_gpu()
    assert (why or "NVVM").strip() in str(refusal.value)


def test_the_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setattr(launching, "cuda", None)
    with pytest.raises(DeviceError) as refusal:
        numba_cuda()
    assert isinstance(refusal.value, InputError)


def test_the_simulator_is_no_device_to_describe(cuda, monkeypatch):
    monkeypatch.setattr(launching, "SIMULATED", True)
    with pytest.raises(DeviceError):
        detect_gpu()
