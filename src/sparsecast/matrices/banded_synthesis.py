"""Synthetic matrices with a chosen density, block size, spread over ten bands, and row lengths.

Gahvari et al. 2007, section III, describe a practical matrix by these numbers and generate others like it.
Here the blocks of each row of blocks are counted first, then those in each of its bands. Only the place of a
block in its band is drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array, diags_array

from sparsecast.errors import InputError
from sparsecast.features.sweep import BANDS
from sparsecast.matrices.synthesis import (
    Whole,
    apportioned,
    canonical,
    check_least,
    csr_bytes,
    random_bits,
    starts_of,
    uniform,
    value_of,
)
from sparsecast.system.integers import GOLDEN, index_dtype, mixed, stream_of
from sparsecast.system.jit import inner, njit
from sparsecast.system.memory import require_memory

#: Relative standard deviation of the row lengths. Wang 2017 names the distributions and leaves their spread
#: open. A power law of relative deviation 1 has the exponent 2.4. The binomial has 1 / sqrt(mean), which
#: cannot be chosen.
SPREADS = {"fixed": 0.0, "normal": 0.25, "uniform": 0.5, "power": 1.0, "binomial": None}

_ONE, _HALF_BITS = np.uint64(1), np.uint64(32)

# Gaps between sorted uniform numbers are exponential: their quantiles, in units that make the sum of a row's
# gaps exact in float64. Whole numbers, so that no machine's logarithm shows.
_GAP_BITS = 10
_GAPS = np.maximum(1, np.rint(-(2.0**16) * np.log1p(-(np.arange(2**_GAP_BITS) + 0.5) / 2**_GAP_BITS))).astype(
    np.int64
)

#: Weights of rows are whole numbers of this part of the mean: no machine's powers show in the lengths.
_WEIGHT_UNIT = 2.0**-20

Indices = NDArray[np.signedinteger[Any]]
Index = np.dtype[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class DensityClass:
    """The square matrices of one class of density, the mean number of entries per row."""

    least_density: float
    matrices: int  # number of matrices
    density: float  # mean over the matrices
    bands: tuple[float, ...]  # mean of their shares of entries in each band, as in a Structure


@dataclass(frozen=True, slots=True)
class BandStatistics:
    """Mean shares of entries in ten bands by distance from the diagonal, of practical matrices.

    Gahvari et al. 2007, section IV and Table II, feed their generator with such shares, averaged over 275
    matrices and grouped by density. The shipped shares are derived from another corpus by `python
    benchmarks/run.py band-statistics`; the file names its source.
    """

    source: dict[str, Any]  # what they were derived from, when, and by which command
    density: float
    classes: tuple[DensityClass, ...]  # by ascending density; those without a matrix are left out

    def bands(self, nnz_per_row: float) -> tuple[float, ...]:
        """Return the shares of the class of a density, or of the first class if the density is below all."""
        below = [each for each in self.classes if each.least_density <= nnz_per_row]
        return (below or self.classes[:1])[-1].bands


@cache
def band_statistics() -> BandStatistics:
    text = files("sparsecast.matrices").joinpath("band_statistics.json").read_bytes()
    return msgspec.json.decode(text, type=BandStatistics)


@dataclass(frozen=True, slots=True)
class Grid:
    """Blocks to count and to draw."""

    block_rows: int
    block_cols: int
    blocks: int
    diagonal: Whole  # the block column in which each row of blocks meets the diagonal
    edges: Whole  # band b is at distances edges[b] <= d < edges[b + 1] from there
    is_lower: bool  # blocks lie left of the diagonal only


def banded_matrix(
    rows: int,
    nnz_per_row: float,
    *,
    block: tuple[int, int] = (1, 1),
    bands: Sequence[float] | None = None,
    lengths: str = "fixed",
    spread: float | None = None,
    symmetric: bool = False,
    seed: int,
) -> csr_array:
    """Return a synthetic square matrix of dense blocks in ten bands (Gahvari et al. 2007, section III).

    Parameters
    ----------
    rows : int
        Rows and columns, rounded down to a multiple of lcm(r, c), so that blocks are whole.
    nnz_per_row : float
        Mean entries per row. The matrix has exactly ``round(rows * nnz_per_row / (r * c))`` blocks.
    block : (int, int)
        Rows r and columns c of the dense blocks, which are aligned at multiples of r and c.
    bands : sequence of ten floats, optional
        Shares of the entries by distance from the diagonal, in steps of a tenth of the dimension, with the
        sum 1. Default: those of `band_statistics` for this density. Shares are rounded to whole blocks by
        largest remainder. What the rows of a band cannot take goes to the next band inwards, and at last to
        free places of the same row. Distances are counted in blocks.
    lengths : str
        Distribution of the blocks per row of blocks: ``"fixed"`` (as equal as whole numbers allow),
        ``"normal"`` (the sum of twelve uniform numbers), ``"uniform"``, ``"power"`` (Pareto) or
        ``"binomial"`` (each block goes to a random row), with the relative deviation of SPREADS. Lengths
        are cut off at 0 and at the columns, and scaled to the exact total.
    spread : float, optional
        Another relative deviation of normal, uniform or power lengths, above 0.
    symmetric : bool
        Whether the matrix equals its transpose; its blocks are square. The diagonal is then full, or lacks
        one block to make the count even. `lengths` apply to the lower triangle, in proportion to the places
        of the bands there; whole rows scatter more. All bands but the first hold even numbers of blocks.
    seed : int
        Same arguments, same matrix, on every machine.

    Returns
    -------
    csr_array of shape (rows, rows)
        float64 values uniform in (-1, 1) without zeros; int32 indices, int64 from 2**31 entries on; sorted,
        without duplicates.
    """
    size, blocks = _checked(rows, nnz_per_row, block, symmetric, seed)
    bands = band_statistics().bands(nnz_per_row) if bands is None else bands
    shares = np.asarray(bands, dtype=np.float64)
    if shares.shape != (BANDS,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise InputError(
            f"bands {list(bands)}: expected {BANDS} shares of at least 0 that sum to 1; "
            "divide them by their sum"
        )
    weights = _weights(size // block[0], blocks, lengths, spread, seed)
    grid = grid_of(size // block[0], size // block[1], blocks, symmetric)
    index: Index = index_dtype(size, blocks * block[0] * block[1])
    pattern = _symmetric_pattern if symmetric else pattern_of
    indptr, indices = pattern(grid, shares, weights, seed, index)
    if block != (1, 1):
        indptr, indices = opened(indptr, indices, block)
    return filled(indptr, indices, size, seed, symmetric)


def filled(indptr: Indices, indices: Indices, cols: int, seed: int, symmetric: bool = False) -> csr_array:
    data = np.empty(len(indices), dtype=np.float64)
    _fill_values(indptr, indices, symmetric, np.uint64(seed % 2**64), data)
    return canonical(data, indices, indptr, (len(indptr) - 1, cols))


def _checked(
    rows: int, nnz_per_row: float, block: tuple[int, int], symmetric: bool, seed: int
) -> tuple[int, int]:
    """Return the dimension and the number of blocks."""
    if len(block) != 2 or min(block) < 1:
        raise InputError(f"block {block}: expected rows and columns of at least 1 each; give such as (2, 3)")
    if symmetric and block[0] != block[1]:
        raise InputError(
            f"block {block}: expected as many rows as columns in a symmetric matrix; give a square block"
        )
    check_least("seed", seed, 0)
    step = math.lcm(*block)
    size = rows // step * step
    if size < 1:
        raise InputError(f"rows = {rows}: expected at least {step} for blocks {block}; give more")
    if not 0 < nnz_per_row <= size:
        raise InputError(
            f"nnz_per_row = {nnz_per_row}: expected more than 0 and at most the {size} columns; "
            "give fewer entries a row or more rows"
        )
    area = block[0] * block[1]
    blocks = max(1, round(size * nnz_per_row / area))
    nnz = blocks * area
    least = csr_bytes(size, nnz, index_dtype(nnz).itemsize)
    # The pattern of blocks, and counts of ten bands for each row of them.
    work = blocks * (8 if symmetric or area > 1 else 0) + size // block[0] * 100
    require_memory(least + work, f"a synthetic matrix of {size} rows with {nnz_per_row:g} entries each")
    return size, blocks


def _weights(count: int, blocks: int, lengths: str, spread: float | None, seed: int) -> Whole:
    """Return numbers in proportion to the lengths of `count` rows that have `blocks` blocks together."""
    if lengths not in SPREADS:
        expected = ", ".join(SPREADS)
        raise InputError(f"lengths '{lengths}': expected one of {expected}; name one of them")
    if spread is not None and not (SPREADS[lengths] and 0 < spread < math.inf):
        raise InputError(
            f"spread {spread:g} of {lengths} lengths: expected more than 0, and normal, uniform or power "
            f"ones; leave it out"
        )
    spread = SPREADS[lengths] if spread is None else spread
    if spread is None:
        thrown = np.zeros(count, dtype=np.int64)
        _throw(blocks, np.uint64(seed % 2**64), thrown)
        return thrown
    drawn = np.ones(count)
    if lengths == "normal":
        # Twelve uniform numbers have deviation 1 and no logarithm, which differs from machine to machine.
        twelve = random_bits(6 * count, seed).reshape(count, 6)
        total = (twelve >> _HALF_BITS).sum(axis=1) + (twelve & np.uint64(0xFFFFFFFF)).sum(axis=1)
        drawn = 1 + spread * (total.astype(np.float64) * 2.0**-32 - 6.0)
    elif lengths != "fixed":
        share = uniform(count, seed)
        if lengths == "uniform":
            drawn = 1 + spread * math.sqrt(3) * (2 * share - 1)
        else:
            # Pareto of exponent a has the mean a / (a - 1) and the relative deviation 1 / sqrt(a (a - 2)).
            exponent = 1 + math.sqrt(1 + 1 / spread**2)
            drawn = (exponent - 1) / exponent * share ** (-1 / exponent)
    return np.rint(np.clip(drawn, 0, count) / _WEIGHT_UNIT).astype(np.int64)


def grid_of(block_rows: int, block_cols: int, blocks: int, symmetric: bool) -> Grid:
    """Return a grid of blocks; its diagonal is that of the rectangle."""
    edges = -(-np.arange(BANDS + 1) * block_cols // BANDS)
    diagonal = np.arange(block_rows) * block_cols // block_rows
    return Grid(block_rows, block_cols, blocks, diagonal, edges, symmetric)


def pattern_of(
    grid: Grid, shares: NDArray[np.float64], weights: Whole, seed: int, index: Index
) -> tuple[Indices, Indices]:
    lengths = apportioned(grid.blocks, weights, np.full(grid.block_rows, grid.block_cols))
    return _drawn(grid, _rounded(shares, grid.blocks), lengths, seed, index)


def _symmetric_pattern(
    grid: Grid, shares: NDArray[np.float64], weights: Whole, seed: int, index: Index
) -> tuple[Indices, Indices]:
    rows = grid.block_rows
    on_diagonal = min(rows, grid.blocks)
    on_diagonal -= (grid.blocks - on_diagonal) % 2
    below = (grid.blocks - on_diagonal) // 2
    wanted = shares * grid.blocks
    wanted[0] = max(0.0, wanted[0] - on_diagonal)
    halves = wanted if wanted.any() else shares
    # For each row its places left of the diagonal, weighted by the share of their band.
    first, end = np.maximum(1, grid.edges[:-1]), grid.edges[1:]
    # Row i has min(i + 1, end) - first of them: one more with every row from `first` on, up to `end`.
    rising = np.clip(np.minimum(rows, end) - first, 0, None)
    places = rising * (rising + 1) / 2 + rising * np.clip(rows - end, 0, None)
    slopes = halves / np.maximum(places, 1)
    heights = np.concatenate(([0.0], np.cumsum(slopes * (end - first))))
    expected = np.interp(np.arange(1, rows + 1), np.maximum(1, grid.edges), heights)
    weighted = np.rint(weights * (expected / max(expected.max(), 1e-300))).astype(np.int64)
    lengths = apportioned(below, weighted, np.arange(rows))
    starts, lower = _drawn(grid, _rounded(halves, below), lengths, seed, index)
    diagonal = np.diff(np.arange(rows + 1) * on_diagonal // rows)
    ones = np.ones(len(lower), dtype=np.int8)
    half = csr_array((ones, lower, starts), shape=(rows, rows))
    whole = csr_array(half + half.T + diags_array(diagonal, dtype=np.int8, format="csr"))
    return whole.indptr.astype(index), whole.indices.astype(index)


def _drawn(grid: Grid, wanted: Whole, lengths: Whole, seed: int, index: Index) -> tuple[Indices, Indices]:
    """Return a pattern with given blocks per row and, where the rows permit, per band."""
    counts = np.empty((BANDS, grid.block_rows), dtype=np.uint32)
    _spread_over_bands(lengths, grid.diagonal, grid.edges, grid.is_lower, wanted, counts)
    indptr = starts_of(lengths, index)
    indices = np.empty(int(indptr[-1]), dtype=index)
    _draw(counts, grid.diagonal, grid.edges, grid.is_lower, np.uint64(seed % 2**64), _GAPS, indices)
    return indptr, indices


def opened(indptr: Indices, indices: Indices, block: tuple[int, int]) -> tuple[Indices, Indices]:
    """Return indptr and indices of the entries of dense blocks."""
    filled_blocks = np.ones((len(indices), *block), dtype=np.bool_)
    columns = (int(indices.max(initial=0)) + 1) * block[1]
    entries = bsr_array(
        (filled_blocks, indices, indptr), shape=((len(indptr) - 1) * block[0], columns)
    ).tocsr()
    return entries.indptr.astype(indptr.dtype, copy=False), entries.indices.astype(indices.dtype, copy=False)


def _rounded(shares: NDArray[np.float64], total: int) -> Whole:
    """Return whole numbers with these shares of their sum, `total`, by largest remainder."""
    exact = shares * (total / math.fsum(shares))
    whole = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


@njit(cache=True, nogil=True)
def _throw(blocks, seed, out):
    """Assign each block to a random row and count the blocks of each row."""
    stream = ~stream_of(seed)
    for block in range(blocks):
        bits = mixed(stream + np.uint64(block) * GOLDEN) >> _HALF_BITS
        out[(bits * np.uint64(out.size)) >> _HALF_BITS] += 1


@inner
def _sides(diagonal, edges, band, is_lower):
    """Return first place and number of places of a band left of the diagonal, and the same right of it."""
    near, far = edges[band], edges[band + 1]
    right = max(near, 1)
    left = right if is_lower else near
    left_end = max(diagonal - left + 1, 0)
    left_first = min(max(diagonal - far + 1, 0), left_end)
    cols = edges[edges.size - 1]
    right_first = min(diagonal + right, cols)
    right_end = right_first if is_lower else max(min(diagonal + far, cols), right_first)
    return left_first, left_end - left_first, right_first, right_end - right_first


@inner
def _most(remaining, diagonal, edges, band, is_lower):
    """Return how many of the remaining blocks a row can have in a band."""
    _, first, _, second = _sides(diagonal, edges, band, is_lower)
    return min(remaining, first + second)


@njit(cache=True, nogil=True)
def _spread_over_bands(lengths, diagonals, edges, is_lower, wanted, counts):
    """Write the blocks of each row in each band: exact row lengths, exact bands where possible."""
    # From the outermost band inwards, since an outer band reaches fewer rows than the next one. Rows share a
    # band in proportion to what they can still take.
    remaining = lengths.copy()
    carried = 0
    for band in range(BANDS - 1, -1, -1):
        total = 0
        for row in range(lengths.size):
            total += _most(remaining[row], diagonals[row], edges, band, is_lower)
        want = min(wanted[band] + carried, total)
        carried += wanted[band] - want
        error = 0
        for row in range(lengths.size):
            most = _most(remaining[row], diagonals[row], edges, band, is_lower)
            if want == total:  # all that the rows can take
                count = most
            else:
                error += most * want
                count = error // total if error >= total and want > 0 else 0
                error -= count * total
            counts[band, row] = count
            remaining[row] -= count
    for row in range(lengths.size):
        for band in range(BANDS):
            if remaining[row] > 0:
                _, first, _, second = _sides(diagonals[row], edges, band, is_lower)
                more = min(remaining[row], first + second - counts[band, row])
                counts[band, row] += more
                remaining[row] -= more


@njit(cache=True, nogil=True)
def _draw(counts, diagonals, edges, is_lower, seed, gaps, indices):
    stream = stream_of(seed)
    at = 0
    left_counts = np.zeros(BANDS, dtype=np.int64)
    for row in range(diagonals.size):
        bits = mixed(stream ^ (np.uint64(row) * GOLDEN))
        for band in range(BANDS - 1, -1, -1):
            count = np.int64(counts[band, row])
            left_counts[band] = 0
            if count > 0:
                first, width, _, other = _sides(diagonals[row], edges, band, is_lower)
                # In proportion to the places, rounded up or down at random.
                chance = np.int64((bits >> np.uint64(6 * band)) & np.uint64(63))
                share = (64 * count * width + chance * (width + other)) // (64 * (width + other))
                share = max(min(share, width), count - other)
                left_counts[band] = share
                at = _draw_distinct(stream, first, width, share, gaps, indices, at)
        for band in range(BANDS):
            count = np.int64(counts[band, row]) - left_counts[band]
            if count > 0:
                _, _, first, width = _sides(diagonals[row], edges, band, is_lower)
                at = _draw_distinct(stream, first, width, count, gaps, indices, at)


@inner
def _draw_distinct(stream, first, width, count, gaps, indices, at):
    """Write `count` sorted distinct columns of `width` from `first` on; return the next free place."""
    if count == 1:
        bits = mixed(stream + np.uint64(at) * GOLDEN)
        indices[at] = first + np.int64(((bits >> _HALF_BITS) * np.uint64(width)) >> _HALF_BITS)
        return at + 1
    # Sorted uniform numbers, from exponential gaps between them; the k-th moves on by k, so none repeats.
    total = gaps[mixed(~(stream + np.uint64(at) * GOLDEN)) >> np.uint64(64 - _GAP_BITS)]
    for place in range(at, at + count):
        gap = gaps[mixed(stream + np.uint64(place) * GOLDEN) >> np.uint64(64 - _GAP_BITS)]
        indices[place] = gap
        total += gap
    scale = np.float64(width - count + 1) / np.float64(total)
    total = 0
    for place in range(at, at + count):
        total += indices[place]
        indices[place] = first + (place - at) + np.int64(np.float64(total) * scale)
    return at + count


@njit(cache=True, nogil=True)
def _fill_values(indptr, indices, is_symmetric, seed, data):
    """Write values that depend on the place alone, so that mirrored entries are equal."""
    stream = ~stream_of(seed + _ONE)
    rows = np.uint64(indptr.size - 1)
    for row in range(rows):
        for entry in range(np.uint64(indptr[row]), np.uint64(indptr[row + _ONE])):
            column = np.uint64(indices[entry])
            place = column * rows + row if is_symmetric and column < row else row * rows + column
            data[entry] = value_of(mixed(stream + place * GOLDEN))
