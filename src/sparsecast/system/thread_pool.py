"""Threads that wait for parts of a kernel: awake for a short time, then asleep.

Each thread has a mailbox. The caller offers part k to thread k, does part 0, and then every part that no
thread has taken yet: a thread that wakes too late, or has no core, delays nobody. The threads run compiled
code alone, without the interpreter lock, as long as the process.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import platform
import threading
import time
import timeit
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from sparsecast.system.jit import inner, lost_kernels, njit
from sparsecast.system.memory import aligned_empty

#: How long a thread waits awake for its next part before it offers its core to others. A dot product of NumPy
#: on two threads waits as long for its core (decision 11).
AWAKE_S = 20e-6

#: How often a thread waits so before it sleeps. A caller waits as long for the last part of a thread.
TIMES_AWAKE = 10

#: A thread sleeps when others have kept its core for longer than the first time, and then after AWAKE_S until
#: the second is over. Others that wait awake, as threads of NumPy do, keep a core for milliseconds.
_WANTED_NS, _REMEMBERED_NS = 500_000, 1_000_000_000

_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)

WORD, _NOTHING = ir.IntType(64), ir.VoidType()

#: What threads call: a pointer to a kernel's arguments, and the number of the part.
PART = ir.FunctionType(_NOTHING, [WORD, WORD])

#: What kernels call: the pool's address, a pointer to a function of type PART, to its arguments, the parts.
POOL = ir.FunctionType(_NOTHING, [WORD, WORD, WORD, WORD])

_ANY, _PLAIN = ir.FunctionType(ir.IntType(32), [WORD, WORD]), ir.FunctionType(_NOTHING, [])

# The pool is lines of 128 bytes, none of which two threads write all the time. The first one stays as it is:
# the address of a function of type POOL, the pauses of a short wait, Python's functions for locks, which need
# no interpreter lock, and some of the system. The second is what the caller offers. The third says how many
# of the offered parts are not done, and has the caller's lock. Line 2 + k is the mailbox of thread k, its
# lock, the time that it has read, and until when it takes its core for wanted by others.
_WORDS_OF_LINE = 16
_LINE = 8 * _WORDS_OF_LINE
_PAUSES, _ACQUIRE, _RELEASE, _CORE, _YIELD, _CLOCK = 8, 16, 24, 32, 40, 48
_FUNCTIONS = {_ACQUIRE: "PyThread_acquire_lock", _RELEASE: "PyThread_release_lock"}
if hasattr(os, "sched_setaffinity"):  # without it, threads stay on the core where they wake
    _FUNCTIONS[_CORE] = "sched_getcpu"
if hasattr(time, "CLOCK_MONOTONIC"):  # without it, threads sleep after AWAKE_S
    _FUNCTIONS |= {_YIELD: "sched_yield", _CLOCK: "clock_gettime"}
_FUNCTION, _ARGUMENTS, _CALLERS_CORE, _CROWDED = _LINE, _LINE + 8, _LINE + 16, _LINE + 24
_PENDING = _MAILBOXES = 2 * _LINE
_LOCK, _TIME, _WANTED_UNTIL = 8, 16, 32

#: What a mailbox says: nothing, a part is offered, or its thread sleeps until its lock is released.
_EMPTY, _OFFERED, _ASLEEP = 0, 1, 2

#: What a caller that sleeps adds to the number of parts that are not done: the last thread wakes it.
_CALLER_ASLEEP = 1 << 32


def _instruction(result: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: compiled code calls with words what a function of a builder and words emits."""

    def decorate(emit: Callable[..., Any]) -> Any:
        def implement(typingctx: Any, *words: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                value = emit(builder, *given)
                return context.get_dummy_value() if result is types.void else value

            return result(*[types.int64] * len(words)), generate

        implement.__signature__ = inspect.signature(emit)  # type: ignore[attr-defined]
        return intrinsic(implement)

    return decorate


def _at(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, WORD.as_pointer())


@_instruction(types.int64)
def _load(builder: Any, address: Any) -> Any:
    return builder.load_atomic(_at(builder, address), "acquire", 8)


@_instruction(types.int64)
def _exchange(builder: Any, address: Any, word: Any) -> Any:
    """Write a word and return the one before."""
    return builder.atomic_rmw("xchg", _at(builder, address), word, "seq_cst")


@_instruction(types.int64)
def _add(builder: Any, address: Any, word: Any) -> Any:
    """Add to a word and return the one before."""
    return builder.atomic_rmw("add", _at(builder, address), word, "seq_cst")


@_instruction(types.boolean)
def _replace(builder: Any, address: Any, expected: Any, word: Any) -> Any:
    """Write a word if the one before is as expected; return whether it was."""
    done = builder.cmpxchg(_at(builder, address), expected, word, "seq_cst", "seq_cst")
    return builder.extract_value(done, 1)


@_instruction(types.int32)
def _call(builder: Any, function: Any, first: Any, second: Any) -> Any:
    """Call a C function at an address with two words, of which it may take fewer; it may return nothing."""
    return builder.call(builder.inttoptr(function, _ANY.as_pointer()), [first, second])


@_instruction(types.void)
def _pause(builder: Any) -> None:
    """Let the core rest for a moment, as it should while it waits for another one."""
    if platform.machine() in ("x86_64", "AMD64"):
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), _PLAIN), ())
    else:
        builder.fence("seq_cst")  # takes time, too, and no compiler drops it


