"""Description of a GPU: of NVIDIA in multiprocessors and warps, of AMD in compute units and wavefronts."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparsecast.errors import DeviceError, InputError

#: What CUDA 13, which the extra `gpu` installs, still compiles for.
MIN_COMPUTE_CAPABILITY = (7, 5)

_ELSE_CPU = "or name the device cpu"


@dataclass(frozen=True, slots=True)
class Device:
    """What a GPU is made of.

    Attributes
    ----------
    name : str
        The product's name.
    multiprocessors : int
        Streaming multiprocessors (NVIDIA) or compute units (AMD).
    warps_per_multiprocessor : int
        Warps, or wavefronts, that a multiprocessor holds at once.
    lanes : int
        Threads of a warp: 32, or 64 of a wavefront.
    threads_per_block : int
        The largest block of threads.
    memory_bytes, l2_bytes : int
        Device memory and second-level cache.
    clock_hz, memory_clock_hz : int
        The highest clocks.
    compute_capability : (int, int) or None
        Of CUDA; None on other devices.
    """

    name: str
    multiprocessors: int
    warps_per_multiprocessor: int
    lanes: int
    threads_per_block: int
    memory_bytes: int
    l2_bytes: int
    clock_hz: int
    memory_clock_hz: int
    compute_capability: tuple[int, int] | None = None

    @property
    def threads_per_multiprocessor(self) -> int:
        """Threads, or work-items, that a multiprocessor holds at once."""
        return self.warps_per_multiprocessor * self.lanes

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Device:
        """Return the Device whose attributes these are, lists for tuples as in JSON."""
        values = dict(described)
        if values["compute_capability"] is not None:
            values["compute_capability"] = tuple(values["compute_capability"])
        return cls(**values)


def parse_device(text: str) -> tuple[str, int]:
    """Return the kind and the index of a device: ``"cpu"``, ``"cuda"`` (the first) or ``"cuda:1"``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    kind, colon, index = text.partition(":")
    if text == "cpu" or (kind == "cuda" and not colon):
        return kind, 0
    if kind == "cuda" and index.isascii() and index.isdigit():
        return kind, int(index)
    raise InputError(f"device '{text}': expected cpu, cuda or cuda:N; name one of them")


def numba_cuda() -> Any:
    """Return the module ``numba.cuda`` of the package numba-cuda, having met a driver and a device.

    Raises
    ------
    DeviceError
        If the package, the driver or a device is missing.
    """
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


def detect_device(index: int = 0) -> Device:
    """Describe a CUDA device of the machine this process runs on, and compute on it from now on.

    Parameters
    ----------
    index : int
        As the driver counts those that CUDA_VISIBLE_DEVICES leaves.

    Raises
    ------
    DeviceError
        If the package, the driver or that device is missing, or the device is too old.
    """
    cuda = numba_cuda()
    if importlib.import_module("numba").config.ENABLE_CUDASIM:
        raise DeviceError(
            "device 'cuda' is the simulator of numba-cuda: expected a GPU to describe; "
            f"unset NUMBA_ENABLE_CUDASIM, {_ELSE_CPU}"
        )
    count = len(cuda.gpus)
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
    return Device(
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
