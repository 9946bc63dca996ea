"""Where to do the products: the best plan of each device, with the copies that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType

import numpy as np

from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.models.fitting import fitted_costs
from sparsecast.results.plan import Placement, Placements


def compare(placements: Sequence[Placement], refused: Mapping[str, str] = MappingProxyType({})) -> Placements:
    """Order the placements of one matrix by the time of all products, and find from when the fastest pays."""
    ordered = tuple(sorted(placements, key=lambda placement: placement.total_s))
    compared = Placements(ordered, None, dict(refused))
    others = [placement for placement in placements if placement is not compared.fastest]
    if not others:
        return compared
    return replace(compared, break_even_iterations=_break_even(compared.fastest, others))


def _break_even(fastest: Placement, others: Sequence[Placement]) -> int | None:
    """Return from how many products on `fastest` is the best: the last crossing of its costs and the others'.

    In between, plain CSR of one place may lose to another place, and its plan win again.
    """
    costs = _costs(fastest)
    other_costs = [cost for other in others for cost in _costs(other)]
    crossings = [
        math.ceil((before_s - other_before_s) / (other_time_s - time_s))
        for before_s, time_s in costs
        for other_before_s, other_time_s in other_costs
        if other_time_s != time_s
    ]
    # One less and one more each: another may be best before, and what is rounded up was rounded before.
    candidates = sorted({1, *(n + more for n in crossings for more in (-1, 0, 1) if n + more > 0)})
    pays = takewhile(lambda n: _least(costs, n) <= _least(other_costs, n), reversed(candidates))
    return min(pays, default=None)


def _costs(placement: Placement) -> list[tuple[float, float]]:
    """Return the seconds before the products and for each, of the plan and of plain CSR."""
    baseline = placement.plan.baseline
    return [
        (placement.before_s, placement.plan.time_s),
        (baseline.convert_s + placement.transfer_s, baseline.time_s),
    ]


def _least(costs: Sequence[tuple[float, float]], iterations: int) -> float:
    return min(before_s + iterations * time_s for before_s, time_s in costs)


def transfer_s(profile: Profile, size_bytes: int, direction: str) -> float:
    """Return the forecast seconds of one copy of a NumPy array, pageable as users have it.

    Latency and bandwidth, neither below 0, are those for which the squares of the relative errors on the
    profile's Bandwidths are least, so that small copies count as much as large ones.

    Parameters
    ----------
    profile : Profile
        Of the device.
    size_bytes : int
    direction : str
        ``"to device"`` or ``"from device"``.

    Raises
    ------
    ProfileError
        Without Bandwidths of that kind with two numbers of bytes.
    """
    streams = [stream for stream in profile.bandwidths if stream.kind == direction]
    if len({stream.bytes for stream in streams}) < 2:
        raise ProfileError(
            f"profile {profile.name} cannot forecast copies {direction}: expected bandwidths of at least two "
            f"sizes, it has {len(streams)}; calibrate the device, or use another profile"
        )
    counts = np.array([(1.0, float(stream.bytes)) for stream in streams])
    latency_s, s_per_byte = fitted_costs(counts, np.array([stream.time_s for stream in streams]))
    return float(latency_s + size_bytes * s_per_byte)
