"""From a matrix and a Candidate to a product that can be called, by the kernels of a format.

Where rows and columns are in another order, x is copied there, and y back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import Machine
from sparsecast.matrices.values import require_imaginary
from sparsecast.operators.block_operator import Product, one_by_one
from sparsecast.records import PANEL_VECTORS, Candidate, Parameters
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts


@dataclass(frozen=True)
class FormatKernels:
    """The kernel variants of a format on a device."""

    variants: tuple[str, ...]  # names, for Candidates
    #: (RowBlocks, Machine, dtype) to an array of indices into `variants`: the variant for each block. The
    #: Machine is that of the question, which may be another one than the host.
    choose: Callable[[RowBlocks, Machine, str], NDArray[np.int64]]
    #: (matrix in the format, variant, threads) to a Product that can be called any number of times; on a
    #: processor the matrix has an entry. On a GPU, `threads` is ignored and the result is a DeviceProduct,
    #: for x and y on the device.
    bind: Callable[[Any, str, int], Product]
    #: (matrix in the format, threads) to a Product with several vectors: X and out are C-contiguous, of shape
    #: (cols, vectors) and (rows, vectors), with at least one vector. None: one vector at a time.
    bind_multivector: Callable[[Any, int], Product] | None = None
    #: Variants without complex values: `choose` never chooses them for complex types.
    real_only: tuple[str, ...] = ()
    #: Parameters of Candidates that give the layout of the format on this device, of those that
    #: `predicted_parameters` of the format names.
    layout: Mapping[str, int] = field(default_factory=dict)
    #: Parameters of Candidates with code of their own, which a calibration compiles beforehand.
    sizes: tuple[Mapping[str, Any], ...] = ({},)
    reads_narrow: bool = False  # whether the kernels read the narrow storage that the format takes
    #: Whether the order of sums follows from how many threads share the rows. Products with as many threads
    #: have the same bits each time in every kernel: no sum waits for whichever thread is first.
    sums_by_threads: bool = False
    #: Raise it with every change of a kernel, its rule or its layout; older Records then no longer count. On
    #: a GPU, whose Records are of every kernel, a rule alone needs no raise.
    version: int = 1

    def passes(self, vectors: int) -> int:
        """Return how often a product with so many vectors reads the matrix."""
        return vectors if self.bind_multivector is None else -(-vectors // PANEL_VECTORS)

    def variants_of(self, dtype: str) -> tuple[str, ...]:
        is_complex = np.dtype(dtype).kind == "c"
        return tuple(variant for variant in self.variants if not (is_complex and variant in self.real_only))


def only_variant(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    """Choose the first variant for every block: for formats with a single variant."""
    return np.zeros(len(blocks.rows), dtype=np.int64)


class Bound(NamedTuple):
    """A matrix in a candidate's format, its product, and its product with several vectors if there is one."""

    matrix: StorageFormat
    product: Product
    multivector: Product | None = None

    def of(self, vectors: int) -> Product:
        """Return the product with x, or with X of several vectors, one after another if need be."""
        if vectors == 1:
            return self.product
        return self.multivector or partial(one_by_one, self.product)


def bind(A: csr_array[Any], candidate: Candidate) -> Bound:
    """Build `A` as `candidate` says and prepare its kernel."""
    storage: Any = FORMATS.get(candidate.format)
    DEVICES.get(candidate.device).require_library()
    storage.refuse_types(candidate.dtype, candidate.index_bits, candidate.vectors)
    return bound(storage.from_csr(A, **candidate.parameters), candidate)


def bound(matrix: StorageFormat, candidate: Candidate) -> Bound:
    """Prepare the kernel of a candidate for a matrix in its format; refuse one of real values for complex."""
    device = DEVICES.get(candidate.device)
    kernels = device.kernels.get(candidate.format)
    if candidate.kernel in kernels.real_only and matrix.dtype.kind == "c":
        raise InputError(
            f"kernel '{candidate.kernel}' with {matrix.dtype} values: expected real ones; name one of "
            f"{', '.join(kernels.variants_of(candidate.dtype))}"
        )
    if matrix.nnz == 0 and device.shares_host:
        return Bound(matrix, _zeros, _zeros)
    multivector = kernels.bind_multivector(matrix, candidate.threads) if kernels.bind_multivector else None
    return Bound(matrix, kernels.bind(matrix, candidate.kernel, candidate.threads), multivector)


