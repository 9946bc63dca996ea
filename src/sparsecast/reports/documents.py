"""JSON documents: the keys that programs rely on (docs/reference/documents.md)."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth, Candidate
from sparsecast.results.machines import Imported
from sparsecast.results.partitions import Partitioned, Partitions
from sparsecast.system.version import VERSION

Document = dict[str, Any]


def fields(item: object, *names: str) -> Document:
    """Return attributes whose names are their JSON keys."""
    return {name: getattr(item, name) for name in names}


def candidate(about: Candidate) -> Document:
    """Return the way of doing a product."""
    named = fields(about, "format", "kernel", "device", "dtype", "threads")
    return {**named, "parameters": dict(about.parameters)}


def matrix(about: Structure, name: str) -> Document:
    """Return what identifies a matrix."""
    return {"name": name, **fields(about, "rows", "cols", "nnz")}


def structure(name: str, found: Structure, notes: Sequence[str]) -> Document:
    """Return every field of a Structure, and what the reader noticed."""
    return {"matrix": matrix(found, name), "structure": found.to_dict(), "notes": list(notes)}


def partitions(name: str, found: Partitions, value_bytes: int) -> Document:
    """Return what partitions make of a matrix, least communication first."""
    about = found.distribution
    return {
        "matrix": {"name": name, "rows": about.shape[0], "cols": about.shape[1], "nnz": int(about.nnz.sum())},
        "ranks": about.ranks,
        "partitions": [_partition(each, value_bytes) for each in found.partitions],
        "refused": dict(found.refused),
    }


def _partition(made: Partitioned, value_bytes: int) -> Document:
    found = made.distribution
    counts = {
        **fields(found, "method", "imbalance", "edge_cut", "volume_words"),
        "volume_bytes": value_bytes * found.volume_words,
        "halo_share": found.halo_share,
        "empty_ranks": int((found.rows == 0).sum()),
        "rows_most": int(found.rows.max()),
        "nnz_most": int(found.nnz.max()),
        "partition_s": made.partition_s,
    }
    exchanged = {
        "received_words": found.received_words,
        "messages": found.sent_messages + found.received_messages,
        "neighbours": found.received_messages,
    }
    for key, each in exchanged.items():
        counts[f"{key}_mean"] = None if found.is_2d else float(each.mean())
        counts[f"{key}_most"] = None if found.is_2d else int(each.max())
    return counts


def imported(found: Imported, path: Path) -> Document:
    """Return what became of published results."""
    profile = found.profile
    return {
        "profile": profile.name,
        "path": str(path),
        "records": len(profile.records),
        "matrices": len(profile.matrices),
        "left_out": dict(found.left_out),
        "machine": machine(profile.machine),
    }


def made(profile: Profile, path: Path) -> Document:
    """Return a machine that was made from a data sheet."""
    return {
        "profile": profile.name,
        "path": str(path),
        "records": len(profile.records),
        "machine": machine(profile.machine),
    }


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


def bandwidths(measured: Iterable[Bandwidth]) -> list[Document]:
    """Return the bandwidths of a profile, in the order measured."""
    return [{**dataclasses.asdict(each), **fields(each, "bandwidth_bytes_per_s")} for each in measured]


def finite(value: Any) -> Any:
    """Return `value` with every number that JSON cannot say (NaN, infinity) as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
