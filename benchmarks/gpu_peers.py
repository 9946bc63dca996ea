"""Our products beside those of cuSPARSE, CuPy and torch on one matrix, sampled in turn."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from gpu_scope import label
from nvmath_peers import NVMATH_PEERS, MissingPeerError, Peer
from sparsecast.api import read_matrix
from sparsecast.devices.binding import prepared
from sparsecast.devices.product_timer import ReferenceProduct, right_hand_side
from sparsecast.errors import FormatError, InputError, MatrixSizeError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Call, measure

if TYPE_CHECKING:
    from gpu_campaign import Campaign


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


def cusparse_call(A: csr_array, x: np.ndarray, algorithm: int) -> tuple[Call, Call]:
    """Return cuSPARSE's product with descriptors and buffer made before, and its result."""
    cupy, sparse = _cupy()
    cusparse = importlib.import_module("cupyx.cusparse")
    library = importlib.import_module("cupy_backends.cuda.libs.cusparse")
    cuda_type = importlib.import_module("cupy._core._dtype").to_cuda_dtype(A.dtype)
    matrix = sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    there, y = cupy.asarray(x), cupy.zeros(A.shape[0], A.dtype)
    descriptors = cusparse.SpMatDescriptor.create(matrix), *map(cusparse.DnVecDescriptor.create, (there, y))
    scalars = np.ones(1, A.dtype), np.zeros(1, A.dtype)
    a, v, w = (descriptor.desc for descriptor in descriptors)
    one, zero = (scalar.ctypes.data for scalar in scalars)
    handle = cupy.cuda.device.get_cusparse_handle()
    operation = library.CUSPARSE_OPERATION_NON_TRANSPOSE
    arguments = (handle, operation, one, a, v, zero, w, cuda_type, algorithm)
    buffer = cupy.empty(max(1, library.spMV_bufferSize(*arguments)), cupy.int8)
    held = matrix, there, descriptors, scalars, buffer
    spmv, place = library.spMV, buffer.data.ptr

    def product(held: Any = held) -> None:
        spmv(*arguments, place)

    return product, lambda: (product(), y.get())[1]


def cupy_call(A: csr_array, x: np.ndarray) -> tuple[Call, Call]:
    """Return CuPy's csr @ x, which allocates y, and its result."""
    cupy, sparse = _cupy()
    matrix = sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    there = cupy.asarray(x)
    return (lambda: matrix @ there), (lambda: (matrix @ there).get())


def _cupy() -> tuple[Any, Any]:
    try:
        return importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.sparse")
    except ImportError as error:
        raise MissingPeerError("CuPy is not installed") from error


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


#: cuSPARSE by its algorithms (cusparseSpMVAlg_t: default 0, CSR_ALG1 2, CSR_ALG2 3), and in libraries.
PEERS: dict[str, Peer] = {
    "cuSPARSE": lambda A, x: cusparse_call(A, x, 0),
    "cuSPARSE CSR_ALG1": lambda A, x: cusparse_call(A, x, 2),
    "cuSPARSE CSR_ALG2": lambda A, x: cusparse_call(A, x, 3),
    "CuPy": cupy_call,
    "torch": torch_call,
    **NVMATH_PEERS,
}


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
    A = prepared(read.matrix, read.matrix.dtype.name, 32)
    problem = Problem.of(A, read.name)
    x = right_hand_side(A.shape[1], A.dtype.name)
    reference = ReferenceProduct.of(A, x)
    ours, traffic = _our_calls(campaign, problem, x, reference)
    theirs, missing = _peer_calls(campaign, problem, x, reference)
    timings = measure({**ours, **theirs}, campaign.scope.effort, clock=campaign.clock)
    for name, peer in list(theirs.items()):
        if peer.error is not None:
            missing[name] = f"failed when it was repeated: {type(peer.error).__name__}: {peer.error}"
            del theirs[name], timings[name]
    best_ours, best_peer = (
        min(calls, key=lambda name: timings[name].time_s, default=None) for calls in (ours, theirs)
    )
    return {
        "matrix": read.name,
        "nnz": A.nnz,
        "dtype": A.dtype.name,
        "best_ours": best_ours,
        "best_peer": best_peer,
        "ratio": timings[best_peer].time_s / timings[best_ours].time_s if best_ours and best_peer else None,
        "bytes_per_s": traffic[best_ours] / timings[best_ours].time_s if best_ours else None,
        "times_s": {name: timing.time_s for name, timing in timings.items()},
        "noise": {name: timing.noise for name, timing in timings.items()},
        "missing": missing,
    }


def _our_calls(
    campaign: Campaign, problem: Problem, x: np.ndarray, reference: ReferenceProduct
) -> tuple[dict[str, Call], dict[str, int]]:
    """Return the checked products of a matrix, and the bytes that each streams."""
    device, calls, traffic = campaign.device, {}, {}
    there = device.put(x)
    for candidate in campaign.candidates(problem, x.dtype.name):
        name = label(candidate)
        try:
            bound, _ = device.bind(problem.matrix, candidate)
        except (FormatError, MatrixSizeError):  # left out, as in every measurement
            continue
        out = campaign.device.put(np.full(problem.matrix.shape[0], np.nan, dtype=x.dtype))
        calls[name], traffic[name] = (
            campaign.device.call(candidate, bound, there, out),
            bound.matrix.traffic(),
        )
        calls[name]()
        reference.check(campaign.device.take(out), name)
    return calls, traffic


def _peer_calls(
    campaign: Campaign, problem: Problem, x: np.ndarray, reference: ReferenceProduct
) -> tuple[dict[str, Guarded], dict[str, str]]:
    """Return the checked products of the peers, and why others are missing."""
    calls, missing = dict[str, Guarded](), dict[str, str]()
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
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None
