"""Where to do products: on this machine, its GPU, other machines, and many ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np

from sparsecast.api.calibrating import machines, own_profile
from sparsecast.api.clustering import cluster
from sparsecast.api.forecasting import plan, predict
from sparsecast.api.profiles import asked_machine, calibrated_profile, refuse_disturbed
from sparsecast.api.session import named_here, sources
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import Threads, machine_of, number_of, parse_device, parse_devices
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, InputError, ProfileError, remedy_for
from sparsecast.features.structure import Structure
from sparsecast.formats.libraries import chosen_libraries
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile, known_profiles
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
        As in `predict`; libraries are candidates on processors that were calibrated. A note says where one
        of them, or the threads, does not count.
    prices : mapping of str to float, optional
        Of an hour, by machine; on a cluster of a node and hour.
    drift_correction : bool
        As in `predict`: this machine as it is now, or as it was calibrated.

    Raises
    ------
    UnknownNameError, DeviceError
        If a place does not exist.
    InputError
        If the question cannot be, two profiles have one name, or no place has a forecast: of the kind of the
        first refusal.
    """
    if iterations < 1:
        raise InputError(f"iterations {iterations}: expected at least 1; name the products you will do")
    how: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    how |= {"library": library, "drift_correction": drift_correction, "anyway": anyway}
    chosen_libraries(library, is_here=False)  # refuses unknown ones, whatever the places
    A = A if isinstance(A, Structure) else Problem.of(A)
    listed, damaged = _places(A, places, threads, dtype)
    placements, refused = _answer(A, listed, how, prices or {})
    if not placements:
        raise type(next(iter(refused.values())))("; ".join(map(str, refused.values())))
    return ranked(placements, {name: str(error) for name, error in (refused | damaged).items()})


