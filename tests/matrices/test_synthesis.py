"""Benchmark matrices: exact counts, distinct sorted columns in the band, seeds, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.matrices.synthesis import (
    BAND_WIDTH_IN_ROW_LENGTHS,
    LEAST_BAND_WIDTH,
    block_matrix,
    diagonal_matrix,
    varied_matrix,
)

from .conftest import check_made, rows_of, same


@given(st.integers(1, 300), st.data())
@settings(deadline=None, max_examples=80)
def test_every_row_has_its_distinct_sorted_columns_in_the_band(rows, data):
    nnz_per_row = data.draw(st.integers(1, rows))
    A = varied_matrix(rows, nnz_per_row, "fixed", 0.0, seed=data.draw(st.integers(0, 2**70)))
    check_made(A)
    assert A.shape == (rows, rows)
    np.testing.assert_array_equal(np.diff(A.indptr), nnz_per_row)
    columns = A.indices.reshape(rows, nnz_per_row)
    width = min(rows, max(BAND_WIDTH_IN_ROW_LENGTHS * nnz_per_row, LEAST_BAND_WIDTH))
    assert (columns[:, -1] - columns[:, 0] < width).all()


@pytest.mark.parametrize(("rows", "nnz_per_row", "seed"), [(5, 6, 0), (5, 0, 0), (0, 1, 0), (5, 1, -1)])
def test_refusals_are_one_line(rows, nnz_per_row, seed):
    with pytest.raises(InputError):
        varied_matrix(rows, nnz_per_row, "fixed", 0.0, seed=seed)


@pytest.mark.parametrize("shape", [(2**21, 2**10), (1000, 10)])
def test_too_many_entries_are_refused_before_allocation(little_memory, shape):
    with pytest.raises(MatrixSizeError):
        varied_matrix(*shape, "fixed", 0.0, seed=0)


@pytest.mark.parametrize("lengths", ("fixed", "uniform", "mixed", "power"))
@pytest.mark.parametrize("reach", (0.0, 0.05, 1.0))
def test_varied_matrix_is_canonical_within_its_reach(lengths, reach):
    A = varied_matrix(3_000, 7, lengths, reach, seed=4)
    check_made(A)
    assert np.abs(A.indices - rows_of(A)).max() <= max(reach * 3_000, 64)
    assert same(A, varied_matrix(3_000, 7, lengths, reach, seed=4))
    other = varied_matrix(3_000, 7, lengths, reach, seed=5)
    assert not np.array_equal(A.data[:1000], other.data[:1000])


def test_varied_lengths_follow_their_distribution():
    lengths = {
        name: np.diff(varied_matrix(50_000, 10, name, 1.0, seed=0).indptr)
        for name in ("fixed", "uniform", "mixed", "power")
    }
    assert set(lengths["fixed"]) == {10}
    assert lengths["uniform"].min() == 0 and lengths["uniform"].max() == 20
    assert 0.88 < (lengths["mixed"] == 10).mean() < 0.93
    assert lengths["power"].max() > 300
    for name in ("uniform", "mixed", "power"):
        assert abs(lengths[name].mean() - 10) < 1, name


@pytest.mark.parametrize("block", (2, 3, 8))
def test_block_matrix_is_canonical_and_made_of_dense_blocks(block):
    A = block_matrix(400, 6, block, 0.2, seed=3)
    check_made(A)
    assert A.shape == (400 * block, 400 * block)
    assert (np.diff(A.indptr) % block == 0).all()
    first = np.diff(A.indptr).reshape(-1, block)
    assert (first == first[:, :1]).all()
    assert set(np.unique(A.indices % block, return_counts=True)[1]) == {A.nnz // block}
    assert same(A, block_matrix(400, 6, block, 0.2, seed=3))


@given(st.integers(1, 120), st.floats(0, 1.2), st.data())
@settings(deadline=None, max_examples=80)
def test_diagonal_matrix_has_its_diagonals_and_every_entry_on_them(rows, reach, data):
    diagonals = data.draw(st.integers(1, 2 * rows - 1))
    A = diagonal_matrix(rows, diagonals, reach, seed=data.draw(st.integers(0, 2**70)))
    check_made(A)
    assert A.shape == (rows, rows)
    offsets = np.unique(A.indices - rows_of(A))
    assert len(offsets) == diagonals
    assert A.nnz == (rows - np.abs(offsets)).sum()
    assert np.abs(offsets).max() <= max(int(reach * rows), diagonals // 2)


@pytest.mark.parametrize("diagonals", (0, -1, 20))
def test_diagonals_that_a_matrix_does_not_have_are_refused(diagonals):
    with pytest.raises(InputError):
        diagonal_matrix(10, diagonals, 0.1, seed=0)
