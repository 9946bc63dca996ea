"""NVIDIA's GPUs: the driver, its errors in our words, the energy counter, and the device.

The rules that choose kernels need no GPU library.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecast.devices import DEVICES
from sparsecast.devices.gpu.gpu_device import GPUDevice
from sparsecast.errors import DeviceError, MatrixSizeError
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, detect

if TYPE_CHECKING:
    from sparsecast.measuring.energy import Meter


#: Least compute capability of CUDA 13, which the extra `gpu` installs.
MIN_COMPUTE_CAPABILITY = (7, 5)

#: The first NumPy beside which numba-cuda compiles nothing: it has no row_stack any more.
_FIRST_NUMPY_TOO_NEW = "2.5.0.dev0"

_ELSE_CPU = "or name the device cpu"

#: Errors of the driver in numba-cuda and cuda.core, by name, since their classes need a device.
_DRIVER_ERRORS = {"CudaAPIError", "CUDAError"}

#: Errors of the driver for a wrong kernel or call (our fault), and for a compiler newer than the driver.
_OUR_FAULTS = re.compile(
    "ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|ILLEGAL_INSTRUCTION|INVALID_PC|INVALID_VALUE|"
    "INVALID_HANDLE|INVALID_CONTEXT|INVALID_IMAGE|LAUNCH_OUT_OF_RESOURCES|NOT_FOUND"
)
_COMPILER_TOO_NEW = "UNSUPPORTED_PTX_VERSION", "NO_BINARY_FOR_GPU"


@contextmanager
def driver_errors() -> Iterator[None]:
    """Turn errors of the driver into one line; those that only a fault of ours can cause are raised as is.

    A MatrixSizeError says that the device's memory did not suffice, although it was free before; a
    DeviceError that the device was lost, or is too old for the compiler.
    """
    try:
        yield
    except Exception as error:
        code = re.search(r"CUDA_ERROR_(\w+)", str(error))
        if type(error).__name__ not in _DRIVER_ERRORS or code is None or _OUR_FAULTS.fullmatch(code[1]):
            raise
        if code[1] == "OUT_OF_MEMORY":
            raise MatrixSizeError(
                f"the device's memory is full ({code[0]}): expected room for the matrix, x and y; free "
                f"memory that other programs hold, {_ELSE_CPU}"
            ) from error
        if code[1] in _COMPILER_TOO_NEW:
            raise DeviceError(
                f"device 'cuda' does not take what was compiled for it ({code[0]}): expected a driver as new "
                f"as the compiler; update the driver, {_ELSE_CPU}"
            ) from error
        raise DeviceError(
            f"device 'cuda' was lost in the middle ({code[0]}): expected it to answer until the end; what a "
            f"calibration measured until then is kept; see that it works, then run the same again"
        ) from error


def device_uuid() -> str:
    """Return the UUID of the current CUDA device, which does not depend on CUDA_VISIBLE_DEVICES."""
    return str(numba_cuda().current_context().device.uuid)


def numba_cuda() -> Any:
    """Return the module ``numba.cuda`` of numba-cuda; refuse if it, a driver or a device is missing."""
    from sparsecast.devices.gpu.launching import SIMULATED, cuda

    if cuda is None:
        raise DeviceError(
            "device 'cuda' needs the Python package numba-cuda: expected it to be installed; "
            f"pip install 'sparsecast[gpu]', {_ELSE_CPU}"
        )
    if not SIMULATED and np.lib.NumpyVersion(np.__version__) >= _FIRST_NUMPY_TOO_NEW:
        raise DeviceError(
            f"device 'cuda' cannot compile beside NumPy {np.__version__}: expected one below 2.5, "
            f"as numba-cuda needs it; pip install 'sparsecast[gpu]', {_ELSE_CPU}"
        )
    if not cuda.is_available():
        why = " ".join((cuda.cuda_error() or "the compiler NVVM was not found").split()).split(". ")[0]
        raise DeviceError(
            f"device 'cuda' does not answer ({why}): expected an NVIDIA GPU, its driver and CUDA's compiler; "
            f"install the driver and pip install 'sparsecast[gpu]', {_ELSE_CPU}"
        )
    return cuda


def detect_gpu(index: int | None = None) -> GPU:
    """Describe a CUDA device of this machine, and compute on it from now on.

    `index` counts the devices within CUDA_VISIBLE_DEVICES; by default the current one.
    """
    from sparsecast.devices.gpu.launching import SIMULATED

    cuda = numba_cuda()
    if SIMULATED:
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
        actual, needed = (".".join(map(str, version)) for version in (capability, MIN_COMPUTE_CAPABILITY))
        raise DeviceError(
            f"device cuda:{index} ({name}) has compute capability {actual}: expected at least {needed}; "
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


@dataclass(frozen=True)
class NvidiaGPU(GPUDevice):
    """The current CUDA device."""

    name: ClassVar[str] = "cuda"

    def describe(self, index: int | None = None) -> Machine:
        return replace(detect(), device=self.name, gpu=detect_gpu(index))

    def require_library(self) -> None:
        numba_cuda()

    def meter(self) -> Meter | None:
        try:
            return NvmlMeter()
        except DeviceError:
            return None  # energy is then not measured, which a Record says by None

    def errors(self) -> AbstractContextManager[None]:
        return driver_errors()


class NvmlMeter:
    """The energy counter of an NVIDIA device, from NVML.

    The device is given by its UUID, by default that of CUDA's current device: NVML's numbers include devices
    that CUDA_VISIBLE_DEVICES hides, in another order. A DeviceError says that there is no such counter.
    """

    source, run_s, step_s = "nvml", 2.0, 0.1

    def __init__(self, uuid: str | None = None) -> None:
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise DeviceError(
                "energy of the device: expected the Python package nvidia-ml-py to read it; "
                "pip install nvidia-ml-py, or measure time only"
            ) from error
        uuid = device_uuid() if uuid is None else uuid
        try:
            self._nvml.nvmlInit()
            self._device = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)
        except self._nvml.NVMLError as error:
            raise DeviceError(
                f"energy of device {uuid}: expected a counter that NVML reads ({error}); measure time only"
            ) from error

    def joules(self) -> float | None:
        """Return the joules since the driver was loaded, None if the device no longer answers."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)) / 1e3
        except self._nvml.NVMLError:
            return None


DEVICES.register("cuda")(NvidiaGPU())
