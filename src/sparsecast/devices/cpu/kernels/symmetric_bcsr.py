"""Symmetric BCSR on processors: each block below the diagonal is read once and multiplied twice.

For its own rows as in BCSR; for those of its mirror image, its rows are added up, each times one value of x,
and the sum, a vector as long as a block is wide, is added to y. Mirrored products with rows of other parts
are collected in buffers, as `devices.cpu.mirrored` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.kernels.bcsr import Block, of_long_x
from sparsecast.devices.cpu.mirrored import HERMITIAN, SKEW, buffers, collect, kind_of, mirrored
from sparsecast.devices.cpu.vector_code import FUSED, I64, variable
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.formats.symmetric_bcsr import SymmetricBCSR
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

ONE = np.uint64(1)


class _MirroredBlock(Block):
    """Emits the instructions for square blocks of one size and of one kind of symmetry."""

    kind: int

    def row_factors(self, x: Any, side: int) -> list[list[Any]]:
        """Return vectors of the parts of each x of a row of blocks, negated where a mirrored value is."""
        signs = {SKEW: (-1, -1), HERMITIAN: (1, -1)}.get(self.kind, (1, 1))
        builder = self.builder
        factors: list[list[Any]] = [[] for _ in range(side)]
        for place in range(side * self.parts):
            row, part = divmod(place, self.parts)
            number = builder.load(builder.gep(x, [I64(place)]))
            factors[row].append(self.everywhere(number if signs[part] > 0 else builder.fneg(number)))
        return factors

    def add_mirrored(self, data: Any, target: Any, factors: Sequence[Sequence[Any]]) -> None:
        """Add to the results from `target` on the mirror image of a block, times x of its own rows."""
        builder = self.builder
        for half in range(self.halves):
            rows = [self.row_of(data, row * self.halves + half) for row in range(len(factors))]
            sums = []
            for first, *others in zip(*factors, strict=True):
                total = builder.fmul(rows[0], first)
                for row, factor in zip(rows[1:], others, strict=True):
                    product = builder.fmul(row, factor, flags=FUSED)
                    total = builder.fadd(total, product, flags=FUSED)
                sums.append(total)
            image = self.put_together(sums)
            if self.kind == HERMITIAN:
                # The conjugate of A conj(x), whose x was conjugated above.
                lanes = [lane + self.lanes * (lane % 2) for lane in range(self.lanes)]
                image = self.picked(image, lanes, builder.fneg(image))
            place = builder.gep(target, [I64(half * self.used)])
            narrow = self.picked(image, range(self.used))
            self.store(builder.fadd(self.loaded(place, self.used), narrow), place)


@intrinsic
def _block_row(
    typingctx, columns, data, scratch, x, y, height, kind, shift, first_row, begin, middle, end, i
):
    """Compute a row of blocks: those before `middle` are below the diagonal, the one behind it is on it.

    Their mirror images are added to y, or before `first_row` to the scratch memory.
    """
    arrays, words = (columns, data, scratch, x, y), (types.uint64,) * 6
    signature = types.void(*arrays, height, kind, *words)

    def generate(context, builder, signature, arguments):
        block = _MirroredBlock(context, builder, x.dtype, height.count, height.count)
        block.kind = kind.count
        columns_, data_, scratch_, x_, y_ = block.pointers(arrays, arguments[:5])
        shift, first_row, begin, middle, end, i = arguments[7:]

        def at(array: Any, value: Any) -> Any:
            return builder.gep(array, [builder.mul(value, I64(block.parts))])

        def add_mirrored(place: Any, column: Any) -> None:
            is_foreign = builder.icmp_unsigned("<", column, first_row)
            buffer = at(scratch_, builder.add(column, shift))
            block.add_mirrored(place, builder.select(is_foreign, buffer, at(y_, column)), factors)

        first = builder.mul(i, I64(height.count))
        factors = block.row_factors(at(x_, first), height.count)
        sets = [block.accumulators() for _ in range(block.sets)]
        next_block = variable(builder, begin)
        block.add_blocks((columns_, data_, x_), sets, next_block, middle, add_mirrored)
        block.add_blocks((columns_, data_, x_), sets[:1], next_block, end)
        block.store_totals(sets, at(y_, first))
        return context.get_dummy_value()

    return signature, generate


@inner
def _last_rows(columns, data, scratch, x, y, side, kind, shift, first_row, begin, middle, end, i):
    """Compute the rows of a row of blocks that reaches beyond the matrix; there is one at most."""
    for row in range(len(y) - i * side):
        place, total = np.uint64(i * side + row), x.dtype.type(0)
        for k in range(begin, end):
            for column in range(side):
                value, j = data[(k * side + row) * side + column], np.uint64(columns[k]) + np.uint64(column)
                total += value * x[j]
                if k < middle and j < first_row:
                    scratch[j + shift] += mirrored(value, kind) * x[place]
                elif k < middle:
                    y[j] += mirrored(value, kind) * x[place]
        y[place] = total


@inner
def _part(part, starts, columns, data, height, kind, lowest, shifts, scratch, x, y, parts):
    first, last, shift, side = parts[part], parts[part + 1], shifts[part], np.uint64(len(height))
    for j in range(lowest[part], first):
        scratch[j + shift] = 0
    for i in range((first + side - ONE) // side, (last + side - ONE) // side):
        begin, end = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        # The last block is on the diagonal, if its columns are not all before those of the row's own block.
        middle = end - np.uint64(end > begin and np.uint64(columns[end - ONE]) + side > i * side)
        # No row before these has added to them, which are therefore set.
        if (i + ONE) * side <= np.uint64(len(y)):
            _block_row(columns, data, scratch, x, y, height, kind, shift, first, begin, middle, end, i)
        else:
            # As plain integers: a length of a tuple is a constant, and would be compiled for anew.
            span = np.int64(begin), np.int64(middle), np.int64(end), np.int64(i)
            _last_rows(columns, data, scratch, x, y, np.int64(side), kind, shift, first, *span)


@njit(nogil=True, cache=True)
def _product(starts, columns, data, height, kind, lowest, shifts, scratch, x, y, parts, pool):
    arguments = starts, columns, data, height, kind, lowest, shifts, scratch, x, y, parts
    each_part(_part, arguments, pool)
    each_part(collect, (lowest, shifts, scratch, y, parts), pool)


def _bind(matrix: SymmetricBCSR, variant: str, threads: int) -> Product:
    side = matrix.block[0]
    parts = balanced_parts(matrix.starts, threads).astype(np.uint64)
    rows = np.minimum(parts * np.uint64(side), np.uint64(matrix.shape[0]))
    lowest, shifts, scratch = buffers(matrix, matrix.columns, parts, rows)
    arrays = unsigned(matrix.starts), unsigned(matrix.columns), matrix.data
    arguments = *arrays, (0,) * side, kind_of(matrix), lowest, shifts
    return of_long_x(share(_product, arguments, rows, scratch), matrix)


KERNELS.register("symmetric_bcsr")(
    FormatKernels(
        ("vectors",),
        only_variant,
        _bind,
        sizes=tuple({"block": (side, side)} for side in BLOCK_SIZES),
        reads_narrow=True,
        sums_by_threads=True,
    )
)
