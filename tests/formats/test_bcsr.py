"""What BCSR stores in every block size and what its kernel makes of it; the size that its rule takes."""

import dataclasses
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, warm_up
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.features.analysis import structure
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.bcsr import BCSR, BLOCK_SIDES, best_block
from sparsecast.matrices.gallery import gallery
from sparsecast.records import DTYPES, Candidate, Parameters

#: Every height and every width, in squares and beside another one: all 36 would be compiled for a minute.
SIZES = [(r, BLOCK_SIDES[i - step]) for i, r in enumerate(BLOCK_SIDES) for step in (0, 2)]
LIMIT = int(numba.config.NUMBA_NUM_THREADS)

TWO_PRODUCTS = """
import numpy as np
from scipy.sparse import csr_array
from sparsecast.devices import DEVICES
from sparsecast.formats.bcsr import BCSR
A = csr_array(np.ones((6, 6)))
for block in ((2, 3), (3, 2)):
    out = np.empty(6)
    DEVICES.get("cpu").kernels.get("bcsr").bind(BCSR.from_csr(A, block), "vectors", 1)(np.ones(6), out)
    assert (out == 6).all()
"""


def dense(values):
    return csr_array(np.array(values, dtype=float))


def uniform(shape, dtype, seed=1):
    generator = np.random.default_rng(seed)
    values = generator.uniform(-1, 1, shape).astype(dtype)
    if values.dtype.kind == "c":
        values.imag = generator.uniform(-1, 1, shape)
    return values


def scattered(rows, cols, dtype, share):
    """A matrix with blocks of any fill and number, empty rows of blocks among them."""
    filled = np.random.default_rng(rows).random((rows, cols)) < share
    filled[rows // 3 : rows // 2] = False
    return csr_array(np.where(filled, uniform((rows, cols), dtype), 0))


def type_of(block):
    """The type, index bits and threads that a size is tried in."""
    i, j = map(BLOCK_SIDES.index, block)
    return DTYPES[(i + j) % 4], (32, 64)[(i + j // 2) % 2], (1, LIMIT)[(i + j + i // 2) % 2]


def in_blocks(A, block):
    bits = type_of(block)[1]
    A.indptr, A.indices = A.indptr.astype(f"int{bits}"), A.indices.astype(f"int{bits}")
    return BCSR.from_csr(A, block)


def product_of(B, x, y):
    DEVICES.get("cpu").kernels.get("bcsr").bind(B, "vectors", type_of(B.block)[2])(x, y)


def blocks_of(A, r, c):
    """The distinct blocks of a matrix, in the order of BCSR, as (first column before any shift, values)."""
    rows, cols = A.shape
    padded = np.zeros((-(-rows // r) * r, -(-cols // c) * c), dtype=A.dtype)
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


@pytest.mark.parametrize("block", SIZES, ids=str)
def test_every_size_has_the_blocks_of_the_dense_matrix_and_equals_the_oracle(block):
    dtype, _, _ = type_of(block)
    for rows, cols, share in ((53, 47, 0.5), (48, 48, 0.5), (101, 90, 0.25), (7, 3, 1.0)):
        A = scattered(rows, cols, dtype, share)
        B, expected = in_blocks(A, block), blocks_of(A, *block)
        assert B.starts.tolist() == [0, *np.cumsum([len(row) for row in expected])]
        flat = [each for row in expected for each in row]
        assert B.columns.tolist() == [max(min(j, cols - block[1]), 0) for j, _ in flat]
        for (j, values), stored in zip(flat, B.data.reshape(-1, *block), strict=True):
            assert j + block[1] > cols or np.array_equal(stored, values)
        buffer = np.full(rows + 16, 7.0, dtype=dtype)
        x, y = uniform(cols, dtype), buffer[8 : 8 + rows]
        y[:] = np.nan
        product_of(B, x, y)
        ReferenceProduct.of(A, x).check(y, f"bcsr {block}")
        assert (buffer[:8] == 7).all() and (buffer[8 + rows :] == 7).all()


@pytest.mark.parametrize("block", [(r, 3) for r in BLOCK_SIDES[1:]], ids=str)
def test_a_value_that_is_not_finite_reaches_no_other_row_of_its_block(block):
    # Blocks three columns wide are loaded four at a time: the fourth is of the next row.
    dtype, _, _ = type_of(block)
    A = csr_array(np.ones((8, 3), dtype=dtype))
    A.data[3 * 1 : 3 * 2] = np.nan, np.inf, -np.inf
    y = np.empty(8, dtype=dtype)
    product_of(in_blocks(A, block), np.ones(3, dtype=dtype), y)
    assert np.isnan(y[1]) and y[[0, *range(2, 8)]].tolist() == [3.0] * 7


def test_a_second_process_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    kernels = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", TWO_PRODUCTS], env=environment, check=True)
        kernels.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    first, second = kernels
    assert any(path.name.startswith("bcsr.") for path in first) and second == first


@pytest.mark.parametrize("threads", [1, 2])
def test_a_candidate_may_name_its_block_size(threads):
    A = csr_array(np.arange(1.0, 26.0).reshape(5, 5))
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    ruled = Candidate("bcsr", "vectors", "cpu", "float64", 32, threads)
    asked = dataclasses.replace(ruled, parameters=Parameters({"block": (2, 3)}))
    warm_up(asked)
    r, c = bind(A, ruled).matrix.block
    assert r == c
    bound, y = bind(A, asked), np.empty(5)
    assert bound.matrix.block == (2, 3)
    bound.product(np.ones(5), y)
    assert (y == A.sum(axis=1)).all()


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
