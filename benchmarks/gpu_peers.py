"""Our products beside those of cuSPARSE, CuPy and torch on one matrix, sampled in turn; and beside a graph.

cuSPARSE is called through nvmath-python: its CSR algorithms, the default one as it is and all prepared for
the matrix, sliced ELL and blocks. Matrix and vectors are placed by numba-cuda, so that CuPy is not needed.
Handles and descriptors, some hundred bytes each, live as long as the process; device memory as long as the
product.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import bsr_array, csr_array

from gpu_scope import label
from sparsecast.api import read_matrix
from sparsecast.devices.binding import prepared
from sparsecast.devices.gpu.launching import as_graph, interface, upload
from sparsecast.devices.product_timer import ProductTimer, ReferenceProduct, right_hand_side
from sparsecast.errors import FormatError, InputError, MatrixSizeError
from sparsecast.features.blocks import BLOCK_SIZES, block_fill
from sparsecast.formats.bcsr import best_block
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Call
from sparsecast.records import Candidate

if TYPE_CHECKING:
    from gpu_campaign import Campaign

#: Rows of a slice of sliced ELL: a warp.
SLICE_ROWS = 32

#: Values stored for each entry beyond which a format is left out: it would only cost the campaign's time.
MOST_PADDING = 3.0

#: Products of a small matrix in one graph: as many as an iterated caller may queue before looking at y.
GRAPHED = 32

#: Returns the product of a matrix with x, with all that it needs made before, and a call for its result.
Peer = Callable[[csr_array, np.ndarray], tuple[Call, Call]]


class MissingPeerError(Exception):
    """A peer is not installed, sees no device or does not suit the matrix; the message says which."""


class Stored(NamedTuple):
    """A matrix as cuSPARSE takes it."""

    create: str  # the function of nvmath.bindings.cusparse that describes it
    sizes: tuple[int, ...]  # what that takes before the arrays
    arrays: list[np.ndarray]  # offsets, columns (both int32) and values
    shape: tuple[int, int]  # entries of y and of x, with those that the format adds
    beyond: tuple[int, ...] = ()  # what `create` takes after the type of the values


def as_csr(A: csr_array) -> Stored:
    """Return the matrix as it is."""
    return Stored("create_csr", (*A.shape, A.nnz), [A.indptr, A.indices, A.data], A.shape)


def as_sliced_ell(A: csr_array) -> Stored:
    """Return slices of SLICE_ROWS rows, each column by column and as wide as its longest; column -1 pads."""
    rows, lengths = A.shape[0], np.diff(A.indptr)
    slices = -(-rows // SLICE_ROWS)
    padded = np.zeros(slices * SLICE_ROWS, dtype=np.int64)
    padded[:rows] = lengths
    offsets = np.zeros(slices + 1, dtype=np.int64)
    np.cumsum(padded.reshape(slices, SLICE_ROWS).max(axis=1) * SLICE_ROWS, out=offsets[1:])
    stored = int(offsets[-1])
    _refuse_padding("sliced ELL", stored / max(1, A.nnz))
    row = np.repeat(np.arange(rows), lengths)
    within = np.arange(A.nnz) - np.repeat(A.indptr[:-1].astype(np.int64), lengths)
    place = offsets[row // SLICE_ROWS] + within * SLICE_ROWS + row % SLICE_ROWS
    columns, values = np.full(stored, -1, dtype=np.int32), np.zeros(stored, dtype=A.dtype)
    columns[place], values[place] = A.indices, A.data
    arrays = [offsets.astype(np.int32), columns, values]
    return Stored("create_sliced_ell", (*A.shape, A.nnz, stored, SLICE_ROWS), arrays, A.shape)


def as_blocks(A: csr_array) -> Stored:
    """Return square blocks of the size that our own BCSR would have, each row by row."""
    fill = block_fill(A.indptr, A.indices)
    side = best_block(fill)
    _refuse_padding("BSR", fill[BLOCK_SIZES.index(side)])
    shape = tuple(-(-size // side) * side for size in A.shape)
    indptr = np.append(A.indptr, np.full(shape[0] - A.shape[0], A.indptr[-1], dtype=A.indptr.dtype))
    blocks = bsr_array(csr_array((A.data, A.indices, indptr), shape=shape), blocksize=(side, side))
    arrays = [blocks.indptr.astype(np.int32), blocks.indices.astype(np.int32), blocks.data.ravel()]
    sizes = (shape[0] // side, shape[1] // side, len(blocks.indices), side, side)
    return Stored("create_bsr", sizes, arrays, shape, (int(_cusparse().Order.ROW),))


def _refuse_padding(name: str, factor: float) -> None:
    if factor > MOST_PADDING:
        raise MissingPeerError(f"{name} would store {factor:.1f} values an entry, more than {MOST_PADDING:g}")


def nvmath_call(
    store: Callable[[csr_array], Stored], algorithm: str, prepare: bool, A: csr_array, x: np.ndarray
) -> tuple[Call, Call]:
    """Return cuSPARSE's product, with int32 indices, of a matrix that `store` brings into its format.

    `algorithm` is a name in SpMVAlg. To `prepare` is to let cuSPARSE look at the matrix before.
    """
    cusparse, stored = _cusparse(), store(A)
    kinds = importlib.import_module("nvmath").CudaDataType
    value_type = int({"float32": kinds.CUDA_R_32F, "float64": kinds.CUDA_R_64F}[A.dtype.name])
    index_type, base = int(cusparse.IndexType.INDEX_32I), int(cusparse.IndexBase.ZERO)
    longer_x = np.zeros(stored.shape[1], dtype=A.dtype)
    longer_x[: len(x)] = x
    *arrays, there, y = upload("vectors", *stored.arrays, longer_x, np.zeros(stored.shape[0], dtype=A.dtype))
    types = (index_type, index_type, base, value_type)
    matrix = getattr(cusparse, stored.create)(*stored.sizes, *map(_address, arrays), *types, *stored.beyond)
    v, w = (cusparse.create_dn_vec(vector.size, _address(vector), value_type) for vector in (there, y))
    scalars = np.ones(1, A.dtype), np.zeros(1, A.dtype)
    one, zero = (scalar.ctypes.data for scalar in scalars)
    operation, chosen = int(cusparse.Operation.NON_TRANSPOSE), int(getattr(cusparse.SpMVAlg, algorithm))
    arguments = (_handle(), operation, one, matrix, v, zero, w, value_type, chosen)
    (buffer,) = upload("vectors", np.zeros(max(1, cusparse.sp_mv_buffer_size(*arguments)), dtype=np.int8))
    place, spmv, held = _address(buffer), cusparse.sp_mv, (arrays, there, scalars, buffer)
    if prepare:
        cusparse.sp_mv_preprocess(*arguments, place)

    def product(held: Any = held) -> None:
        spmv(*arguments, place)

    return product, lambda: (product(), y.copy_to_host()[: A.shape[0]])[1]


def _address(array: Any) -> int:
    return int(interface(array)["data"][0] or 0)


def _cusparse() -> Any:
    if importlib.util.find_spec("nvmath") is None:
        raise MissingPeerError("nvmath-python is not installed")
    return importlib.import_module("nvmath.bindings.cusparse")


@functools.cache
def _handle() -> int:
    return int(_cusparse().create())


def cupy_call(A: csr_array, x: np.ndarray) -> tuple[Call, Call]:
    """Return CuPy's csr @ x, which allocates y, and its result."""
    try:
        cupy, sparse = importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.sparse")
    except ImportError as error:
        raise MissingPeerError("CuPy is not installed") from error
    matrix = sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    there = cupy.asarray(x)
    return (lambda: matrix @ there), (lambda: (matrix @ there).get())


