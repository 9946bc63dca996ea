"""Where to do the products: the best plan of each device, with everything that must travel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparsecast.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Placement:
    """A plan on a device, for a caller whose matrix and vectors lie on the host before and after.

    Attributes
    ----------
    profile : str
        Name of the machine.
    plan : Plan
        On a device its conversion includes the transfer of the matrix.
    transfer_s : float
        Forecast seconds to bring x there and y back once; 0 on the host.
    """

    profile: str
    plan: Plan
    transfer_s: float

    @property
    def before_s(self) -> float:
        """Seconds beside the products, as long as the vectors stay where they are computed with."""
        return self.plan.convert_s + self.transfer_s

    @property
    def total_s(self) -> float:
        """Seconds of all products, the vectors brought there and back once."""
        return self.before_s + self.plan.iterations * self.plan.time_s

    @property
    def travelling_s(self) -> float:
        """Seconds of all products, x brought there and y back for every one."""
        return self.plan.convert_s + self.plan.iterations * (self.plan.time_s + self.transfer_s)


@dataclass(frozen=True, slots=True)
class Placements:
    """The placements of a matrix, the one with the least `total_s` first.

    Attributes
    ----------
    placements : tuple of Placement
    break_even_iterations : int or None
        Products from which on the placement with the fastest product is the best, with the plans as they are:
        1 where it always is, None where there is only one.
    """

    placements: tuple[Placement, ...]
    break_even_iterations: int | None

    @property
    def best(self) -> Placement:
        """The placement with the least `total_s`."""
        return self.placements[0]

    @property
    def fastest(self) -> Placement:
        """The placement with the fastest single product."""
        return min(self.placements, key=lambda placement: placement.plan.time_s)


def compare(placements: Sequence[Placement]) -> Placements:
    """Order placements by the time of all products together, and find out from when the fastest pays.

    Parameters
    ----------
    placements : sequence of Placement
        Of one matrix and one number of products; at least one.
    """
    found = Placements(tuple(sorted(placements, key=lambda placement: placement.total_s)), None)
    counts = [_break_even(found.fastest, other) for other in placements if other is not found.fastest]
    return Placements(found.placements, max(counts)) if counts else found


def _break_even(fastest: Placement, other: Placement) -> int:
    """Return the least number of products, at least 1, that `fastest` takes no longer for than `other`."""
    saved_s = other.plan.time_s - fastest.plan.time_s
    extra_s = fastest.before_s - other.before_s
    if extra_s <= 0 or saved_s == 0:
        return 1
    return max(1, math.ceil(extra_s / saved_s))
