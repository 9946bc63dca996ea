"""Reads narrow storage in kernels: the types of the arguments say how a matrix is stored.

Values are an array, of x's type or narrower, or one number for all entries. Bases of groups of rows are an
array, or an empty tuple where columns are stored in full. So one source serves every storage, and full
storage runs the code that it would run alone.

Numba's cache on disk looks at a kernel's own file only: after a change here, its files must be removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from sparsecast.system.integers import unsigned

_ONE = np.uint32(1)


def data_argument(data: NDArray[Any], values: str | None) -> Any:
    """Return the stored values of a format, whose `values` are as in Narrow, as kernels take them."""
    return data[0] if values == "one" else data


def narrow_arguments(
    data: NDArray[Any], values: str | None, bases: NDArray[Any]
) -> tuple[Any, NDArray[Any] | tuple[()]]:
    """Return the values and the bases of a format as kernels take them."""
    return data_argument(data, values), unsigned(bases) if len(bases) else ()


def value_at(data: Any, k: Any) -> Any:
    """Return the value of entry `k`."""
    return data[k] if isinstance(data, np.ndarray) else data


@overload(value_at)
def _value_at(data, k):
    return (lambda data, k: data[k]) if isinstance(data, types.Array) else lambda data, k: data


def end_of_group(bases: Any, first: Any, last: Any, units: Any) -> Any:
    """Return the end of the rows, or chunks of rows, from `first` on, before `last`, that have one base.

    A group has `units` of them, a power of two.
    """
    return min(last, (first | (units - _ONE)) + _ONE) if len(bases) else last


@overload(end_of_group)
def _end_of_group(bases, first, last, units):
    if isinstance(bases, types.Array):
        return lambda bases, first, last, units: min(last, (first | (units - _ONE)) + _ONE)
    return lambda bases, first, last, units: last


def from_base(x: Any, bases: Any, first: Any, units: Any) -> Any:
    """Return x, of one axis or more, from the base of a row, or chunk of rows, on."""
    return x[bases[first // units] :] if len(bases) else x


@overload(from_base)
def _from_base(x, bases, first, units):
    if isinstance(bases, types.Array):
        return lambda x, bases, first, units: _moved(x, np.uint64(bases[first // units]))
    return lambda x, bases, first, units: x


@intrinsic
def _moved(typingctx, x, rows):
    """Return x[rows:] for a C-contiguous x, with its shape as before, and without counting references."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        places = arguments[1]
        for axis in range(1, signature.args[0].ndim):
            places = builder.mul(places, builder.extract_value(array.shape, axis))
        moved = context.make_array(signature.args[0])(context, builder)
        for name in ("shape", "strides", "nitems", "itemsize"):
            setattr(moved, name, getattr(array, name))
        moved.data = builder.gep(array.data, [places])
        for name in ("meminfo", "parent"):
            setattr(moved, name, ir.Constant(getattr(array, name).type, None))
        return moved._getvalue()

    return x(x, types.uint64), generate