def torch_call(A: csr_array, x: np.ndarray) -> tuple[Call, Call]:
    """Return the product of torch's CSR tensor, which allocates y, and its result."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingPeerError("torch is not installed") from error
    if not torch.cuda.is_available():
        raise MissingPeerError("torch sees no device")
    # torch says at the first CSR tensor of a process that they are in beta state.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
    parts = (torch.from_numpy(part).cuda() for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=False)
    vector = torch.from_numpy(x).cuda()
    return (lambda: matrix @ vector), (lambda: (matrix @ vector).cpu().numpy())


#: cuSPARSE by its algorithms, and libraries.
PEERS: dict[str, Peer] = {
    "cuSPARSE": functools.partial(nvmath_call, as_csr, "DEFAULT", False),
    "CuPy": cupy_call,
    "torch": torch_call,
    "cuSPARSE CSR_ALG1 prepared": functools.partial(nvmath_call, as_csr, "CSR_ALG1", True),
    "cuSPARSE CSR_ALG2 prepared": functools.partial(nvmath_call, as_csr, "CSR_ALG2", True),
    "cuSPARSE SELL_ALG1": functools.partial(nvmath_call, as_sliced_ell, "SELL_ALG1", False),
    "cuSPARSE BSR_ALG1": functools.partial(nvmath_call, as_blocks, "BSR_ALG1", False),
}


@dataclass
class Guarded:
    """The call of a peer. One that fails is not called again, and the others go on."""

    call: Call
    error: Exception | None = None

    def __call__(self) -> None:
        if self.error is None:
            try:
                self.call()
            except Exception as error:  # a library of others
                self.error = error


def beside_peers(campaign: Campaign, specification: str) -> dict[str, Any]:
    """Measure every candidate of a matrix and every peer; say of the others why they are missing.

    Raises
    ------
    InputError
        If the matrix has complex values, or too few.
    """
    read = read_matrix(specification)
    least = campaign.scope.least_peer_entries
    if read.matrix.nnz < least or np.iscomplexobj(read.matrix.data):
        raise InputError(f"{read.name}: expected real values, at least {least:,} of them; name another")
    problem = Problem.of(prepared(read.matrix, read.matrix.dtype.name, 32), read.name)
    candidates = campaign.candidates(problem, read.matrix.dtype.name)
    # Also where every kernel of the type was found wrong: the peers are measured then.
    plain = Candidate("csr", "scalar", "cuda", read.matrix.dtype.name, 32, 1)
    timer = ProductTimer(problem.matrix, plain, campaign.device)
    ours: dict[str, Call] = {}
    traffic: dict[str, int] = {}  # bytes that each streams
    for candidate in candidates:
        with suppress(FormatError, MatrixSizeError):  # left out, as in every measurement
            built = timer.build(candidate)
            ours[label(candidate)] = timer.call(built)
            traffic[label(candidate)] = built.bound.matrix.traffic()
    theirs, missing = _peer_calls(campaign, problem)
    timings = timer.time({**ours, **theirs}, campaign.scope.effort)
    for name, peer in list(theirs.items()):
        if peer.error is not None:
            missing[name] = f"failed when it was repeated: {type(peer.error).__name__}: {peer.error}"
            del theirs[name], timings[name]
    times_s = {name: timing.time_s for name, timing in timings.items()}
    best_ours, best_peer = (min(calls, key=times_s.__getitem__, default=None) for calls in (ours, theirs))
    return {
        "matrix": read.name,
        "nnz": problem.matrix.nnz,
        "dtype": problem.matrix.dtype.name,
        "best_ours": best_ours,
        "best_peer": best_peer,
        "ratio": times_s[best_peer] / times_s[best_ours] if best_ours and best_peer else None,
        "bytes_per_s": traffic[best_ours] / times_s[best_ours] if best_ours else None,
        "times_s": times_s,
        "noise": {name: timing.noise for name, timing in timings.items()},
        "missing": missing,
    }


def _peer_calls(campaign: Campaign, problem: Problem) -> tuple[dict[str, Guarded], dict[str, str]]:
    """Return the checked products of the peers, and why others are missing."""
    calls, missing = dict[str, Guarded](), dict[str, str]()
    x = right_hand_side(problem.matrix.shape[1], problem.matrix.dtype.name)
    reference = ReferenceProduct.of(problem.matrix, x)
    for name, make in PEERS.items():
        try:
            call, result = make(problem.matrix, x)
            reference.check(np.asarray(result()), name)
        except MissingPeerError as error:
            missing[name] = f"missing: {error}"
        except Exception as error:  # a library of others: whatever it raises is a row that says so
            missing[name] = f"failed: {type(error).__name__}: {error}"
            campaign.note(f"peer {name} on {problem.name}")
        else:
            calls[name] = Guarded(call)
    return calls, missing


def mean_ratio(found: Sequence[dict[str, Any]]) -> float | None:
    """Return the geometric mean of the best peer's time over ours."""
    ratios = [row["ratio"] for row in found if row.get("ratio")]
    return geometric_mean(ratios) if ratios else None


