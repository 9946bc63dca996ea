"""Products with several vectors at once, Y = A X: every entry is read once and multiplied with a row of X.

X and Y are stored row by row, so that what an entry reads of X, and what is added up for a row of Y, are
vectors. A panel of their columns is kept in registers while the entries of a row pass; X with more columns
than a panel takes several, the last one as far left as it needs to be to end with X. As in `bcsr.py`,
the sizes reach the compiler in the types of tuples, and one function serves every format, type and size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparsecast.devices.cpu.vector_code import (
    I64,
    StoredValues,
    VectorCode,
    index_at,
    loop,
    number_of,
    structures,
    variable,
)
from sparsecast.operators.block_operator import Product
from sparsecast.records import PANEL_VECTORS
from sparsecast.system.jit import inner
from sparsecast.system.numba_pool import share

#: A panel has at most this many columns, one cache line of float64, ...
_MOST_LANES = PANEL_VECTORS
#: ... and no more than its sums find room for: 16 registers of 32 bytes, as many as any x86 processor has.
_REGISTER_BYTES = 512

#: An addition takes about four cycles: with fewer sums, entries are taken two at a time, into sums of their
#: own.
_FEW_SUMS = 4


def panels(
    product: Callable[..., None],
    arrays: tuple[Any, ...],
    starts: NDArray[Any],
    block: tuple[int, int] = (1, 1),
) -> Product:
    """Return a product with any number of vectors from kernels for panels of one size.

    The compiled `product` is called as (*arrays, *sizes, X, Y, starts, pool), with `sizes` as for
    `row_of_blocks` and `starts` as for `share`. A `block` has the rows and columns that an entry is.
    """

    def widest(itemsize: int) -> int:
        return max(1, min(_MOST_LANES, _REGISTER_BYTES // (block[0] * itemsize)))

    @functools.cache
    def product_of(lanes: int) -> Product:
        sizes = ((0,) * size for size in (*block, lanes))
        return share(product, (*arrays, *sizes), starts)

    return lambda X, out: product_of(min(widest(X.itemsize), X.shape[1]))(X, out)


@intrinsic
def _emitted(typingctx, columns, data, X, Y, sizes, first, end, stride, row, panel):
    """Compute one panel of a row of blocks of Y; `sizes` are three tuples as long as the sizes are large."""
    word = types.uint64
    signature = types.void(columns, data, X, Y, sizes, word, word, word, word, word)

    def generate(context, builder, signature, arguments):
        rows, cols, lanes = (each.count for each in signature.args[4].types)
        number, parts = number_of(context, signature.args[2].dtype)
        values = StoredValues(context, builder, signature.args[1], arguments[1], number)
        kinds, given = ([each[0], *each[2:4]] for each in (signature.args, arguments))
        columns, x, y = structures(context, builder, kinds, given)
        x_at, y_at = (builder.bitcast(each.data, number.as_pointer()) for each in (x, y))
        width = builder.extract_value(x.shape, 1)
        first, end, stride, row, first_column = arguments[5:]
        panel = VectorCode(builder, number, parts * lanes, parts)

        def place(array: Any, row: Any, below: int) -> Any:
            """Return where the panel begins in a row of X or Y, some rows below another."""
            value = builder.add(builder.mul(builder.add(row, I64(below)), width), first_column)
            return builder.gep(array, [builder.mul(value, I64(parts))])

        def add_block(first_value: Any, rows_of_x: list[Any], sums: list[Any]) -> None:
            """Add the block whose values begin at `first_value`, times the panels at `rows_of_x`."""
            for column, place_of_x in enumerate(rows_of_x):
                factors = panel.loaded(place_of_x)
                for which in range(rows * parts):
                    value_row, part = divmod(which, parts)
                    where = (value_row * cols + column) * parts + part
                    value = values.at(builder.add(first_value, I64(where)))
                    panel.add_product(sums[which], panel.everywhere(value), factors)

        several = range(2 if rows * parts < _FEW_SUMS else 1)
        sets = [[panel.sums() for _ in range(rows * parts)] for _ in several]
        entry_at = variable(builder, first)
        for step in sorted({len(sets), 1}, reverse=True):
            with loop(builder, entry_at, end, step, stride) as entries:
                for entry, sums in zip(entries, sets, strict=False):
                    column = index_at(builder, columns.data, entry)
                    first_value = builder.mul(entry, I64(parts * rows * cols))
                    add_block(first_value, [place(x_at, column, each) for each in range(cols)], sums)
        for each in range(rows):
            start = place(y_at, row, each)
            own = zip(*(sums[each * parts : (each + 1) * parts] for sums in sets), strict=True)
            totals = [reduce(builder.fadd, [builder.load(one) for one in of_part]) for of_part in own]
            panel.store(panel.put_together(totals), start)
        return context.get_dummy_value()

    return signature, generate


@inner
def row_of_blocks(columns, data, X, Y, sizes, first, end, stride, row):
    """Compute the rows of Y from `row` on, as many as a block has.

    `columns` holds the first column of every block, and `data` the values of the blocks, each row by row. The
    row's blocks are `first`, `first` + `stride` and so on, before `end`. X and Y are C-contiguous, of the
    type of the matrix, with at least as many vectors as a panel has lanes: shapes (cols, vectors) and (rows,
    vectors). The `sizes` are three tuples, as long as a block has rows and columns and a panel has lanes.
    """
    lanes, width = np.uint64(len(sizes[2])), np.uint64(X.shape[1])
    panel = np.uint64(0)
    while panel + lanes < width:
        _emitted(columns, data, X, Y, sizes, first, end, stride, row, panel)
        panel += lanes
    _emitted(columns, data, X, Y, sizes, first, end, stride, row, width - lanes)
