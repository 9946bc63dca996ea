"""Products of other libraries, each as a call and what reads its result, and how they are timed in turn."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

# Threads of Intel's OpenMP stay awake for 0.2 s after a product, on the cores of whoever is measured next.
os.environ.setdefault("MKL_THREADING_LAYER", "GNU")

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, tril

from sparsecast.measuring.timing import Call, HostClock, Timing

#: Products that libraries are told to expect, and that plans are for.
PRODUCTS = 1_000_000

#: Seconds after which the threads of MKL have stopped spinning.
SPIN_S = 0.25

#: Seconds of untimed calls before the samples of one library, and of a sample, and samples in a row.
_AWAKE_S, _SAMPLE_S, _SAMPLES = 0.01, 0.001, 4

#: Seconds a round in which librsb may try other partitions of a matrix.
_TUNING_S = 1.0


class MissingLibraryError(Exception):
    """A library is not installed, or does not take the matrix; the message says which."""


def in_turn(calls: Mapping[str, Call], rounds: int, pause_s: float) -> dict[str, Timing]:
    """Return the Timings of calls that take turns, with a pause after the last one.

    Before its samples a call is repeated untimed, until the threads of the library before it are asleep and
    its own are awake. Libraries whose threads spin for longer go last, before the pause.
    """
    clock, counts = HostClock(), {}
    for name, call in calls.items():
        call()
        counts[name] = max(1, round(_SAMPLE_S / min(clock.seconds(call, 1) for _ in range(5))))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            end = perf_counter() + _AWAKE_S
            while perf_counter() < end:
                call()
            count = counts[name]
            samples[name] += [clock.seconds(call, count) / count for _ in range(_SAMPLES)]
        sleep(pause_s)
    return {name: Timing.of(tuple(values)) for name, values in samples.items()}


def scipy_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product and its result."""
    return (lambda: A @ x), (lambda: A @ x)


def torch_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product of a CSR tensor and its result."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingLibraryError("not installed: pip install 'sparsecast[peers]'") from error
    torch.set_num_threads(threads)
    # torch says at the first CSR tensor of a process that they are in beta state.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
    parts = (torch.from_numpy(part) for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=False)
    vector = torch.from_numpy(x)
    return (lambda: matrix @ vector), (lambda: (matrix @ vector).numpy())