def compare(
    matrices: Mapping[str, Problem | Structure],
    profiles: Mapping[str, Profile],
    damaged: Mapping[str, InputError] = MappingProxyType({}),
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
    damaged : mapping of str to InputError
        Files of profiles that cannot be used, and why: they are among the refused.
    products : int
        At least 1.
    prices, library, model, anyway
        As in `where`.
    on_place : callable
        Called after each machine: one that is not shipped takes seconds for its fit.
    """
    how: dict[str, Any] = {"iterations": products, "library": library, "model": model}
    how |= {"drift_correction": False, "anyway": anyway}
    chosen_libraries(library, is_here=False)
    for name, A in matrices.items():
        places = [_Place(machine, profile) for machine, profile in profiles.items()]
        placements, refused = _answer(A, places, how, prices or {}, on_place)
        named = [replace(placement, matrix=name) for placement in placements]
        yield ranked(named, {machine: str(error) for machine, error in {**refused, **damaged}.items()})


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
            placed = (place.on_ranks if place.has_ranks else place.alone)(A, **how)
        except InputError as error:
            refused[place.name] = error
        else:
            price = prices.get(place.name, prices.get(placed.machine))
            is_own = place.profile.machine.published_as is None
            is_here = is_own and placed.machine == named_here(placed.device)
            placements.append(replace(placed, price_per_hour=price, is_here=is_here))
        on_place()
    return placements, refused


def profiles_to_compare(text: str = ALL) -> tuple[dict[str, Profile], dict[str, InputError]]:
    """Return profiles by name: those named with commas between, or all at hand that have Records.

    The second are files at hand that cannot be used, and why.

    Raises
    ------
    UnknownNameError, ProfileError
        If one that is named does not exist, or cannot be used.
    InputError
        If there is none, or two that are named have one name.
    """
    if text != ALL:
        names = [str(place) for place in named_places(text)]
        return _by_name(names, map(find_profile, names)), {}
    profiles, damaged = _at_hand()
    found = {name: profile for name, profile in profiles.items() if profile.records}
    if not found:
        raise InputError(
            "no machine to compare: expected profiles; calibrate this one, or import published results"
        )
    return found, damaged


def _at_hand() -> tuple[dict[str, Profile], dict[str, InputError]]:
    """Return the profiles at hand by their names, and by their files' names why others cannot be used."""
    files, damaged = known_profiles(), dict[str, InputError]()
    profiles: dict[str, Profile] = {}
    for name, profile in machines()[1].items():
        if not isinstance(profile, Profile):
            damaged |= {name: profile} if name in files else {}
        elif name != profile.name and profile.name in {*files, *profiles}:
            damaged[name] = _of_one_name(profile.name, str(files[name]), profile.name)
        else:
            profiles[profile.name] = profile
    return profiles, damaged


def _by_name(places: Iterable[str], profiles: Iterable[Profile]) -> dict[str, Profile]:
    """Return profiles by name; an InputError names two places whose profiles differ and have one name."""
    found: dict[str, tuple[str, Profile]] = {}
    for place, profile in zip(places, profiles, strict=True):
        other, known = found.setdefault(profile.name, (place, profile))
        if profile != known:
            raise _of_one_name(other, place, profile.name)
    return {name: profile for name, (_, profile) in found.items()}


def _of_one_name(place: str, other: str, name: str) -> InputError:
    return InputError(
        f"profiles '{place}' and '{other}' of one name, {name}: expected one of each machine; leave one out"
    )


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
        how["device"], notes = self.device, tuple[str, ...]()
        if not (is_published or machine.gpu):
            how |= {"threads": threads, "library": library}
        elif library is not None:
            notes = (f"Library '{library}' does not count here: libraries are for calibrated processors.",)
        if isinstance(A, Problem) and not is_published:
            made = plan(A, profile, iterations=iterations, measure=False, **how)
            vectors_s = _copies_s(profile, A.matrix.shape, made.baseline.candidate.dtype)
            notes = (*made.notes, *notes)
            return Placement(A.name, profile.name, made, iterations, vectors_s, notes=notes)
        prediction = predict(A, profile, **how)
        if not prediction:
            raise ProfileError(f"{profile.name}: {next(iter(prediction.refused.values()), 'no format')}")
        best = min(prediction, key=lambda each: (each.convert_s or 0.0) + iterations * each.time_s)
        copies_s, notes = None if machine.gpu else 0.0, (*prediction.notes, *notes)
        return Placement(getattr(A, "name", "counts"), profile.name, best, iterations, copies_s, notes=notes)

    def on_ranks(self, A: Problem | Structure, iterations: int, dtype: str | None, **how: Any) -> Placement:
        """Return the products on the fewest ranks of NODES from which on more do not pay."""
        if not how["anyway"]:
            refuse_disturbed(self.profile, Target.of(A, self.profile.machine, 1, dtype))
        has_several = any(point.nodes > 1 for point in self.profile.microbenchmarks)
        counts = [self.profile.machine.cores * nodes for nodes in NODES if has_several or nodes == 1]
        answer = cluster(A, counts, self.profile, dtype=dtype)
        ways = (choice.forecast for choice in answer.choices)
        best = next(way for way in ways if way.configuration.ranks == answer.enough_ranks)
        notes, unused = answer.notes, [key for key in ("threads", "library", "model") if how[key]]
        if unused:
            ranks = "ranks have one thread each, formats of ours and a model of their own"
            notes = (*notes, f"On ranks these do not count: {', '.join(unused)}; {ranks}.")
        return Placement(getattr(A, "name", "counts"), answer.profile, best, iterations, None, notes=notes)


def _places(
    A: Problem | Structure, places: str | Sequence[str | Profile], threads: Threads, dtype: str | None
) -> tuple[list[_Place], dict[str, InputError]]:
    """Return the places that are asked for, each once, and why files of profiles at hand are none.

    A profile with micro-benchmarks has ranks, too.
    """

    def named(place: str | Profile) -> _Place:
        if is_device(place):
            own = own_profile(A, threads=threads_of(place, threads), dtype=dtype, device=place)
            return _Place(place, own, place)
        profile = find_profile(place) if isinstance(place, str) else place
        return _Place(profile.name, profile)

    damaged: dict[str, InputError] = {}
    if places == ALL:
        listed = [named(PROCESSOR)]
        for name in DEVICES.names():
            with suppress(DeviceError):
                listed.append(_Place(name, calibrated_profile(machine_of(name)), name))
        at_hand, damaged = _at_hand()
        listed += map(named, at_hand.values())
    else:
        given = named_places(places) if isinstance(places, str) else places
        for device in filter(is_device, given):
            machine_of(device)  # known to be there before another one is calibrated
        listed = list(map(named, given))
        _by_name([getattr(place, "name", str(place)) for place in given], (p.profile for p in listed))
    found: dict[str, _Place] = {}
    for place in listed:
        found.setdefault(place.profile.name, place)
    several = []
    for place in found.values():
        if place.profile.records or not place.profile.microbenchmarks:
            several.append(place)
        if place.profile.microbenchmarks:
            several.append(replace(place, name=f"{place.name} on ranks", has_ranks=True))
    return several, damaged


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
