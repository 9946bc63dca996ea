"""What BCSR stores, which size its rule takes, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.bcsr import BCSR, best_block
from sparsecast.matrices.gallery import gallery

#: Each side high and wide, even and odd; the tests of the kernels build all 36.
SOME_SIZES = [(1, 1), (1, 8), (2, 2), (3, 6), (4, 3), (6, 4), (8, 1), (8, 8)]


def dense(values):
    return csr_array(np.array(values, dtype=float))


def crowded(rows, cols):
    """A matrix a quarter full, in blocks of any fill."""
    generator = np.random.default_rng(0)
    filled = generator.random((rows, cols)) < 0.25
    return csr_array(np.where(filled, generator.uniform(1, 2, (rows, cols)), 0))


def in_blocks(A, r, c):
    """The distinct blocks of a matrix, in the order of BCSR, as (first column before any shift, values)."""
    rows, cols = A.shape
    padded = np.zeros((-(-rows // r) * r, -(-cols // c) * c))
    padded[:rows, :cols] = A.toarray()
    return [
        [(j, padded[i : i + r, j : j + c]) for j in range(0, cols, c) if padded[i : i + r, j : j + c].any()]
        for i in range(0, rows, r)
    ]


def test_a_small_matrix_in_blocks_by_hand():
    B = BCSR.from_csr(dense([[1, 0, 0, 2], [0, 3, 0, 4], [0, 0, 5, 0]]), (2, 2))
    assert B.starts.tolist() == [0, 2, 3]
    assert B.columns.tolist() == [0, 2, 2]
    assert B.data.reshape(3, 2, 2).tolist() == [[[1, 0], [0, 3]], [[0, 2], [0, 4]], [[5, 0], [0, 0]]]


@pytest.mark.parametrize("block", SOME_SIZES)
def test_blocks_are_those_of_the_dense_matrix(block):
    A = crowded(70, 75)
    B, expected = BCSR.from_csr(A, block), in_blocks(A, *block)
    assert B.starts.tolist() == [0, *np.cumsum([len(row) for row in expected])]
    flat = [each for row in expected for each in row]
    assert B.columns.tolist() == [min(j, 75 - block[1]) for j, _ in flat]
    inside = [k for k, (j, _) in enumerate(flat) if j + block[1] <= 75]
    values = B.data.reshape(-1, *block)
    assert all(np.array_equal(values[k], flat[k][1]) for k in inside)


@pytest.mark.parametrize("entries", ([3, 3, 5], [3, 9, 5], [5, 4, 3], [3, 5, 5]))
def test_entries_of_one_column_are_summed(entries):
    A = csr_array((np.array([1.0, 2, 4]), np.array(entries), np.array([0, 3])), shape=(1, 12))
    B = BCSR.from_csr(A, (1, 3))
    summed = np.zeros(12)
    np.add.at(summed, entries, [1.0, 2, 4])
    assert B.columns.tolist() == sorted({column // 3 * 3 for column in entries})
    assert B.data[B.data != 0].tolist() == summed[summed != 0].tolist()


@given(st.lists(st.floats(1.0, 70.0), min_size=5, max_size=5))
def test_the_rule_is_the_least_of_the_bytes_an_entry(fill):
    streamed = {b: f * (8 + 4 / b**2) for b, f in zip(BLOCK_SIZES, fill, strict=True)}
    assert streamed[best_block(tuple(fill))] == min(streamed.values())


@pytest.mark.parametrize(
    ("name", "parameters", "block"),
    [("elasticity3d", {"n": 6}, (3, 3)), ("banded", {"n": 500, "half_bandwidth": 2}, (2, 2))],
)
def test_a_matrix_gets_the_block_that_is_predicted_of_it(name, parameters, block):
    A = gallery(name, **parameters)
    found = structure(A, threads=1)
    B = BCSR.from_csr(A)
    assert B.block == block == (best_block(found.blocks.fill),) * 2
    assert BCSR.stored_blocks(RowBlocks.of(found)).tolist() == [len(B.columns)]


def test_a_sampled_fill_predicts_the_size_of_a_large_matrix():
    A = gallery("elasticity3d", n=14)
    assert A.nnz > 1 << 16
    B, found = BCSR.from_csr(A), structure(A)
    assert BCSR.predicted_bytes(RowBlocks.of(found), 8, 4)[0] == pytest.approx(B.nbytes, rel=0.05)
