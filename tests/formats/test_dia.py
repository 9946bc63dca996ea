"""What DIA stores, how it counts diagonals, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.errors import PaddingError
from sparsecast.formats.dia import DIA
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR
from sparsecast.matrices.gallery import gallery
from sparsecast.records import DTYPES


def dense(values):
    return csr_array(np.array(values, dtype=float))


def test_a_small_matrix_by_hand():
    D = DIA.from_csr(dense([[1, 0, 2], [3, 4, 0], [0, 0, 5]]))
    assert D.offsets.tolist() == [-1, 0, 2]
    assert D.data.reshape(3, 3).tolist() == [[0, 3, 0], [1, 4, 5], [2, 0, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", (1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200))
def test_chunks_of_256_bytes_hold_one_diagonal_after_the_other(dtype, rows):
    A = gallery("banded", n=rows, half_bandwidth=2).astype(dtype)
    A.data[:] = np.arange(1.0, A.nnz + 1)
    D, plain = DIA.from_csr(A), A.toarray()
    assert D.chunk_rows == 256 // A.dtype.itemsize
    start = 0
    for first in range(0, rows, D.chunk_rows):
        height = min(D.chunk_rows, rows - first)
        chunk = D.data[start : start + height * len(D.offsets)].reshape(len(D.offsets), height)
        for offset, values in zip(D.offsets.tolist(), chunk, strict=True):
            columns = np.arange(first, first + height) + offset
            inside = (columns >= 0) & (columns < rows)
            expected = np.where(
                inside, plain[np.arange(first, first + height), np.clip(columns, 0, rows - 1)], 0
            )
            assert values.tolist() == expected.tolist()
        start += chunk.size
    assert start == len(D.data)


def test_entries_of_one_column_are_summed():
    A = csr_array(
        (np.array([1.0, 2, 4, 8, 16]), np.array([2, 2, 2, 1, 1]), np.array([0, 3, 5])), shape=(2, 4)
    )
    D = DIA.from_csr(A)
    assert D.offsets.tolist() == [0, 2] and D.data.reshape(2, 2).tolist() == [[0, 24], [7, 0]]


@pytest.mark.parametrize("rows", (10, 11))
def test_one_entry_in_many_rows_is_refused_just_beyond_the_largest_padding(rows):
    A = csr_array((np.ones(1), np.zeros(1, dtype=int), np.array([0] * rows + [1])), shape=(rows, 5))
    if rows <= MAX_PADDING_FACTOR:
        assert DIA.from_csr(A).data.tolist() == [0] * (rows - 1) + [1]
    else:
        with pytest.raises(PaddingError):
            DIA.from_csr(A)