@njit(nogil=True, cache=True)
def _pauses(count):
    for _ in range(count):
        _pause()


@inner
def _pauses_awake(pool, thread):
    """Return how long a thread waits awake: not at all on its caller's core, for which the caller waits."""
    core = _load(pool + _CORE)
    if core != 0 and _call(core, 0, 0) == _load(pool + _CALLERS_CORE):
        _exchange(pool + _CROWDED, thread)
        return 0
    return _load(pool + _PAUSES)


@njit(nogil=True, cache=True)
def _has_come(line, wanted, pauses):
    """Wait awake until a line begins with the word that is wanted; return whether it does."""
    for _ in range(pauses):
        if _load(line) == wanted:
            return True
        _pause()
    return _load(line) == wanted


@njit(nogil=True, cache=True)
def _now_ns(pool, line):
    _call(_load(pool + _CLOCK), _MONOTONIC, line + _TIME)
    return 1_000_000_000 * _load(line + _TIME) + _load(line + _TIME + 8)


@njit(nogil=True, cache=True)
def _is_wanted(pool, mailbox):
    """Offer the core of a thread to others; return whether one of them has wanted it, now or lately."""
    now_ns = _now_ns(pool, mailbox)
    if now_ns < _load(mailbox + _WANTED_UNTIL):
        return True
    _call(_load(pool + _YIELD), 0, 0)
    back_ns = _now_ns(pool, mailbox)
    if back_ns - now_ns > _WANTED_NS:
        _exchange(mailbox + _WANTED_UNTIL, back_ns + _REMEMBERED_NS)
        return True
    return False


@njit(nogil=True, cache=True)
def _is_offered(pool, mailbox, pauses):
    """Wait for a part while no other thread wants the core; return whether it is offered."""
    times = TIMES_AWAKE if pauses > 0 and _load(pool + _YIELD) != 0 else 1
    while not _has_come(mailbox, _OFFERED, pauses):
        times -= 1
        if times == 0 or _is_wanted(pool, mailbox):
            return False
    return True


@njit(nogil=True, cache=True)
def _do_what_is_offered(pool, thread):
    mailbox = pool + _MAILBOXES + thread * _LINE
    pauses = _load(pool + _PAUSES)
    while pauses >= 0:  # for ever
        if not _is_offered(pool, mailbox, pauses) and _replace(mailbox, _EMPTY, _ASLEEP):
            _call(_load(pool + _ACQUIRE), _load(mailbox + _LOCK), 1)
        # The caller stays until all parts are done: a thread that has taken one finds what belongs to it.
        if _replace(mailbox, _OFFERED, _EMPTY):
            _call(_load(pool + _FUNCTION), _load(pool + _ARGUMENTS), thread)
            if _add(pool + _PENDING, -1) == _CALLER_ASLEEP + 1:
                _call(_load(pool + _RELEASE), _load(pool + _PENDING + _LOCK), 0)
        pauses = _pauses_awake(pool, thread)


