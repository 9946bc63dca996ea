"""JSON documents: the keys that programs rely on (docs/reference/documents.md)."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import Any

from sparsecast.machines.machine import Machine
from sparsecast.records import Candidate
from sparsecast.system.version import VERSION

Document = dict[str, Any]


def fields(item: object, *names: str) -> Document:
    """Return attributes whose names are their JSON keys."""
    return {name: getattr(item, name) for name in names}


def candidate(about: Candidate) -> Document:
    """Return the way of doing a product."""
    named = fields(about, "format", "kernel", "device", "dtype", "threads")
    return {**named, "parameters": dict(about.parameters)}


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


def finite(value: Any) -> Any:
    """Return `value` with every number that JSON cannot say (NaN, infinity) as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
