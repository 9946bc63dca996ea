"""Statistics of runs of strips, against counting each block by itself."""

import dataclasses
import itertools
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


def mispredicted_by_strip(lengths, bounds):
    """Count, strip by strip, the rows whose length is not what followed the same four lengths last."""
    followers, flags, history = {}, [], 0
    for length in lengths:
        place = history * 0x9E3779B97F4A7C15 % 2**64 >> 48
        remembered = min(int(length), 65534) + 1
        flags.append(followers.get(place) != remembered)
        followers[place] = remembered
        history = (history << 16 | remembered) % 2**64
    return [sum(flags[start:end]) for start, end in itertools.pairwise(bounds)]


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
    mispredicted = mispredicted_by_strip(lengths, strips.bounds)
    assert blocks.matrix is strips.matrix is found
    for i, (start, end) in enumerate(zip(first, last, strict=True)):
        part = lengths[strips.bounds[start] : strips.bounds[end]]
        assert blocks.rows[i] == len(part)
        assert blocks.nnz[i] == sum(part)
        assert blocks.row_length_max[i] == max(part, default=0)
        is_whole = end - start == strips.strips
        mode = found.row_lengths.mode if is_whole else fullest_level(part, levels)
        assert blocks.row_length_mode[i] == mode
        assert blocks.mispredicted_rows[i] == sum(mispredicted[start:end])
        assert blocks.rows_at_least[i].tolist() == [sum(n >= level for n in part) for level in levels]
        assert blocks.entries_up_to[i].tolist() == [sum(min(n, level) for n in part) for level in levels]
        for length in (0, 3, 32):
            assert blocks.entries_beyond(length)[i] == sum(max(n - length, 0) for n in part)


@pytest.mark.parametrize(
    "rows, strip_rows, bounds",
    [
        (0, 4, [0, 0]),
        (1, 4, [0, 1]),
        (4, 4, [0, 4]),
        (5, 4, [0, 4, 5]),
        (8, 4, [0, 4, 8]),
        (3, 1, [0, 1, 2, 3]),
        (3, 1000, [0, 3]),
    ],
)
def test_strips_cover_the_rows(rows, strip_rows, bounds):
    strips = StripStatistics.of(indptr_of([2] * rows), SOME_STRUCTURE, strip_rows)
    assert strips.bounds.tolist() == bounds and strips.strips == len(bounds) - 1
    whole = strips.blocks(np.array([0]), np.array([strips.strips]))
    assert whole.rows.tolist() == [rows] and whole.nnz.tolist() == [2 * rows]


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
        for field in ("rows", "nnz", "row_length_max", "rows_at_least", "entries_up_to", "levels"):
            found, expected = getattr(of_strips, field), getattr(of_structure, field)
            assert np.array_equal(found, expected), f"{what}: {field}"
            assert found.dtype == expected.dtype == np.int64, f"{what}: {field}"
        assert of_strips.matrix == of_structure.matrix and of_strips.matrix.cols == A.shape[1], what
        assert np.array_equal(of_strips.row_length_mode, of_structure.row_length_mode), what
        assert np.array_equal(of_strips.mispredicted_rows, of_structure.mispredicted_rows), what


def test_one_block_and_the_whole_matrix_have_the_same_mode_above_64():
    lengths = [95] * 5 + [65] * 2 + [71] * 2 + [70] * 2  # 65 to 71 share a level, and are more together
    found = structure_of(lengths)
    strips = StripStatistics.of(indptr_of(lengths), found, 3)
    one_block = strips.blocks(np.array([0]), np.array([strips.strips]))
    assert one_block.row_length_mode == RowBlocks.of(found).row_length_mode == [95]
    assert fullest_level(lengths, one_block.levels.tolist()) < 72  # what the levels alone would say


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
