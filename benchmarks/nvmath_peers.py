"""cuSPARSE through nvmath-python: its CSR algorithms prepared for the matrix, its sliced ELL and its blocks.

Matrix and vectors are placed by numba-cuda, so that CuPy is not needed. Handles and descriptors, some hundred
bytes each, live as long as the process; device memory as long as the product.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, csr_array

from sparsecast.devices.gpu.launching import interface, upload
from sparsecast.features.blocks import BLOCK_SIZES, block_fill
from sparsecast.formats.bcsr import best_block
from sparsecast.measuring.timing import Call

#: Rows of a slice of sliced ELL: a warp.
SLICE_ROWS = 32

#: Values stored for each entry beyond which a format is left out: it would only cost the campaign's time.
MOST_PADDING = 3.0


class MissingPeerError(Exception):
    """A peer is not installed, sees no device or does not suit the matrix; the message says which."""


@dataclass
class Stored:
    """A matrix as cuSPARSE takes it.

    Attributes
    ----------
    create : str
        The function of nvmath.bindings.cusparse that describes it.
    sizes : tuple of int
        What that takes before the arrays.
    arrays : list of arrays
        Offsets, columns (both int32) and values.
    shape : (int, int)
        Entries of y and of x, with those that the format adds.
    beyond : tuple of int
        What `create` takes after the type of the values.
    """

    create: str
    sizes: tuple[int, ...]
    arrays: list[np.ndarray]
    shape: tuple[int, int]
    beyond: tuple[int, ...] = field(default=())


def as_csr(A: csr_array) -> Stored:
    """Return the matrix as it is."""
    return Stored("create_csr", (*A.shape, A.nnz), [A.indptr, A.indices, A.data], A.shape)


def as_sliced_ell(A: csr_array) -> Stored:
    """Return slices of SLICE_ROWS rows, each column by column and as wide as its longest; column -1 pads."""
    rows, lengths = A.shape[0], np.diff(A.indptr)
    slices = -(-rows // SLICE_ROWS)
    padded = np.zeros(slices * SLICE_ROWS, dtype=np.int64)
    padded[:rows] = lengths
    offsets = np.zeros(slices + 1, dtype=np.int64)
    np.cumsum(padded.reshape(slices, SLICE_ROWS).max(axis=1) * SLICE_ROWS, out=offsets[1:])
    stored = int(offsets[-1])
    _refuse_padding("sliced ELL", stored / max(1, A.nnz))
    row = np.repeat(np.arange(rows), lengths)
    within = np.arange(A.nnz) - np.repeat(A.indptr[:-1].astype(np.int64), lengths)
    place = offsets[row // SLICE_ROWS] + within * SLICE_ROWS + row % SLICE_ROWS
    columns, values = np.full(stored, -1, dtype=np.int32), np.zeros(stored, dtype=A.dtype)
    columns[place], values[place] = A.indices, A.data
    arrays = [offsets.astype(np.int32), columns, values]
    return Stored("create_sliced_ell", (*A.shape, A.nnz, stored, SLICE_ROWS), arrays, A.shape)


def as_blocks(A: csr_array) -> Stored:
    """Return square blocks of the size that our own BCSR would have, each row by row."""
    fill = block_fill(A.indptr, A.indices)
    side = best_block(fill)
    _refuse_padding("BSR", fill[BLOCK_SIZES.index(side)])
    shape = tuple(-(-size // side) * side for size in A.shape)
    indptr = np.append(A.indptr, np.full(shape[0] - A.shape[0], A.indptr[-1], dtype=A.indptr.dtype))
    blocks = bsr_array(csr_array((A.data, A.indices, indptr), shape=shape), blocksize=(side, side))
    arrays = [blocks.indptr.astype(np.int32), blocks.indices.astype(np.int32), blocks.data.ravel()]
    sizes = (shape[0] // side, shape[1] // side, len(blocks.indices), side, side)
    return Stored("create_bsr", sizes, arrays, shape, (int(_cusparse().Order.ROW),))


def _refuse_padding(name: str, factor: float) -> None:
    if factor > MOST_PADDING:
        raise MissingPeerError(f"{name} would store {factor:.1f} values an entry, more than {MOST_PADDING:g}")


def nvmath_call(
    store: Callable[[csr_array], Stored], algorithm: str, prepare: bool, A: csr_array, x: np.ndarray
) -> tuple[Call, Call]:
    """Return cuSPARSE's product with descriptors and buffer made before, and its result.

    Parameters
    ----------
    store : callable
        Brings the matrix into its format.
    algorithm : str
        Name in SpMVAlg.
    prepare : bool
        Whether cuSPARSE may look at the matrix before the first product.
    A : csr_array
        With int32 indices.
    x : array of shape (cols,)
    """
    cusparse, stored = _cusparse(), store(A)
    value_type = int(_value_types()[A.dtype.name])
    index_type, base = int(cusparse.IndexType.INDEX_32I), int(cusparse.IndexBase.ZERO)
    longer_x = np.zeros(stored.shape[1], dtype=A.dtype)
    longer_x[: len(x)] = x
    *arrays, there, y = upload("vectors", *stored.arrays, longer_x, np.zeros(stored.shape[0], dtype=A.dtype))
    types = (index_type, index_type, base, value_type)
    matrix = getattr(cusparse, stored.create)(*stored.sizes, *map(_address, arrays), *types, *stored.beyond)
    v, w = (cusparse.create_dn_vec(vector.size, _address(vector), value_type) for vector in (there, y))
    scalars = np.ones(1, A.dtype), np.zeros(1, A.dtype)
    one, zero = (scalar.ctypes.data for scalar in scalars)
    operation, chosen = int(cusparse.Operation.NON_TRANSPOSE), int(getattr(cusparse.SpMVAlg, algorithm))
    arguments = (_handle(), operation, one, matrix, v, zero, w, value_type, chosen)
    (buffer,) = upload("vectors", np.zeros(max(1, cusparse.sp_mv_buffer_size(*arguments)), dtype=np.int8))
    place, spmv, held = _address(buffer), cusparse.sp_mv, (arrays, there, scalars, buffer)
    if prepare:
        cusparse.sp_mv_preprocess(*arguments, place)

    def product(held: Any = held) -> None:
        spmv(*arguments, place)

    return product, lambda: (product(), y.copy_to_host()[: A.shape[0]])[1]


def _address(array: Any) -> int:
    return int(interface(array)["data"][0] or 0)


def _cusparse() -> Any:
    if importlib.util.find_spec("nvmath") is None:
        raise MissingPeerError("nvmath-python is not installed")
    return importlib.import_module("nvmath.bindings.cusparse")


def _value_types() -> dict[str, Any]:
    kinds = importlib.import_module("nvmath").CudaDataType
    return {"float32": kinds.CUDA_R_32F, "float64": kinds.CUDA_R_64F}


@functools.cache
def _handle() -> int:
    return int(_cusparse().create())


Peer = Callable[[csr_array, np.ndarray], tuple[Call, Call]]

#: cuSPARSE's products by what they are called in the tables.
NVMATH_PEERS: dict[str, Peer] = {
    "cuSPARSE CSR_ALG1 prepared": functools.partial(nvmath_call, as_csr, "CSR_ALG1", True),
    "cuSPARSE CSR_ALG2 prepared": functools.partial(nvmath_call, as_csr, "CSR_ALG2", True),
    "cuSPARSE SELL_ALG1": functools.partial(nvmath_call, as_sliced_ell, "SELL_ALG1", False),
    "cuSPARSE BSR_ALG1": functools.partial(nvmath_call, as_blocks, "BSR_ALG1", False),
}
