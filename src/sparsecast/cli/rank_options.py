"""What commands share that run on many ranks."""

from __future__ import annotations

from collections.abc import Mapping

from sparsecast.errors import InputError


def refuse_beside_ranks(given: Mapping[str, object], device: str) -> None:
    """Refuse options of one process: a rank has one thread of a processor."""
    named = [f"{name} {value}" for name, value in given.items()]
    if device != "cpu":
        named.append(f"--device {device}")
    if named:
        raise InputError(f"{named[0]} beside ranks: expected none, a rank is one thread; leave it out")
