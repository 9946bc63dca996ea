"""Symmetry: whether half of a matrix tells the other half, tested in one pass, without the transpose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.row_lengths import find_mispredicted_rows
from sparsecast.features.sweep import CHUNK, SPREAD, Indices, chunk_end, sampled_entries, spread
from sparsecast.features.value_scan import words
from sparsecast.system.integers import GOLDEN, first_from, unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.parallel import balanced_parts, on_threads

#: Rows from the beginning of each range of a sample on whose diagonal is looked at, and what blocks of all
#: sizes divide.
_DIAGONAL_ROWS, _SPAN = 504, math.lcm(*BLOCK_SIZES)

#: Rows of a run, and most runs, whose entries below the diagonal are counted.
_RUN_ROWS, _RUNS = 4096, 16

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# An odd multiplier, as GOLDEN: a bijection of 64 bits that carries low bits upwards.
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)


#: How a mirrored value follows: it is the same, the conjugate or the negative. Of several the first is named.
KINDS: tuple[str, ...] = ("symmetric", "hermitian", "skew")

#: The parts of a complex value, real and imaginary, whose sign differs in its mirror image.
_NEGATED = {"symmetric": (0, 0), "hermitian": (0, 1), "skew": (1, 1)}


@FEATURES.register("symmetry")
@dataclass(frozen=True, slots=True)
class Symmetry(FeatureGroup):
    """Whether one triangle of the matrix tells the other.

    All is None for a matrix without such a symmetry, or whose rows are not sorted and free of duplicates.
    """

    name: ClassVar[str] = "symmetry"
    version: ClassVar[int] = 3

    triangle_nnz: int | None  # entries on and below the diagonal
    #: ``"symmetric"`` if the matrix equals its transpose, ``"hermitian"`` if its conjugate transpose,
    #: ``"skew"`` if the negative of its transpose.
    kind: str | None = None
    #: For each size b of BLOCK_SIZES, the aligned b x b blocks on the diagonal that hold entries; None as
    #: well where only the first version of this group was stored.
    diagonal_blocks: tuple[int, ...] | None = None
    #: As `mispredicted` of RowLengths, of the rows below the diagonal; an estimate above 65,536 rows. None as
    #: well where only the first two versions of this group were stored.
    mispredicted_below: int | None = None

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix, of a sample as it looks.

        They are exact up to a chance of 2**-64, but for `mispredicted_below` of many rows.
        """
        known = source.triangle_nnz
        found = mirroring(source) if known is None else ("symmetric", known)
        if found is None:
            return cls(None)
        kind, triangle_nnz = found
        rows = source.shape[0]
        if 2 * triangle_nnz - source.nnz == rows:  # all of the diagonal
            diagonal_blocks = tuple(-(-rows // size) for size in BLOCK_SIZES)
        else:
            diagonal_blocks = _diagonal_blocks(source, BLOCK_SIZES)
        # The lengths of rows below the diagonal, of some runs of rows where there are many.
        runs, of_run = (_RUNS, _RUN_ROWS) if rows > _RUNS * _RUN_ROWS else (1, rows)
        lengths = np.zeros((runs, of_run), dtype=np.int64)
        arrays = unsigned(source.indptr), unsigned(source.indices)
        for first, counts in zip(np.linspace(0, rows - of_run, runs).astype(np.uint64), lengths, strict=True):
            _count_below(*arrays, first, counts)
        mispredicted = int(find_mispredicted_rows(lengths.ravel()).sum())
        return cls(triangle_nnz, kind, diagonal_blocks, round(mispredicted * rows / max(lengths.size, 1)))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the stored features; the first version knew matrices that equal their transpose only."""
        if stored["version"] == 1:
            stored = {**stored, "kind": None if stored["triangle_nnz"] is None else "symmetric"}
        return super(Symmetry, cls).from_dict(stored)

    @classmethod
    def reads(cls, stored: Mapping[str, Any]) -> bool:
        """Tell whether they are of this version, or of one before."""
        return stored["version"] in range(1, cls.version + 1)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if self.triangle_nnz is None or self.kind is None:
            return self.first_wrong(kind=self.kind is None and self.triangle_nnz is None)
        blocks, limits = self.diagonal_blocks, [-(-rows // size) for size in BLOCK_SIZES]
        return self.first_wrong(
            kind=self.kind in KINDS and rows == cols,
            triangle_nnz=-(-nnz // 2) <= self.triangle_nnz <= min(nnz, (nnz + rows) // 2),
            mispredicted_below=0 <= (self.mispredicted_below or 0) <= rows,
            diagonal_blocks=blocks is None
            or (
                len(blocks) == len(limits)
                and all(0 <= count <= limit for count, limit in zip(blocks, limits, strict=False))
            ),
        )


def mirroring(source: MatrixSource) -> tuple[str, int] | None:
    """Return the kind of a matrix, and its entries on and below the diagonal; None for one without symmetry.

    Mirrored values must agree in every bit, but for the signs that the kind changes; where it does, a zero of
    any sign mirrors a zero. The columns of each row must ascend strictly; otherwise entries cannot be paired.
    64-bit fingerprints of place and value are added, of the entries above the diagonal and of the mirror
    images of those below it. Equal sums mean equal sets, up to a chance of about 2**-64. Conversions compare
    entry by entry. Of a sample, the `likely_kinds` are believed.
    """
    (rows, cols), data, pieces = source.shape, source.data, source.workers
    if rows != cols or data.dtype.kind not in "biufc":
        return None
    kinds = likely_kinds(source.indptr, source.indices, data)
    if source.ranges and kinds:
        source.unproven.add(Symmetry.name)
        twice = source.nnz + _diagonal_blocks(source, (1,))[0]  # one of them odd: an estimate
        return kinds[0], min((twice + 1) // 2, (source.nnz + rows) // 2)
    pointers, columns = unsigned(source.indptr), unsigned(source.indices)
    values = words(data)
    bounds = balanced_parts(source.indptr, pieces)
    for kind in kinds:
        tallies = np.zeros((pieces, 2), dtype=np.uint64)
        signs = changed_signs(kind, data.dtype)

        def compare(piece: int, _: int, signs: Any = signs, tallies: Any = tallies) -> bool:
            span = bounds[piece], bounds[piece + 1]
            return bool(_compare(pointers, columns, values, signs, *span, tallies[piece]))

        if all(on_threads(compare, np.arange(pieces + 1))):
            difference, diagonal = tallies.sum(axis=0)
            if difference == 0:
                return kind, (source.nnz + int(diagonal)) // 2
    return None


def likely_kinds(indptr: Indices, indices: Indices, data: NDArray[Any]) -> list[str]:
    """Return the kinds that a square matrix may be of, for all that its `sampled_entries` tell."""
    kinds = {"c": KINDS, "f": ("symmetric", "skew")}.get(data.dtype.kind, ("symmetric",))
    if data.itemsize > (16 if data.dtype.kind == "c" else 8):
        kinds = ("symmetric",)  # where the sign of an extended value is depends on the machine
    matrix, entries = (unsigned(indptr), unsigned(indices), words(data)), sampled_entries(len(indices))
    return [kind for kind in kinds if _are_mirrored(*matrix, changed_signs(kind, data.dtype), entries)]


def changed_signs(kind: str, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return for each of the `words` of a value the bit that differs in its mirror image, 0 for none."""
    parts = words(np.zeros(1, dtype=dtype))
    negated = np.resize(_NEGATED[kind], len(parts)).tolist()
    pairs = zip(parts, negated, strict=True)
    return tuple(part.dtype.type(one << 8 * part.itemsize - 1) for part, one in pairs)


def _diagonal_blocks(source: MatrixSource, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return how many blocks of some sizes on the diagonal hold entries; an estimate of a sample."""
    rows, counts = source.shape[0], np.zeros(len(sizes), dtype=np.int64)
    spans = [(0, rows)]
    if source.ranges:
        firsts = (first // _SPAN * _SPAN for first, _ in source.row_ranges)
        spans = [(first, min(first + _DIAGONAL_ROWS, rows)) for first in firsts]
    arrays = unsigned(source.indptr), unsigned(source.indices), np.array(sizes, dtype=np.uint64), counts
    for first, last in spans:
        _count_diagonal_blocks(*arrays, np.uint64(first), np.uint64(last))
    of_all = counts * rows / max(sum(last - first for first, last in spans), 1)
    return tuple(np.minimum(of_all.round().astype(np.int64), -(-rows // np.array(sizes))).tolist())


@njit(nogil=True, cache=True)
def _count_diagonal_blocks(indptr, indices, sizes, counts, first, last):
    reach = sizes[-1] - _ONE
    counted = np.full(len(sizes), last)
    for row in range(first, last):
        end = np.uint64(indptr[row + _ONE])
        k = first_from(indices, max(row, reach) - reach, np.uint64(indptr[row]), end)
        while k < end and np.uint64(indices[k]) <= row + reach:
            for place in range(len(sizes)):
                block = row // sizes[place]
                if counted[place] != block and np.uint64(indices[k]) // sizes[place] == block:
                    counted[place] = block
                    counts[place] += 1
            k += _ONE


@njit(nogil=True, cache=True)
def _count_below(indptr, indices, first, counts):
    """Count the entries below the diagonal of as many rows from `first` on as there are counts."""
    for place in range(np.uint64(len(counts))):
        row = first + place
        start = np.uint64(indptr[row])
        counts[place] = first_from(indices, row, start, np.uint64(indptr[row + _ONE])) - start


@njit(nogil=True, cache=True)
def _are_mirrored(indptr, indices, words, signs, entries):
    """Tell whether the matrix has the mirror images of these entries; columns ascend in each row."""
    rows = len(indptr) - 1
    for entry in entries:
        row = np.int64(first_from(indptr, np.uint64(entry) + _ONE, _ZERO, np.uint64(len(indptr)))) - 1
        column = np.int64(indices[entry])
        if row >= rows:
            return False
        end = np.uint64(indptr[column + 1])
        found = first_from(indices, np.uint64(row), np.uint64(indptr[column]), end)
        if found >= end or np.int64(indices[found]) != row:
            return False
        if not mirrors(words, signs, found, np.uint64(entry)):
            return False
    return True


@njit(nogil=True, cache=True)
def mirrors(words, signs, place, entry):
    """Tell whether the values of two entries, or of one on the diagonal, are mirror images."""
    differing = _ZERO
    for part in range(len(words)):
        image = _image(words[part][place], signs[part], signs[part])
        differing |= image ^ _image(words[part][entry], signs[part], _ZERO)
    return differing == _ZERO


@inner
def _image(word, sign, changed):
    """Return a word of a value with its sign `changed`; where a sign changes, all zeros are the same."""
    return _ZERO if word | sign == sign else np.uint64(word) ^ np.uint64(changed)


@njit(nogil=True, cache=True)
def _compare(indptr, indices, words, signs, first_row, last_row, tally):
    """Add the fingerprints above the diagonal, minus those below; tell whether all rows ascend."""
    steps = np.zeros(CHUNK + SPREAD, dtype=np.uint32)
    row = first_row
    while row < last_row:
        end = chunk_end(indptr, row, last_row)
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[end])
        if stop - start <= np.uint64(CHUNK):
            spread(indptr, row, end, steps)
        else:  # one row, of which a chunk after the other is looked at
            steps[:] = 0
        while start < stop:
            part = min(stop, start + np.uint64(CHUNK))
            if not _compare_chunk(indices, words, signs, (start, part), np.uint64(row), steps, tally):
                return False
            # A chunk compares the entries within it; here meet its last and the next one's first.
            if part < stop and indices[part] <= indices[part - _ONE]:
                return False
            start = part
        row = end
    return True


@inner
def _compare_chunk(indices, words, signs, entries, first_row, steps, tally):
    start, stop = entries
    descents = np.uint32(0)
    for entry in range(start + _ONE, stop):
        same_row = np.uint32(steps[entry - start] == steps[entry - start - _ONE])
        descents |= same_row & np.uint32(indices[entry] <= indices[entry - _ONE])
    if descents != 0:
        return False
    difference, diagonal, wrong = _ZERO, _ZERO, _ZERO
    for entry in range(start, stop):
        row, column = first_row + np.uint64(steps[entry - start]), np.uint64(indices[entry])
        fingerprint = min(row, column) * GOLDEN + max(row, column)
        for part in range(len(words)):
            value = _image(words[part][entry], signs[part], _ZERO)
            image = _image(words[part][entry], signs[part], signs[part])
            wrong |= value ^ image if column == row else _ZERO
            fingerprint = fingerprint * _MIX + (image if column < row else value)
            fingerprint ^= fingerprint >> np.uint64(32)
        fingerprint *= GOLDEN
        fingerprint ^= fingerprint >> np.uint64(29)
        # Modulo 2**64; on the diagonal nothing is added.
        signed = fingerprint if column > row else _ZERO - fingerprint
        difference += _ZERO if column == row else signed
        diagonal += np.uint64(column == row)
    tally[0] += difference
    tally[1] += diagonal
    return wrong == _ZERO
