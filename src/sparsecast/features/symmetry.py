"""Symmetry: whether a matrix equals its transpose, tested in one pass, without building the transpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.sweep import CHUNK, SPREAD, Indices, chunk_end, spread
from sparsecast.features.value_scan import words
from sparsecast.system.integers import GOLDEN, unsigned
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, on_threads

#: Entries whose mirror image is looked for first: one of them betrays most matrices that are not symmetric.
_SAMPLE = 256

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# An odd multiplier, as GOLDEN: a bijection of 64 bits that carries low bits upwards.
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)


@FEATURES.register("symmetry")
@dataclass(frozen=True, slots=True)
class Symmetry(FeatureGroup):
    """Whether the matrix equals its transpose.

    If it does, and its rows are sorted and free of duplicates, `triangle_nnz` is the number of entries on and
    below the diagonal, otherwise None.
    """

    name: ClassVar[str] = "symmetry"

    triangle_nnz: int | None

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix, exactly up to a chance of 2**-64."""
        if source.triangle_nnz is not None:
            return cls(source.triangle_nnz)
        return cls(triangle_nnz(source.indptr, source.indices, source.data, source.shape, source.workers))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if self.triangle_nnz is None:
            return None
        if rows != cols:
            return "it is symmetric and not square"
        most = min(nnz, (nnz + rows) // 2)
        holds = -(-nnz // 2) <= self.triangle_nnz <= most
        return None if holds else f"one triangle has {self.triangle_nnz:,} of its entries"


def triangle_nnz(
    indptr: Indices, indices: Indices, data: NDArray[Any], shape: tuple[int, int], pieces: int
) -> int | None:
    """Return the entries on and below the diagonal of a symmetric matrix, None for any other one.

    Mirrored values must agree in every bit, and the columns of each row ascend strictly; otherwise entries
    cannot be paired. 64-bit fingerprints of place and value are added, of the entries above the diagonal and
    of the mirror images of those below it. Equal sums mean equal sets, up to a chance of about 2**-64.
    Conversions compare entry by entry.
    """
    rows, cols = shape
    if rows != cols or data.dtype.kind not in "biufc":
        return None
    pointers, columns = unsigned(indptr), unsigned(indices)
    values = words(data)
    if not _sample_is_mirrored(pointers, columns, values):
        return None
    bounds = balanced_parts(indptr, pieces)
    tallies = np.zeros((pieces, 2), dtype=np.uint64)

    def compare(piece: int, _: int) -> bool:
        return bool(_compare(pointers, columns, values, bounds[piece], bounds[piece + 1], tallies[piece]))

    if not all(on_threads(compare, np.arange(pieces + 1))):
        return None
    difference, diagonal = tallies.sum(axis=0)
    return (len(indices) + int(diagonal)) // 2 if difference == 0 else None


@njit(nogil=True, cache=True)
def _sample_is_mirrored(indptr, indices, words):  # type: ignore[no-untyped-def]
    nnz, rows = len(indices), len(indptr) - 1
    for number in range(min(_SAMPLE, nnz)):
        entry = number * (nnz // min(_SAMPLE, nnz))
        row = np.searchsorted(indptr, np.uint64(entry), side="right") - 1
        column = np.int64(indices[entry])
        if row >= rows or not _has(indptr, indices, words, (column, row), entry):
            return False
    return True


@njit(nogil=True, cache=True)
def _has(indptr, indices, words, place, entry):  # type: ignore[no-untyped-def]
    """Tell whether the matrix has the value of an entry at `place`; columns ascend in each row."""
    row, column = place
    low, high = np.int64(indptr[row]), np.int64(indptr[row + 1])
    while low < high:
        middle = (low + high) // 2
        if np.int64(indices[middle]) < column:
            low = middle + 1
        else:
            high = middle
    if low >= np.int64(indptr[row + 1]) or np.int64(indices[low]) != column:
        return False
    same = True
    for word in words:
        same &= word[low] == word[entry]
    return same


@njit(nogil=True, cache=True)
def _compare(indptr, indices, words, first_row, last_row, tally):  # type: ignore[no-untyped-def]
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
            if not _compare_chunk(indices, words, (start, part), np.uint64(row), steps, tally):
                return False
            # A chunk compares the entries within it; here meet its last and the next one's first.
            if part < stop and indices[part] <= indices[part - _ONE]:
                return False
            start = part
        row = end
    return True


@njit(nogil=True, cache=True)
def _compare_chunk(indices, words, entries, first_row, steps, tally):  # type: ignore[no-untyped-def]
    start, stop = entries
    descents = np.uint32(0)
    for entry in range(start + _ONE, stop):
        same_row = np.uint32(steps[entry - start] == steps[entry - start - _ONE])
        descents |= same_row & np.uint32(indices[entry] <= indices[entry - _ONE])
    if descents != 0:
        return False
    difference, diagonal = _ZERO, _ZERO
    for entry in range(start, stop):
        row, column = first_row + np.uint64(steps[entry - start]), np.uint64(indices[entry])
        fingerprint = min(row, column) * GOLDEN + max(row, column)
        for word in words:
            fingerprint = (fingerprint * _MIX) + np.uint64(word[entry])
            fingerprint ^= fingerprint >> np.uint64(32)
        fingerprint *= GOLDEN
        fingerprint ^= fingerprint >> np.uint64(29)
        # Modulo 2**64; on the diagonal nothing is added.
        signed = fingerprint if column > row else _ZERO - fingerprint
        difference += _ZERO if column == row else signed
        diagonal += np.uint64(column == row)
    tally[0] += difference
    tally[1] += diagonal
    return True