def graphblas_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product as LAGraph's PageRank does it, added to a full vector of zeros, and its result.

    Indices have 32 bits. Where all values are alike, the matrix is iso-valued; where they are 1, nothing is
    multiplied.
    """
    lib, ffi = _graphblas()
    _float64(A)
    rows, columns = A.shape
    status = lib.GxB_Global_Option_set_INT32(lib.GxB_GLOBAL_NTHREADS, threads)
    matrix = ffi.gc(ffi.new("GrB_Matrix*"), lib.GrB_Matrix_free)
    pointers, indices = A.indptr.astype(np.uint64), A.indices.astype(np.uint64)
    arrays = (*(ffi.from_buffer("GrB_Index[]", part) for part in (pointers, indices)),)
    sizes = pointers.size, indices.size, A.nnz
    values = ffi.from_buffer("double[]", A.data)
    status |= lib.GrB_Matrix_import_FP64(
        matrix, lib.GrB_FP64, rows, columns, *arrays, values, *sizes, lib.GrB_CSR_FORMAT
    )
    for hint in ("ROWINDEX", "COLINDEX", "OFFSET"):
        status |= lib.GrB_Matrix_set_INT32(matrix[0], 32, getattr(lib, f"GxB_{hint}_INTEGER_HINT"))
    is_iso = bool(A.nnz and np.all(A.data == A.data[0]))
    if is_iso:
        everywhere = lib.GrB_ALL, rows, lib.GrB_ALL, columns
        status |= lib.GrB_Matrix_assign_FP64(
            matrix[0], matrix[0], ffi.NULL, A.data[0], *everywhere, lib.GrB_DESC_S
        )
    status |= lib.GrB_Matrix_wait(matrix[0], lib.GrB_MATERIALIZE)
    vector, result = _graphblas_vector(x), _graphblas_vector(np.zeros(rows))
    if status:
        raise MissingLibraryError(f"it refused the matrix with status {status}")
    ones = is_iso and A.data[0] == 1.0
    semiring = lib.GxB_PLUS_SECOND_FP64 if ones else lib.GrB_PLUS_TIMES_SEMIRING_FP64
    plus, null, everything = lib.GrB_PLUS_FP64, ffi.NULL, lib.GrB_ALL

    def product() -> None:
        lib.GrB_Vector_assign_FP64(result[0], null, null, 0.0, everything, rows, null)
        lib.GrB_mxv(result[0], null, plus, semiring, matrix[0], vector[0], null)

    def read() -> NDArray[Any]:
        product()
        y, places, count = np.empty(rows), np.empty(rows, dtype=np.uint64), ffi.new("GrB_Index*", rows)
        into = ffi.from_buffer("GrB_Index[]", places), ffi.from_buffer("double[]", y)
        lib.GrB_Vector_extractTuples_FP64(*into, count, result[0])
        return y

    return product, read


@functools.cache
def _graphblas() -> tuple[Any, Any]:
    """Return SuiteSparse:GraphBLAS and what makes its arguments."""
    try:
        binding = importlib.import_module("suitesparse_graphblas")
    except ImportError as error:
        raise MissingLibraryError("not installed: pip install 'sparsecast[peers]'") from error
    version = binding.__version__
    if int(version.partition(".")[0]) < 10:
        raise MissingLibraryError(
            f"version {version}: 10 is needed, for 32-bit indices: pip install 'sparsecast[peers]'"
        )
    if not binding.is_initialized():
        binding.initialize(blocking=True)
    return binding.lib, binding.ffi


def _graphblas_vector(values: NDArray[Any]) -> Any:
    lib, ffi = _graphblas()
    vector, places = ffi.new("GrB_Vector*"), np.arange(values.size, dtype=np.uint64)
    lib.GrB_Vector_new(vector, lib.GrB_FP64, values.size)
    given = ffi.from_buffer("GrB_Index[]", places), ffi.from_buffer("double[]", values)
    lib.GrB_Vector_build_FP64(vector[0], *given, values.size, lib.GrB_PLUS_FP64)
    lib.GrB_Vector_wait(vector[0], lib.GrB_MATERIALIZE)
    return ffi.gc(vector, lib.GrB_Vector_free)


#: librsb's constants, of rsb.h and rsb_types.h.
_RSB_DOUBLE, _RSB_PLAIN, _RSB_LOWER_SYMMETRIC, _RSB_THREADS = b"D", 0x4E, 0x400010, 9


def librsb_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product in recursive blocks, tuned, of half of a symmetric matrix, and its result."""
    rsb = _librsb()
    _float64(A)
    is_symmetric = A.shape[0] == A.shape[1] and not (A != A.T).nnz
    stored = csr_array(tril(A, format="csr")) if is_symmetric else A
    pointer, status = ctypes.c_void_p, ctypes.c_int()
    rsb.rsb_lib_set_opt(_RSB_THREADS, ctypes.byref(ctypes.c_int(threads)))
    arrays = (pointer(part.ctypes.data) for part in (stored.data, stored.indptr, stored.indices))
    flags = _RSB_LOWER_SYMMETRIC if is_symmetric else 0
    sizes = stored.nnz, ctypes.c_char(_RSB_DOUBLE), *A.shape, 0, 0, flags
    matrix = pointer(rsb.rsb_mtx_alloc_from_csr_const(*arrays, *sizes, ctypes.byref(status)))
    if not matrix or status.value:
        raise MissingLibraryError(f"it refused the matrix with status {status.value}")
    y = np.zeros(A.shape[0])
    one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
    alpha, beta, source, into = *map(ctypes.byref, (one, zero)), *(pointer(v.ctypes.data) for v in (x, y))
    trials = None, None, 1, ctypes.c_double(_TUNING_S)
    tuned = _RSB_PLAIN, alpha, None, 1, 0, source, 0, beta, into, 0
    rsb.rsb_tune_spmm(ctypes.byref(matrix), *trials, *tuned)

    def product() -> None:
        rsb.rsb_spmv(_RSB_PLAIN, alpha, matrix, source, 1, beta, into, 1)

    weakref.finalize(product, _release, rsb.rsb_mtx_free, matrix, x, y)

    def result() -> NDArray[Any]:
        product()
        return y

    return product, result


