"""Features of blocks of entries, against a reference in plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from sparsecast.features.analysis import structure
from sparsecast.matrices.gallery import gallery
from sparsecast.papers.barreda_2020.entry_blocks import (
    BLOCK_FEATURES,
    EntryBlocks,
    describe_blocks,
    sampled_blocks,
    whole_blocks,
)


def reference(A, block):
    """Count what a block has, by sets in place of tables."""
    first = 250 * block
    last = min(first + 250, A.nnz)
    start, found = max(first - 500, 0), dict.fromkeys(BLOCK_FEATURES, 0.0)
    before, newest, lines, pages = int(A.indices[start]), None, set(), set()
    for entry in range(start, last):
        column = int(A.indices[entry])
        line, page, step = column // 8, column // 512, abs(column - before)
        if entry >= first:
            limits = (1, 8, 64, 512, 32768, np.inf)
            found[BLOCK_FEATURES[2 + next(i for i, most in enumerate(limits) if step <= most)]] += 1
            found["line_changes"] += line != before // 8
            found["new_lines"] += line not in lines
            found["following_lines"] += line not in lines and newest is not None and line == newest + 1
            found["new_pages"] += page not in pages
        newest = line if line not in lines else newest
        lines.add(line)
        pages.add(page)
        before = column
    lengths = np.diff(A.indptr)
    for row in range(A.shape[0]):
        if first < A.indptr[row + 1] <= last:
            found["row_ends"] += 1
            found["length_changes"] += row > 0 and lengths[row] != lengths[row - 1]
    return [found[name] / (last - first) for name in BLOCK_FEATURES]


# Fewer columns than the tables of lines have places, so that nothing is forgotten that the sets remember.
@settings(max_examples=25)
@given(
    rows=st.integers(1, 60),
    cols=st.integers(1, 15_000),
    density=st.floats(0.001, 0.2),
    seed=st.integers(0, 9),
)
def test_features_are_those_of_the_reference(rows, cols, density, seed):
    A = csr_array(random_array((rows, cols), density=density, rng=seed))
    found = describe_blocks(A.indptr, A.indices, np.arange(whole_blocks(A.nnz)))
    expected = [reference(A, block) for block in range(whole_blocks(A.nnz))]
    assert found.tolist() == [pytest.approx(each) for each in expected]


def test_the_remainder_is_dropped_and_a_matrix_smaller_than_a_block_is_one():
    assert [whole_blocks(nnz) for nnz in (0, 1, 249, 250, 499, 500)] == [0, 1, 1, 1, 1, 2]


def test_samples_are_spread_over_the_matrix_and_grow_with_it():
    assert sampled_blocks(0).tolist() == [] and sampled_blocks(600).tolist() == [0, 1]
    few, many = sampled_blocks(1_000_000), sampled_blocks(100_000_000)
    assert (len(few), len(many)) == (128, 1024) and np.ptp(np.diff(many)) <= 1


def test_the_group_is_computed_on_request_and_comes_back_from_plain_data():
    A = gallery("rmat", scale=9)
    assert structure(A).lacks(["entry_blocks"])
    group = structure(A, groups=["entry_blocks"]).require("entry_blocks")
    assert EntryBlocks.from_dict(group.to_dict()) == group
    assert group.contradiction(*A.shape, A.nnz) is None
    assert group.features.shape == (group.count, len(BLOCK_FEATURES))


@pytest.mark.parametrize(
    "wrong", [(1, ()), (0, ()), (1, (0.0, 0.0, 2.0, *[0.0] * 9)), (1, (float("nan"),) * 12)]
)
def test_what_no_matrix_has_is_said(wrong):
    assert EntryBlocks(*wrong).contradiction(10, 10, 1000)


def test_a_matrix_without_entries_has_no_blocks():
    group = structure(csr_array((3, 3)), groups=["entry_blocks"]).require("entry_blocks")
    assert group == EntryBlocks(0, ()) and group.contradiction(3, 3, 0) is None
