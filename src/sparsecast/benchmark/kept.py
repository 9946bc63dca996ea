"""Kept Records: what users measured on a machine. Models learn from them and are scored on them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sparsecast.benchmark.journal import journal, read_journal
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import Record


def _path(machine: Machine) -> Path:
    return storage.home() / "measurements" / f"{machine.name}.jsonl"


def keep(machine: Machine, problem: Problem, records: Iterable[Record]) -> None:
    """Add Records to the kept ones; a StorageError says that the data folder cannot be written."""
    path = _path(machine)
    with storage.exclusive(path.with_suffix(".lock"), waits=True), journal(path) as add:
        add(problem, records)


def with_kept(profile: Profile) -> Profile:
    """Return a profile with the kept Records of its machine; a later Record replaces an earlier one.

    A ProfileError says that their journal is damaged.
    """
    return read_journal(_path(profile.machine)).into(profile)
