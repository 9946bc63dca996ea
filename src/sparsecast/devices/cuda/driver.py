"""The driver of NVIDIA's GPUs: its description of a GPU, and its errors in our words."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sparsecast.errors import DeviceError, InputError, MatrixSizeError
from sparsecast.machines.gpu import GPU

#: What CUDA 13, which the extra `gpu` installs, still compiles for.
MIN_COMPUTE_CAPABILITY = (7, 5)

_ELSE_CPU = "or name the device cpu"

#: What numba-cuda and cuda.core raise where the driver says no, by name: nobody without a device has them.
_DRIVER_ERRORS = {"CudaAPIError", "CUDAError"}

#: Errors of the driver for a wrong kernel or call (our fault), and for a compiler newer than the driver.
_OUR_FAULTS = re.compile(
    "ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|ILLEGAL_INSTRUCTION|INVALID_PC|INVALID_VALUE|"
    "INVALID_HANDLE|INVALID_CONTEXT|INVALID_IMAGE|LAUNCH_OUT_OF_RESOURCES|NOT_FOUND"
)
_COMPILER_TOO_NEW = "UNSUPPORTED_PTX_VERSION", "NO_BINARY_FOR_GPU"


@contextmanager
def driver_errors() -> Iterator[None]:
    """Have what the driver says in the middle of work said in one line; as a decorator, of a whole function.

    What only a wrong kernel or call of ours makes it say is raised as it is.

    Raises
    ------
    MatrixSizeError
        If the device's memory did not suffice, although as much was free when it was asked for.
    DeviceError
        If the device was lost, or is too old for the compiler.
    """
    try:
        yield
    except Exception as error:
        said = re.search(r"CUDA_ERROR_(\w+)", str(error))
        if type(error).__name__ not in _DRIVER_ERRORS or said is None or _OUR_FAULTS.fullmatch(said[1]):
            raise
        raise _one_line(said[1]) from error


def _one_line(name: str) -> InputError:
    said = f"CUDA_ERROR_{name}"
    if name == "OUT_OF_MEMORY":
        return MatrixSizeError(
            f"the device's memory is full ({said}): expected room for the matrix, x and y; free memory "
            f"that other programs hold, {_ELSE_CPU}"
        )
    if name in _COMPILER_TOO_NEW:
        return DeviceError(
            f"device 'cuda' does not take what was compiled for it ({said}): expected a driver as new as the "
            f"compiler; update the driver, {_ELSE_CPU}"
        )
    return DeviceError(
        f"device 'cuda' was lost in the middle ({said}): expected it to answer until the end; what a "
        f"calibration measured until then is kept; see that it works, then run the same again"
    )


def device_uuid() -> str:
    """Return what names the current CUDA device everywhere, whatever CUDA_VISIBLE_DEVICES makes its number.

    Raises
    ------
    DeviceError
        If the package, the driver or a device is missing.
    """
    return str(numba_cuda().current_context().device.uuid)


def numba_cuda() -> Any:
    """Return the module ``numba.cuda`` of the package numba-cuda, after a driver and a device were found."""
    # Numba has a module of that name of its own, which is no longer developed.
    if importlib.util.find_spec("numba_cuda") is None:
        raise DeviceError(
            "device 'cuda' needs the Python package numba-cuda: expected it to be installed; "
            f"pip install 'sparsecast[gpu]', {_ELSE_CPU}"
        )
    cuda = importlib.import_module("numba.cuda")
    if not cuda.is_available():
        why = " ".join((cuda.cuda_error() or "the compiler NVVM was not found").split()).split(". ")[0]
        raise DeviceError(
            f"device 'cuda' does not answer ({why}): expected an NVIDIA GPU, its driver and CUDA's compiler; "
            f"install the driver and pip install 'sparsecast[gpu]', {_ELSE_CPU}"
        )
    return cuda


def detect_gpu(index: int | None = None) -> GPU:
    """Describe a CUDA device of the machine this process runs on, and compute on it from now on.

    Parameters
    ----------
    index : int, optional
        As the driver counts those that CUDA_VISIBLE_DEVICES leaves; by default the current one.
    """
    cuda = numba_cuda()
    if importlib.import_module("numba").config.ENABLE_CUDASIM:
        raise DeviceError(
            "device 'cuda' is the simulator of numba-cuda: expected a GPU to describe; "
            f"unset NUMBA_ENABLE_CUDASIM, {_ELSE_CPU}"
        )
    count = len(cuda.gpus)
    index = int(cuda.current_context().device.id) if index is None else index
    if not 0 <= index < count:
        raise DeviceError(
            f"device cuda:{index}: expected 0 to {count - 1}, for the driver sees {count}; "
            f"choose one of them, or look at CUDA_VISIBLE_DEVICES"
        )
    gpu = cuda.gpus[index]
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    capability = tuple(gpu.compute_capability)
    if capability < MIN_COMPUTE_CAPABILITY:
        found, needed = (".".join(map(str, each)) for each in (capability, MIN_COMPUTE_CAPABILITY))
        raise DeviceError(
            f"device cuda:{index} ({name}) has compute capability {found}: expected at least {needed}; "
            f"choose a newer one, {_ELSE_CPU}"
        )
    cuda.select_device(index)
    memory_bytes = cuda.current_context().get_memory_info().total
    return GPU(
        name=name,
        multiprocessors=gpu.MULTIPROCESSOR_COUNT,
        warps_per_multiprocessor=gpu.MAX_THREADS_PER_MULTIPROCESSOR // gpu.WARP_SIZE,
        lanes=gpu.WARP_SIZE,
        threads_per_block=gpu.MAX_THREADS_PER_BLOCK,
        memory_bytes=int(memory_bytes),
        l2_bytes=gpu.L2_CACHE_SIZE,
        clock_hz=1000 * gpu.CLOCK_RATE,
        memory_clock_hz=1000 * gpu.MEMORY_CLOCK_RATE,
        compute_capability=capability,
    )
