"""DIA on processors: a chunk of rows through all its diagonals, its sums in registers.

The values of a chunk lie one diagonal after the other, so a product streams a single array. Each diagonal of
a chunk is a few vectors, multiplied by the part of x that begins at its offset and added to vectors of sums.
Numba would not keep an array of sums in registers over a loop, so the instructions of that loop are emitted
here, for the size of the chunk, which reaches the compiler in the type of a tuple: an element for each eight
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.vector_code import I8, I32, I64, VectorCode, bytes_of, number_of, structures
from sparsecast.formats.dia import DIA
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import first_from
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts

#: How far ahead of the values in use others are asked for. A processor foresees a stream by itself, but only
#: to the end of a page, which has this size.
_AHEAD_BYTES, _LINE_BYTES = 4096, 64

#: What one instruction loads. Arrays begin anywhere in a cache line of 64 bytes: twice as wide, every load
#: would take two lines.
_VECTOR_BYTES = 32

U64 = np.uint64


class _Sums(VectorCode):
    """Emits the sums of the rows of a chunk, in vectors."""

    def __init__(self, builder: Any, context: Any, value: Any, rows: int) -> None:
        number, parts = number_of(context, value)
        super().__init__(builder, number, _VECTOR_BYTES // bytes_of(number), parts)
        # For each vector, products with the real parts of the values, then with the imaginary ones.
        self.of_vectors = [[self.sums() for _ in range(parts)] for _ in range(rows * parts // self.lanes)]

    def add_values(self, data: Any, x: Any) -> None:
        """Add the values that begin at `data`, times the part of x that begins at `x`."""
        builder, place = self.builder, I8.as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [place, I32, I32, I32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place], signature)
        for byte in range(0, len(self.of_vectors) * _VECTOR_BYTES, _LINE_BYTES):
            ahead = builder.gep(builder.bitcast(data, place), [I64(_AHEAD_BYTES + byte)])
            builder.call(prefetch, [ahead, I32(0), I32(3), I32(1)])  # to read, into all caches, data
        every = range(self.lanes)
        for which, sums in enumerate(self.of_vectors):
            values, part_of_x = (self.loaded(self.place(each, which)) for each in (data, x))
            if self.parts == 1:
                self.add_product(sums[0], values, part_of_x)
                continue
            self.add_product(sums[0], self.picked(values, [lane & ~1 for lane in every]), part_of_x)
            # The imaginary parts of the values meet x with its parts exchanged.
            exchanged = self.picked(part_of_x, [lane ^ 1 for lane in every])
            self.add_product(sums[1], self.picked(values, [lane | 1 for lane in every]), exchanged)

    def place(self, pointer: Any, vector: int) -> Any:
        """Return where a vector begins, counted from a pointer."""
        numbers = self.builder.bitcast(pointer, self.number.as_pointer())
        return self.builder.gep(numbers, [I64(vector * self.lanes)])


@intrinsic
def _sum_chunk(typingctx, data, offsets, x, y, octets, row, first, last):
    """Write to the chunk of y from `row` on the sums of the diagonals `first` to `last` - 1.

    They lie inside x in all rows of the chunk.
    """
    signature = types.void(data, offsets, x, y, octets, types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        kinds = signature.args[:4]
        arrays = structures(context, builder, kinds, arguments[:4])
        data, offsets, x, y = (array.data for array in arrays)
        row, first, last = arguments[5:]
        height = 8 * signature.args[4].count
        sums = _Sums(builder, context, kinds[0].dtype, height)
        diagonals = builder.extract_value(arrays[1].shape, 0)
        start = builder.mul(row, diagonals)
        with cgutils.for_range_slice(builder, first, last, I64(1), I64) as (diagonal, _):
            place = builder.add(start, builder.mul(diagonal, I64(height)))
            offset = builder.load(builder.gep(offsets, [diagonal]))
            offset = builder.sext(offset, I64) if offset.type.width < 64 else offset
            sums.add_values(builder.gep(data, [place]), builder.gep(x, [builder.add(row, offset)]))
        start = builder.gep(y, [row])
        for which, own in enumerate(sums.of_vectors):
            total, *imaginary = (builder.load(each) for each in own)
            if imaginary:
                signs = ir.Constant(sums.vector, [-1.0, 1.0] * (sums.lanes // 2))
                total = builder.fadd(total, builder.fmul(imaginary[0], signs))
            sums.store(total, sums.place(start, which))
        return context.get_dummy_value()

    return signature, generate


@inner
def _add_inside(data, offsets, x, y, row, height, diagonal):
    """Add what lies inside the matrix of one diagonal of a chunk of `height` rows from `row` on."""
    offset = np.int64(offsets[diagonal])
    first, last = max(0, -row - offset), min(height, len(x) - row - offset)
    start = U64(row * len(offsets) + diagonal * height)
    row, column = U64(row), U64(row + offset)
    for i in range(U64(first), U64(max(first, last))):
        y[row + i] += data[start + i] * x[column + i]


@inner
def _first_from(offsets, least):
    """Return the first diagonal of at least this offset."""
    return np.int64(first_from(offsets, least, U64(0), U64(len(offsets))))


@inner
def _edge_chunk(data, offsets, octets, x, y, row):
    """Compute a chunk that some diagonals enter, leave or miss."""
    height, cols = 8 * len(octets), len(x)
    enter, inside = _first_from(offsets, 1 - row - height), _first_from(offsets, -row)
    leave = max(inside, _first_from(offsets, 1 + cols - row - height))
    _sum_chunk(data, offsets, x, y, octets, row, inside, leave)
    for diagonal in range(enter, inside):
        _add_inside(data, offsets, x, y, row, height, diagonal)
    for diagonal in range(leave, _first_from(offsets, cols - row)):
        _add_inside(data, offsets, x, y, row, height, diagonal)


@inner
def _part(part, data, offsets, octets, x, y, starts):
    first, last = starts[part], starts[part + 1]
    height, rows, diagonals = 8 * len(octets), len(y), len(offsets)
    full = min(last, rows // height)
    # The first row of which all diagonals are inside, and the first that has one beyond the last column.
    begin, end = -offsets[0], len(x) - offsets[-1]
    for chunk in range(first, full):
        row = chunk * height
        if row >= begin and row + height <= end:
            _sum_chunk(data, offsets, x, y, octets, row, 0, diagonals)
        else:
            _edge_chunk(data, offsets, octets, x, y, row)
    if first <= full < last:
        # The last chunk of the matrix has fewer rows.
        y[full * height :] = 0
        for diagonal in range(diagonals):
            _add_inside(data, offsets, x, y, full * height, rows - full * height, diagonal)


@njit(nogil=True, cache=True)
def _product(data, offsets, octets, x, y, starts, pool):
    each_part(_part, (data, offsets, octets, x, y, starts), pool)


def _bind(matrix: DIA, variant: str, threads: int) -> Product:
    starts = equal_parts(matrix.chunks, threads)
    arrays = matrix.data, matrix.offsets, (0,) * (matrix.chunk_rows // 8)
    return share(_product, arrays, starts)


KERNELS.register("dia")(FormatKernels(("chunks",), only_variant, _bind))
