"""A communicator of threads in one process: as much of mpi4py as the distributed products use.

A send is complete at once, a receive waits for it: what would hang in MPI because nobody sends hangs here for
a few seconds and fails. A rank that fails ends the others.
"""

import queue
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np

#: Seconds after which a rank that waits for another is taken for hung, and between looks for a failed one.
PATIENCE_S, LOOK_S = 120, 0.05


class AbortedError(Exception):
    """A rank called Abort, or another one failed."""


class Request:
    """A message: what is done when it is started, and when it is waited for."""

    def __init__(self, begin=lambda: None, end=lambda: None):
        self.begin, self.end, self.is_begun = begin, end, False

    def begun(self):
        assert not self.is_begun, "started a request that was not waited for"
        self.begin()
        self.is_begun = True
        return self

    def Wait(self):
        assert self.is_begun, "waited for a request that was not started"
        self.end()
        self.is_begun = False

    def Test(self):
        self.Wait()
        return True

    def Free(self):
        assert not self.is_begun, "freed a request that was not waited for"

    @classmethod
    def Startall(cls, requests):
        for each in requests:
            each.begun()

    @classmethod
    def Waitall(cls, requests):
        for each in requests:
            each.Wait()


class Shared:
    """What the ranks of one communicator share."""

    def __init__(self, size, failed=None):
        self.size, self.barrier = size, threading.Barrier(size)
        self.slots, self.mail = [None] * size, defaultdict(queue.Queue)
        self.failed = failed or threading.Event()
        self.children, self.lock = {}, threading.Lock()

    def fail(self):
        """End the ranks that wait for each other."""
        self.failed.set()
        for each in (self, *self.children.values()):
            each.barrier.abort()


class Comm:
    """One rank's view of a communicator."""

    def __init__(self, shared, rank):
        self.shared, self.rank, self.size = shared, rank, shared.size
        self.aborted, self.is_freed = None, False
        self.splits, self.attributes = 0, {}

    @staticmethod
    def Create_keyval(delete_fn):
        return delete_fn

    def Get_attr(self, key):
        return self.attributes.get(key)

    def Set_attr(self, key, value):
        self.attributes[key] = value

    def Dup(self):
        return self.Split(0, self.rank)

    def Split(self, color, key):
        colors = self.together((color, key, self.rank))
        mine = sorted((k, r) for c, k, r in colors if c == color)
        self.splits += 1
        with self.shared.lock:
            child = Shared(len(mine), self.shared.failed)
            child = self.shared.children.setdefault((self.splits, color), child)
        return Comm(child, mine.index((key, self.rank)))

    def __bool__(self):
        return not self.is_freed

    def Free(self):
        for delete, value in self.attributes.items():
            delete(self, delete, value)
        self.is_freed = True

    def Abort(self, status):
        self.aborted = status
        self.shared.fail()
        raise AbortedError(status)

    def Barrier(self):
        try:
            self.shared.barrier.wait(PATIENCE_S)
        except threading.BrokenBarrierError:
            raise AbortedError from None

    def Ibarrier(self):
        return Request(begin=self.Barrier).begun()

    def together(self, value):
        """Give all ranks what each of them brings."""
        self.shared.slots[self.rank] = value
        self.Barrier()
        values = list(self.shared.slots)
        self.Barrier()
        return values

    allgather = together

    def bcast(self, value):
        return self.together(value)[0]

    def Send(self, buffer, dest):
        assert buffer.flags.c_contiguous
        self.shared.mail[self.rank, dest].put(buffer.copy())

    def Recv(self, buffer, source):
        assert buffer.flags.c_contiguous and buffer.flags.writeable
        message, waited_s = None, 0.0
        while message is None:
            try:
                message = self.shared.mail[source, self.rank].get(timeout=LOOK_S)
            except queue.Empty:
                waited_s += LOOK_S
                if self.shared.failed.is_set() or waited_s > PATIENCE_S:
                    raise AbortedError(f"rank {self.rank} waits for rank {source}") from None
        assert len(message) <= len(buffer) and message.dtype == buffer.dtype
        buffer[: len(message)] = message

    def Send_init(self, buffer, dest):
        return Request(begin=lambda: self.Send(buffer, dest))

    def Recv_init(self, buffer, source):
        return Request(end=lambda: self.Recv(buffer, source))

    def Isend(self, buffer, dest):
        return self.Send_init(buffer, dest).begun()

    def Irecv(self, buffer, source):
        return self.Recv_init(buffer, source).begun()

    def Allgather(self, own, everything):
        everything.reshape(self.size, -1)[:] = np.reshape(self.together(own.copy()), (self.size, -1))

    def Allgatherv(self, own, target):
        whole, (counts, places) = target
        for value, count, place in zip(self.together(own.copy()), counts, places, strict=True):
            assert len(value) == count
            whole[place : place + count] = value

    def Alltoall(self, sent, received):
        received[:] = [value[self.rank] for value in self.together(sent.copy())]

    def Allreduce(self, own, total):
        total[...] = sum(self.together(own.copy()))

    def Reduce(self, own, total, root):
        values = self.together(own.copy())
        if self.rank == root:
            total[...] = sum(values)

    def Bcast(self, buffer, root):
        value = self.together(buffer.copy())[root]
        assert value.shape == buffer.shape and value.dtype == buffer.dtype
        buffer[...] = value


def on_ranks(size, work):
    """Return what `work(comm)` gives on each rank; raise the first failure that is no AbortedError."""
    shared = Shared(size)

    def run(rank):
        try:
            return work(Comm(shared, rank))
        except BaseException:
            shared.fail()
            raise

    with ThreadPoolExecutor(size) as threads:
        done = [threads.submit(run, rank) for rank in range(size)]
    failures = [each.exception() for each in done if each.exception()]
    if failures:
        raise next((error for error in failures if not isinstance(error, AbortedError)), failures[0])
    return [each.result() for each in done]
