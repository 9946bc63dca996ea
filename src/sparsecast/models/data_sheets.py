"""Times of machines that nobody measured: those of a measured one, scaled by two data sheets.

A product's time is taken for the sum of three parts:

- the start: the shortest time of its kernel, which no data sheet changes;
- memory: the bytes beyond the caches at a share of the peak bandwidth, though no longer than there is left.
  Of W bytes read over and over, caches of C bytes keep a share of C, and the rest is beyond them;
- computing: the rest, which follows a power of cores times frequency.

Both shares and the power are what measured machines teach, with how far off this is for each of them that was
left out: `python benchmarks/run.py data-sheets` finds them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Self

import numpy as np

from sparsecast.machines.data_sheet import DataSheet
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry
from sparsecast.models.forest import Floats
from sparsecast.records import Record

#: Share of the products of a kernel that may take less than its start: single wrong times are shorter still.
_SHORTEST = 0.02


@dataclass(frozen=True, slots=True)
class Products:
    """Products of one machine: arrays of shape (products,).

    Attributes
    ----------
    time_s : float array
    start_s : float array
        The shortest time of the kernel.
    bytes : float array
        Of matrix, x and y.
    """

    time_s: Floats
    start_s: Floats
    bytes: Floats

    @classmethod
    def of(cls, records: Sequence[Record], matrices: Mapping[str, MatrixEntry]) -> Self:
        """Return the products that Records measured."""
        time_s = np.array([record.time_s for record in records])
        start_s, kernels = np.empty(len(records)), np.array([record.candidate.kernel for record in records])
        for kernel in np.unique(kernels):
            start_s[kernels == kernel] = shortest(time_s[kernels == kernel])
        sizes = {key: each.structure.rows + each.structure.cols for key, each in matrices.items()}
        vectors = np.array([record.candidate.value_bytes * sizes[record.matrix] for record in records])
        stored = np.array([record.stored_bytes for record in records], dtype=float)
        return cls(time_s, start_s, stored + vectors)

    def part(self, chosen: Any) -> Products:
        """Return some of the products, by their places."""
        return Products(self.time_s[chosen], self.start_s[chosen], self.bytes[chosen])


def shortest(time_s: Floats) -> float:
    """Return the shortest time that products of a kernel take."""
    return float(np.quantile(time_s, _SHORTEST))


@dataclass(frozen=True, slots=True)
class Law:
    """How times go from one machine to another.

    Attributes
    ----------
    share_of_peak : float
        Of the bandwidth of the data sheet that products reach.
    computing : float
        The power of the ratio of cores times frequency.
    share_kept : float
        Of the bytes of the caches that a product finds there again.
    """

    share_of_peak: float = 1.0
    computing: float = 1.0
    share_kept: float = 1.0

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
    """What measured machines of one kind teach of others of their kind.

    Attributes
    ----------
    law : Law
    machines : tuple of str
        That were left out once.
    over_start, low, high : tuples of float
        As in `Made`.
    """

    law: Law
    machines: tuple[str, ...]
    over_start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def kind_of(machine: Machine) -> str:
    """Return what a machine is one of: ``"gpu"`` or ``"cpu"``."""
    return "gpu" if machine.gpu else "cpu"


@cache
def learned(kind: str) -> Learned:
    """Return what is shipped of the machines of a kind."""
    text = resources.files(__package__).joinpath("data_sheets.json").read_text(encoding="utf-8")
    found = json.loads(text)[kind]
    ends = {name: tuple(found[name]) for name in ("machines", "over_start", "low", "high")}
    return Learned(Law(**found["law"]), **ends)
