"""Kernels on a device: their arguments and their launch.

Kernels take pointers instead of arrays. An array would cost seven arguments and, at every launch, a
conversion that takes longer than the product of a small matrix. A pointer is one number, whichever library
allocated the memory, and an address within y is a sum. Only the simulator of numba-cuda, which has no
pointers, gets arrays, with the same indices.

All work is queued on a stream, and nothing waits.

Kernels are compiled for full and for narrow storage of a matrix, by what reads an entry of it (`term_of`).
Full storage runs the code that it would run alone: the compiler removes a step of 1 and a base of 0.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import MatrixSizeError
from sparsecast.features.narrow_storage import GROUP_ROWS

#: Whether kernels run in the simulator of numba-cuda, one Python thread for each thread of a device.
SIMULATED = bool(numba.config.ENABLE_CUDASIM)  # type: ignore[attr-defined]

#: The module numba.cuda, of numba-cuda or a replacement. It is None without one: matrices are then forecast,
#: never bound. Numba itself has an older module of that name.
cuda: Any = None
if importlib.util.find_spec("numba_cuda"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numba-cuda 0.30 with NumPy 2.5
        from numba import cuda

if cuda and not SIMULATED and "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS" not in os.environ:
    # Small grids are meant: a product of few rows has no more work.
    _config: Any = importlib.import_module("numba.cuda.core.config")
    _config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

#: cuda.core launches in a third of Numba's time; only NVIDIA's toolkit has it.
core: Any = None
if cuda and not SIMULATED and importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.core"):
    core = importlib.import_module("cuda.core")

#: Default threads of a block: small enough that a block of long rows keeps few warps waiting, large enough to
#: fill a multiprocessor.
THREADS = 128

WARP = 32

#: Greatest offset of 32 bits, with room for the steps of a loop beyond its end.
_LARGEST_NARROW_OFFSET = 2**31 - 2**16

DeviceArray = Any
Kernel = Callable[..., None]

#: Keeps the kernels that a function returns, so that each is compiled once.
made_once: Any = functools.cache


def device_function(function: Callable[..., Any]) -> Any:
    """Inline a function into the kernels that call it; without numba-cuda there are none."""
    return cuda.jit(device=True, inline="always")(function) if cuda else function


def offset_type(largest: int) -> Any:
    """Return int32 or int64 for offsets up to `largest`: 64 bits cost twice the instructions."""
    return np.int32 if largest <= _LARGEST_NARROW_OFFSET else np.int64


def blocks_of(units: int, size: int = THREADS) -> int:
    """Return the number of blocks of `size` threads that cover `units` units of work."""
    return -(-units // size)


def upload(name: str, *arrays: NDArray[Any]) -> list[DeviceArray]:
    """Copy contiguous arrays to the current device; a MatrixSizeError names their format."""
    refuse_beyond_memory(name.upper(), sum(array.nbytes for array in arrays))
    return [cuda.to_device(array) for array in arrays]


def scratch(entries: int, dtype: Any) -> DeviceArray:
    """Return a device array for intermediate results of kernels; raises as `upload` does."""
    refuse_beyond_memory("a vector", entries * np.dtype(dtype).itemsize)
    return cuda.device_array(entries, dtype)


def refuse_beyond_memory(what: str, size_bytes: int) -> None:
    """Raise a MatrixSizeError if `what` exceeds the free memory of the current device."""
    context = cuda.current_context()
    if size_bytes > context.get_memory_info().free:
        context.deallocations.clear()  # numba-cuda defers the release of arrays
        free = context.get_memory_info().free
        if size_bytes > free:
            raise MatrixSizeError(
                f"{what} would take {size_bytes / 1e9:,.2f} GB on the device: expected at most the "
                f"{free / 1e9:,.2f} GB that are free there; use another format or the CPU"
            )


def is_device_array(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__") or hasattr(array, "__cuda_ndarray__")


def interface(array: DeviceArray) -> dict[str, Any]:
    """Return the address, shape and type of a device array, by the CUDA array interface."""
    described: dict[str, Any] = array.__array_interface__ if SIMULATED else array.__cuda_array_interface__
    return described


def pointer(array: DeviceArray, first: int = 0) -> Any:
    """Return a kernel's argument for a one-dimensional device array from entry `first` on."""
    if SIMULATED:
        return array[first:]
    described = interface(array)
    start = described["data"][0]
    return start + first * np.dtype(described["typestr"]).itemsize if first else start


class Launch:
    """A kernel with all its arguments but x and y.

    Numba compiles it. Where cuda.core is installed, it launches the kernel: a launch by Numba looks up the
    types again, which takes longer than a small product.

    Numba compiles `kernel`, which at least one block of `threads` threads calls as (*arguments, x, y);
    `dtype` is that of the entries of x and y. The arrays among the arguments are kept alive.
    """

    def __init__(
        self, kernel: Kernel, blocks: int, arguments: Sequence[Any], dtype: Any, threads: int = THREADS
    ) -> None:
        self.arrays = []
        self._arguments, kinds = [], []
        for argument in arguments:
            kind = numba.from_dtype(np.dtype(argument.dtype))
            if isinstance(argument, np.integer):
                self._arguments.append(argument)
            else:
                self.arrays.append(argument)
                self._arguments.append(pointer(argument))
                kind = numba.types.CPointer(kind)
            kinds.append(kind)
        vector = numba.types.CPointer(numba.from_dtype(np.dtype(dtype)))
        self._queue = _queue(_compiled(kernel, numba.types.void(*kinds, vector, vector)), blocks, threads)

    def __call__(self, x: Any, y: Any, stream: Any) -> None:
        """Queue the kernel on `stream`; `x` and `y` are results of `pointer`."""
        self._queue(stream, *self._arguments, x, y)


