"""Kept Records: what users measured on a machine. Models learn from them and are scored on them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sparsecast.benchmark.journal import Measurements, journal, read_journal
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import Record


def kept_path(machine: Machine) -> Path:
    """Return where the Records of a machine are kept: a journal in the user's data folder."""
    return storage.home() / "measurements" / f"{machine.name}.jsonl"


def keep(machine: Machine, problem: Problem, records: Iterable[Record]) -> None:
    """Add Records to the kept ones.

    Raises
    ------
    StorageError
        If the data folder cannot be written.
    """
    path = kept_path(machine)
    with storage.exclusive(path.with_suffix(".lock"), waits=True), journal(path) as writer:
        writer.add(problem, records)


def kept(machine: Machine) -> Measurements:
    """Return the kept Records of a machine, perhaps none.

    Raises
    ------
    ProfileError
        If the journal is damaged.
    """
    return read_journal(kept_path(machine))


def with_kept(profile: Profile) -> Profile:
    """Return a profile with the kept Records of its machine; a later Record replaces an earlier one."""
    return kept(profile.machine).into(profile)
