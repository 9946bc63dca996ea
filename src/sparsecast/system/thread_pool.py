"""Threads that wait for the parts of a kernel: awake for a short time, then asleep.

Each thread has a mailbox, one word. The caller offers part k of its kernel to thread k, does part 0, and then every
part that no thread has taken yet: a thread that wakes too late, or that has no core, delays nobody. The
threads run compiled code alone, without the interpreter lock, for as long as the process.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import threading
import time
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from sparsecast.system.jit import lost_kernels, njit
from sparsecast.system.memory import aligned_empty

#: How long a thread waits awake for its next part, and a caller for the last part that a thread has taken.
AWAKE_S = float(os.environ.get("SPIN_US", "50")) * 1e-6

WORD, _INT64 = ir.IntType(64), types.int64
_NOTHING = ir.VoidType()

#: What threads call: a pointer to a kernel's arguments, and the number of the part.
PART = ir.FunctionType(_NOTHING, [WORD, WORD])

#: The pool as compiled code calls it: the address of its memory, a function of the type above, its arguments, and the
#: number of parts.
POOL = ir.FunctionType(_NOTHING, [WORD, WORD, WORD, WORD])

# The pool's memory is lines of 128 bytes, no two of which are written by different threads at once. The first has what
# stays the same: the address of the function of type POOL, which compiled code reads there, the pauses of
# a short wait, and how to acquire and release a lock. The second has what the caller offers, the third how many offered
# parts are not done, and the caller's lock. Then each thread has a line, for its mailbox and its lock.
_LINE, _WORDS_OF_LINE = 128, 16
_PAUSES, _ACQUIRE, _RELEASE = 8, 16, 24
_FUNCTION, _ARGUMENTS = _LINE, _LINE + 8
_PENDING, _CALLERS_LOCK = 2 * _LINE, 2 * _LINE + 8
_FIRST_MAILBOX, _LOCK = 2 * _LINE, 8  # of thread 0, which is the caller and has none

#: What a mailbox says: nothing, a part is offered, or its thread sleeps until its lock is released.
_EMPTY, _OFFERED, _ASLEEP = 0, 1, 2

#: What the caller adds to the parts that are not done before it sleeps: the last thread must wake it.
_CALLER_SLEEPS = 1 << 32


def _at(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, WORD.as_pointer())


@intrinsic
def _load(typingctx, address):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_at(builder, given[0]), "acquire", 8)

    return _INT64(_INT64), generate


@intrinsic
def _exchange(typingctx, address, word):  # type: ignore[no-untyped-def]
    """Write a word and return the one before."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("xchg", _at(builder, given[0]), given[1], "seq_cst")

    return _INT64(_INT64, _INT64), generate


@intrinsic
def _add(typingctx, address, word):  # type: ignore[no-untyped-def]
    """Add to a word and return the one before."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", _at(builder, given[0]), given[1], "seq_cst")

    return _INT64(_INT64, _INT64), generate


@intrinsic
def _replace(typingctx, address, expected, word):  # type: ignore[no-untyped-def]
    """Write a word if the one before is as expected; return whether it was."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        done = builder.cmpxchg(_at(builder, given[0]), *given[1:], "seq_cst", "seq_cst")
        return builder.extract_value(done, 1)

    return types.boolean(_INT64, _INT64, _INT64), generate


