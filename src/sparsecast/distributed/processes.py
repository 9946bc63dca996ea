"""The processes of a run: the communicator, what all have to agree on, and how all end when one fails.

A communicator is one of mpi4py, which is imported when `world` is called: importing it starts MPI.

Nodes say which rank is where, and what machine a node is.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from sparsecast.errors import InputError, MpiError, RanksError, SparsecastError
from sparsecast.machines.machine import Machine, detect

T = TypeVar("T")

#: Exit statuses of the command line, by what went wrong.
_INPUT_WRONG, _OUR_FAULT, _STOPPED = 2, 1, 130

#: Where the mpirun of MPICH and its relatives, of Open MPI say how many processes they started.
_STARTED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")

_SHOWN_CHARACTERS = 300

#: mpirun drops lines of a process that aborts before they were forwarded: a busy machine takes a moment.
_FORWARDING_S = 0.5


def started_ranks() -> int:
    """Return how many processes mpirun started, as far as it says so; MPI is not started for it."""
    return max(int(os.environ.get(name, "1")) for name in _STARTED)


def world() -> Any:
    """Return the communicator of all processes; MPI starts with the first call."""
    remedy = "pip install 'sparsecast[mpi]', or 'mpi4py' alone where the machine has an MPI library"
    try:
        from mpi4py import MPI
    except ModuleNotFoundError as error:
        raise MpiError(f"mpi4py is not installed: expected it for several ranks; {remedy}") from error
    except (ImportError, RuntimeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise MpiError(f"mpi4py finds no MPI library ({reason}): expected one; {remedy}") from error
    comm = MPI.COMM_WORLD
    started = started_ranks()
    if comm.size == 1 and started > 1:
        library = MPI.Get_library_version().split(",")[0].splitlines()[0].strip("\0 ")
        raise MpiError(
            f"mpirun started {started} processes, and each is alone in {library}: expected the mpirun of "
            f"that library; call it by its path, or reinstall mpi4py for the other"
        )
    return comm


def for_our_messages(comm: Any) -> Any:
    """Return a communicator of the same ranks for the messages of operators alone.

    A caller who waits for a message from anybody would otherwise receive one of ours. All ranks call this
    together; the communicator is made once, and is freed together with the caller's.
    """
    key = _attribute_key(cast(Hashable, type(comm)))
    ours = comm.Get_attr(key)
    if ours is None:
        ours = comm.Dup()
        comm.Set_attr(key, ours)
    return ours


@cache
def _attribute_key(kind: Any) -> Any:
    """Return the key under which MPI keeps our communicator with the caller's."""
    return kind.Create_keyval(delete_fn=lambda comm, key, ours: ours.Free())


@contextmanager
def together(comm: Any) -> Iterator[None]:
    """Have all ranks end when one fails within the body, instead of waiting for it for ever.

    A rank that raises prints one line with its number and the reason, after the trace where it is our fault,
    and aborts all. What all ranks found together, a RanksError, is printed by rank 0 alone, and each ends
    with exit status 2. A single rank raises as usual.
    """
    try:
        yield
    except BaseException as error:
        if comm.size == 1 or (isinstance(error, SystemExit) and not error.code):
            raise
        if isinstance(error, RanksError):
            if comm.rank == 0:
                print(error, file=sys.stderr, flush=True)
            comm.Barrier()
            raise SystemExit(_INPUT_WRONG) from error
        status, reason = _OUR_FAULT, f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else _OUR_FAULT
            reason = f"left with exit status {error.code}"
        elif isinstance(error, KeyboardInterrupt):
            status, reason = _STOPPED, "stopped from the keyboard"
        elif isinstance(error, SparsecastError):
            status, reason = _INPUT_WRONG if isinstance(error, InputError) else _OUR_FAULT, str(error)
        else:
            traceback.print_exception(error)
        print(f"rank {comm.rank}: {' '.join(reason.split())}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        time.sleep(_FORWARDING_S)
        comm.Abort(status)
        os._exit(status)  # MPICH returns, and would have the trace of a refusal printed after its line


def in_step(comm: Any, work: Callable[[], T]) -> T:
    """Do on each rank what may be refused there, and go on only if no rank refused.

    Raises
    ------
    RanksError
        On all ranks, if `work` raised an InputError on one: its number and reason, for the first such rank.
    """
    refused: InputError | None = None
    try:
        done = work()
    except InputError as error:
        refused = error
    reasons = comm.allgather(str(refused) if refused else "")
    refusing = [rank for rank, reason in enumerate(reasons) if reason]
    if refusing:
        others = f" (and {len(refusing) - 1} more)" if len(refusing) > 1 else ""
        raise RanksError(f"rank {refusing[0]}{others}: {reasons[refusing[0]]}") from refused
    return done


def agree(comm: Any, name: str, value: str, remedy: str) -> None:
    """Raise a RanksError on all ranks that names one that knows something else than rank 0."""
    texts = comm.allgather(value)
    for rank, text in enumerate(texts):
        if text != texts[0]:
            shown, expected = text[:_SHOWN_CHARACTERS], texts[0][:_SHOWN_CHARACTERS]
            raise RanksError(f"rank {rank} has {name} {shown}: expected {expected}, as rank 0 has; {remedy}")


@dataclass(frozen=True)
class Nodes:
    """The nodes of some ranks.

    `of_rank` has the node of each rank; nodes are numbered in the order of their first ranks. `cores` are
    physical cores of a node.
    """

    of_rank: tuple[int, ...]
    cores: int

    @classmethod
    def of(cls, comm: Any, machine: Machine) -> Nodes:
        """Return the nodes of a communicator: ranks that can share memory are on one; collective."""
        from mpi4py import MPI

        shared = comm.Split_type(MPI.COMM_TYPE_SHARED)
        firsts = comm.allgather(shared.bcast(comm.rank))
        shared.Free()
        return cls(tuple(np.unique(firsts, return_inverse=True)[1].tolist()), machine.cores)

    def count(self, members: range | tuple[int, ...]) -> int:
        return len({self.of_rank[rank] for rank in members})

    def fullest(self, members: range | tuple[int, ...]) -> int:
        """Return how many of these ranks the node has that has most."""
        return max(Counter(self.of_rank[rank] for rank in members).values())

    def is_oversubscribed(self, members: range | tuple[int, ...]) -> bool:
        """Tell whether a node has more of these ranks than cores."""
        return self.fullest(members) > self.cores

    def notes(self) -> list[str]:
        ranks = range(len(self.of_rank))
        notes = []
        if self.is_oversubscribed(ranks):
            notes.append(
                f"oversubscribed: {self.fullest(ranks)} ranks share {self.cores} cores, so their times say "
                f"nothing about a machine with a core for each rank; no model learns from them"
            )
        if len(ranks) == 1:
            notes.append("one rank sends no messages: start several with mpirun -n N")
        return notes


def node_machine() -> Machine:
    """Describe the node of this rank, as a process without mpirun does.

    A library may bind a rank to a core; the process that started it may use all that the job may.
    """
    machine = detect()
    if not hasattr(os, "sched_getaffinity"):
        return machine
    return replace(machine, threads=max(machine.threads, len(os.sched_getaffinity(os.getppid()))))
