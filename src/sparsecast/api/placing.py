"""Comparison of devices for products: this machine, its GPU, other machines, and many ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypedDict, TypeGuard, Unpack

from sparsecast.api.calibrating import machines as machines_here
from sparsecast.api.calibrating import own_profile
from sparsecast.api.clustering import cluster
from sparsecast.api.forecast_basis import is_local
from sparsecast.api.profiles import asked_machine, calibrated_profile, contents, origin, refuse_disturbed
from sparsecast.api.sessions import Session
from sparsecast.api.settings import Setting, Trust, refuse_unknown, setting_and_trust
from sparsecast.devices import DEVICES, Threads, machine_of, threads_of
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, InputError, ProfileError, remedy_for
from sparsecast.features.structure import Structure
from sparsecast.formats.libraries import chosen_libraries
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile, known_profiles
from sparsecast.matrices.problem import Problem
from sparsecast.planning.placement import copies_s, ranked
from sparsecast.planning.placement import prices_of as prices_of
from sparsecast.results.placement import Placement, Placements, PlacementsByMatrix
from sparsecast.system.progress_events import tell

#: All devices and profiles at hand.
ALL = "all"

#: Numbers of nodes of a cluster to compare, with one rank per core: the size of the cluster is not known.
NODES = (1, 4, 16, 64)


class PlaceOptions(TypedDict, total=False):
    """What `where` and `compare` take of the options of a session, with the same meaning."""

    threads: Threads
    dtype: str | None
    library: str | None
    model: str | None
    drift_correction: bool
    anyway: bool


def where(
    A: Any,
    places: str | Sequence[str | Profile] = ALL,
    *,
    products: int = 1000,
    prices: Mapping[str, float] | None = None,
    **options: Unpack[PlaceOptions],
) -> Placements:
    """Find the device on which a number of products is done fastest, with conversion and copies.

    For this machine, and for other machines with a calibrated profile, the plan from forecasts is compared.
    For machines of published results, and if only a Structure is known, it is the best format of the whole
    matrix; for clusters it is the best number of ranks of NODES.

    Parameters
    ----------
    A : sparse matrix or Structure
    places : str or sequence of str and Profile
        Devices of this machine, such as ``"cuda"``, and names or paths of profiles, as a sequence or as text
        separated by commas. ``"all"``, the default, may be one of them: the processor, which is calibrated
        first if necessary, GPUs and every profile at hand.
    products : int
        Number of products that will be done, at least 1.
    prices : mapping of str to float, optional
        Price per hour of each machine; for a cluster per node and hour.
    **options
        As in `session`: `threads`, `dtype`, `library`, `model`, `drift_correction` and `anyway`. Threads and
        libraries apply to calibrated processors; a note reports where one of them is ignored.

    Raises
    ------
    UnknownNameError, DeviceError
        If a device or profile does not exist.
    InputError
        If an argument is invalid, two profiles have one name, or no device has a forecast; the class is that
        of the first refusal.
    """
    question = _Question.of(products, prices, options)
    A = A if isinstance(A, Structure) else Problem.of(A)
    placements, refused = _answer(A, *_places(A, places, question), question)
    if not placements:
        raise type(next(iter(refused.values())))("; ".join(map(str, refused.values())))
    return ranked(placements, refused)


def compare(
    matrices: Mapping[str, Problem | Structure],
    machines: str = ALL,
    *,
    products: int = 1000,
    prices: Mapping[str, float] | None = None,
    **options: Unpack[PlaceOptions],
) -> PlacementsByMatrix:
    """Compare machines as in `where` for several matrices, by name, in one process on each machine.

    `machines` are names or paths of profiles, separated by commas; by default all profiles at hand that have
    Records. Forecasts are for the machines as they were calibrated. The other parameters are as in `where`.
    Raises an InputError if a profile does not exist or cannot be used, if two have one name, or if there is
    no forecast.
    """
    if machines == ALL:
        at_hand, damaged = _at_hand()
        places = [_Place(profile) for profile in at_hand.values() if profile.records]
    else:
        names, damaged = map(str, named_places(machines)), {}
        places = _distinct([_Place(find_profile(name), asked=name) for name in names])
    if not places:
        raise InputError(
            "no machine to compare: expected profiles; calibrate this one, or import published results"
        )
    question = _Question.of(products, prices, {**options, "drift_correction": False})
    answers = {}
    for name, A in matrices.items():
        placements, refused = _answer(A, places, damaged, question)
        answers[name] = ranked([replace(placement, matrix=name) for placement in placements], refused)
    profiles = [place.profile for place in places]
    comparison = PlacementsByMatrix(answers, {one.name: origin(one) or contents(one) for one in profiles})
    whys = [why for machine in comparison.refused.values() for why in machine.values()]
    if not comparison.rows and whys:
        raise InputError(whys[0])
    return comparison


@dataclass(frozen=True)
class _Question:
    """The query to every place, as in `where`."""

    products: int
    prices: Mapping[str, float]
    setting: Setting
    trust: Trust
    #: One for each place, so that many matrices share its fitted models.
    sessions: dict[tuple[str, Setting], Session] = field(default_factory=dict)

    @classmethod
    def of(cls, products: int, prices: Mapping[str, float] | None, options: PlaceOptions) -> _Question:
        if products < 1:
            raise InputError(f"products {products}: expected at least 1; name how many you will do")
        refuse_unknown(PlaceOptions, options)
        setting, trust = setting_and_trust(options)
        _ = Trust(**trust).time_model  # an unknown name is refused before a calibration
        chosen_libraries(setting.get("library"), is_here=False)  # refuses unknown ones, whatever the places
        return cls(products, prices or {}, Setting(**setting), Trust(**trust))

    def left_out(self, why: str, *names: str) -> tuple[str, ...]:
        """Return the note on options that are ignored in a place."""
        asked = asdict(self.setting) | {"model": self.trust.model}
        given = [f"{name} {asked[name]}" for name in names if asked[name] is not None]
        return (f"Left out here: {', '.join(given)}; {why}.",) if given else ()


@dataclass(frozen=True)
class _Place:
    """A profile, the named device of this machine, and whether the query is about ranks."""

    profile: Profile
    device: str | None = None
    has_ranks: bool = False
    asked: str = ""  # its name in the question, if it had one: that of a shipped profile may be shorter

    @property
    def name(self) -> str:
        return (self.device or self.profile.name) + (" on ranks" if self.has_ranks else "")

    @property
    def names(self) -> list[str]:
        """Names that a price may have for it."""
        return [name for name in (self.name, self.profile.name, self.asked) if name]

    def alone(self, A: Problem | Structure, question: _Question) -> Placement:
        """Return the products of one process: planned, or in the best format if no plan can be made."""
        profile, machine = self.profile, asked_machine(self.profile, self.device)
        is_published, count = machine.published_as is not None, question.products
        setting, unused = replace(question.setting, device=self.device), tuple[str, ...]()
        if is_published or machine.gpu:
            unused = question.left_out("these are for calibrated processors", "threads", "library")
            setting = replace(setting, threads=None, library=None)
        session = Session(profile, setting, question.trust)
        session = question.sessions.setdefault((profile.name, setting), session)
        if isinstance(A, Problem) and not is_published:
            plan = session.plan(A, products=count, probe_s=0)
            vectors_s = copies_s(profile, A.matrix.shape, plan.baseline.candidate.dtype)
            return Placement(A.name, profile.name, plan, count, vectors_s, notes=(*plan.notes, *unused))
        prediction = session.predict(A)
        if not prediction:
            raise ProfileError(f"{profile.name}: {next(iter(prediction.refused.values()), 'no format')}")
        best = min(prediction, key=lambda forecast: (forecast.convert_s or 0.0) + count * forecast.time_s)
        copies, notes = None if machine.gpu else 0.0, (*prediction.notes, *unused)
        return Placement(getattr(A, "name", "counts"), profile.name, best, count, copies, notes=notes)

    def on_ranks(self, A: Problem | Structure, question: _Question) -> Placement:
        """Return the products on the fewest ranks of NODES beyond which more ranks do not pay."""
        profile = self.profile
        dtype = question.setting.dtype
        if not question.trust.anyway:
            refuse_disturbed(profile, Target.of(A, profile.machine, 1, dtype))
        has_several = any(point.nodes > 1 for point in profile.microbenchmarks)
        counts = [profile.machine.cores * nodes for nodes in NODES if has_several or nodes == 1]
        answer = cluster(A, counts, profile, dtype=dtype)
        ways = (choice.forecast for choice in answer.choices)
        best = next(way for way in ways if way.configuration.ranks == answer.enough_ranks)
        why = "ranks have one thread each, formats of ours and a model of their own"
        notes = (*answer.notes, *question.left_out(why, "threads", "library", "model"))
        return Placement(answer.name, answer.profile, best, question.products, None, notes=notes)


def _answer(
    A: Problem | Structure, places: Sequence[_Place], damaged: Mapping[str, InputError], question: _Question
) -> tuple[list[Placement], dict[str, InputError]]:
    """Return the placements of a matrix, and the errors of places without one."""
    names = dict.fromkeys(name for place in places for name in place.names)
    for name in question.prices.keys() - names.keys():
        remedy = remedy_for(name, names, "name one of them")
        raise InputError(f"price of '{name}': expected one of the places, {', '.join(names)}; {remedy}")
    placements, refused = [], dict[str, InputError]()
    for number, place in enumerate(places):
        tell("forecasting", number, len(places))  # a fit takes seconds
        try:
            placed = (place.on_ranks if place.has_ranks else place.alone)(A, question)
        except InputError as error:
            refused[place.name] = error
            continue
        price = next((question.prices[name] for name in place.names if name in question.prices), None)
        machine = place.profile.machine
        is_here = machine.published_as is None and is_local(machine)
        placements.append(replace(placed, price_per_hour=price, is_here=is_here))
    return placements, {**refused, **damaged}


def _places(
    A: Problem | Structure, places: str | Sequence[str | Profile], question: _Question
) -> tuple[list[_Place], dict[str, InputError]]:
    """Return the named places, each once, and the errors of profiles at hand that cannot be used.

    A profile with micro-benchmarks is also a place for ranks.
    """

    def named(place: str | Profile) -> _Place:
        if is_device(place):
            threads, dtype = threads_of(place, question.setting.threads), question.setting.dtype
            return _Place(own_profile(A, threads=threads, dtype=dtype, device=place), place)
        return _Place(find_profile(place), asked=place) if isinstance(place, str) else _Place(place)

    damaged: dict[str, InputError] = {}
    given = named_places(places)
    others = [place for place in given if place != ALL]
    is_all = len(others) < len(given)
    listed = _distinct([named(place) for place in ([PROCESSOR, *others] if is_all else others)])
    if is_all:
        for device in DEVICES.names():
            with suppress(DeviceError):
                listed.append(_Place(calibrated_profile(machine_of(device)), device))
        at_hand, damaged = _at_hand()
        listed += map(_Place, at_hand.values())
    found: dict[str, _Place] = {}
    for place in listed:
        found.setdefault(place.profile.name, place)
    several = []
    for place in found.values():
        if place.profile.records or not place.profile.microbenchmarks:
            several.append(place)
        if place.profile.microbenchmarks:
            several.append(replace(place, has_ranks=True))
    return several, damaged


def _at_hand() -> tuple[dict[str, Profile], dict[str, InputError]]:
    """Return the profiles at hand by name, and by file name the errors of those that cannot be used."""
    files, damaged = known_profiles(), dict[str, InputError]()
    profiles: dict[str, Profile] = {}
    for name, profile in machines_here()[1].items():
        if not isinstance(profile, Profile):
            damaged |= {name: profile} if name in files else {}
        elif name != profile.name and profile.name in {*files, *profiles}:
            damaged[name] = _of_one_name(profile.name, str(files[name]), profile.name)
        else:
            profiles[profile.name] = profile
    return profiles, damaged


def _distinct(places: Iterable[_Place]) -> list[_Place]:
    """Return places, each profile once; raise an InputError for two different profiles with one name."""
    found: dict[str, _Place] = {}
    for place in places:
        known = found.setdefault(place.profile.name, place)
        if place.profile != known.profile:
            raise _of_one_name(known.asked or known.name, place.asked or place.name, place.profile.name)
    return list(found.values())


def _of_one_name(place: str, other: str, name: str) -> InputError:
    return InputError(
        f"profiles '{place}' and '{other}' of one name, {name}: expected one of each machine; leave one out"
    )


def named_places(places: str | Sequence[str | Profile]) -> list[str | Profile]:
    """Return places, a text split at its commas; devices among them are checked to exist."""
    named = list(places)
    if isinstance(places, str):
        named = [place.strip() for place in places.split(",")]
    if "" in named or not named:
        given = places if isinstance(places, str) else ",".join(map(str, places))
        raise InputError(f"places '{given}': expected names with commas between, or {ALL}; correct it")
    for device in filter(is_device, named):
        machine_of(device)  # before another one is calibrated
    return named


def is_device(place: object) -> TypeGuard[str]:
    """Return whether a place is a device of this machine, such as ``"cuda:1"``."""
    return isinstance(place, str) and place.partition(":")[0] in DEVICES
