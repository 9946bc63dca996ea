"""What an application will cost: its products by a plan, its loops over vectors by the roofline, iterations.

Barreda et al. (2020), equations 3 and 4: T = T_once + k (T_SpMV + sum of T_loop).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecast.applications.iterations import Iterations
from sparsecast.applications.laps import PRODUCT, VectorLoop
from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.planning.plan import Plan
from sparsecast.records import VALUE_BYTES, Bandwidth


@dataclass(frozen=True, slots=True)
class LoopCost:
    """Forecast seconds of one run of a loop, with the ends of the interval; None where nothing tells them."""

    name: str
    time_s: float
    low_s: float | None
    high_s: float | None
    is_once: bool = False

    def runs(self, iterations: int) -> int:
        """Return how often the loop runs."""
        return 1 if self.is_once else iterations


@dataclass(frozen=True, slots=True)
class ApplicationCost:
    """What a whole run will cost.

    Attributes
    ----------
    application : str
    profile : str
        Its name.
    iterations : Iterations
    plan : Plan
        Of the products, for the iterations expected.
    loops : tuple of LoopCost
        The product among them.
    energy_j : float or None
        None where no energy was ever measured.
    notes : tuple of str
    """

    application: str
    profile: str
    iterations: Iterations
    plan: Plan
    loops: tuple[LoopCost, ...]
    energy_j: float | None
    notes: tuple[str, ...]

    @property
    def time_s(self) -> float:
        """Seconds of the run: conversion and expected iterations."""
        return self.total_s({loop.name: loop.time_s for loop in self.loops}, self.iterations.expected)

    @property
    def low_s(self) -> float | None:
        """Seconds with the fewest iterations and the low ends of all loops."""
        ends = {loop.name: loop.low_s for loop in self.loops}
        return self._end(ends, self.iterations.low)

    @property
    def high_s(self) -> float | None:
        """Seconds with the most iterations and the high ends of all loops."""
        ends = {loop.name: loop.high_s for loop in self.loops}
        return self._end(ends, self.iterations.high)

    @property
    def format(self) -> str:
        """The formats of the plan, joined by a plus."""
        return "+".join(dict.fromkeys(block.candidate.format for block in self.plan.blocks))

    def total_s(self, seconds: Mapping[str, float], iterations: int) -> float:
        """Return the seconds of a run of which the loops take so long, conversion included."""
        return self.plan.convert_s + sum(each.runs(iterations) * seconds[each.name] for each in self.loops)

    def shares(self) -> dict[str, float]:
        """Return the share of each loop in the expected run, without the conversion."""
        seconds = {loop.name: loop.runs(self.iterations.expected) * loop.time_s for loop in self.loops}
        return {name: value / sum(seconds.values()) for name, value in seconds.items()}

    def _end(self, seconds: Mapping[str, float | None], iterations: int) -> float | None:
        known = {name: value for name, value in seconds.items() if value is not None}
        return self.total_s(known, iterations) if len(known) == len(seconds) else None


def costs_of(
    loops: Sequence[VectorLoop], plan: Plan, profile: Profile, rows: int, dtype: str, vectors: int
) -> tuple[LoopCost, ...]:
    """Return the costs of the loops of an application and of its product.

    The loops run on one thread, and their vectors stay where the product left them: in the cache that holds
    them all. A loop also takes what a product without entries does, its call.

    Parameters
    ----------
    loops : sequence of VectorLoop
    plan : Plan
    profile : Profile
    rows : int
        Entries of a vector.
    dtype : str
    vectors : int
        That the application goes through in an iteration.

    Raises
    ------
    ProfileError
        If the profile has no Bandwidth of reads.
    """
    speeds = _Speeds.of(profile)
    vector_bytes = rows * VALUE_BYTES[dtype]
    speed = speeds.at(vectors * vector_bytes)
    found = [LoopCost(PRODUCT, plan.time_s, plan.low_s, plan.high_s)]
    for loop in loops:
        moved = loop.moved * vector_bytes
        found.append(
            LoopCost(
                loop.name,
                speeds.call_s + moved / speed.expected,
                moved / speed.highest,
                speeds.call_s + moved / speed.lowest,
                loop.is_once,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Speed:
    """Bytes a second at one size: between the speeds of the sizes measured around it."""

    expected: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class _Speeds:
    """What one thread of a machine reads, by size of the array, and the seconds of a call."""

    bytes: tuple[int, ...]
    per_s: tuple[float, ...]
    call_s: float

    @classmethod
    def of(cls, profile: Profile) -> _Speeds:
        reads = [each for each in profile.bandwidths if each.kind == "read"]
        if not reads:
            raise ProfileError(
                f"profile {profile.name} has no bandwidths: expected those of reads, for the loops over "
                f"vectors; calibrate the machine"
            )
        threads = min(each.threads for each in reads)
        own = sorted((each for each in reads if each.threads == threads), key=lambda each: each.bytes)
        # The smallest array takes a call, and what its bytes take at the speed of the fastest.
        fastest = max(own, key=_per_s)
        call_s = max(0.0, own[0].time_s - own[0].bytes / _per_s(fastest))
        larger = [each for each in own if each.bytes >= fastest.bytes]
        return cls(
            tuple(each.bytes for each in larger),
            tuple(_per_s(each) / threads for each in larger),
            call_s,
        )

    def at(self, size_bytes: int) -> _Speed:
        """Return the speeds with arrays of so many bytes together, on a line between logarithms."""
        sizes, per_s = np.log(self.bytes), np.log(self.per_s)
        place = np.log(max(size_bytes, 1))
        after = min(int(np.searchsorted(sizes, place)), len(sizes) - 1)
        around = self.per_s[max(0, after - 1) : after + 1]
        expected = float(np.exp(np.interp(place, sizes, per_s)))
        return _Speed(expected, min(around), max(around))


def _per_s(each: Bandwidth) -> float:
    return each.bandwidth_bytes_per_s
