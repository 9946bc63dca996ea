"""BCSR on processors: one row of blocks at a time, each row of a block a vector.

Every block size has a kernel of its own, as in SPARSITY (Im, Yelick, Vuduc 2004), but no source text is
generated for it: its size reaches the compiler in the types of two tuples, one as long as a block is high and
one as long as it is wide, and the instructions for one block are emitted for that size. So one function
serves all sizes, each compiled when it is first used, and Numba keeps them on disk like any other's.

The `c` values of a row of a block are loaded as one vector and multiplied by the vector of `c` values of x;
each of the `r` rows has an accumulator of that many lanes, added up where the row of blocks ends. Blocks
of one column are one vector of `r` values, multiplied by one value of x.

A complex value is two lanes, its real and its imaginary part. Each vector then has two accumulators: of the
products with the real parts of x, and of those with its imaginary parts, which are to be multiplied by i.
That is done once, where the row of blocks ends: of a block, only the part of x is shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.multivector import panels, row_of_blocks
from sparsecast.devices.cpu.vector_code import (
    I64,
    VectorCode,
    bytes_of,
    index_at,
    loop,
    number_of,
    structures,
    variable,
)
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.formats.bcsr import BCSR
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

ONE = np.uint64(1)

#: An addition takes about four cycles, in each of which a processor can begin others: blocks of fewer
#: vectors are taken two at a time, into accumulators of their own.
_FEW_VECTORS = 4

#: Bytes of the widest vector register there is.
_WIDEST_BYTES = 64


class Block(VectorCode):
    """Emits the instructions for the blocks of one size."""

    def __init__(self, context: Any, builder: Any, dtype: Any, r: int, c: int) -> None:
        self.context = context
        number, parts = number_of(context, dtype)
        self.size, self._one_column = parts * r * c, c == 1
        rows, numbers = (1, r * parts) if self._one_column else (r, c * parts)
        # A row wider than a register is two vectors: in one of 12 doubles it ran at a third of the speed.
        self.halves = 2 if numbers * bytes_of(number) > _WIDEST_BYTES else 1
        self.used, self._vectors = numbers // self.halves, rows * self.halves
        # Four values are one load, three are two loads and a shuffle. The fourth is of the next row of the
        # block, which the last row lacks, and its sum is never looked at.
        super().__init__(builder, number, parts * 4 if c == 3 and r > 1 else self.used, parts)
        self.sets = 2 if parts * self._vectors < _FEW_VECTORS else 1

    def pointers(self, kinds: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """Return pointers to the data of arrays, of Numba's types `kinds`: indices first, then values."""
        indices, *values = (each.data for each in structures(self.context, self.builder, kinds, arrays))
        numbers = (number_of(self.context, kind.dtype)[0].as_pointer() for kind in kinds[1:])
        return [indices, *map(self.builder.bitcast, values, numbers)]

    def accumulators(self) -> list[list[Any]]:
        """Return sums for each vector of a block, one for each part of x."""
        return [[self.sums() for _ in range(self.parts)] for _ in range(self._vectors)]

    def add_blocks(
        self,
        arrays: Sequence[Any],
        sets: Sequence[Any],
        next_block: Any,
        end: Any,
        also: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """Add the blocks from the variable `next_block` to `end` - 1, as many at a time as there are `sets`.

        `arrays` are pointers to the columns of the blocks, to their values and to x, the sets are of
        accumulators. `also` emits what else is done with a block, from its place and its column.
        """
        columns, data, x = arrays
        builder = self.builder
        for step in sorted({len(sets), 1}, reverse=True):
            with loop(builder, next_block, end, step) as blocks:
                for each, accumulators in zip(blocks, sets, strict=False):
                    column = index_at(builder, columns, each)
                    place = builder.gep(data, [builder.mul(each, I64(self.size))])
                    start_of_x = builder.gep(x, [builder.mul(column, I64(self.parts))])
                    self._add_block(place, start_of_x, accumulators)
                    if also is not None:
                        also(place, column)

    def store_totals(self, sets: Sequence[Any], y: Any) -> None:
        """Write the sums of all accumulators to y, from this place on."""
        totals = []
        for accumulators in sets:
            vectors = [self.put_together([self.builder.load(each) for each in own]) for own in accumulators]
            if not self._one_column:
                rows = (vectors[k : k + self.halves] for k in range(0, self._vectors, self.halves))
                wholes = (reduce(self.builder.fadd, halves) for halves in rows)
                vectors = [self.total(self.picked(whole, range(self.used))) for whole in wholes]
            totals.append(list(chain.from_iterable(self.numbers(vector) for vector in vectors)))
        for place, each in enumerate(zip(*totals, strict=True)):
            self.builder.store(reduce(self.builder.fadd, each), self.builder.gep(y, [I64(place)]))

    def row_of(self, data: Any, k: int) -> Any:
        """Return the vector `k` of the block that begins at `data`."""
        place = self.builder.gep(data, [I64(k * self.used)])
        return self._widened(place) if k == self._vectors - 1 else self.loaded(place)

    def _add_block(self, data: Any, x: Any, accumulators: Sequence[Sequence[Any]]) -> None:
        """Add the block that begins at `data`, times the part of x that begins at `x`."""
        factors = []  # for each half, and each part of a value, that part of x in all the lanes of its value
        for start in [0] if self._one_column else [half * self.used for half in range(self.halves)]:
            place = self.builder.gep(x, [I64(start)])
            loaded = self.loaded(place, self.parts) if self._one_column else self._widened(place)
            values = [0 if self._one_column else lane // self.parts for lane in range(self.lanes)]
            of_part = ([self.parts * k + part for k in values] for part in range(self.parts))
            factors.append([self.picked(loaded, lanes) for lanes in of_part])
        for k, own in enumerate(accumulators):
            values = self.row_of(data, k)
            for factor, sums in zip(factors[k % len(factors)], own, strict=True):
                self.add_product(sums, values, factor)

    def _widened(self, place: Any) -> Any:
        """Load no more than the lanes that are used; the others repeat the first."""
        spare = self.lanes - self.used
        loaded = self.loaded(place, self.used)
        return self.picked(loaded, [*range(self.used), *[0] * spare]) if spare else loaded


@intrinsic
def _block_row(typingctx, columns, data, x, y, height, width, first, end, i):
    """Compute y[i * r : (i + 1) * r] from the blocks `first` to `end` - 1."""
    word = types.uint64
    signature = types.void(columns, data, x, y, height, width, word, word, word)

    def generate(context, builder, signature, arguments):
        block = Block(context, builder, signature.args[2].dtype, height.count, width.count)
        columns, data, x, y = block.pointers(signature.args[:4], arguments[:4])
        first, end, i = arguments[6:]
        sets = [block.accumulators() for _ in range(block.sets)]
        block.add_blocks((columns, data, x), sets, variable(builder, first), end)
        block.store_totals(sets, builder.gep(y, [builder.mul(i, I64(block.parts * height.count))]))
        return context.get_dummy_value()

    return signature, generate


@inner
def _last_rows(starts, columns, data, x, y, r, c, i):
    """Compute the rows of a block row that reaches beyond the matrix; there is one at most."""
    for row in range(len(y) - i * r):
        total = x.dtype.type(0)
        for k in range(np.int64(starts[i]), np.int64(starts[i + 1])):
            for column in range(c):
                total += data[(k * r + row) * c + column] * x[np.int64(columns[k]) + column]
        y[i * r + row] = total


@inner
def _part(part, starts, columns, data, height, width, x, y, parts):
    first, last = parts[part], parts[part + 1]
    full = min(last, np.uint64(len(y) // len(height)))
    for i in range(first, full):
        begin, end = starts[i], starts[i + ONE]
        _block_row(columns, data, x, y, height, width, begin, end, i)
    if first <= full < last:
        # As plain integers: a length of a tuple is a constant, and would be compiled for anew.
        r, c = np.int64(len(height)), np.int64(len(width))
        _last_rows(starts, columns, data, x, y, r, c, np.int64(full))


@njit(nogil=True, cache=True)
def _product(starts, columns, data, height, width, x, y, parts, pool):
    each_part(_part, (starts, columns, data, height, width, x, y, parts), pool)


def _bind(matrix: BCSR, variant: str, threads: int) -> Product:
    arrays, parts = _shared(matrix, threads)
    r, c = matrix.block
    return of_long_x(share(_product, (*arrays, (0,) * r, (0,) * c), parts), matrix)


def _shared(matrix: BCSR, threads: int) -> tuple[tuple[NDArray[Any], ...], NDArray[np.uint64]]:
    starts = unsigned(matrix.starts)
    parts = balanced_parts(starts, threads).astype(np.uint64)
    return (starts, unsigned(matrix.columns), matrix.data), parts


def of_long_x(product: Product, matrix: BCSR) -> Product:
    """Return a product that does not read beyond the x of a matrix narrower than its blocks."""
    cols, c = matrix.shape[1], matrix.block[1]
    if cols >= c:
        return product

    def padded(x: NDArray[Any], out: NDArray[Any]) -> None:
        long = np.zeros((c, *x.shape[1:]), dtype=x.dtype)
        long[:cols] = x
        product(long, out)

    return padded


@inner
def _several_last_rows(starts, columns, data, X, Y, r, c, i):
    Y[i * r :] = 0
    for k in range(np.int64(starts[i]), np.int64(starts[i + 1])):
        for row in range(Y.shape[0] - i * r):
            for column in range(c):
                value = data[(k * r + row) * c + column]
                for vector in range(X.shape[1]):
                    Y[i * r + row, vector] += value * X[np.int64(columns[k]) + column, vector]


@inner
def _several_part(part, starts, columns, data, height, width, lanes, X, Y, parts):
    first, last = parts[part], parts[part + 1]
    r, c = np.int64(len(height)), np.int64(len(width))
    full = min(last, np.uint64(Y.shape[0] // r))
    for i in range(first, full):
        row = i * np.uint64(r)
        row_of_blocks(columns, data, X, Y, (height, width, lanes), starts[i], starts[i + ONE], ONE, row)
    if first <= full < last:
        _several_last_rows(starts, columns, data, X, Y, r, c, np.int64(full))


@njit(nogil=True, cache=True)
def _several(starts, columns, data, height, width, lanes, X, Y, parts, pool):
    each_part(_several_part, (starts, columns, data, height, width, lanes, X, Y, parts), pool)


def _bind_multivector(matrix: BCSR, threads: int) -> Product:
    arrays, parts = _shared(matrix, threads)
    return of_long_x(panels(_several, arrays, parts, matrix.block), matrix)


KERNELS.register("bcsr")(
    FormatKernels(
        ("vectors",),
        only_variant,
        _bind,
        _bind_multivector,
        sizes=tuple({"block": (side, side)} for side in BLOCK_SIZES),
        reads_narrow=True,
    )
)
