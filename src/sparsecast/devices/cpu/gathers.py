"""Reading x at several columns with one instruction.

Processors differ in this more than in anything else that a product does. Some read four places as fast as
they read them one by one, and save the instructions between; others take several times as long, and Numba
would use it on all of them alike. So it is asked for by hand, and only on processors where it was measured
to win (benchmarks/gathers.py measures the one at hand).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from sparsecast.machines.machine import Machine

#: What tells the processors on which gathers were measured to win from others: Intel's since Sapphire Rapids
#: have it. Names do not tell them, since virtual machines make them up.
_FEATURE = "avx512_fp16"

#: What one instruction gathers: wider ones won nothing.
_VECTOR_BYTES = 32

#: A product and its addition may become one instruction with one rounding.
_FUSED = ("contract",)

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def gathers_win(machine: Machine) -> bool:
    """Tell whether gathers were measured to win on processors such as a machine's.

    They are correct on all: the compiler makes single reads of them where the processor has none. Of a
    description from before its field `features` it is assumed that an Intel with bfloat16 has them: those on
    which that is wrong, of 2020, are few.
    """
    if machine.features is None:
        return "avx512_bf16" in machine.simd and "Intel" in machine.processor
    return _FEATURE in machine.features


class _Gather:
    """Emits products of consecutive values with gathered ones of x.

    Parameters
    ----------
    context, builder
        Of Numba and of llvmlite.
    kinds, arrays : sequences
        Numba's types of data, indices and x, and these arrays.
    """

    def __init__(self, context: Any, builder: Any, kinds: Any, arrays: Any) -> None:
        self._builder, number = builder, context.get_value_type(kinds[0].dtype)
        made = [
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(kinds, arrays, strict=True)
        ]
        self._data, self._indices, self._x = (each.data for each in made)
        self._bytes = kinds[0].dtype.bitwidth // 8
        self.lanes = _VECTOR_BYTES // self._bytes
        self._index = ir.VectorType(context.get_value_type(kinds[1].dtype), self.lanes)
        self._index_bytes = kinds[1].dtype.bitwidth // 8
        self._wide, self._mask = ir.VectorType(_I64, self.lanes), ir.VectorType(ir.IntType(1), self.lanes)
        self.vector = ir.VectorType(number, self.lanes)
        self._pointers = ir.VectorType(number.as_pointer(), self.lanes)
        kind = ir.FunctionType(self.vector, [self._pointers, _I32, self._mask, self.vector])
        name = f"llvm.masked.gather.v{self.lanes}f{8 * self._bytes}.v{self.lanes}p0"
        self._gather = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]

    def zeros(self) -> Any:
        """Return a vector of sums, all 0."""
        made = cgutils.alloca_once(self._builder, self.vector)  # type: ignore[no-untyped-call]
        self._builder.store(ir.Constant(self.vector, None), made)
        return made

    def add(self, sums: Any, entry: Any) -> None:
        """Add the products of the values from `entry` on."""
        builder = self._builder
        values = self._loaded(self._data, self.vector, entry, self._bytes)
        columns = self._loaded(self._indices, self._index, entry, self._index_bytes)
        columns = builder.zext(columns, self._wide) if self._index_bytes < 8 else columns
        scale = ir.Constant(self._wide, [self._bytes] * self.lanes)
        start = builder.insert_element(self._undefined(self._wide), builder.ptrtoint(self._x, _I64), _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        start = builder.shuffle_vector(start, self._undefined(self._wide), zeros)
        places = builder.inttoptr(builder.add(start, builder.mul(columns, scale)), self._pointers)
        every = ir.Constant(self._mask, [1] * self.lanes)
        x = builder.call(self._gather, [places, _I32(self._bytes), every, self._undefined(self.vector)])
        product = builder.fmul(values, x, flags=_FUSED)
        builder.store(builder.fadd(builder.load(sums), product, flags=_FUSED), sums)

    def total(self, vector: Any) -> Any:
        """Return the sum of a vector: upper half to lower half until one is left."""
        builder, lanes = self._builder, self.lanes
        while lanes > 1:
            lanes //= 2
            halves = (
                ir.Constant(ir.VectorType(_I32, lanes), list(which))
                for which in (range(lanes), range(lanes, 2 * lanes))
            )
            lower, upper = (
                builder.shuffle_vector(vector, self._undefined(vector.type), half) for half in halves
            )
            vector = builder.fadd(lower, upper)
        return builder.extract_element(vector, _I32(0))

    def _loaded(self, array: Any, vector: Any, entry: Any, alignment: int) -> Any:
        place = self._builder.bitcast(self._builder.gep(array, [entry]), vector.as_pointer())
        return self._builder.load(place, align=alignment)

    @staticmethod
    def _undefined(vector: Any) -> Any:
        return ir.Constant(vector, ir.Undefined)


def _emit_while(builder: Any, entry_at: Any, step: int, end: Any, body: Any) -> None:
    """Emit a loop that takes `step` entries at a time while as many are left before `end`."""
    test, inside, after = (builder.append_basic_block(name) for name in ("test", "entries", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    entry = builder.load(entry_at)
    beyond = builder.add(entry, _I64(step))
    builder.cbranch(builder.icmp_unsigned("<=", beyond, end), inside, after)
    builder.position_at_end(inside)
    body(entry)
    builder.store(beyond, entry_at)
    builder.branch(test)
    builder.position_at_end(after)


@intrinsic
def gathered_row(typingctx, data, indices, x, first, end):  # type: ignore[no-untyped-def]
    """Return the sum of as many products from `first` on, before `end`, as fill vectors, and the next entry.

    The numbers must be real.
    """
    word = types.uint64
    signature = types.Tuple((data.dtype, word))(data, indices, x, word, word)  # type: ignore[no-untyped-call]

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        gather = _Gather(context, builder, signature.args[:3], arguments[:3])
        sums = gather.zeros(), gather.zeros()
        entry_at = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
        builder.store(arguments[3], entry_at)

        def both(entry):  # type: ignore[no-untyped-def]
            gather.add(sums[0], entry)
            gather.add(sums[1], builder.add(entry, _I64(gather.lanes)))

        _emit_while(builder, entry_at, 2 * gather.lanes, arguments[4], both)
        _emit_while(builder, entry_at, gather.lanes, arguments[4], lambda entry: gather.add(sums[0], entry))
        total = gather.total(builder.fadd(builder.load(sums[0]), builder.load(sums[1])))
        return context.make_tuple(builder, signature.return_type, (total, builder.load(entry_at)))

    return signature, generate


@intrinsic
def gathered_chunk(typingctx, data, indices, x, first, end):  # type: ignore[no-untyped-def]
    """Return the sums of eight rows whose entries alternate from `first` on, before `end`: real numbers."""
    word = types.uint64
    signature = types.UniTuple(data.dtype, 8)(data, indices, x, word, word)  # type: ignore[no-untyped-call]

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        gather = _Gather(context, builder, signature.args[:3], arguments[:3])
        sums = [gather.zeros() for _ in range(8 // gather.lanes)]
        entry_at = cgutils.alloca_once(builder, _I64)  # type: ignore[no-untyped-call]
        builder.store(arguments[3], entry_at)

        def eight(entry):  # type: ignore[no-untyped-def]
            for which, own in enumerate(sums):
                gather.add(own, builder.add(entry, _I64(which * gather.lanes)))

        _emit_while(builder, entry_at, 8, arguments[4], eight)
        vectors = [builder.load(own) for own in sums]
        totals = [builder.extract_element(each, _I32(i)) for each in vectors for i in range(gather.lanes)]
        return context.make_tuple(builder, signature.return_type, totals)

    return signature, generate
