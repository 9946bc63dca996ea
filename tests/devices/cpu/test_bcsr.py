"""The kernel of every block size against the oracle, and that it is compiled once a machine."""

import dataclasses
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, warm_up
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.formats.bcsr import BCSR, BLOCK_SIDES
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


def uniform(shape, dtype, seed=1):
    generator = np.random.default_rng(seed)
    values = generator.uniform(-1, 1, shape).astype(dtype)
    if values.dtype.kind == "c":
        values.imag = generator.uniform(-1, 1, shape)
    return values


def scattered(rows, cols, dtype, share=0.5):
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
    threads = type_of(B.block)[2]
    DEVICES.get("cpu").kernels.get("bcsr").bind(B, "vectors", threads)(x, y)


@pytest.mark.parametrize("block", SIZES, ids=str)
def test_every_size_equals_the_oracle(block):
    dtype, _, _ = type_of(block)
    narrow = csr_array(uniform((7, 3), dtype))
    for A in (scattered(53, 47, dtype), scattered(48, 48, dtype), scattered(101, 90, dtype), narrow):
        rows, cols = A.shape
        x = uniform(cols, dtype)
        buffer = np.full(rows + 16, 7.0, dtype=dtype)
        y = buffer[8 : 8 + rows]
        y[:] = np.nan
        B = in_blocks(A, block)
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
