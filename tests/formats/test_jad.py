"""Where JAD puts rows and entries, and its kernel across the ends of blocks and diagonals."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.devices import DEVICES
from sparsecast.devices.cpu.kernels.jad import BLOCK_ROWS
from sparsecast.formats.jad import JAD, sorted_lengths

from ..conftest import left_packed

row_lengths = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 300)), max_size=60)


def of_lengths(lengths):
    """A matrix with these row lengths whose entries are whole numbers from column 0 onwards."""
    A = left_packed(lengths)
    A.data[:] = np.arange(A.nnz) % 11 - 5.0
    return A


def products_agree(A):
    x = np.arange(A.shape[1]) % 7 - 3.0
    for threads in {1, int(numba.config.NUMBA_NUM_THREADS)}:
        out = np.full(A.shape[0], np.nan)
        DEVICES.get("cpu").kernels.get("jad").bind(JAD.from_csr(A), "blocks", threads)(x, out)
        assert np.array_equal(out, A @ x)


@given(row_lengths)
def test_diagonals_are_runs_of_the_rows_sorted_by_length(lengths):
    A = of_lengths(lengths)
    J = JAD.from_csr(A)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    assert J.permutation.tolist() == order
    for j in range(max(lengths, default=0)):
        run = slice(*J.diagonal_starts[j : j + 2])
        rows = [i for i in order if lengths[i] > j]
        assert J.data[run].tolist() == [A.data[A.indptr[i] + j] for i in rows]
        assert J.indices[run].tolist() == [j] * len(rows)
    assert sorted_lengths(J.diagonal_starts, len(lengths)).tolist() == [lengths[i] for i in order]


@given(row_lengths)
def test_product_of_rows_of_any_length(lengths):
    products_agree(of_lengths(lengths))


@pytest.mark.parametrize("beyond", (-1, 0, 1, 9))
@pytest.mark.parametrize("length", (0, 1, 3, 4, 5, 9))
def test_product_at_the_end_of_a_block_of_rows(beyond, length):
    rows = int(BLOCK_ROWS) + beyond
    products_agree(of_lengths([length] * rows))
    products_agree(of_lengths([length + 40] * 3 + [length] * (rows - 3) + [length + 6] * 20))
