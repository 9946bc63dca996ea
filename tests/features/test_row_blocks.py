"""Statistics of runs of strips, against counting each block by itself."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.features.row_lengths import (
    ROW_LENGTH_LEVELS,
    RowLengths,
    find_mispredicted_rows,
    row_length_statistics,
)
from sparsecast.features.structure import Structure

from .oracles import mispredicted

lengths_of_rows = st.lists(
    st.one_of(st.integers(0, 4), st.integers(60, 80), st.integers(0, 70_000)), min_size=0, max_size=45
)
#: Of no matrix in particular: strips only hand it on.
SOME_STRUCTURE = structure(csr_array((1, 1)), threads=1)


def indptr_of(lengths, dtype=np.int64):
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(dtype)


def structure_of(lengths):
    """Return a Structure that knows these row lengths."""
    counted = np.unique(np.array(lengths, dtype=np.int64), return_counts=True)
    known = RowLengths(**row_length_statistics(*counted), changes=None, mispredicted=None)
    return Structure(len(lengths), 70_000, sum(lengths)).having(known)


def every_run(strips):
    first, last = np.triu_indices(strips.strips)
    return first, last + 1


def level_of(length, levels):
    return max(level for level in levels if level <= length)


def fullest_level(lengths, levels):
    counts = Counter(level_of(length, levels) for length in lengths)
    return min(levels, key=lambda level: (-counts[level], level))


@given(lengths_of_rows, st.integers(1, 50), st.sampled_from((np.int32, np.int64)))
def test_every_run_of_strips_is_what_counting_its_rows_gives(lengths, strip_rows, dtype):
    found = structure_of(lengths)
    strips = StripStatistics.of(indptr_of(lengths, dtype), found, strip_rows)
    first, last = every_run(strips)
    blocks = strips.blocks(first, last)
    levels = blocks.levels.tolist()
    longest = max(lengths, default=0)
    assert levels == list(ROW_LENGTH_LEVELS[: len(levels)]) and levels[-1] >= longest
    assert len(levels) == 1 or levels[-2] < longest
    assert strips.bounds.tolist() == [*range(0, max(len(lengths), 1), strip_rows), len(lengths)]
    irregular = mispredicted(lengths)
    assert blocks.matrix is strips.matrix is found
    for i, (start, end) in enumerate(zip(first, last, strict=True)):
        own = slice(strips.bounds[start], strips.bounds[end])
        part = lengths[own]
        assert blocks.rows[i] == len(part)
        assert blocks.nnz[i] == sum(part)
        assert blocks.row_length_max[i] == max(part, default=0)
        is_whole = end - start == strips.strips
        mode = found.row_lengths.mode if is_whole else fullest_level(part, levels)
        assert blocks.row_length_mode[i] == mode
        assert blocks.mispredicted_rows[i] == sum(irregular[own])
        assert blocks.rows_at_least[i].tolist() == [sum(n >= level for n in part) for level in levels]
        assert blocks.entries_up_to[i].tolist() == [sum(min(n, level) for n in part) for level in levels]
        for length in (0, 3, 32):
            assert blocks.entries_beyond(length)[i] == sum(max(n - length, 0) for n in part)


@pytest.mark.parametrize(
    "lengths, expected",
    [([], 0), ([4], 1), ([4] * 100, 5), ([2, 5] * 50, 6), (list(range(1, 101)), 100), ([0] * 50, 5)],
)
def test_mispredicted_rows_of_known_lengths(lengths, expected):
    assert find_mispredicted_rows(np.array(lengths, dtype=np.int32)).sum() == expected


def whole(A):
    strips = StripStatistics.of(A.indptr, structure(A, threads=1), max(A.shape[0], 1))
    return strips.blocks(np.array([0]), np.array([1]))


def test_one_strip_is_the_block_of_the_structure(matrices):
    for what, A in matrices.items():
        of_structure, of_strips = RowBlocks.of(structure(A, threads=1)), whole(A)
        for field in dataclasses.fields(RowBlocks):
            found, expected = getattr(of_strips, field.name), getattr(of_structure, field.name)
            assert np.array_equal(found, expected), f"{what}: {field.name}"


@pytest.mark.parametrize(
    "nnz, mispredicted, expected",
    (
        (3000, 0, False),
        (3000, 210, False),
        (3000, 211, True),
        (10_000, 350, False),
        (10_000, 351, True),
        (90_000, 550, False),
        (90_000, 551, True),
    ),
)
def test_a_block_is_mispredicted_above_a_share_of_its_rows_that_grows_with_their_length(
    nnz, mispredicted, expected
):
    lengths = dataclasses.replace(SOME_STRUCTURE.row_lengths, mispredicted=mispredicted)
    found = dataclasses.replace(SOME_STRUCTURE, rows=1000, nnz=nnz).having(lengths)
    assert RowBlocks.of(found).is_mispredicted.tolist() == [expected]