def _zeros(x: NDArray[Any], out: NDArray[Any]) -> None:
    out.fill(0)


def as_compiled(candidate: Candidate, structure: Structure) -> Candidate:
    """Return a Candidate for a whole matrix with all parameters that its code is compiled for."""
    found = FORMATS.get(candidate.format).compiled_for(structure)
    parameters = Parameters({**found, **candidate.parameters})
    return replace(candidate, parameters=parameters) if found else candidate


def warm_up(candidate: Candidate) -> None:
    """Compile the kernels of a candidate, or load them from a cache."""
    DEVICES.get(candidate.device).warm_up(candidate)


def tiny_matrix(candidate: Candidate) -> csr_array[Any]:
    """Return the smallest matrix that compiles the kernels of a candidate: one block, for blocks."""
    shape: Any = candidate.parameters.get("block", (2, 2))
    return prepared(csr_array(np.ones(shape)), candidate.dtype, candidate.index_bits)


def prepared(A: csr_array[Any], dtype: str, index_bits: int) -> csr_array[Any]:
    """Return `A` with values and indices of the given types; `A` itself if it has them."""
    index_dtype = np.dtype(f"int{index_bits}")
    largest = max(A.shape[1], int(A.indptr[-1]))
    if largest > np.iinfo(index_dtype).max:
        raise InputError(
            f"indices of {index_bits} bits for {largest:,} columns or entries: expected 64 bits; "
            f"plan it again"
        )
    if A.data.dtype == dtype and A.indices.dtype == index_dtype and A.indptr.dtype == index_dtype:
        return A
    require_imaginary(A.data.dtype, dtype, f"a {A.data.dtype} matrix")
    converted = csr_array(A.shape, dtype=dtype)
    converted.data = A.data.astype(dtype, copy=False)
    converted.indices = A.indices.astype(index_dtype, copy=False)
    converted.indptr = A.indptr.astype(index_dtype, copy=False)
    return converted


def row_slice(A: csr_array[Any], first: int, last: int) -> csr_array[Any]:
    """Return rows first to last, both included, sharing columns and values with `A`."""
    start, stop = int(A.indptr[first]), int(A.indptr[last + 1])
    block = csr_array((last + 1 - first, A.shape[1]), dtype=A.dtype)
    block.indptr = A.indptr[first : last + 2] - A.indptr[first]
    block.indices = A.indices[start:stop]
    block.data = A.data[start:stop]
    return block


@inner
def _part(part, order, source, out, starts):
    for i in range(starts[part], starts[part + 1]):
        out[i] = source[order[i]]


@njit(nogil=True, cache=True)
def _gather(order, source, out, starts, pool):
    each_part(_part, (order, source, out, starts), pool)


def in_first_order(there: Bound, order: NDArray[Any], candidate: Candidate) -> Bound:
    """Return the products of A of those of ``A[order][:, order]``, on the host.

    x is copied into the other order, and y back, unless the format says where each stored row belongs.

    `order` is a permutation of shape (rows,); `there` was built as `candidate`, and as many threads copy.
    """
    starts = equal_parts(len(order), candidate.threads).astype(np.uint64)
    copy_x, copy_y = (share(_gather, (unsigned(each),), starts) for each in (order, np.argsort(order)))
    matrix: Any = there.matrix
    rows = getattr(matrix, "permutation", None)
    if stores_y := rows is not None:
        rows = (order[rows] if len(rows) else order).astype(rows.dtype)
        there = bound(replace(matrix, permutation=rows), candidate)
    several = there.multivector
    kept = threading.local()  # to ask for memory of this size takes as long as to copy a vector

    def product(x: NDArray[Any], out: NDArray[Any]) -> None:
        if not hasattr(kept, "x"):
            kept.x, kept.out = np.empty_like(x), np.empty_like(out)
        copy_x(x, kept.x)
        there.product(kept.x, out if stores_y else kept.out)
        if not stores_y:
            copy_y(kept.out, out)

    def multivector(X: NDArray[Any], out: NDArray[Any], several: Product) -> None:
        Y = out if stores_y else np.empty_like(out)
        several(X[order], Y)
        if not stores_y:
            out[order] = Y

    return Bound(there.matrix, product, partial(multivector, several=several) if several else None)
