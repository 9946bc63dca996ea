"""Has the simulator of numba-cuda run the threads of a block one at a time, which is ten times as fast.

It does so in every process that imports this module.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numba.cuda.simulator import kernel as simulator
from numba.cuda.simulator import kernelapi
from numba.cuda.simulator.kernelapi import Dim3


def taken_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class Block:
    """The threads of a block in turn, each until it ends or waits for the others at a barrier.

    The order is drawn anew after each barrier, so that what lacks a barrier sooner or later reads what
    was not written yet. numba-cuda starts a Python thread for each thread of each block, and asks all of
    them in a loop how far they are. Here one Python thread goes on with the next thread of the block, and
    another one is needed only where it waits.
    """

    draw: ClassVar[np.random.Generator] = np.random.default_rng(0)
    #: Python threads without a thread of a block.
    idle: ClassVar[list[Turn]] = []

    def __init__(self, manager: Any, place: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        self.manager, self.place, self.arguments = manager, place, arguments
        self.error: Exception | None = None
        self._is_done = taken_lock()
        self._queue: list[Any] = self._shuffled(list(np.ndindex(*manager._block_dim)))
        self._waiting: list[Turn] = []

    def run(self) -> None:
        self.next(None)
        self._is_done.acquire()
        if self.error is not None:
            raise self.error

    def wait(self, turn: Turn) -> None:
        """Have the others go on until all that have not ended wait."""
        self._waiting.append(turn)
        self.next(None)

    def next(self, free: Turn | None) -> Any:
        """Go on with the next thread: `free` gets a new one as result, where it is given."""
        if not self._queue:
            self._queue, self._waiting = self._shuffled(self._waiting), []
        while self._queue:
            found = self._queue.pop()
            if isinstance(found, Turn):
                found.go_on()
                return None
            if self.error is None:
                if free is not None:
                    return found
                (Block.idle.pop() if Block.idle else Turn(self)).begin(self, found)
                return None
        if self._waiting:
            return self.next(free)
        self._is_done.release()
        return None

    def _shuffled(self, threads: list[Any]) -> list[Any]:
        return [threads[place] for place in self.draw.permutation(len(threads))]


class Turn(simulator.BlockThread):
    """A Python thread, which is one thread of a block after another."""

    def __init__(self, block: Block) -> None:
        super().__init__(None, block.manager, (0, 0, 0), (0, 0, 0), False)
        self._may_run = taken_lock()
        self._block, self._thread = block, (0, 0, 0)
        self.start()

    def begin(self, block: Block, thread: tuple[int, ...]) -> None:
        self._block, self._thread = block, thread
        self.go_on()

    def go_on(self) -> None:
        self._may_run.release()

    def run(self) -> None:
        while True:
            self._may_run.acquire()
            thread: Any = self._thread
            while thread is not None:
                self._be(thread)
                thread = self._next()

    def _next(self) -> Any:
        # Idle before another one looks for an idle one; whoever takes it waits until it has come round.
        found = self._block.next(self)
        if found is None:
            Block.idle.append(self)
        return found

    def _be(self, thread: tuple[int, ...]) -> None:
        block = self._block
        self._manager, self.blockIdx, self.threadIdx = block.manager, Dim3(*block.place), Dim3(*thread)
        wide, high, _ = block.manager._block_dim
        self.thread_id = thread[0] + wide * (thread[1] + high * thread[2])
        try:
            block.manager._f(*block.arguments)
        except Exception as error:
            block.error = block.error or error

    def syncthreads(self) -> None:
        self._block.wait(self)
        self._may_run.acquire()
        if self._block.error is not None:
            raise RuntimeError("another thread of the block has failed")


def run_block(manager: Any, place: tuple[int, ...], *arguments: Any) -> None:
    Block(manager, place, arguments).run()


def stack_of(frame: Any) -> list[tuple[str, int] | None]:
    return [(frame.f_back.f_code.co_filename, frame.f_back.f_lineno), None]


simulator.BlockManager.run = run_block
# To know where shared memory is taken, the simulator would read the source of the whole stack.
kernelapi.traceback = SimpleNamespace(extract_stack=stack_of)
