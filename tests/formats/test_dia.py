"""What DIA stores, counts and refuses, and its kernel where diagonals enter and leave."""

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import PaddingError
from sparsecast.formats.dia import DIA
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR
from sparsecast.matrices.gallery import gallery
from sparsecast.records import DTYPES

LIMIT = int(numba.config.NUMBA_NUM_THREADS)


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


#: Around chunks of 16 to 64 rows: one row, one row less and more, narrower and wider than high.
SHAPES = [(1, 1), (1, 90), (90, 1), (16, 16), (33, 31), (64, 64), (65, 63), (129, 40), (40, 129), (200, 200)]


def on_diagonals(shape, offsets, dtype):
    """A matrix of whole numbers on these diagonals, complex ones where the type is."""
    rows, cols = shape
    generator = np.random.default_rng(rows)
    values = generator.integers(1, 9, (rows, cols)) * generator.choice((-1.0, 1.0), (rows, cols))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.integers(-9, 9, (rows, cols))
    kept = np.isin(np.arange(cols) - np.arange(rows)[:, None], list(offsets))
    return csr_array(np.where(kept, values, 0).astype(dtype))


def between_guards(size, dtype, guard):
    buffer = np.full(size + 256, guard, dtype=dtype)
    return buffer, buffer[128 : 128 + size]


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_that_enter_and_leave_within_a_chunk(dtype):
    threads = (1, LIMIT)[DTYPES.index(dtype) % 2]
    for rows, cols in SHAPES:
        every = np.arange(-rows + 1, cols)
        for offsets in (every[:: max(len(every) // 10, 1)], (0,), (-rows + 1, cols - 1), (-5, -1, 3, 30)):
            A = on_diagonals((rows, cols), offsets, dtype)
            try:
                D = DIA.from_csr(A)
            except ValueError:
                continue
            # What lies beyond x turns whatever is multiplied with it into NaN, even padding.
            _, x = between_guards(cols, dtype, np.nan)
            x[:] = np.random.default_rng(1).integers(-9, 10, cols)
            buffer, y = between_guards(rows, dtype, 7)
            y[:] = np.nan
            DEVICES.get("cpu").kernels.get("dia").bind(D, "chunks", threads)(x, y)
            assert np.array_equal(y, A.toarray() @ x), (rows, cols, offsets)
            assert (buffer[:128] == 7).all() and (buffer[128 + rows :] == 7).all()


def test_an_x_that_is_not_finite_stays_on_the_diagonals():
    A = on_diagonals((100, 100), (-40, 0, 30), "float64")
    A.data[A.indices == 50] = 1.0
    x, y = np.ones(100), np.empty(100)
    x[50] = np.inf
    DEVICES.get("cpu").kernels.get("dia").bind(DIA.from_csr(A), "chunks", 1)(x, y)
    assert np.flatnonzero(~np.isfinite(y)).tolist() == [20, 50, 90]
