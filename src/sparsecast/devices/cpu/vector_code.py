"""Emits vector code for kernels: sums in registers, loads, shuffles and loops over entries.

Numba keeps no array of sums in registers over a loop, and doesn't choose how many lanes a vector has. Kernels
that need either emit these instructions themselves. The sizes reach the compiler in the types of tuples.

Numba's cache on disk looks at a kernel's own file only: after a change here, its files must be removed.

Gathers multiply several consecutive entries with one instruction: x is read into a vector at their columns.
Processors differ in how they read several places at once more than in anything else that a product does.
Some have an instruction that reads four as fast as they read them one by one; on others it takes several
times as long, and Numba would use it on all of them alike. So it is asked for by hand, and only on processors
where it was measured to win. On the others x is read place by place, and one read of 64 bits finds the
columns of several entries (benchmarks/run.py gathers measures the processor at hand).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from sparsecast.machines.machine import Machine

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
    made = cgutils.alloca_once(builder, value.type)
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


#: What tells the processors on which gathers were measured to win from others: Intel's since Sapphire Rapids
#: have it. Names do not tell them, since virtual machines make them up.
_FEATURE = "avx512_fp16"

#: What one instruction gathers: wider ones won nothing.
_VECTOR_BYTES = 32


def gathers_win(machine: Machine) -> bool:
    """Tell whether gathers were measured to win on processors such as a machine's.

    They are correct on all: the compiler makes single reads of them where the processor has none. Of a
    description from before its field `features` it is assumed that an Intel with bfloat16 has them: those on
    which that is wrong, of 2020, are few.
    """
    if machine.features is None:
        return "avx512_bf16" in machine.simd and "Intel" in machine.processor
    return _FEATURE in machine.features


class _Gather(VectorCode):
    """Emits products of consecutive values with those of x at their columns.

    `kinds` and `arrays` are Numba's types and the values of the entries' values, their columns and x. The
    last of the kinds is a tuple: not empty where an instruction gathers.
    """

    def __init__(self, context: Any, builder: Any, kinds: Any, arrays: Any) -> None:
        number_bytes = kinds[2].dtype.bitwidth // 8
        super().__init__(builder, context.get_value_type(kinds[2].dtype), _VECTOR_BYTES // number_bytes)
        self._values = StoredValues(context, builder, kinds[0], arrays[0], self.number)
        self._indices, self._x = (each.data for each in structures(context, builder, kinds[1:3], arrays[1:]))
        self._gathers = len(kinds[3]) > 0
        self._index = ir.VectorType(context.get_value_type(kinds[1].dtype), self.lanes)
        self._wide, self._mask = ir.VectorType(I64, self.lanes), ir.VectorType(ir.IntType(1), self.lanes)
        self._pointers = ir.VectorType(self.number.as_pointer(), self.lanes)
        kind = ir.FunctionType(self.vector, [self._pointers, I32, self._mask, self.vector])
        name = f"llvm.masked.gather.v{self.lanes}f{8 * number_bytes}.v{self.lanes}p0"
        self._gather = cgutils.get_or_insert_function(builder.module, kind, name)

    def add(self, sums: Any, entry: Any, mask: Any = None) -> None:
        """Add the products of the entries from `entry` on, or those in the lanes of a mask."""
        before = self.builder.load(sums)
        self.add_product(sums, self._values.at(entry, self.lanes), self._x_at(entry))
        if mask is not None:
            self.builder.store(self.builder.select(mask, self.builder.load(sums), before), sums)

    def add_masked(self, sums: Any, entry: Any, is_own: Any, final: Any) -> None:
        """Add the products from `entry` on where `is_own`; none behind entry `final`, if given, is read."""
        builder = self.builder
        if final is None:
            product = builder.fmul(self._values.at(entry, self.lanes), self._x_at(entry))
        else:
            product = ir.Constant(self.vector, ir.Undefined)
            for lane in range(self.lanes):
                place = builder.add(entry, I64(lane))
                place = builder.select(builder.icmp_unsigned("<", place, final), place, final)
                factor = builder.load(builder.gep(self._x, [index_at(builder, self._indices, place)]))
                number = builder.fmul(self._values.at(place), factor)
                product = builder.insert_element(product, number, I32(lane))
        own = builder.select(is_own, product, ir.Constant(self.vector, None))
        builder.store(builder.fadd(builder.load(sums), own), sums)

    def _x_at(self, entry: Any) -> Any:
        """Return x at the columns of the entries from `entry` on."""
        builder, width = self.builder, self._index.element.width
        nothing = ir.Constant(self.vector, ir.Undefined)
        if self._gathers:
            place = builder.bitcast(builder.gep(self._indices, [entry]), self._index.as_pointer())
            columns = builder.load(place, align=width // 8)
            columns = builder.zext(columns, self._wide) if width < 64 else columns
            scale = ir.Constant(self._wide, [self.number_bytes] * self.lanes)
            start = self.everywhere(builder.ptrtoint(self._x, I64))
            places = builder.inttoptr(builder.add(start, builder.mul(columns, scale)), self._pointers)
            every = ir.Constant(self._mask, [1] * self.lanes)
            return builder.call(self._gather, [places, I32(self.number_bytes), every, nothing])
        # The reads of x and of columns are what bounds such a product.
        columns_of_word, found = min(64 // width, self.lanes), nothing
        for first in range(0, self.lanes, columns_of_word):
            place = builder.gep(self._indices, [builder.add(entry, I64(first))])
            word = builder.load(builder.bitcast(place, I64.as_pointer()), align=width // 8)
            for lane in range(first, first + columns_of_word):
                column = builder.and_(word, I64(2**width - 1)) if width < 64 else word
                word = builder.lshr(word, I64(width)) if width < 64 else word
                number = builder.load(builder.gep(self._x, [column]))
                found = builder.insert_element(found, number, I32(lane))
        return found


@intrinsic
def vector_row(typingctx, data, indices, x, gathers, wide, first, end, final):
    """Return the sum of the products from `first` on, before `end`: real numbers.

    What is left at the end, of one vector or eight entries, is multiplied as if it were whole, and lanes with
    entries behind `end` are masked: no loop is left that the lengths of rows would end. None behind `final`
    are read, at the price of single reads, where it is an integer and no empty tuple. The bits are the same.
    `gathers` and `wide` are tuples: empty to read x in turn, and for one vector.
    """
    word = types.uint64
    signature = x.dtype(data, indices, x, gathers, wide, word, word, final)

    def generate(context, builder, signature, arguments):
        gather = _Gather(context, builder, signature.args[:4], arguments[:3])
        sums, count = (gather.sums(), gather.sums()), (8 // gather.lanes if len(signature.args[4]) else 1)
        # One behind the next entry: a last vector that is full is left to the masked ones.
        beyond_at = variable(builder, builder.add(arguments[5], I64(1)))
        for vectors in (2 * count, count):
            with loop(builder, beyond_at, arguments[6], vectors * gather.lanes) as entries:
                for which in range(vectors):
                    gather.add(sums[which % 2], builder.sub(entries[which * gather.lanes], I64(1)))
        entry = builder.sub(builder.load(beyond_at), I64(1))
        left = gather.everywhere(builder.sub(arguments[6], entry))
        final = arguments[7] if isinstance(signature.args[7], types.Integer) else None
        for which in range(count):
            lanes = range(which * gather.lanes, (which + 1) * gather.lanes)
            is_own = builder.icmp_unsigned("<", ir.Constant(left.type, list(lanes)), left)
            gather.add_masked(sums[which % 2], builder.add(entry, I64(lanes[0])), is_own, final)
        total = gather.total(builder.fadd(builder.load(sums[0]), builder.load(sums[1])))
        return builder.extract_element(total, I32(0))

    return signature, generate


@intrinsic
def vector_chunk(typingctx, data, indices, x, gathers, lengths, row, first, shortest, end):
    """Return the sums of eight rows whose entries alternate from `first` on, before `end`: real numbers.

    Where `data` is one number for all entries, rows have padding from entry `shortest` on: the `lengths` from
    `row` on tell their entries from it. Otherwise `shortest` is `end`. `gathers` is as in `vector_row`.
    """
    word = types.uint64
    words = (word,) * 4
    signature = types.UniTuple(x.dtype, 8)(data, indices, x, gathers, lengths, *words)

    def generate(context, builder, signature, arguments):
        gather = _Gather(context, builder, signature.args[:4], arguments[:3])
        sums = [gather.sums() for _ in range(8 // gather.lanes)]
        row, first, shortest, end = arguments[5:]
        entry_at = variable(builder, first)
        with loop(builder, entry_at, shortest, 8) as entries:
            for which, own in enumerate(sums):
                gather.add(own, entries[which * gather.lanes])
        if not isinstance(signature.args[0], types.Array):
            (own_lengths,) = structures(context, builder, signature.args[4:5], arguments[4:5])
            short = ir.VectorType(ir.IntType(16), gather.lanes)
            wide = ir.VectorType(I64, gather.lanes)
            with loop(builder, entry_at, end, 8) as entries:
                column = gather.everywhere(builder.lshr(builder.sub(entries[0], first), I64(3)))
                for which, own in enumerate(sums):
                    lane = builder.add(row, I64(which * gather.lanes))
                    place = builder.bitcast(builder.gep(own_lengths.data, [lane]), short.as_pointer())
                    ends = builder.zext(builder.load(place, align=2), wide)
                    inside = builder.icmp_unsigned("<", column, ends)
                    gather.add(own, entries[which * gather.lanes], inside)
        totals = [each for own in sums for each in gather.numbers(builder.load(own))]
        return context.make_tuple(builder, signature.return_type, totals)

    return signature, generate
