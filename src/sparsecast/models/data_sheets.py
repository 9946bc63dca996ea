"""Machines that nobody measured: the times of a measured one, scaled by two data sheets.

A product's time is taken for the sum of three parts:

- the start: the shortest time of its kernel, which no data sheet changes;
- memory: the bytes beyond the caches at a share of the peak bandwidth, though no longer than there is left.
  Of W bytes read over and over, caches of C bytes keep a share of C, and the rest is beyond them;
- computing: the rest, which follows a power of cores times frequency.

Both shares and the power are what measured machines teach, with how far off this is for each of them that was
left out: `python benchmarks/run.py data-sheets` finds them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Self

import numpy as np

from sparsecast.errors import ProfileError
from sparsecast.machines.data_sheet import DataSheet, Made
from sparsecast.machines.machine import Machine, shared_caches
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.models.forest import Floats
from sparsecast.records import DATA_SHEET_SUITE, Record

#: Share of the products of a kernel that may take less than its start: single wrong times are shorter still.
_SHORTEST = 0.02


@dataclass(frozen=True, slots=True)
class Products:
    """Products of one machine: arrays of shape (products,)."""

    time_s: Floats
    start_s: Floats  # the shortest time of the kernel
    bytes: Floats  # of matrix, x and y

    @classmethod
    def of(cls, records: Sequence[Record], matrices: Mapping[str, MatrixEntry]) -> Self:
        time_s = np.array([record.time_s for record in records])
        start_s, kernels = np.empty(len(records)), np.array([record.candidate.kernel for record in records])
        for kernel in np.unique(kernels):
            start_s[kernels == kernel] = shortest(time_s[kernels == kernel])
        sizes = {name: matrix.structure.rows + matrix.structure.cols for name, matrix in matrices.items()}
        vectors = np.array([record.candidate.value_bytes * sizes[record.matrix] for record in records])
        stored = np.array([record.stored_bytes for record in records], dtype=float)
        return cls(time_s, start_s, stored + vectors)

    def part(self, chosen: Any) -> Products:
        return Products(self.time_s[chosen], self.start_s[chosen], self.bytes[chosen])


def shortest(time_s: Floats) -> float:
    return float(np.quantile(time_s, _SHORTEST))


@dataclass(frozen=True, slots=True)
class Law:
    """How times go from one machine to another."""

    share_of_peak: float = 1.0  # of the bandwidth of the data sheet that products reach
    computing: float = 1.0  # the power of the ratio of cores times frequency
    share_kept: float = 1.0  # of the bytes of the caches that a product finds there again

    def scaled(self, products: Products, like: DataSheet, sheet: DataSheet) -> Floats:
        """Return the seconds of products of the machine `like` on one with another data sheet."""
        start_s = np.minimum(products.start_s, products.time_s)
        rest_s = products.time_s - start_s
        least_s = self._memory_s(products.bytes, like)
        memory_s = np.minimum(rest_s, least_s)
        # Where a product is faster than memory at that share, it is so on the other machine, too.
        faster = np.divide(memory_s, least_s, out=np.ones_like(least_s), where=least_s > 0)
        computing_s = (rest_s - memory_s) * (like.cycles_per_s / sheet.cycles_per_s) ** self.computing
        return np.asarray(start_s + self._memory_s(products.bytes, sheet) * faster + computing_s)

    def _memory_s(self, size: Floats, sheet: DataSheet) -> Floats:
        beyond = np.maximum(size - self.share_kept * sheet.cache_bytes, 0.0)
        return np.asarray(beyond / (self.share_of_peak * sheet.bandwidth_bytes_per_s))


@dataclass(frozen=True, slots=True)
class Learned:
    """What measured machines of one kind teach of others of their kind, as in `Made`."""

    law: Law
    machines: tuple[str, ...]  # that were left out once
    over_start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def kind_of(machine: Machine) -> str:
    return "gpu" if machine.gpu else "cpu"


@cache
def learned(kind: str) -> Learned:
    """Return what is shipped of the machines of a kind."""
    text = resources.files(__package__).joinpath("data_sheets.json").read_text(encoding="utf-8")
    stored = json.loads(text)[kind]
    ends = {name: tuple(stored[name]) for name in ("machines", "over_start", "low", "high")}
    return Learned(Law(**stored["law"]), **ends)


def made_profile(
    name: str, like: Profile, sheet: DataSheet, learned: Learned, memory_bytes: int | None = None
) -> Profile:
    """Return the profile of a machine that nobody measured, from a measured one that it is `like`.

    `sheet` is the data sheet of the new machine, and `learned` what machines of its kind teach. Without
    `memory_bytes` it has as much memory as `like`. A ProfileError as from `sheet_of_measured`.
    """
    products = Products.of(like.records, like.matrices)
    times = learned.law.scaled(products, sheet_of_measured(like), sheet)
    records = tuple(
        dataclasses.replace(
            record,
            time_s=time_s,
            suite=DATA_SHEET_SUITE,
            energy_j=None,
            energy_source=None,
            version=DATA_SHEET_SUITE,
        )
        for record, time_s in zip(like.records, times.tolist(), strict=True)
    )
    made = Made(like.name, len(learned.machines), learned.over_start, learned.low, learned.high)
    return Profile(_machine(name, like.machine, sheet, made, memory_bytes), records, like.matrices)


def sheet_of_measured(like: Profile) -> DataSheet:
    """Return the data sheet of a measured machine; a ProfileError if it is unknown."""
    if like.machine.made:
        raise ProfileError(
            f"profile '{like.name}' is itself from a data sheet: expected a machine that was measured; name "
            f"{like.machine.made.like}, which it is like"
        )
    if like.machine.sheet is None or not like.records:
        raise ProfileError(
            f"profile '{like.name}' has no data sheet: expected published times of a machine that is known "
            f"here; name one that 'sparsecast machines' lists as published"
        )
    return like.machine.sheet


def _machine(name: str, like: Machine, sheet: DataSheet, made: Made, memory_bytes: int | None) -> Machine:
    memory: dict[str, Any] = {"memory_bytes": memory_bytes} if memory_bytes else {}
    changed: dict[str, Any] = {"processor": name, "published_as": name, "sheet": sheet, "made": made}
    if like.gpu is None:
        changed |= {"cores": sheet.cores, "threads": sheet.cores, "caches": shared_caches(sheet), **memory}
    else:
        changed["gpu"] = dataclasses.replace(
            like.gpu,
            name=name,
            multiprocessors=sheet.cores,
            l2_bytes=sheet.l2_bytes,
            clock_hz=round(sheet.frequency_hz),
            **memory,
        )
    return dataclasses.replace(like, **changed)
