"""Runs the parts of a kernel that Numba compiles: one after another, or at once on the threads of the pool.

Numba compiles a function with `prange` anew for every type, and takes longer for it than for the loop inside.
The pool is compiled once for all kernels. It calls the part of a kernel through a pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.system.thread_pool import PART, POOL, WORD, thread_pool

T = TypeVar("T")


@intrinsic
def _each_part(typingctx, part, arguments, pool):
    """Call part(number, *arguments) for each part, from compiled code.

    The function `part` returns nothing and raises nothing. The last of the `arguments` is the array `starts`
    of `share`, and `pool` is from there: 0, and the parts are done one after another.
    """

    def generate(context, builder, signature, given):
        kinds = (types.int64, *signature.args[1].types)
        signature.args[0].get_call_type(context.typing_context, kinds, {})
        compiled = signature.args[0].dispatcher.overloads[kinds]
        context.active_code_library.add_linking_library(compiled.library)

        def call(builder: Any, values: list[Any]) -> None:
            function = context.declare_function(builder.module, compiled.fndesc)
            context.call_conv.call_function(builder, function, types.none, kinds, values)

        arguments, address = cgutils.unpack_tuple(builder, given[1]), given[2]
        starts = context.make_array(kinds[-1])(context, builder, arguments[-1])
        parts = builder.sub(builder.extract_value(starts.shape, 0), WORD(1))
        with builder.if_else(cgutils.is_null(builder, address)) as (alone, together):
            with alone, cgutils.for_range(builder, parts, intp=WORD) as loop:
                call(builder, [loop.index, *arguments])
            with together:
                packed = cgutils.pack_struct(builder, arguments)
                memory = cgutils.alloca_once_value(builder, packed)
                # The pool calls a function that unpacks the arguments and calls the part.
                unpacks = ir.Function(builder.module, PART, builder.module.get_unique_name("part_by_pointer"))
                unpacks.linkage = "internal"
                inside = ir.IRBuilder(unpacks.append_basic_block("entry"))
                packed_at, number = unpacks.args
                loaded = inside.load(inside.inttoptr(packed_at, packed.type.as_pointer()))
                unpacked = [inside.extract_value(loaded, place) for place in range(len(arguments))]
                call(inside, [number, *unpacked])
                inside.ret_void()
                words = (builder.ptrtoint(each, WORD) for each in (unpacks, memory))
                pool = builder.load(builder.inttoptr(address, WORD.as_pointer()))
                builder.call(builder.inttoptr(pool, POOL.as_pointer()), [address, *words, parts])
        return context.get_dummy_value()

    return types.void(part, arguments, pool), generate


#: What kernels call; `_each_part` as mypy cannot know it, without its first parameter.
each_part: Any = _each_part


def share(
    kernel: Callable[..., T],
    arrays: tuple[Any, ...],
    starts: NDArray[Any],
    scratch: NDArray[Any] | None = None,
) -> Callable[..., T]:
    """Return a callable that runs a kernel over its parts: several in the pool of threads, one without it.

    The `kernel` is compiled, releases the interpreter lock, and is called as (*arrays, *called with, starts,
    pool); it passes `pool` on to `each_part`. Of each part, `starts` holds the first unit of work, then the
    end of the last one, in the type of the kernel's indices: shape (parts + 1,). The kernel takes `scratch`,
    memory for what the parts tell each other, after `arrays`. Only the caller that has the pool uses this
    one; every other caller gets its own.
    """
    threads = len(starts) - 1
    limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if threads > limit:
        raise InputError(
            f"threads {threads}: expected at most {limit}, the value of NUMBA_NUM_THREADS; "
            f"raise it or lower threads"
        )
    shared = () if scratch is None else (scratch,)

    def alone(*called: Any) -> T:
        return kernel(*arrays, *map(np.empty_like, shared), *called, starts, 0)

    def together(*called: Any) -> T:
        pool = thread_pool()
        if not pool.taken.acquire(blocking=False):
            return alone(*called)
        try:
            pool.start(threads)
            return kernel(*arrays, *shared, *called, starts, pool.address)
        finally:
            pool.taken.release()

    return alone if threads == 1 else together
