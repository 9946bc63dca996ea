"""Shared parts of all generators of matrices, and benchmark matrices of varied rows, blocks and diagonals.

A generator computes the length of each row and then draws the columns. Values depend on the place alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array, diags_array, tril, triu

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.system.integers import GOLDEN, INT32_MAX, mixed, stream_of
from sparsecast.system.jit import inner, njit
from sparsecast.system.memory import require_memory

#: Width of the band that holds the columns of a benchmark matrix, in entries per row. Within a few times the
#: row length, the part of x in use stays in the first-level cache, as in most matrices from meshes: the time
#: is that of the format and not of cache misses.
BAND_WIDTH_IN_ROW_LENGTHS = 4

#: Least width of that band, in columns: short rows would otherwise share one or two cache lines of x.
LEAST_BAND_WIDTH = 64

Whole = NDArray[np.int64]

_ONE = np.uint64(1)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)


def csr_bytes(rows: int, nnz: int, index_bytes: int = 4, value_bytes: int = 8) -> int:
    """Return the bytes of the three CSR arrays of a matrix with `rows` rows and `nnz` stored entries."""
    return nnz * (index_bytes + value_bytes) + (rows + 1) * index_bytes


def canonical(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> csr_array:
    """Return the matrix of CSR arrays that are sorted and free of duplicates."""
    matrix = csr_array((data, indices, indptr), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def starts_of(lengths: NDArray[Any], index: np.dtype[Any] | type = np.int32) -> NDArray[Any]:
    indptr = np.zeros(len(lengths) + 1, dtype=index)
    if int(np.sum(lengths, dtype=np.int64)) > np.iinfo(indptr.dtype).max:
        raise InputError(f"{np.sum(lengths):,} entries: expected fewer than 2**31; make a smaller matrix")
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def apportioned(total: int, weights: Whole, caps: Whole) -> Whole:
    """Return whole numbers in proportion to `weights`, at most `caps`, whose sum is `total`."""
    lengths = np.zeros(len(weights), dtype=np.int64)
    missing = total
    while missing:
        uncapped = np.where(lengths < caps, weights, 0)
        if not uncapped.any():
            uncapped = caps - lengths
        sums = np.cumsum(uncapped)
        bounds = np.floor(sums * (missing / sums[-1])).astype(np.int64)
        bounds[sums == sums[-1]] = missing
        np.minimum(lengths + np.diff(bounds, prepend=0), caps, out=lengths)
        missing = total - int(lengths.sum())
    return lengths


def random_bits(count: int, seed: int) -> NDArray[np.uint64]:
    """Return `count` times 64 random bits, from another stream than columns and values of this seed."""
    stream = ~np.uint64(stream_of(np.uint64(seed % 2**64)))
    bits: NDArray[np.uint64] = mixed(stream + np.arange(count, dtype=np.uint64) * GOLDEN)
    return bits


def uniform(count: int, seed: int) -> NDArray[np.float64]:
    return ((random_bits(count, seed) >> _HALF_BITS).astype(np.float64) + 0.5) * 2.0**-32


def check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{name} = {value}: expected an integer of at least {least}; give a larger one")


def _check_sizes(rows: int, nnz_per_row: int, seed: int) -> None:
    check_least("rows", rows, 1)
    check_least("seed", seed, 0)
    if not 1 <= nnz_per_row <= rows:
        raise InputError(
            f"nnz_per_row = {nnz_per_row}: expected 1 to rows = {rows}, as columns are distinct; "
            "give fewer entries a row or more rows"
        )
    what = f"a benchmark matrix of {rows} rows with {nnz_per_row} entries each"
    if rows * nnz_per_row > INT32_MAX:
        raise MatrixSizeError(
            f"{what} has {rows * nnz_per_row} entries, expected at most {INT32_MAX} for int32 indices; "
            "choose fewer rows or entries a row"
        )
    require_memory(csr_bytes(rows, rows * nnz_per_row), what)


def varied_matrix(rows: int, mean_length: int, lengths: str, reach: float, *, seed: int = 0) -> csr_array:
    """Return a benchmark matrix with rows of varied length and columns within a chosen reach.

    It has what matrices with rows of one length lack: mispredicted ends of rows, long rows among short ones,
    and reads of x that miss a cache.

    There are `mean_length` entries per row in the mean, before rows are cut to the columns within reach. The
    `lengths` are ``"fixed"``, ``"uniform"`` (0 to twice the mean), ``"mixed"`` (one row in ten uniform, the
    others fixed) or ``"power"`` (Pareto of exponent 2: a few very long rows). `reach` is the share of the
    columns, around the diagonal, from which a row draws its columns: at least four times the mean length.

    The same arguments give the same square csr_array: float64 values uniform in (-1, 1) without zeros, int32
    indices, sorted, without duplicates.
    """
    _check_sizes(rows, mean_length, seed)
    width = min(rows, max(int(reach * rows), BAND_WIDTH_IN_ROW_LENGTHS * mean_length, LEAST_BAND_WIDTH))
    generator = np.random.default_rng(seed)
    if lengths == "fixed":
        row_lengths = np.full(rows, mean_length, dtype=np.int64)
    elif lengths in ("uniform", "mixed"):
        row_lengths = generator.integers(0, 2 * mean_length + 1, rows)
        if lengths == "mixed":
            row_lengths = np.where(generator.random(rows) < 0.1, row_lengths, mean_length)
    elif lengths == "power":
        # A Lomax variable of exponent 2 has the mean 1; rounding down costs half an entry.
        row_lengths = (mean_length * generator.pareto(2.0, rows) + 0.5).astype(np.int64)
    else:
        raise InputError(f"lengths '{lengths}': expected fixed, uniform, mixed or power; name one of them")
    indptr = starts_of(np.minimum(row_lengths, width))
    indices = np.empty(int(indptr[-1]), dtype=np.int32)
    data = np.empty(int(indptr[-1]), dtype=np.float64)
    seed64 = np.uint64(seed % 2**64)
    _fill_varied(indptr.view(np.uint32), np.uint64(width), seed64, indices.view(np.uint32), data)
    return canonical(data, indices, indptr, (rows, rows))


def block_matrix(
    block_rows: int, blocks_per_row: int, block: int, reach: float, *, seed: int = 0
) -> csr_array:
    """Return a benchmark matrix of dense square blocks, as finite elements with several unknowns per node.

    The blocks, of `block` rows and columns each, are placed like the entries of a `varied_matrix` of mixed
    lengths.
    """
    pattern = varied_matrix(block_rows, blocks_per_row, "mixed", reach, seed=seed)
    require_memory(2 * csr_bytes(block_rows * block, pattern.nnz * block**2), "a benchmark matrix of blocks")
    values = np.random.default_rng(seed).uniform(-1.0, 1.0, (pattern.nnz, block, block))
    size = block_rows * block
    matrix = csr_array(bsr_array((values, pattern.indices, pattern.indptr), shape=(size, size)))
    matrix.has_canonical_format = True
    return matrix


def mirrored(matrix: csr_array, is_upper: bool = False) -> csr_array:
    """Return the symmetric, sorted matrix with the lower or the upper triangle of `matrix`."""
    half = triu(matrix, 1, format="csr") if is_upper else tril(matrix, -1, format="csr")
    whole = csr_array(half + half.T + diags_array(matrix.diagonal(), format="csr"))
    whole.eliminate_zeros()
    whole.sort_indices()
    return whole


def diagonal_matrix(rows: int, diagonals: int, reach: float, *, seed: int = 0) -> csr_array:
    """Return a benchmark matrix of full diagonals, as in finite differences.

    There are at most 2 * rows - 1 of them. The share of the columns on either side of the main diagonal that
    `reach` gives, below 1, is cut into as many equal cells, with one random diagonal each; it is raised until
    there are enough of them. The result is as from `varied_matrix`.
    """
    _check_sizes(rows, min(max(diagonals, 1), rows), seed)
    if not 1 <= diagonals <= 2 * rows - 1:
        raise InputError(
            f"diagonals = {diagonals}: expected 1 to {2 * rows - 1}, what {rows} rows have; give fewer"
        )
    generator = np.random.default_rng(seed)
    far = min(max(int(reach * rows), diagonals // 2), rows - 1)
    cells = np.arange(diagonals + 1) * (2 * far + 1) // diagonals - far
    offsets = generator.integers(cells[:-1], cells[1:])
    row = np.arange(rows)
    first, last = np.searchsorted(offsets, -row), np.searchsorted(offsets, rows - row)
    indptr = starts_of(last - first)
    indices = np.empty(int(indptr[-1]), dtype=np.int32)
    _fill_diagonals(indptr, offsets, first, indices)
    return canonical(generator.uniform(-1.0, 1.0, len(indices)), indices, indptr, (rows, rows))


@njit(cache=True, nogil=True)
def _fill_diagonals(indptr, offsets, first, indices):
    for row in range(len(first)):
        for entry in range(indptr[row], indptr[row + 1]):
            indices[entry] = row + offsets[first[row] + entry - indptr[row]]


@inner
def value_of(bits):
    """Return an odd multiple of 2**-32: uniform in (-1, 1), symmetric and never an explicit zero."""
    return np.float64(((bits >> _HALF_BITS) << _ONE) + _ONE) * 2.0**-32 - 1.0


@njit(cache=True, nogil=True)
def _fill_varied(indptr, width, seed, indices, data):
    stream = stream_of(seed)
    rows = np.uint64(indptr.size - 1)
    half = width >> _ONE
    # The columns of the band are cut into as many equal cells as the row has entries.
    cells, cut_for = np.empty(width + _ONE, dtype=np.uint64), np.uint64(0)
    for row in range(rows):
        start, length = np.uint64(indptr[row]), np.uint64(indptr[row + _ONE] - indptr[row])
        if length != cut_for and length > np.uint64(0):
            for cell in range(length + _ONE):
                cells[cell] = cell * width // length
            cut_for = length
        band_start = min(max(np.uint64(row), half) - half, rows - width)
        for cell in range(length):
            bits = mixed(stream + (start + cell) * GOLDEN)
            span = cells[cell + _ONE] - cells[cell]
            column = band_start + cells[cell] + (((bits & _LOW_HALF) * span) >> _HALF_BITS)
            indices[start + cell] = np.uint32(column)
            data[start + cell] = value_of(bits)
