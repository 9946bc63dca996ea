"""BCSR on processors: one row of blocks at a time, each row of a block a vector.

Every block size has a kernel of its own, as in SPARSITY (Im, Yelick, Vuduc 2004), but no source text is
generated for it: its size reaches the compiler in the types of two tuples, one as long as a block is high and
one as long as it is wide, and the instructions for one block are emitted for that size. So one function
serves all sizes, each compiled when it is first used, and Numba keeps them on disk like any other's.

The `c` values of a row of a block are loaded as one vector and multiplied by the vector of `c` values of x;
each of the `r` rows has an accumulator of that many lanes, added up where the row of blocks ends. Blocks
of one column are one vector of `r` values, multiplied by one value of x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparsecast.formats.bcsr import BCSR
from sparsecast.kernels import KERNELS
from sparsecast.kernels.base import FormatKernels, only_variant
from sparsecast.kernels.cpu.parallel import balanced_parts, share, unsigned
from sparsecast.kernels.cpu.several import panels, row_of_blocks
from sparsecast.operators import Product

ONE = np.uint64(1)

#: An addition takes about four cycles, in each of which a processor can begin others: blocks of fewer
#: vectors are taken two at a time, into accumulators of their own.
_FEW_VECTORS = 4

#: A product and its addition may become one instruction with one rounding.
_FUSED = ("contract",)

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _variable(builder: Any, kind: Any) -> Any:
    return cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]


class _Block:
    """Emits the instructions for the blocks of one size.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    value : llvmlite.ir.Type
        Of the values: float or double.
    r, c : int
        Rows and columns of a block.
    """

    def __init__(self, builder: Any, value: Any, r: int, c: int) -> None:
        self._builder, self._value = builder, value
        self.size, self._one_column = r * c, c == 1
        self._used, self.vectors = (r, 1) if self._one_column else (c, r)
        # Four lanes are one load, three are two loads and a shuffle. The fourth is of the next row of the
        # block, which the last row lacks, and its sum is never looked at.
        self._lanes = 4 if c == 3 and r > 1 else self._used
        self._vector = ir.VectorType(value, self._lanes)

    def accumulators(self) -> list[Any]:
        """Return accumulators for the rows of a block, all 0; LLVM keeps them in registers."""
        found = [_variable(self._builder, self._vector) for _ in range(self.vectors)]
        for each in found:
            self._builder.store(ir.Constant(self._vector, None), each)
        return found

    def add_product(self, data: Any, x: Any, accumulators: Sequence[Any]) -> None:
        """Add the block that begins at `data`, times the part of x that begins at `x`."""
        builder = self._builder
        part_of_x = self._broadcast(builder.load(x)) if self._one_column else self._widened(x)
        for row, accumulator in enumerate(accumulators):
            place = builder.gep(data, [_I64(row * self._used)])
            is_last = row == self.vectors - 1
            values = self._widened(place) if is_last else self._loaded(place, self._lanes)
            product = builder.fmul(values, part_of_x, flags=_FUSED)
            builder.store(builder.fadd(builder.load(accumulator), product, flags=_FUSED), accumulator)

    def sums(self, accumulators: Sequence[Any]) -> list[Any]:
        """Return the sums of the `r` rows."""
        vectors = [self._builder.load(each) for each in accumulators]
        if self._one_column:
            return [self._builder.extract_element(vectors[0], _I32(row)) for row in range(self._used)]
        return [self._sum(self._picked(vector, range(self._used))) for vector in vectors]

    def _loaded(self, place: Any, lanes: int) -> Any:
        pointer = self._builder.bitcast(place, ir.VectorType(self._value, lanes).as_pointer())
        return self._builder.load(pointer, align=4 if isinstance(self._value, ir.FloatType) else 8)

    def _widened(self, place: Any) -> Any:
        """Load no more than the lanes that are used; the others repeat the first."""
        spare = self._lanes - self._used
        loaded = self._loaded(place, self._used)
        return self._picked(loaded, [*range(self._used), *[0] * spare]) if spare else loaded

    def _broadcast(self, scalar: Any) -> Any:
        undefined = ir.Constant(self._vector, ir.Undefined)
        return self._picked(self._builder.insert_element(undefined, scalar, _I32(0)), [0] * self._lanes)

    def _picked(self, vector: Any, lanes: Sequence[int]) -> Any:
        """Return these lanes of a vector."""
        which = ir.Constant(ir.VectorType(_I32, len(lanes)), list(lanes))
        return self._builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), which)

    def _sum(self, vector: Any) -> Any:
        """Add the lanes: upper half to lower half while their number is even, then one by one."""
        builder, lanes = self._builder, vector.type.count
        while lanes % 2 == 0:
            lanes //= 2
            lower, upper = range(lanes), range(lanes, 2 * lanes)
            vector = builder.fadd(self._picked(vector, lower), self._picked(vector, upper))
        total = builder.extract_element(vector, _I32(0))
        for lane in range(1, lanes):
            total = builder.fadd(total, builder.extract_element(vector, _I32(lane)))
        return total


@contextmanager
def _while_left(builder: Any, next_block: Any, step: int, end: Any) -> Iterator[Any]:
    """Emit a loop over blocks from `next_block` on, `step` at a time while as many are left."""
    test, body, after = (builder.append_basic_block(name) for name in ("test", "blocks", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    block = builder.load(next_block)
    beyond = builder.add(block, _I64(step))
    builder.cbranch(builder.icmp_unsigned("<=", beyond, end), body, after)
    builder.position_at_end(body)
    yield block
    builder.store(beyond, next_block)
    builder.branch(test)
    builder.position_at_end(after)


@intrinsic
def _block_row(typingctx, columns, data, x, y, height, width, first, end, i):  # type: ignore[no-untyped-def]
    """Compute y[i * r : (i + 1) * r] from the blocks `first` to `end` - 1."""
    word = types.uint64
    signature = types.void(columns, data, x, y, height, width, word, word, word)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        arrays = [
            (array_type, context.make_array(array_type)(context, builder, array).data)
            for array_type, array in zip(signature.args[:4], arguments[:4], strict=True)
        ]
        _emit_block_row(context, builder, arrays, (height.count, width.count), arguments[6:])
        return context.get_dummy_value()

    return signature, generate


def _emit_block_row(
    context: Any, builder: Any, arrays: Sequence[Any], size: tuple[int, int], span: Sequence[Any]
) -> None:
    (_, columns), (data_type, data), (_, x), (_, y) = arrays
    first, end, i = span
    block = _Block(builder, context.get_value_type(data_type.dtype), *size)
    sets = [block.accumulators() for _ in range(2 if block.vectors < _FEW_VECTORS else 1)]
    next_block = _variable(builder, _I64)
    builder.store(first, next_block)
    for step in sorted({len(sets), 1}, reverse=True):
        with _while_left(builder, next_block, step, end) as k:
            for which, accumulators in enumerate(sets[:step]):
                each = builder.add(k, _I64(which))
                column = builder.load(builder.gep(columns, [each]))
                column = builder.zext(column, _I64) if column.type.width < 64 else column
                place = builder.gep(data, [builder.mul(each, _I64(block.size))])
                block.add_product(place, builder.gep(x, [column]), accumulators)
    totals = [block.sums(accumulators) for accumulators in sets]
    for row, parts in enumerate(zip(*totals, strict=True)):
        total = builder.fadd(*parts) if len(parts) == 2 else parts[0]
        builder.store(total, builder.gep(y, [builder.add(builder.mul(i, _I64(size[0])), _I64(row))]))


@numba.njit(nogil=True, cache=True)
def _last_rows(starts, columns, data, x, y, r, c, i):  # type: ignore[no-untyped-def]
    """Compute the rows of a block row that reaches beyond the matrix; there is one at most."""
    for row in range(len(y) - i * r):
        total = data.dtype.type(0)
        for k in range(np.int64(starts[i]), np.int64(starts[i + 1])):
            for column in range(c):
                total += data[(k * r + row) * c + column] * x[np.int64(columns[k]) + column]
        y[i * r + row] = total


@numba.njit(nogil=True, cache=True)
def _part(starts, columns, data, height, width, x, y, first, last):  # type: ignore[no-untyped-def]
    full = min(last, np.uint64(len(y) // len(height)))
    for i in range(first, full):
        begin, end = starts[i], starts[i + ONE]
        _block_row(columns, data, x, y, height, width, begin, end, i)  # type: ignore[call-arg]
    if first <= full < last:
        _last_rows(starts, columns, data, x, y, len(height), len(width), np.int64(full))


@numba.njit(nogil=True, cache=True)
def _serial(starts, columns, data, height, width, x, y, parts):  # type: ignore[no-untyped-def]
    for part in range(len(parts) - 1):
        _part(starts, columns, data, height, width, x, y, parts[part], parts[part + 1])


@numba.njit(nogil=True, cache=True, parallel=True)
def _parallel(starts, columns, data, height, width, x, y, parts):  # type: ignore[no-untyped-def]
    for part in numba.prange(len(parts) - 1):
        _part(starts, columns, data, height, width, x, y, parts[part], parts[part + 1])


def _bind(matrix: BCSR, variant: str, threads: int) -> Product:
    if matrix.nnz == 0:
        return lambda x, out: out.fill(0)
    r, c = matrix.block
    starts = unsigned(matrix.starts)
    parts = balanced_parts(starts, threads).astype(np.uint64)
    arrays = (starts, unsigned(matrix.columns), matrix.data, (0,) * r, (0,) * c)
    product = share(_serial, _parallel, arrays, parts)
    cols = matrix.shape[1]
    return product if cols >= c else _of_long_x(product, cols, c)


def _of_long_x(product: Product, cols: int, c: int) -> Product:
    """Return the product of a matrix narrower than its blocks, which would read beyond x."""

    def padded(x: NDArray[Any], out: NDArray[Any]) -> None:
        long = np.zeros((c, *x.shape[1:]), dtype=x.dtype)
        long[:cols] = x
        product(long, out)

    return padded


@numba.njit(nogil=True, cache=True)
def _several_last_rows(starts, columns, data, height, width, lanes, X, Y, i):  # type: ignore[no-untyped-def]
    """As `_last_rows`, for several vectors."""
    r, c = len(height), len(width)
    Y[i * r :] = 0
    for k in range(np.int64(starts[i]), np.int64(starts[i + 1])):
        for row in range(Y.shape[0] - i * r):
            for column in range(c):
                value = data[(k * r + row) * c + column]
                for vector in range(X.shape[1]):
                    Y[i * r + row, vector] += value * X[np.int64(columns[k]) + column, vector]


@numba.njit(nogil=True, cache=True)
def _several_part(starts, columns, data, height, width, lanes, X, Y, first, last):  # type: ignore[no-untyped-def]
    r = np.uint64(len(height))
    full = min(last, np.uint64(Y.shape[0]) // r)
    for i in range(first, full):
        row_of_blocks(columns, data, X, Y, (height, width, lanes), starts[i], starts[i + ONE], ONE, i * r)
    if first <= full < last:
        _several_last_rows(starts, columns, data, height, width, lanes, X, Y, np.int64(full))


@numba.njit(nogil=True, cache=True)
def _several_serial(starts, columns, data, height, width, lanes, X, Y, parts):  # type: ignore[no-untyped-def]
    _several_part(starts, columns, data, height, width, lanes, X, Y, parts[0], parts[-1])


@numba.njit(nogil=True, cache=True, parallel=True)
def _several_parallel(starts, columns, data, height, width, lanes, X, Y, parts):  # type: ignore[no-untyped-def]
    for part in numba.prange(len(parts) - 1):
        _several_part(starts, columns, data, height, width, lanes, X, Y, parts[part], parts[part + 1])


def _bind_several(matrix: BCSR, threads: int) -> Product:
    if matrix.nnz == 0:
        return lambda X, out: out.fill(0)
    r, c = matrix.block
    starts = unsigned(matrix.starts)
    parts = balanced_parts(starts, threads).astype(np.uint64)
    arrays = starts, unsigned(matrix.columns), matrix.data

    def product_of(lanes: int) -> Product:
        return share(_several_serial, _several_parallel, (*arrays, (0,) * r, (0,) * c, (0,) * lanes), parts)

    product = panels(product_of, r, matrix.dtype)
    cols = matrix.shape[1]
    return product if cols >= c else _of_long_x(product, cols, c)


KERNELS["cpu"].register("bcsr")(FormatKernels(("vectors",), only_variant, _bind, _bind_several))