def beside_graph(campaign: Campaign, specification: str) -> dict[str, Any]:
    """Return the seconds of a product of a gallery matrix, of GRAPHED launched one by one and as a graph."""
    A = prepared(Problem.named(f"gallery:{specification}").matrix, campaign.scope.dtypes[0], 32)
    problem = Problem.of(A, specification)
    candidate = next(each for each in campaign.candidates(problem, A.dtype.name) if each.format == "csr")
    timer = ProductTimer(A, candidate, campaign.device)
    built = timer.build(candidate)
    one, product = timer.call(built), built.bound.product

    graph = as_graph(lambda stream: [product(timer.x, timer.out, stream) for _ in range(GRAPHED)])
    graph()
    reference = ReferenceProduct.of(A, right_hand_side(A.shape[1], A.dtype.name))
    error = reference.check(timer.device.take(timer.out), f"a graph of {candidate.kernel}")
    calls: dict[str, Call] = {"launched": lambda: [one() for _ in range(GRAPHED)], "graph": graph}
    timings = timer.time(calls, campaign.scope.effort)
    return {
        "matrix": specification,
        "nnz": A.nnz,
        "candidate": candidate.to_dict(),
        "products": GRAPHED,
        "launched_s": timings["launched"].time_s / GRAPHED,
        "graph_s": timings["graph"].time_s / GRAPHED,
        "noise": {name: timing.noise for name, timing in timings.items()},
        "error": error,
    }
