"""Which rank is on which node, and the machine that a node is."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecast.machines.machine import Machine, detect


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
