"""Where to do products: on this machine, its GPU, other machines, and many ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from sparsecast.api.calibrating import machines, own_profile
from sparsecast.api.clustering import cluster
from sparsecast.api.forecasting import plan, predict
from sparsecast.api.profiles import asked_machine, calibrated_profile
from sparsecast.api.session import named_here, sources
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import Threads, machine_of, number_of, parse_device, parse_devices
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, InputError, ProfileError, remedy_for
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.planning.placement import prices_of as prices_of
from sparsecast.planning.placement import ranked, transfer_s
from sparsecast.results.placement import Placement, Placements

#: All places at hand.
ALL = "all"

#: Nodes of a cluster that are tried, as many ranks on each as it has cores: how many it has is not known.
NODES = (1, 4, 16, 64)


def where(
    A: Any,
    places: str | Sequence[str | Profile] = ALL,
    *,
    iterations: int = 1000,
    threads: Threads = None,
    dtype: str | None = None,
    library: str | None = None,
    model: str | None = None,
    prices: Mapping[str, float] | None = None,
    drift_correction: bool = True,
    anyway: bool = False,
) -> Placements:
    """Find out where a number of products is done first, with conversion and copies.

    Here, and for other machines with a profile that was calibrated, it is the plan of forecasts that counts;
    for machines of published results, and where only a Structure is known, the best format for the whole
    matrix; for clusters the best number of ranks of NODES.

    Parameters
    ----------
    A : sparse matrix or Structure
    places : str or sequence of str and Profile
        Devices of this machine, such as ``"cuda"``, and names or paths of profiles, also with commas between;
        by default ``"all"``: the processor, which is calibrated first where it must be, GPUs and every
        profile at hand.
    iterations : int
        Products that will be done, at least 1.
    threads : int or str, optional
        Of processors that were calibrated.
    dtype, library, model, anyway
        As in `predict`; libraries are candidates on processors.
    prices : mapping of str to float, optional
        Of an hour, by machine; on a cluster of a node and hour.
    drift_correction : bool
        As in `predict`: this machine as it is now, or as it was calibrated.

    Raises
    ------
    UnknownNameError, DeviceError
        If a place does not exist.
    InputError
        If the question cannot be, or no place has a forecast: of the kind of the first refusal.
    """
    if iterations < 1:
        raise InputError(f"iterations {iterations}: expected at least 1; name the products you will do")
    how: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    how |= {"library": library, "drift_correction": drift_correction, "anyway": anyway}
    A = A if isinstance(A, Structure) else Problem.of(A)
    placements, refused = _answer(A, _places(A, places, threads, dtype), how, prices or {})
    if not placements:
        raise type(next(iter(refused.values())))("; ".join(map(str, refused.values())))
    return ranked(placements, {name: str(error) for name, error in refused.items()})


def compare(
    matrices: Mapping[str, Problem | Structure],
    profiles: Mapping[str, Profile],
    *,
    products: int = 1,
    prices: Mapping[str, float] | None = None,
    library: str | None = None,
    model: str | None = None,
    anyway: bool = False,
    on_place: Callable[[], None] = lambda: None,
) -> Iterator[Placements]:
    """Answer `where` for matrices on machines as they were calibrated; empty where none has a forecast.

    Parameters
    ----------
    matrices, profiles : mappings by name
    products : int
        At least 1.
    prices, library, model, anyway
        As in `where`.
    on_place : callable
        Called after each machine: one that is not shipped takes seconds for its fit.
    """
    how: dict[str, Any] = {"iterations": products, "library": library, "model": model}
    how |= {"drift_correction": False, "anyway": anyway}
    for name, A in matrices.items():
        places = [_Place(machine, profile) for machine, profile in profiles.items()]
        placements, refused = _answer(A, places, how, prices or {}, on_place)
        named = [replace(placement, matrix=name) for placement in placements]
        yield ranked(named, {machine: str(error) for machine, error in refused.items()})


def _answer(
    A: Problem | Structure,
    places: Iterable[_Place],
    how: dict[str, Any],
    prices: Mapping[str, float],
    on_place: Callable[[], None] = lambda: None,
) -> tuple[list[Placement], dict[str, InputError]]:
    """Return the placements of a matrix, and why other places have none."""
    placements, refused, places = [], dict[str, InputError](), list(places)
    names = dict.fromkeys(name for place in places for name in (place.name, place.profile.name))
    for name in prices.keys() - names.keys():
        remedy = remedy_for(name, names, "name one of them")
        raise InputError(f"price of '{name}': expected one of the places, {', '.join(names)}; {remedy}")
    for place in places:
        try:
            placed = place.on_ranks(A, how["iterations"]) if place.has_ranks else place.alone(A, **how)
        except InputError as error:
            refused[place.name] = error
        else:
            price = prices.get(place.name, prices.get(placed.machine))
            is_own = place.profile.machine.published_as is None
            is_here = is_own and placed.machine == named_here(placed.device)
            placements.append(replace(placed, price_per_hour=price, is_here=is_here))
        on_place()
    return placements, refused


def profiles_to_compare(names: Sequence[str] | None = None) -> dict[str, Profile]:
    """Return profiles by name: those named, or all at hand that have Records.

    Raises
    ------
    UnknownNameError, ProfileError
        If one that is named does not exist, or cannot be used.
    InputError
        If there is none.
    """
    if names is not None:
        return {profile.name: profile for profile in map(find_profile, names)}
    found = {name: profile for name, profile in _at_hand().items() if profile.records}
    if not found:
        raise InputError(
            "no machine to compare: expected profiles; calibrate this one, or import published results"
        )
    return found


def _at_hand() -> dict[str, Profile]:
    return {name: profile for name, profile in machines()[1].items() if isinstance(profile, Profile)}


@dataclass(frozen=True)
class _Place:
    """A profile, the device of this machine that was asked for, and whether its ranks are what is asked."""

    name: str
    profile: Profile
    device: str | None = None
    has_ranks: bool = False

    def alone(
        self,
        A: Problem | Structure,
        iterations: int,
        threads: Threads = None,
        library: str | None = None,
        **how: Any,
    ) -> Placement:
        """Return the products by one process: planned, or in the best format where no plan can be made."""
        profile, machine = self.profile, asked_machine(self.profile, self.device)
        is_published = machine.published_as is not None
        how |= {"threads": None if is_published or machine.gpu else threads, "device": self.device}
        how |= {"library": None if is_published or machine.gpu else library}
        if isinstance(A, Problem) and not is_published:
            made = plan(A, profile, iterations=iterations, measure=False, **how)
            vectors_s = _copies_s(profile, A.matrix.shape, made.baseline.candidate.dtype)
            return Placement(A.name, profile.name, made, iterations, vectors_s, notes=made.notes)
        prediction = predict(A, profile, **how)
        if not prediction:
            raise ProfileError(f"{profile.name}: {next(iter(prediction.refused.values()), 'no format')}")
        best = min(prediction, key=lambda each: (each.convert_s or 0.0) + iterations * each.time_s)
        copies_s = None if machine.gpu else 0.0
        return Placement(
            getattr(A, "name", "counts"), profile.name, best, iterations, copies_s, notes=prediction.notes
        )

    def on_ranks(self, A: Problem | Structure, iterations: int) -> Placement:
        """Return the products on the fewest ranks of NODES from which on more do not pay."""
        has_several = any(point.nodes > 1 for point in self.profile.microbenchmarks)
        counts = [self.profile.machine.cores * nodes for nodes in NODES if has_several or nodes == 1]
        answer = cluster(A, counts, self.profile)
        ways = (choice.forecast for choice in answer.choices)
        best = next(way for way in ways if way.configuration.ranks == answer.enough_ranks)
        return Placement(
            getattr(A, "name", "counts"), answer.profile, best, iterations, None, notes=answer.notes
        )


def _places(
    A: Problem | Structure, places: str | Sequence[str | Profile], threads: Threads, dtype: str | None
) -> Iterator[_Place]:
    """Give the places that are asked for, each once; a profile with micro-benchmarks has ranks, too."""

    def named(place: str | Profile) -> _Place:
        if is_device(place):
            own = own_profile(A, threads=threads_of(place, threads), dtype=dtype, device=place)
            return _Place(place, own, place)
        profile = find_profile(place) if isinstance(place, str) else place
        return _Place(profile.name, profile)

    if places == ALL:
        listed = [named(PROCESSOR)]
        for name in DEVICES.names():
            with suppress(DeviceError):
                listed.append(_Place(name, calibrated_profile(machine_of(name)), name))
        listed += map(named, _at_hand().values())
    else:
        given = named_places(places) if isinstance(places, str) else places
        for device in filter(is_device, given):
            machine_of(device)  # known to be there before another one is calibrated
        listed = list(map(named, given))
    found: dict[str, _Place] = {}
    for place in listed:
        found.setdefault(place.profile.name, place)
    for place in found.values():
        if place.profile.records or not place.profile.microbenchmarks:
            yield place
        if place.profile.microbenchmarks:
            yield replace(place, name=f"{place.name} on ranks", has_ranks=True)


def named_places(text: str, profiles: Sequence[Profile] = ()) -> list[str | Profile]:
    """Return the places of a text with commas between, for a device one of `profiles` that is of its kind."""
    names, given = [name.strip() for name in text.split(",")], {p.machine.device: p for p in profiles}
    if not all(names):
        raise InputError(f"places '{text}': expected names with commas between, or {ALL}; correct it")
    return [given.get(name.partition(":")[0], name) for name in names]


def is_device(place: object) -> TypeGuard[str]:
    """Tell whether a place is a device of this machine, such as ``"cuda:1"``."""
    return isinstance(place, str) and place.partition(":")[0] in DEVICES.names()


def _copies_s(profile: Profile, shape: tuple[int, int], dtype: str) -> float:
    """Return the forecast seconds to bring x to the device of a profile and y back."""
    if profile.machine.gpu is None:
        return 0.0
    rows, cols = (size * np.dtype(dtype).itemsize for size in shape)
    return transfer_s(profile, cols, "to device") + transfer_s(profile, rows, "from device")


def uncalibrated_devices(
    A: Any,
    devices: str,
    profiles: Sequence[Profile] = (),
    *,
    threads: Threads = None,
    dtype: str | None = None,
) -> list[str]:
    """Return the devices without a profile, of a question about several.

    Raises
    ------
    InputError, ProfileError, DeviceError
        If a device cannot be found, cannot do such a product, or its profile has no Records for it: known
        before another one is calibrated for.
    """
    given = {profile.machine.device: profile for profile in profiles}
    unmet = []
    for name, kind in parse_devices(devices).items():
        machine = given[kind].machine if kind in given else machine_of(name)
        target = Target.of(A, machine, number_of(threads_of(name, threads)), dtype)
        if kind in given:
            sources(given[kind], target)
        else:
            unmet.append(name)
    return unmet


def threads_of(device: str, threads: Threads) -> Threads:
    """Return the threads for one device of a question about several; None for a GPU."""
    return threads if DEVICES.get(parse_device(device)[0]).shares_host else None
