"""The kernel of DIA where diagonals enter and leave a matrix, for every type."""

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.formats.dia import DIA
from sparsecast.records import DTYPES

LIMIT = int(numba.config.NUMBA_NUM_THREADS)

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
