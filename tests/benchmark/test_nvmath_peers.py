"""cuSPARSE through nvmath-python, without either: a stand-in reads what it would be given, as documented.

The stand-in has the functions of nvmath.bindings.cusparse with their parameters (nvmath-python 1.0), and
multiplies from the addresses it is handed, which in the simulator of numba-cuda are those of the host.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is missing"
)

WITHOUT = """
import numpy as np
import nvmath_peers
from scipy.sparse import eye_array

importlib_finds = nvmath_peers.importlib.util.find_spec
nvmath_peers.importlib.util.find_spec = lambda name: None if name == "nvmath" else importlib_finds(name)
for name, make in nvmath_peers.NVMATH_PEERS.items():
    try:
        make(eye_array(3, format="csr"), np.ones(3))
    except nvmath_peers.MissingPeerError as error:
        assert str(error) == "nvmath-python is not installed", name
    else:
        raise AssertionError(name)
"""

WITH = """
import ctypes
import sys
from enum import IntEnum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np

DTYPES = {0: np.float32, 1: np.float64}


class fake:
    IndexType = IntEnum("IndexType", {"INDEX_16U": 1, "INDEX_32I": 2, "INDEX_64I": 3})
    IndexBase = IntEnum("IndexBase", {"ZERO": 0, "ONE": 1})
    Order = IntEnum("Order", {"COL": 1, "ROW": 2})
    Operation = IntEnum("Operation", {"NON_TRANSPOSE": 0, "TRANSPOSE": 1})
    SpMVAlg = IntEnum("SpMVAlg", {"DEFAULT": 0, "CSR_ALG1": 2, "CSR_ALG2": 3, "SELL_ALG1": 5, "BSR_ALG1": 6})
    objects, prepared, used = [], [], []

    def keep(what):
        fake.objects.append(what)
        return len(fake.objects) - 1

    def read(address, size, dtype):
        kind = np.dtype(dtype)
        buffer = (ctypes.c_char * (size * kind.itemsize)).from_address(address) if size else b""
        return np.frombuffer(buffer, dtype=kind)

    def create():
        return 77

    def create_dn_vec(size, values, value_type):
        return fake.keep(fake.read(values, size, DTYPES[value_type]))

    def create_csr(rows, cols, nnz, row_offsets, col_ind, values, *types):
        assert types[:-1] == (2, 2, 0)
        offsets, columns = fake.read(row_offsets, rows + 1, np.int32), fake.read(col_ind, nnz, np.int32)
        values = fake.read(values, nnz, DTYPES[types[-1]])
        dense = np.zeros((rows, cols))
        for i in range(rows):
            for k in range(offsets[i], offsets[i + 1]):
                dense[i, columns[k]] += values[k]
        return fake.keep(dense)

    def create_sliced_ell(rows, cols, nnz, stored, slice_size, slice_offsets, col_ind, values, *types):
        assert types[:-1] == (2, 2, 0)
        slices = -(-rows // slice_size)
        offsets = fake.read(slice_offsets, slices + 1, np.int32)
        columns = fake.read(col_ind, stored, np.int32)
        values = fake.read(values, stored, DTYPES[types[-1]])
        assert offsets[-1] == stored and (columns >= 0).sum() == nnz
        dense = np.zeros((rows, cols))
        for s in range(slices):
            for k in range(offsets[s], offsets[s + 1]):
                if columns[k] >= 0:  # else padding, for rows beyond the matrix too
                    dense[s * slice_size + (k - offsets[s]) % slice_size, columns[k]] += values[k]
        return fake.keep(dense)

    def create_bsr(brows, bcols, bnnz, r, c, row_offsets, col_ind, values, *types):
        assert types[:-2] == (2, 2, 0) and types[-1] == fake.Order.ROW
        offsets, columns = fake.read(row_offsets, brows + 1, np.int32), fake.read(col_ind, bnnz, np.int32)
        values = fake.read(values, bnnz * r * c, DTYPES[types[-2]]).reshape(bnnz, r, c)
        dense = np.zeros((brows * r, bcols * c))
        for i in range(brows):
            for k in range(offsets[i], offsets[i + 1]):
                dense[i * r : i * r + r, columns[k] * c : columns[k] * c + c] += values[k]
        return fake.keep(dense)

    def sp_mv_buffer_size(handle, op_a, alpha, mat_a, vec_x, beta, vec_y, compute_type, alg):
        assert (handle, op_a) == (77, 0)
        kind = DTYPES[compute_type]
        assert (fake.read(alpha, 1, kind)[0], fake.read(beta, 1, kind)[0]) == (1, 0)
        return 0 if alg == 3 else 16

    def sp_mv_preprocess(handle, op_a, alpha, mat_a, vec_x, beta, vec_y, compute_type, alg, external_buffer):
        fake.prepared.append(alg)

    def sp_mv(handle, op_a, alpha, mat_a, vec_x, beta, vec_y, compute_type, alg, external_buffer):
        assert external_buffer
        fake.used.append(alg)
        dense, x, y = (fake.objects[each] for each in (mat_a, vec_x, vec_y))
        assert dense.shape == (len(y), len(x))
        y[:] = dense @ x


kinds = SimpleNamespace(CUDA_R_32F=0, CUDA_R_64F=1)
package, bindings = ModuleType("nvmath"), ModuleType("nvmath.bindings")
package.CudaDataType, package.__spec__ = kinds, ModuleSpec("nvmath", None)
bindings.cusparse = fake
sys.modules |= {"nvmath": package, "nvmath.bindings": bindings, "nvmath.bindings.cusparse": fake}

import nvmath_peers
from sparsecast.devices.binding import prepared
from sparsecast.matrices.gallery import gallery
from scipy.sparse import csr_array, eye_array

odd, blocks = gallery("random", n=900, nnz_per_row=3), gallery("elasticity3d", n=2)
matrices = [  # and which formats would pad too much
    (prepared(blocks[:70, :71], "float64", 32), ()),  # neither side is a multiple of the blocks'
    (prepared(blocks, "float32", 32), ()),
    (prepared(csr_array(np.eye(67, 40, -3)), "float64", 32), ("BSR",)),  # empty rows, a last slice of three
    (prepared(eye_array(1, format="csr"), "float64", 32), ("sliced ELL", "BSR")),
    (prepared(odd, "float64", 32), ("BSR",)),
    (prepared(csr_array(np.vstack([np.ones((1, 400)), np.eye(399, 400)])), "float64", 32), ("sliced ELL",)),
]
for A, padded in matrices:
    x, refused = np.random.default_rng(0).uniform(-1, 1, A.shape[1]).astype(A.dtype), []
    for name, make in nvmath_peers.NVMATH_PEERS.items():
        try:
            call, result = make(A, x)
        except nvmath_peers.MissingPeerError as error:
            refused.append(str(error).split(" would store ")[0])
            continue
        call()
        tolerance = 1e-5 if A.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(result(), A @ x, rtol=tolerance, atol=tolerance, err_msg=name)
    assert tuple(refused) == padded, (refused, padded)
assert set(fake.used) == {2, 3, 5, 6} and set(fake.prepared) == {2, 3}
"""


@pytest.mark.parametrize("script", [WITHOUT, WITH], ids=["without nvmath-python", "with a stand-in"])
def test_in_the_simulator(script):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(["src", "benchmarks"])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
