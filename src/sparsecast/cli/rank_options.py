"""What commands share that run on many ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.distributed.nodes import Nodes


def refuse_beside_ranks(given: Mapping[str, object], device: str) -> None:
    """Refuse options of one process: a rank has one thread of a processor."""
    named = [f"{name} {value}" for name, value in given.items()]
    if device != "cpu":
        named.append(f"--device {device}")
    if named:
        raise InputError(f"{named[0]} beside ranks: expected none, a rank is one thread; leave it out")


def rank_notes(nodes: Nodes, left: int = 0) -> list[str]:
    """Return what a reader must know of measurements on these ranks."""
    ranks = range(len(nodes.of_rank))
    notes = []
    if nodes.is_oversubscribed(ranks):
        notes.append(
            f"oversubscribed: {nodes.fullest(ranks)} ranks share {nodes.cores} cores, so their times tell "
            f"nothing of a machine with a core for each; no model learns from them"
        )
    if left:
        notes.append(f"{left} micro-benchmarks were left out; a larger --budget measures them")
    if len(nodes.of_rank) == 1:
        notes.append("one rank sends no messages: start several by mpirun -n N")
    return notes
