"""Products with several vectors at once, Y = A X: every entry is read once and multiplied with a row of X.

X and Y are stored row by row, so that what an entry reads of X, and what is added up for a row of Y, are
vectors. A panel of their columns is kept in registers while the entries of a row pass; X with more columns
than a panel takes several, the last one as far left as it needs to be to end with X. As in `bcsr.py`,
the sizes reach the compiler in the types of tuples, and one function serves every format, type and size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparsecast.operators import Product

#: A panel has at most this many columns, one cache line of float64, ...
_MOST_LANES = 8
#: ... and no more than its sums find room for: 16 registers of 32 bytes, as many as any x86 processor has.
_REGISTER_BYTES = 512

#: An addition takes about four cycles: with fewer sums, entries are taken two at a time, into sums of their
#: own.
_FEW_SUMS = 4

#: A product and its addition may become one instruction with one rounding.
_FUSED = ("contract",)

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def panels(product_of: Callable[[int], Product], rows_of_block: int, dtype: np.dtype[Any]) -> Product:
    """Return a product with any number of vectors from those with panels of one width.

    Parameters
    ----------
    product_of : callable
        Lanes of a panel to the product that uses such panels; asked once for each number of lanes.
    rows_of_block : int
        Rows whose sums are in registers at a time.
    dtype : dtype
        Of the values.
    """
    widest = max(1, min(_MOST_LANES, _REGISTER_BYTES // (rows_of_block * dtype.itemsize)))
    known: dict[int, Product] = {}

    def product(X: NDArray[Any], out: NDArray[Any]) -> None:
        lanes = min(widest, X.shape[1])
        if lanes not in known:
            known[lanes] = product_of(lanes)
        known[lanes](X, out)

    return product


class _Panel:
    """Emits the instructions for a panel of one size.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    number : llvmlite.ir.Type
        Of the values or of their parts: float or double.
    parts : int
        Numbers of a value: 1, or 2 where it is complex.
    block : (int, int)
        Rows and columns of the blocks that an entry is; (1, 1) for a single value.
    lanes : int
        Columns of X in the panel.
    """

    def __init__(self, builder: Any, number: Any, parts: int, block: tuple[int, int], lanes: int) -> None:
        self._builder, self._number, self.parts, self._lanes = builder, number, parts, lanes
        self.rows, self.cols = block
        self._vector = ir.VectorType(number, parts * lanes)
        self.sets = 2 if self.rows * parts < _FEW_SUMS else 1

    def sums(self) -> list[Any]:
        """Return sums of the rows of a block, for each part of a value one, all 0."""
        found = [
            cgutils.alloca_once(self._builder, self._vector)  # type: ignore[no-untyped-call]
            for _ in range(self.rows * self.parts)
        ]
        for each in found:
            self._builder.store(ir.Constant(self._vector, None), each)
        return found

    def add(self, values: Any, rows_of_x: Sequence[Any], sums: Sequence[Any]) -> None:
        """Add the block that begins at `values`, times the panels that begin at `rows_of_x`."""
        builder = self._builder
        for column, place in enumerate(rows_of_x):
            x = self._loaded(place)
            for row in range(self.rows):
                for part in range(self.parts):
                    where = (row * self.cols + column) * self.parts + part
                    value = builder.load(builder.gep(values, [_I64(where)]))
                    own = sums[row * self.parts + part]
                    product = builder.fmul(self._everywhere(value), x, flags=_FUSED)
                    builder.store(builder.fadd(builder.load(own), product, flags=_FUSED), own)

    def store(self, sets: Sequence[Sequence[Any]], row: int, place: Any) -> None:
        """Write the panel of a row of Y: the sets added up."""
        builder = self._builder
        of_parts = []
        for part in range(self.parts):
            loaded = [builder.load(sums[row * self.parts + part]) for sums in sets]
            of_parts.append(builder.fadd(*loaded) if len(loaded) == 2 else loaded[0])
        total = of_parts[0] if self.parts == 1 else self._put_together(*of_parts)
        pointer = builder.bitcast(place, self._vector.as_pointer())
        builder.store(total, pointer, align=self._alignment)

    @property
    def _alignment(self) -> int:
        return 4 if isinstance(self._number, ir.FloatType) else 8

    def _loaded(self, place: Any) -> Any:
        pointer = self._builder.bitcast(place, self._vector.as_pointer())
        return self._builder.load(pointer, align=self._alignment)

    def _everywhere(self, scalar: Any) -> Any:
        undefined = ir.Constant(self._vector, ir.Undefined)
        first = self._builder.insert_element(undefined, scalar, _I32(0))
        return self._picked(first, undefined, [0] * self._vector.count)

    def _put_together(self, real: Any, imaginary: Any) -> Any:
        """Return the products from those with the parts of the values: times i, (re, im) is (-im, re)."""
        count = self._vector.count
        turned = self._picked(imaginary, imaginary, [lane ^ 1 for lane in range(count)])
        lower, upper = self._builder.fsub(real, turned), self._builder.fadd(real, turned)
        return self._picked(lower, upper, [lane + count * (lane % 2) for lane in range(count)])

    def _picked(self, lower: Any, upper: Any, lanes: Sequence[int]) -> Any:
        which = ir.Constant(ir.VectorType(_I32, len(lanes)), list(lanes))
        return self._builder.shuffle_vector(lower, upper, which)


@contextmanager
def _while_before(builder: Any, entry_at: Any, reach: Any, end: Any) -> Iterator[Any]:
    """Emit a loop over entries while one `reach` further on is before `end`; its body moves `entry_at`."""
    test, body, after = (builder.append_basic_block(name) for name in ("test", "entries", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    entry = builder.load(entry_at)
    builder.cbranch(builder.icmp_unsigned("<", builder.add(entry, reach), end), body, after)
    builder.position_at_end(body)
    yield entry
    builder.branch(test)
    builder.position_at_end(after)


@intrinsic
def _emitted(  # type: ignore[no-untyped-def]
    typingctx, columns, data, X, Y, sizes, first, end, stride, row, panel
):
    """Compute one panel of a row of blocks of Y; `sizes` are three tuples as long as the sizes are large."""
    word = types.uint64
    signature = types.void(columns, data, X, Y, sizes, word, word, word, word, word)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        number, size = signature.args[1].dtype, [each.count for each in signature.args[4].types]
        parts = 2 if isinstance(number, types.Complex) else 1
        kind = context.get_value_type(number.underlying_float if parts == 2 else number)
        arrays = [
            context.make_array(each)(context, builder, argument)
            for each, argument in zip(signature.args[:4], arguments[:4], strict=True)
        ]
        columns, *numbers = (each.data for each in arrays)
        numbers = [builder.bitcast(each, kind.as_pointer()) for each in numbers]
        width = cgutils.unpack_tuple(builder, arrays[2].shape)[1]  # type: ignore[no-untyped-call]
        panel = _Panel(builder, kind, parts, (size[0], size[1]), size[2])
        _emit_row(builder, panel, (columns, *numbers), width, arguments[5:])
        return context.get_dummy_value()

    return signature, generate


def _emit_row(builder: Any, panel: _Panel, arrays: tuple[Any, ...], width: Any, span: Sequence[Any]) -> None:
    columns, data, x, y = arrays
    first, end, stride, row, first_column = span

    def place(array: Any, row: Any, below: int) -> Any:
        """Return where the panel begins in a row of X or Y, some rows below another."""
        value = builder.add(builder.mul(builder.add(row, _I64(below)), width), first_column)
        return builder.gep(array, [builder.mul(value, _I64(panel.parts))])

    sets = [panel.sums() for _ in range(panel.sets)]
    entry_at = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
    builder.store(first, entry_at)
    for step in sorted({len(sets), 1}, reverse=True):
        with _while_before(builder, entry_at, builder.mul(stride, _I64(step - 1)), end) as entry:
            for sums in sets[:step]:
                column = builder.load(builder.gep(columns, [entry]))
                column = builder.zext(column, _I64) if column.type.width < 64 else column
                values = builder.gep(data, [builder.mul(entry, _I64(panel.parts * panel.rows * panel.cols))])
                panel.add(values, [place(x, column, each) for each in range(panel.cols)], sums)
                entry = builder.add(entry, stride)
            builder.store(entry, entry_at)
    for each in range(panel.rows):
        panel.store(sets, each, place(y, row, each))


@numba.njit(nogil=True, cache=True)
def row_of_blocks(columns, data, X, Y, sizes, first, end, stride, row):  # type: ignore[no-untyped-def]
    """Compute the rows of Y from `row` on, as many as a block has.

    Parameters
    ----------
    columns, data : arrays of the format
        The first column of every block, and the blocks' values, each row by row.
    X, Y : arrays of shape (cols, vectors) and (rows, vectors)
        C-contiguous, of the type of `data`, with at least as many vectors as a panel has lanes.
    sizes : (tuple, tuple, tuple)
        As long as a block has rows and columns and a panel has lanes.
    first, end, stride, row : uint64
        The row's blocks are `first`, `first` + `stride` and so on, before `end`.
    """
    lanes, width = np.uint64(len(sizes[2])), np.uint64(X.shape[1])
    panel = np.uint64(0)
    while panel + lanes < width:
        _emitted(columns, data, X, Y, sizes, first, end, stride, row, panel)  # type: ignore[call-arg]
        panel += lanes
    _emitted(columns, data, X, Y, sizes, first, end, stride, row, width - lanes)  # type: ignore[call-arg]