@intrinsic
def _call(typingctx, function, first, second):  # type: ignore[no-untyped-def]
    """Call the C function at an address with two words, of which it may take fewer."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        builder.call(builder.inttoptr(given[0], PART.as_pointer()), given[1:])
        return context.get_dummy_value()

    return types.void(_INT64, _INT64, _INT64), generate


@intrinsic
def _pause(typingctx):  # type: ignore[no-untyped-def]
    """Let the core rest for a moment, as it should in a loop that waits for another one."""
    name = {"x86_64": "x86.sse2.pause", "AMD64": "x86.sse2.pause"}.get(platform.machine())

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        if name:
            instruction = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_NOTHING, []), f"llvm.{name}")
            builder.call(instruction, [])
        else:  # takes time, and the compiler keeps it
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@njit(nogil=True, cache=True)
def _wait_for_parts(pool, mailbox):  # type: ignore[no-untyped-def]
    """Do what is offered, for ever."""
    left = pauses = _load(pool + _PAUSES)  # type: ignore[call-arg]
    number = (mailbox - pool - _FIRST_MAILBOX) // _LINE
    while pauses >= 0:
        if _load(mailbox) == _OFFERED:  # type: ignore[call-arg]
            # The caller returns when all parts are done: what it offers is there as long as this thread has one.
            if _replace(mailbox, _OFFERED, _EMPTY):  # type: ignore[call-arg]
                _call(_load(pool + _FUNCTION), _load(pool + _ARGUMENTS), number)  # type: ignore[call-arg]
                if _add(pool + _PENDING, -1) == _CALLER_SLEEPS + 1:  # type: ignore[call-arg]
                    _call(_load(pool + _RELEASE), _load(pool + _CALLERS_LOCK), 0)  # type: ignore[call-arg]
            left = pauses
        elif left > 0:
            left -= 1
            _pause()  # type: ignore[call-arg]
        elif _replace(mailbox, _EMPTY, _ASLEEP):  # type: ignore[call-arg]
            _call(_load(pool + _ACQUIRE), _load(mailbox + _LOCK), 1)  # type: ignore[call-arg]
            left = pauses


@njit(nogil=True, cache=True)
def _do_parts(pool, function, arguments, parts):  # type: ignore[no-untyped-def]
    """Offer the parts to the threads, and do those that none of them has taken when the caller is free."""
    _exchange(pool + _FUNCTION, function)  # type: ignore[call-arg]
    _exchange(pool + _ARGUMENTS, arguments)  # type: ignore[call-arg]
    _exchange(pool + _PENDING, parts - 1)  # type: ignore[call-arg]
    for part in range(1, parts):
        mailbox = pool + _FIRST_MAILBOX + part * _LINE
        if _exchange(mailbox, _OFFERED) == _ASLEEP:  # type: ignore[call-arg]
            _call(_load(pool + _RELEASE), _load(mailbox + _LOCK), 0)  # type: ignore[call-arg]
    _call(function, arguments, 0)  # type: ignore[call-arg]
    for part in range(1, parts):
        mailbox = pool + _FIRST_MAILBOX + part * _LINE
        if _replace(mailbox, _OFFERED, _EMPTY):  # type: ignore[call-arg]
            _call(function, arguments, part)  # type: ignore[call-arg]
            _add(pool + _PENDING, -1)  # type: ignore[call-arg]
    left = _load(pool + _PAUSES)  # type: ignore[call-arg]
    while left > 0 and _load(pool + _PENDING) > 0:  # type: ignore[call-arg]
        left -= 1
        _pause()  # type: ignore[call-arg]
    if _load(pool + _PENDING) > 0 and _add(pool + _PENDING, _CALLER_SLEEPS) > 0:  # type: ignore[call-arg]
        _call(_load(pool + _ACQUIRE), _load(pool + _CALLERS_LOCK), 1)  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def _do_pauses(count):  # type: ignore[no-untyped-def]
    for _ in range(count):
        _pause()  # type: ignore[call-arg]


class ThreadPool:
    """The threads of this process that do parts of kernels.

    Attributes
    ----------
    address : int
        Of the pool's memory: what compiled code is given.
    taken : lock
        Held by the one caller that may use the pool. Two products that share the cores would only slow each other
        down.
    """

    def __init__(self) -> None:
        self.taken = threading.Lock()
        self._threads = 1  # the caller is the first
        limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        words = aligned_empty((3 + limit) * _WORDS_OF_LINE, np.int64)
        self.address = int(words.ctypes.data)
        python = ctypes.pythonapi
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(words))  # threads outlive the interpreter
        python.PyThread_allocate_lock.restype = ctypes.c_void_p
        words[:] = 0
        words[_PAUSES // 8] = _pauses_of(AWAKE_S)
        for place, function in ((_ACQUIRE, python.PyThread_acquire_lock), (_RELEASE, python.PyThread_release_lock)):
            words[place // 8] = ctypes.cast(function, ctypes.c_void_p).value
        for place in range(_CALLERS_LOCK // 8, len(words), _WORDS_OF_LINE):
            words[place] = lock = python.PyThread_allocate_lock()
            python.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)  # who acquires it again sleeps
        do_parts = numba.cfunc("void(int64, int64, int64, int64)", cache=not lost_kernels())(
            lambda pool, function, arguments, parts: _do_parts(pool, function, arguments, parts)
        )
        words[0] = do_parts.address
        self._kept = do_parts
        _wait_for_parts.compile((_INT64, _INT64))

    def start(self, threads: int) -> None:
        """Start the threads that are missing up to a number, of which the caller is one."""
        for number in range(self._threads, threads):
            mailbox = self.address + _FIRST_MAILBOX + number * _LINE
            threading.Thread(
                target=_wait_for_parts, args=(self.address, mailbox), name=f"sparsecast-{number}", daemon=True
            ).start()
            self._threads = number + 1


def _pauses_of(seconds: float) -> int:
    _do_pauses(1)
    best_s = np.inf
    for _ in range(5):
        start = time.perf_counter()
        _do_pauses(1000)
        best_s = min(best_s, time.perf_counter() - start)
    return int(1000 * seconds / best_s)


@functools.cache
def thread_pool() -> ThreadPool:
    """Return the pool of this process."""
    return ThreadPool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)  # a forked process has none of the threads
