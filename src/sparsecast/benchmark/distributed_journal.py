"""The journal of distributed products: what was measured on a machine with many ranks, a line each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

from sparsecast.errors import ProfileError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.records import Configuration, DistributedRecord

#: Version of the lines; a journal of another one is refused.
SCHEMA_VERSION = 1


def keep_distributed(machine: Machine, records: Iterable[DistributedRecord]) -> None:
    """Keep measurements of a machine; a StorageError says that the data folder cannot be written."""
    path = _path(machine)
    with storage.exclusive(path.with_suffix(".lock"), waits=True), storage.journal(path) as append:
        for record in records:
            append(json.dumps({"schema": SCHEMA_VERSION, "record": dataclasses.asdict(record)}))


def kept_distributed(machine: Machine) -> tuple[DistributedRecord, ...]:
    """Return what was kept of a machine, in the order measured; nothing if nothing was.

    A last line without its end is ignored: its writer was killed.

    Raises
    ------
    ProfileError
        If another line is damaged, of another schema, or has a time that nobody can have measured.
    """
    path = _path(machine)
    if not path.exists():
        return ()
    text = path.read_text(encoding="utf-8", errors="replace")
    found = []
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        try:
            record = _record(json.loads(line))
            is_time = 0 < record.time_s < inf
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ProfileError(
                f"{path} line {number} is damaged: expected a distributed record of schema {SCHEMA_VERSION}; "
                f"remove the file"
            ) from error
        if not is_time:
            raise ProfileError(
                f"{path} line {number} has time_s {record.time_s:g}: expected a finite number above 0; "
                f"remove the line, and measure the matrix again"
            )
        found.append(record)
    return tuple(found)


def _record(line: Mapping[str, Any]) -> DistributedRecord:
    if line["schema"] != SCHEMA_VERSION:
        raise ValueError(f"schema {line['schema']}")
    stored = dict(line["record"])
    stored["configuration"] = Configuration(**stored["configuration"])
    stored["samples_s"] = tuple(stored["samples_s"])
    return DistributedRecord(**stored)


def _path(machine: Machine) -> Path:
    return storage.home() / "measurements" / f"{machine.name}.distributed.jsonl"