def _do_parts(pool, function, arguments, parts):
    core = _load(pool + _CORE)
    if core != 0:
        _exchange(pool + _CALLERS_CORE, _call(core, 0, 0))
    _exchange(pool + _FUNCTION, function)
    _exchange(pool + _ARGUMENTS, arguments)
    _exchange(pool + _PENDING, parts - 1)
    for part in range(1, parts):
        mailbox = pool + _MAILBOXES + part * _LINE
        if _exchange(mailbox, _OFFERED) == _ASLEEP:
            _call(_load(pool + _RELEASE), _load(mailbox + _LOCK), 0)
    _call(function, arguments, 0)
    for part in range(1, parts):
        if _replace(pool + _MAILBOXES + part * _LINE, _OFFERED, _EMPTY):
            if core != 0:
                _exchange(pool + _CROWDED, part)
            _call(function, arguments, part)
            _add(pool + _PENDING, -1)
    pauses, pending = TIMES_AWAKE * _load(pool + _PAUSES), pool + _PENDING
    if not _has_come(pending, 0, pauses) and _add(pending, _CALLER_ASLEEP) > 0:
        _call(_load(pool + _ACQUIRE), _load(pool + _PENDING + _LOCK), 1)


class ThreadPool:
    """The threads of this process for parts of kernels, and what they and compiled code share.

    Attributes
    ----------
    address : int
        Where the pool is: what kernels are given.
    taken : lock
        Of the one caller that may use the pool: two products on the same cores would slow each other down. A
        second caller does all parts itself, in the same order of additions: the bits are the same.
    """

    def __init__(self) -> None:
        limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        words, python = aligned_empty((2 + limit) * _WORDS_OF_LINE, np.int64), ctypes.pythonapi
        python.Py_IncRef(ctypes.py_object(words))  # for ever: the threads may outlive this object
        words[:] = 0
        self.address, self.taken = int(words.ctypes.data), threading.Lock()
        self._words, self._threads = words.data, [threading.current_thread()]
        signature = "void(int64, int64, int64, int64)"
        self._do_parts = numba.cfunc(signature, cache=not lost_kernels())(_do_parts)
        _pauses(1)  # compiles
        pauses_s = min(timeit.repeat(lambda: _pauses(1000), number=1))
        words[:2] = self._do_parts.address, int(1000 * AWAKE_S / pauses_s)
        for place, name in _FUNCTIONS.items():
            if function := getattr(python, name, None):
                words[place // 8] = ctypes.cast(function, ctypes.c_void_p).value
        python.PyThread_allocate_lock.restype = ctypes.c_void_p
        for place in range(_PENDING // 8 + 1, len(words), _WORDS_OF_LINE):
            words[place] = lock = python.PyThread_allocate_lock()
            python.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)  # whoever acquires it again sleeps
        _do_what_is_offered.compile((types.int64, types.int64))

    def start(self, threads: int) -> None:
        """Start the threads that are missing to a number of them, of which the caller is one."""
        for number in range(len(self._threads), threads):
            arguments = self.address, number
            thread = threading.Thread(None, _do_what_is_offered, "sparsecast", arguments, daemon=True)
            thread.start()
            self._threads.append(thread)
        if crowded := self._words[_CROWDED // 8]:
            # The system leaves a thread on its caller's core while all are busy, as they are for milliseconds
            # after an operation of a library whose threads wait awake.
            self._words[_CROWDED // 8] = 0
            if others := os.sched_getaffinity(0) - {self._words[_CALLERS_CORE // 8]}:
                os.sched_setaffinity(self._threads[crowded].native_id or 0, others)

    @property
    def is_crowded(self) -> bool:
        """Whether, in the last call, the caller did the part of a thread, which had no core of its own."""
        return bool(self._words[_CROWDED // 8])

    def ids(self, threads: int) -> list[int]:
        """Return the system's numbers of the threads that are started, of `threads` without the caller."""
        return [thread.native_id or 0 for thread in self._threads[1:threads]]


class _OfProcess:
    """The pool of this process, and the lock of the one caller that makes it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Have no pool yet, as when a process begins: a forked one has none of its parent's threads."""
        self.pool: ThreadPool | None = None
        self.making = threading.Lock()


_of_process = _OfProcess()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_of_process.begin)


def thread_pool() -> ThreadPool:
    """Return the pool of this process."""
    if _of_process.pool is None:
        with _of_process.making:
            if _of_process.pool is None:
                _of_process.pool = ThreadPool()
    return _of_process.pool
