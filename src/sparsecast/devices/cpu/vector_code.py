"""Emits vector code for kernels: sums in registers, loads, shuffles and loops over entries.

Numba keeps no array of sums in registers over a loop, and doesn't choose how many lanes a vector has. Kernels
that need either emit these instructions themselves. The sizes reach the compiler in the types of tuples.

Numba's cache on disk looks at a kernel's own file only: after a change here, its files must be removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

#: A product and its addition may become one instruction with one rounding.
FUSED = ("contract",)

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def number_of(context: Any, value: Any) -> tuple[Any, int]:
    """Return LLVM's type of the numbers of a value of Numba's type `value`, and how many it has: 1 or 2."""
    if isinstance(value, types.Complex):
        return context.get_value_type(value.underlying_float), 2
    return context.get_value_type(value), 1


def bytes_of(number: Any) -> int:
    return 4 if isinstance(number, ir.FloatType) else 8


def structures(context: Any, builder: Any, kinds: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Return the structures, with fields `data` and `shape`, of arrays of Numba's types `kinds`."""
    return [
        context.make_array(kind)(context, builder, array) for kind, array in zip(kinds, arrays, strict=True)
    ]


def variable(builder: Any, value: Any) -> Any:
    """Return a variable that holds `value`; LLVM keeps it in a register."""
    made = cgutils.alloca_once(builder, value.type)  # type: ignore[no-untyped-call]
    builder.store(value, made)
    return made


def index_at(builder: Any, indices: Any, entry: Any) -> Any:
    """Return an unsigned index as 64 bits."""
    index = builder.load(builder.gep(indices, [entry]))
    return builder.zext(index, I64) if index.type.width < 64 else index


@contextmanager
def loop(builder: Any, entry_at: Any, end: Any, step: int, stride: Any = None) -> Iterator[list[Any]]:
    """Emit a loop whose body gets `step` entries at a time while as many are left before `end`.

    The variable `entry_at` holds the next entry, and afterwards the first that was not taken. Entries are 1
    apart, or `stride`, a 64-bit integer.
    """
    test, body, after = (builder.append_basic_block(name) for name in ("test", "entries", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    entry = builder.load(entry_at)
    if stride is None:  # one addition an iteration serves the test and the next entry
        beyond = builder.add(entry, I64(step))
        builder.cbranch(builder.icmp_unsigned("<=", beyond, end), body, after)
        builder.position_at_end(body)
        yield [builder.add(entry, I64(place)) for place in range(step)]
    else:
        last = builder.add(entry, builder.mul(stride, I64(step - 1)))
        builder.cbranch(builder.icmp_unsigned("<", last, end), body, after)
        builder.position_at_end(body)
        entries = [entry]
        for _ in range(step - 1):
            entries.append(builder.add(entries[-1], stride))
        beyond = builder.add(entries[-1], stride)
        yield entries
    builder.store(beyond, entry_at)
    builder.branch(test)
    builder.position_at_end(after)


class StoredValues:
    """Reads the stored values of entries as numbers of type `number`, which may be wider.

    `kind` and `argument` are Numba's type and the value of an argument of a kernel: an array, or one number
    for all entries. `number` is float or double; a value has one, or two where it is complex.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, argument: Any, number: Any) -> None:
        self._builder, self._number, self._same, self._stored = builder, number, argument, number
        self._data = None
        if isinstance(kind, types.Array):
            self._data = structures(context, builder, [kind], [argument])[0].data
            self._stored, _ = number_of(context, kind.dtype)
            self._data = builder.bitcast(self._data, self._stored.as_pointer())

    def at(self, place: Any, lanes: int = 0) -> Any:
        """Return the number at a place, counted in numbers, or the vector of `lanes` from there on."""
        kind = ir.VectorType(self._number, lanes) if lanes else self._number
        if self._data is None:
            same = ir.Constant(kind, ir.Undefined)
            for lane in range(lanes):
                same = self._builder.insert_element(same, self._same, I32(lane))
            return same if lanes else self._same
        pointer, stored = self._builder.gep(self._data, [place]), self._stored
        stored = ir.VectorType(stored, lanes) if lanes else stored
        pointer = self._builder.bitcast(pointer, stored.as_pointer())
        loaded = self._builder.load(pointer, align=bytes_of(self._stored))
        return loaded if stored == kind else self._builder.fpext(loaded, kind)


class VectorCode:
    """Emits instructions for vectors of one length.

    A vector has so many `lanes`, numbers of the type `number`, float or double. A value has as many `parts`:
    1, or 2 where it is complex, its real and its imaginary part in turn.
    """

    def __init__(self, builder: Any, number: Any, lanes: int, parts: int = 1) -> None:
        self.builder, self.number, self.lanes, self.parts = builder, number, lanes, parts
        self.number_bytes = bytes_of(number)
        self.vector = ir.VectorType(number, lanes)

    def sums(self) -> Any:
        return variable(self.builder, ir.Constant(self.vector, None))

    def add_product(self, sums: Any, values: Any, factors: Any) -> None:
        product = self.builder.fmul(values, factors, flags=FUSED)
        self.builder.store(self.builder.fadd(self.builder.load(sums), product, flags=FUSED), sums)

    def loaded(self, place: Any, lanes: int | None = None) -> Any:
        """Return the vector that begins at `place`, which may have another number of lanes.

        Narrower numbers there are widened.
        """
        stored, lanes = place.type.pointee, self.lanes if lanes is None else lanes
        pointer = self.builder.bitcast(place, ir.VectorType(stored, lanes).as_pointer())
        loaded = self.builder.load(pointer, align=bytes_of(stored))
        is_narrow = stored != self.number
        return self.builder.fpext(loaded, ir.VectorType(self.number, lanes)) if is_narrow else loaded

    def store(self, vector: Any, place: Any) -> None:
        pointer = self.builder.bitcast(place, vector.type.as_pointer())
        self.builder.store(vector, pointer, align=self.number_bytes)

    def picked(self, vector: Any, lanes: Sequence[int], other: Any = None) -> Any:
        """Return these lanes of a vector, those of `other` counted after its own."""
        which = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
        other = ir.Constant(vector.type, ir.Undefined) if other is None else other
        return self.builder.shuffle_vector(vector, other, which)

    def everywhere(self, scalar: Any) -> Any:
        vector = ir.VectorType(scalar.type, self.lanes)
        first = self.builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, I32(0))
        return self.picked(first, [0] * vector.count)

    def put_together(self, of_parts: Sequence[Any]) -> Any:
        """Return the products from those with the parts of one factor: times i, (re, im) is (-im, re)."""
        if len(of_parts) == 1:
            return of_parts[0]
        real, imaginary = of_parts
        turned = self.picked(imaginary, [lane ^ 1 for lane in range(self.lanes)])
        lower, upper = self.builder.fsub(real, turned), self.builder.fadd(real, turned)
        return self.picked(lower, [lane + self.lanes * (lane % 2) for lane in range(self.lanes)], upper)

    def total(self, vector: Any) -> Any:
        """Add the values of a vector: upper half to lower while their number is even, then one by one."""
        lanes = vector.type.count
        while lanes // self.parts % 2 == 0:
            lanes //= 2
            lower, upper = range(lanes), range(lanes, 2 * lanes)
            vector = self.builder.fadd(self.picked(vector, lower), self.picked(vector, upper))
        values = [self.picked(vector, range(lane, lane + self.parts)) for lane in range(0, lanes, self.parts)]
        return reduce(self.builder.fadd, values)

    def numbers(self, vector: Any) -> list[Any]:
        return [self.builder.extract_element(vector, I32(lane)) for lane in range(vector.type.count)]