class DeviceProduct:
    """The product of a matrix on the device.

    Its scratch memory serves one product at a time: queue the products of one matrix on one stream, or wait
    between streams.

    `launches` compute y, in order; `nbytes` are on the device.
    """

    def __init__(self, launches: Sequence[Launch] = ()) -> None:
        self._launches = tuple(launches)
        held = {id(array): array.nbytes for launch in self._launches for array in launch.arrays}
        self.nbytes = sum(held.values())

    def __call__(self, x: DeviceArray, out: DeviceArray, stream: Any = 0) -> None:
        """Queue y = A x and return without waiting.

        Parameters
        ----------
        x, out : device arrays of shape (cols,) and (rows,)
            Contiguous, of the matrix's dtype, not overlapping: of numba.cuda, CuPy, torch or any library with
            a ``__cuda_array_interface__``. Not checked here; a DeviceOperator checks them.
        stream : optional
            A stream of numba.cuda or cuda.core, any with a method ``__cuda_stream__``, or a graph builder of
            cuda.core; by default the default stream.
        """
        self.launch(pointer(x), pointer(out), stream)

    def launch(self, x: Any, y: Any, stream: Any) -> None:
        """Queue the kernels for `x` and `y`, results of `pointer`."""
        for launch in self._launches:
            launch(x, y, stream)


def one_launch(kernel: Kernel, units: int, arguments: Sequence[Any], dtype: Any) -> DeviceProduct:
    """Return the product of a kernel with a thread for each unit of work; without units, an empty one."""
    return DeviceProduct([Launch(kernel, blocks_of(units), arguments, dtype)] if units else ())


@functools.cache
def _compiled(kernel: Any, signature: Any) -> Any:
    return cuda.jit(signature, cache=True)(kernel)


def compiled_kernels() -> int:
    """Return the number of kernels that this process has compiled or loaded."""
    return _compiled.cache_info().currsize


def _queue(compiled: Any, blocks: int, threads: int) -> Callable[..., None]:
    """Return a function (stream, *arguments) that launches a compiled kernel."""
    if core is None:
        return lambda stream, *arguments: compiled[blocks, threads, stream](*arguments)
    (overload,) = compiled.overloads.values()
    function = overload.library.get_cufunc().kernel
    config, default = core.LaunchConfig(grid=blocks, block=threads), core.Stream.from_handle(0)

    def queue(stream: Any, *arguments: Any) -> None:
        core.launch(stream or default, config, function, *arguments)

    return queue


def as_graph(queue_all: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function (stream=0) that queues at once all that `queue_all`, given a stream, queues.

    It is a CUDA graph, recorded now. Without cuda.core, which records it, everything is queued one by one.
    """
    if core is None:
        return lambda stream=0: queue_all(stream)
    device, default = core.Device(), core.Stream.from_handle(0)
    device.set_current()
    builder = device.create_graph_builder().begin_building()
    queue_all(builder)
    graph = builder.end_building().complete()

    def launch(stream: Any = 0, held: Any = queue_all) -> None:  # what is held has the arrays
        is_stream = isinstance(stream, core.Stream)
        graph.launch(stream if is_stream else device.create_stream(stream) if stream else default)

    return launch


_GROUP_SHIFT = GROUP_ROWS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Stored:
    """The types that kernels compute with, and how the entries of a matrix are stored."""

    value: Any  # of x, y and sums
    index: Any  # of columns in full
    offset: Any  # of the numbers of entries
    is_alike: bool  # whether one value is stored, of all entries
    has_bases: bool  # whether columns count from the base of their group of rows

    @classmethod
    def of(cls, matrix: Any, offset: Any) -> Self:
        """Return how a CSR or SELL matrix is stored."""
        has_bases = len(matrix.bases) > 0
        index = (matrix.bases if has_bases else matrix.indices).dtype.type
        return cls(matrix.dtype.type, index, offset, matrix.values == "one", has_bases)


@made_once
def term_of(stored: Stored) -> Any:
    """Return a device function (data, indices, base, x, k): the product of entry k."""
    value, index, step = stored.value, stored.index, int(not stored.is_alike)

    def term(data, indices, base, x, k):
        return value(data[k * step]) * x[index(base + index(indices[k]))]

    return device_function(term)


@made_once
def base_of(stored: Stored) -> Any:
    """Return a device function (bases, row): the column that the columns of a row count from."""
    index = stored.index

    def base(bases, row):
        return index(bases[row >> _GROUP_SHIFT])

    def zero(bases, row):
        return index(0)

    return device_function(base if stored.has_bases else zero)