@functools.cache
def _librsb() -> ctypes.CDLL:
    name = ctypes.util.find_library("rsb") or "librsb.so.0"
    try:
        rsb = ctypes.CDLL(name)
    except OSError as error:
        raise MissingLibraryError(f"{error}: install librsb") from error
    rsb.rsb_mtx_alloc_from_csr_const.restype = ctypes.c_void_p
    if status := rsb.rsb_lib_init(None):
        raise MissingLibraryError(f"it did not start: status {status}")
    return rsb


class Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


NON_TRANSPOSE, GENERAL = 10, 20


@functools.cache
def _mkl() -> ctypes.CDLL:
    """Load MKL from where pip puts it, or from the system."""
    folders = Path(sys.prefix, "lib"), *(Path(folder).parents[1] for folder in sys.path if folder)
    found = [path for folder in folders for path in sorted(folder.glob("libmkl_rt.so*"))]
    for path in [*found, Path("libmkl_rt.so")]:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise MissingLibraryError("not installed: pip install 'sparsecast[peers]'")


def mkl_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the inspector-executor product, hinted and optimised, and its result."""
    _float64(A)
    mkl = _mkl()
    mkl.MKL_Set_Num_Threads(threads)
    handle, description = ctypes.c_void_p(), Description(GENERAL, 0, 0)
    pointer = ctypes.c_void_p
    ends = A.indptr[1:].ctypes.data_as(pointer)
    arrays = (part.ctypes.data_as(pointer) for part in (A.indices, A.data))
    starts = A.indptr.ctypes.data_as(pointer)
    status = mkl.mkl_sparse_d_create_csr(ctypes.byref(handle), 0, *A.shape, starts, ends, *arrays)
    status |= mkl.mkl_sparse_set_mv_hint(handle, NON_TRANSPOSE, description, PRODUCTS)
    status |= mkl.mkl_sparse_optimize(handle)
    if status:
        raise MissingLibraryError(f"it refused the matrix with status {status}")
    y = np.empty(A.shape[0])
    one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
    in_out = x.ctypes.data_as(pointer), y.ctypes.data_as(pointer)

    def product() -> None:
        mkl.mkl_sparse_d_mv(NON_TRANSPOSE, one, handle, description, in_out[0], zero, in_out[1])

    weakref.finalize(product, _release, mkl.mkl_sparse_destroy, handle, A, x)

    def result() -> NDArray[Any]:
        product()
        return y

    return product, result


def _release(destroy: Callable[[Any], Any], handle: Any, *held: Any) -> None:
    """Give a library's matrix back; the arrays that it reads are held until then."""
    destroy(handle)


def _float64(A: csr_array[Any]) -> None:
    if A.dtype != np.float64 or A.indices.dtype != np.int32:
        raise MissingLibraryError("it is called for float64 values and 32-bit indices")


#: By name, in the order in which they are sampled: MKL last, whose threads spin after a call.
LIBRARIES = {
    "SciPy": scipy_call,
    "PyTorch": torch_call,
    "GraphBLAS": graphblas_call,
    "librsb": librsb_call,
    "MKL": mkl_call,
}
