"""Where to do the products: places in the order of their time, and which is the best for how many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, groupby
from types import MappingProxyType

import numpy as np

from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.models.fitting import fitted_costs
from sparsecast.records import VALUE_BYTES
from sparsecast.results.placement import Placement, Placements


def ranked(
    placements: Sequence[Placement], refused: Mapping[str, object] = MappingProxyType({})
) -> Placements:
    """Order the placements of one matrix by the time of all products, and find when which is the best."""
    ordered = sorted(placements, key=lambda placement: placement.total_s)
    most = ordered[0].total.high if ordered else None
    ties = (
        replace(row, is_tie=most is not None and row.total.low is not None and row.total.low <= most)
        for row in ordered[1:]
    )
    found = Placements((*ordered[:1], *ties), refused={name: str(why) for name, why in refused.items()})
    # From how many products on each place is the best: the lower envelope of their costs.
    # Each place has the seconds before the products and for each: of its way, and of plain CSR in its plan.
    costs = []
    for place in found.comparable:
        ways = [(place.before_s, place.way.time_s)]
        if place.plan:
            csr = place.plan.baseline
            ways.append((csr.convert_s + (place.transfer_s or 0.0), csr.time_s))
        costs.append(ways)
    crossings = {1}
    for (before_s, time_s), (other_before_s, other_time_s) in combinations(chain.from_iterable(costs), 2):
        if other_time_s != time_s:
            crossing = math.ceil((before_s - other_before_s) / (other_time_s - time_s))
            # One less and one more each: what is rounded up was rounded before.
            crossings |= {crossing + more for more in (-1, 0, 1) if crossing + more > 0}

    def best(count: int) -> int:
        """Return the place that costs least; of equals the one with the fastest product."""
        totals = [min(before_s + count * time_s for before_s, time_s in ways) for ways in costs]
        return min(range(len(costs)), key=lambda place: (totals[place], *costs[place][0][::-1]))

    counts_of = groupby(sorted(crossings), best) if found.comparable else ()
    best_from = tuple((next(counts), found.comparable[place]) for place, counts in counts_of)
    return replace(found, best_from=best_from)


def copies_s(profile: Profile, shape: tuple[int, int], dtype: str) -> float:
    """Return the forecast seconds to bring x to the device of a profile and y back."""
    if profile.machine.gpu is None:
        return 0.0
    rows, cols = (size * VALUE_BYTES[dtype] for size in shape)
    return transfer_s(profile, cols, "to device") + transfer_s(profile, rows, "from device")


def transfer_s(profile: Profile, size_bytes: int, direction: str) -> float:
    """Return the forecast seconds of one copy of a NumPy array, pageable as users have it.

    Latency and bandwidth, neither below 0, are those for which the squares of the relative errors on the
    profile's Bandwidths are least, so that small copies count as much as large ones.

    The `direction` is ``"to device"`` or ``"from device"``, and the profile that of the device. A
    ProfileError says that it lacks Bandwidths of that kind with two numbers of bytes.
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


def prices_of(texts: Sequence[str]) -> dict[str, float]:
    """Return prices of an hour from texts such as ``A=2.10/h``; an InputError refuses other texts."""
    found = {}
    for text in texts:
        machine, _, number = text.rpartition("=")
        try:
            price = float(number.removesuffix("/h")) if number.endswith("/h") else math.nan
        except ValueError:
            price = math.nan
        if not machine or not 0 <= price < math.inf:
            raise InputError(f"price '{text}': expected MACHINE=NUMBER/h with a number from 0 on; give one")
        found[machine] = price
    return found
