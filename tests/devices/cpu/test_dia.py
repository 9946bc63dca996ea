"""The kernel of DIA where diagonals enter and leave a matrix, for every chunk and type."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.formats.dia import CHUNKS, DIA

LIMIT = int(numba.config.NUMBA_NUM_THREADS)
TYPES = ("float64", "float32", "complex128", "complex64")

#: Around chunks of 8 to 64 rows: one row, one row less and more, narrower and wider than high.
SHAPES = [(1, 1), (1, 90), (90, 1), (8, 8), (33, 31), (64, 64), (65, 63), (129, 40), (40, 129), (200, 200)]

COUNT_CACHE_HITS = """
import numpy as np
from scipy.sparse import csr_array
from sparsecast.formats.dia import DIA
from sparsecast.devices.cpu.kernels import dia
out = np.empty(70)
dia._bind(DIA.from_csr(csr_array(np.eye(70))), "chunks", 1)(np.ones(70), out)
assert (out == 1).all()
print(sum(dia._product.stats.cache_hits.values()), sum(dia._product.stats.cache_misses.values()))
"""


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


@pytest.mark.parametrize("chunk_rows", CHUNKS)
@pytest.mark.parametrize("dtype", TYPES)
def test_diagonals_that_enter_and_leave_within_a_chunk(chunk_rows, dtype):
    threads = (1, LIMIT)[(CHUNKS.index(chunk_rows) + TYPES.index(dtype)) % 2]
    for rows, cols in SHAPES:
        every = np.arange(-rows + 1, cols)
        for offsets in (every[:: max(len(every) // 10, 1)], (0,), (-rows + 1, cols - 1), (-5, -1, 3, 30)):
            A = on_diagonals((rows, cols), offsets, dtype)
            try:
                D = DIA.from_csr(A, chunk_rows)
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


@pytest.mark.parametrize("dtype, bits", list(zip(TYPES, (64, 32, 64, 32), strict=True)))
def test_every_index_and_type_gives_the_dense_product(bits, dtype):
    A = on_diagonals((333, 300), (-200, -33, -1, 0, 2, 64, 299), dtype)
    A.indices, A.indptr = A.indices.astype(f"int{bits}"), A.indptr.astype(f"int{bits}")
    x = np.random.default_rng(3).integers(-9, 10, 300).astype(dtype)
    if np.dtype(dtype).kind == "c":
        x += 1j * (np.arange(300) % 7)
    y = np.full(333, np.nan, dtype=dtype)
    DEVICES.get("cpu").kernels.get("dia").bind(DIA.from_csr(A), "chunks", 1)(x, y)
    assert np.array_equal(y, A.toarray() @ x)


def test_threads_give_the_same_bits():
    A = on_diagonals((1000, 1000), (-500, -3, 0, 1, 2, 300), "float64")
    A.data *= np.random.default_rng(0).uniform(size=A.nnz)
    x, D = np.random.default_rng(1).uniform(-1, 1, 1000), DIA.from_csr(A)
    results = set()
    for threads in range(1, LIMIT + 1):
        y = np.empty(1000)
        DEVICES.get("cpu").kernels.get("dia").bind(D, "chunks", threads)(x, y)
        results.add(y.tobytes())
    assert len(results) == 1


def test_an_x_that_is_not_finite_stays_on_the_diagonals():
    A = on_diagonals((100, 100), (-40, 0, 30), "float64")
    A.data[A.indices == 50] = 1.0
    x, y = np.ones(100), np.empty(100)
    x[50] = np.inf
    DEVICES.get("cpu").kernels.get("dia").bind(DIA.from_csr(A), "chunks", 1)(x, y)
    assert np.flatnonzero(~np.isfinite(y)).tolist() == [20, 50, 90]


def test_a_second_process_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", COUNT_CACHE_HITS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["0", "1"], ["1", "0"]]
