"""Forecasts and plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from time import perf_counter
from typing import Any

from sparsecast.api.matrices import structure as structure_of
from sparsecast.api.profiles import calibrated_profile, model_records, require_own
from sparsecast.api.session import Asked, Session, named_here, question, session_for
from sparsecast.api.session import rounding as rounding
from sparsecast.api.thread_numbers import for_each_number, in_one_plan, in_one_prediction, thread_numbers
from sparsecast.benchmark.trials import UNLIMITED, Spending, in_best_order, may_pay
from sparsecast.devices import AUTO, Threads, machine_of
from sparsecast.devices.target import Choice, Target, believed, whole_matrix
from sparsecast.errors import DisturbedError, InputError, ProfileError
from sparsecast.features.narrow_storage import GROUP_ROWS
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR, strip_rows
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import model_for as model_for
from sparsecast.models.power import PowerFile as PowerFile
from sparsecast.planning.drift import Drift
from sparsecast.planning.dynamic_programme import at_most, strip_statistics
from sparsecast.planning.plan import Goal, make_plan
from sparsecast.planning.plan import refuse_objective as refuse_objective
from sparsecast.planning.planners import PLANNERS, Planner, Tried
from sparsecast.results.columns import stored_as
from sparsecast.results.plan import Plan
from sparsecast.results.prediction import Prediction
from sparsecast.system.memory import free_bytes
from sparsecast.system.texts import size as size_text

#: Seconds that `predict --probe` measures for.
PROBE_S = 2.0


@for_each_number(in_one_prediction)
def predict(
    A: Any,
    profile: Profile | None = None,
    *,
    threads: Threads = None,
    dtype: str | None = None,
    device: str | None = None,
    vectors: int = 1,
    values: str | None = None,
    library: str | None = None,
    model: str | None = None,
    drift_correction: bool = True,
    probe_s: float | None = None,
    power_model: PowerFile | None = None,
    energy_model: str | None = None,
    anyway: bool = False,
) -> Prediction:
    """Forecast the product of a matrix in every format that suits it.

    A profile without Records of a type of values, or of a number of threads, answers from those that it has,
    with wider intervals and a sentence that says so (`sparsecast.models.transfer`), but for a probe.

    Parameters
    ----------
    A : sparse matrix or Structure
        Of its values only is read whether they mirror each other, and how many are 0.
    profile : Profile, optional
        Of the machine asked about; without one, that of this machine, which is calibrated for
        QUICK_BUDGET_S seconds first, after compiling, if it is not calibrated, with a line on standard error.
    threads : int or str, optional
        All of the machine's by default; none are named for a GPU. ``"auto"``: each number that the profile
        has Records of, in one ranking.
    dtype : str, optional
        One of DTYPES; the matrix' own by default (whole numbers count as float64), float64 for a Structure.
        A real matrix may be asked for as complex, though not on a GPU.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default the GPU of `profile` if it is one's, else the CPU.
        A forecast needs neither the GPU nor a library for it.
    vectors : int
        Columns of X in Y = A X, which count as one product; several on a processor alone. Several are
        forecast from one, times a factor for each format; a note tells where the profile has too few Records
        of several.
    values : str, optional
        ``"float32"``: values of double precision may be stored so, with rounding where float32 does not hold
        them (its `rounding` says how much is lost); sums stay double. The matrix is needed, and a processor.
    library : str, optional
        Other libraries that are candidates, too: ``"any"`` that is installed, or names such as
        ``"mkl,scipy"``. Forecasts rest on a calibration with `libraries`.
    model : str, optional
        Name of the model that forecasts; DEFAULT_MODEL without one.
    drift_correction : bool
        Whether, on the machine of the profile, reference products are timed again, for some tenths of a
        second, and the forecasts are scaled by what has changed beyond their noise. Without it they are for
        the machine as it was calibrated.
    probe_s : float, optional
        Seconds to measure for. CSR is measured here, whatever it takes, and the other forecasts are corrected
        by it; then those whose intervals reach below the fastest are built and measured, the most promising
        first. It tells how fast the machine is now, so no reference products are timed. The first
        probe with a profile learns how to correct, which takes some seconds once.
    power_model : PowerFile, optional
        What tells energy in place of the profile's Records.
    energy_model : str, optional
        Name of the model that learns energy from these; without one the default, where enough have joules.
    anyway : bool
        Whether to forecast, with a warning, from a calibration that is no basis for it.

    Raises
    ------
    InputError
        If the matrix, threads, dtype, device, values, library or model cannot be, or a complex matrix is
        asked for as real; if `probe_s` is not above 0, comes without `drift_correction`, or with a Structure
        or another machine's profile.
    ProfileError
        If `profile` has no Records of the device that suffice, or for a probe none of the question itself.
    DisturbedError
        If other programs disturbed their measurement too much, without `anyway`.
    """
    name = model_for("time", model)  # an unknown name is refused before anything is measured
    refuse_probe(probe_s, drift_correction, has_matrix=not isinstance(A, Structure))
    A = A if isinstance(A, Structure) else Problem.of(A)
    lost = rounding(A, values, dtype, device)
    profile, target = question(A, profile, Asked(threads, dtype, device, vectors, values, library))
    start = perf_counter()
    spending = None if probe_s is None else Spending(UNLIMITED, probe_s)
    session, outcome = session_for(A, profile, target, name, spending, anyway=anyway)
    trials = outcome.trials if outcome else None
    structure = session.structure(A)
    energy = session.energy(power_model, energy_model)
    trust = session.trust(drift_correction and trials is None)
    prediction = session.prediction(structure, trust, energy)
    took = perf_counter() - start - (trials.used_s if trials else 0.0)
    notes = *prediction.notes, *(each.sentence() for each in (trials, lost) if each)
    return replace(prediction, predict_s=took, notes=notes, trials=trials, rounding=lost)


def predict_table(
    matrices: Mapping[str, Structure],
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    model: str | None = None,
    drift_correction: bool = True,
    power_model: PowerFile | None = None,
    energy_model: str | None = None,
    anyway: bool = False,
) -> Iterator[tuple[str, Prediction]]:
    """Forecast matrices of which only Structures are known, at least one, in the order given, as `predict`.

    A model is fitted once for all matrices of which the same is known.
    """
    name = model_for("time", model)
    sessions: dict[Any, Session] = {}
    trust: dict[Target, tuple[Drift, tuple[str, ...]]] = {}
    for matrix, structure in matrices.items():
        start = perf_counter()
        profile, target = question(structure, profile, Asked(threads, dtype, device))
        key = target, frozenset(structure.groups)
        if key not in sessions:
            sessions[key] = Session.of(structure, profile, target, name, anyway=anyway)
        session = sessions[key]
        if session.source not in trust:
            trust[session.source] = session.trust(drift_correction)
        energy = session.energy(power_model, energy_model)
        prediction = session.prediction(structure, trust[session.source], energy)
        yield matrix, replace(prediction, predict_s=perf_counter() - start)


@for_each_number(in_one_plan)
def plan(
    A: Any,
    profile: Profile | None = None,
    *,
    iterations: int = 1000,
    threads: Threads = None,
    dtype: str | None = None,
    device: str | None = None,
    vectors: int = 1,
    values: str | None = None,
    library: str | None = None,
    model: str | None = None,
    drift_correction: bool = True,
    measure: bool = True,
    probe_s: float | None = None,
    as_printed: bool = False,
    objective: str = "time",
    power_model: PowerFile | None = None,
    energy_model: str | None = None,
    anyway: bool = False,
) -> Plan:
    """Find the best way of doing `iterations` products with a matrix, conversion paid.

    Parameters
    ----------
    A : sparse matrix
    profile, threads, dtype, device, vectors, values, library, model, drift_correction
        As in `predict`; `where` compares several devices. With `threads` ``"auto"`` it is the plan with the
        fewest threads that no other is forecast to beat by LEAST_GAIN; all are in its `thread_plans`.
    measure : bool
        Whether, with this machine's own profile, candidates are built and timed where so many products are
        expected to gain more by that than it costs, and within 5 % of their time. What is measured of 24,000
        products and more is kept, for scores and reports. Without it, as for another machine, for few
        products, or without `drift_correction`, the forecasts alone decide.
    probe_s : float, optional
        Seconds to measure for, whatever that gains: as in `predict`.
    iterations : int
        Products that will be done, at least 1.
    as_printed : bool
        Whether to plan as the paper of the `model` prints it, with its fits as printed, such as that of
        ``"guo"``.
    objective : str
        What is least of all products and the conversion: ``"time"``, ``"energy"``, or ``"edp"``, energy times
        time.
    power_model, energy_model, anyway
        As in `predict`.

    Raises
    ------
    InputError
        If `iterations`, or what `predict` reads, cannot be, or a plan as printed is for another objective
        than time, or for a model whose paper prints none.
    ProfileError, DisturbedError
        As in `predict`.
    """
    if iterations < 1:
        raise InputError(f"iterations {iterations}: expected at least 1; name the products you will do")
    name = model_for("time", model)
    refuse_probe(probe_s, drift_correction)
    refuse_objective(objective)
    if as_printed and objective != "time":
        raise InputError(f"objective '{objective}' for a plan as printed: expected time; leave it out")
    planner = printed_planner(name) if as_printed else None
    matrix = Problem.of(A)
    lost = rounding(matrix, values, dtype, device)
    profile, target = question(matrix, profile, Asked(threads, dtype, device, vectors, values, library))
    if target.is_published:
        raise ProfileError(
            f"a plan for the published results {profile.name}: expected a profile that calibrate wrote, with "
            f"kernels of ours and times of conversions; name another one, or ask predict"
        )
    is_for_time = objective == "time" and not as_printed
    spending = None if probe_s is None else Spending(UNLIMITED, probe_s)
    if spending is None and measure and drift_correction and is_for_time:
        spending = Spending(iterations)
    session, outcome = session_for(matrix, profile, target, name, spending, anyway=anyway)
    session = session.as_printed() if as_printed else session
    energy = session.energy(power_model, energy_model)
    if energy is None and objective != "time":
        raise without_joules(objective, profile)
    if outcome and is_for_time:
        way = outcome.best(iterations)
        planner = Tried(way.candidate, way.time_s, way.convert_s or 0.0)
    structure = session.structure(matrix)
    best = _best_plan(session, matrix, structure, Goal(iterations, objective, energy, planner))
    trials = outcome.trials if outcome else None
    drift, notes = session.trust(drift_correction and trials is None)
    if drift.scales:
        known = session.unused.structure(structure)
        for baseline in session.model.forecast(known, [best.baseline.candidate]):
            best = drift.plan(best, baseline, profile.machine)
    made = replace(
        best,
        notes=(*best.notes, *session.notes, *notes),
        trials=trials,
        rounding=lost,
        transferred_from=session.transferred_from,
    )
    if named_here(target.device) == profile.name:
        made = _within_memory(made)
    if matrix.order is None and may_pay(made, structure, profile.machine):
        how: dict[str, Any] = {"dtype": dtype, "device": device, "model": model, "values": values}
        how |= {"library": library, "iterations": iterations, "threads": target.threads, "anyway": anyway}
        made = in_best_order(matrix, made, partial(plan, profile=profile, **how))
    told = (each.sentence() for each in (made.trials, lost) if each)
    return replace(made, notes=(*made.notes, *told))


def _best_plan(session: Session, matrix: Problem, structure: Structure, goal: Goal) -> Plan:
    """Return the plan that `make_plan` finds with what a session knows.

    Where no trial has built it, all entries say that its formats can be built; a note tells where a sample
    misled.
    """
    machine, planner = session.profile.machine, goal.planner
    strip, coarsening = strip_rows(machine, session.target.threads), at_most
    if planner:
        coarsening = planner.coarsening
    else:  # columns of 16 bits count from the base of a group, which no block may cut
        strip = -(-strip // GROUP_ROWS) * GROUP_ROWS
    statistics = strip_statistics(matrix.matrix.indptr, structure, strip, coarsening)

    def planned(structure: Structure) -> Plan:
        of_matrix = replace(statistics, matrix=structure)
        return make_plan(of_matrix, session.model, session.target, machine, goal)

    best, notes = planned(structure), list[str]()
    if isinstance(planner, Tried):
        return best
    while groups := believed(structure, chosen := {block.candidate for block in best.blocks}):
        proven, sampled = matrix.proven(groups).groups, structure
        structure = sampled.having(*(proven[name] for name in groups))
        if structure.groups != sampled.groups:
            best = planned(structure)
        if given_up := chosen - {block.candidate for block in best.blocks}:
            names = ", ".join(sorted(map(stored_as, given_up)))
            notes.append(f"Planned again without {names}: a sample allowed it, and all entries do not.")
    return replace(best, notes=(*best.notes, *notes))


def _within_memory(made: Plan) -> Plan:
    """Return a plan of which a conversion fits in the free memory here: if not its own, that of plain CSR."""
    needed, free = made.building_bytes, free_bytes()
    if needed <= free:
        return made
    names = " + ".join(dict.fromkeys(stored_as(block.candidate) for block in made.blocks))
    sizes = f"{size_text(needed)} while it is built, of {size_text(free)} that are free"
    plain = made.csr_alone(made.baseline.time_s)
    return replace(plain, notes=(*made.notes, f"{names} would take {sizes}: CSR is planned instead."))


def without_joules(objective: str, profile: Profile) -> ProfileError:
    """Return the error of an objective that needs joules, of a profile that has none."""
    return ProfileError(
        f"objective '{objective}' on {profile.name}: expected records with joules, or a power model; "
        f"measure matrices where a meter is, or give --power-model FILE"
    )


def printed_planner(model: str | None) -> Planner:
    """Return the planner of the paper of a model, by default of ours; an InputError where it prints none."""
    name = model_for("time", model)
    if name not in (known := PLANNERS.names()):
        raise InputError(
            f"model '{name}' for a plan as printed: expected one whose paper prints a plan, "
            f"{', '.join(known)}; name it by --model"
        )
    return PLANNERS.get(name)()


def refuse_probe(probe_s: float | None, drift_correction: bool, *, has_matrix: bool = True) -> None:
    """Raise an InputError if no probe can be as it is asked for."""
    if probe_s is None:
        return
    if not 0 < probe_s < math.inf:
        raise InputError(f"a probe of {probe_s:g} s: expected seconds above 0; name how long to measure")
    if not drift_correction:
        raise InputError(
            "a probe of the machine as it was calibrated: expected one of --probe and "
            "--no-drift-correction; leave one out"
        )
    if not has_matrix:
        raise InputError(
            "a probe without the matrix: expected the matrix, whose products are measured; name its file, or "
            "leave --probe out"
        )


def choice(A: Any, device: str = PROCESSOR, **setting: Any) -> Choice:
    """Return the ways of doing the product that are open to a matrix here, and why others are not.

    `setting` has `threads`, `dtype`, `vectors`, `values` and `library`, as in `predict`.
    """
    machine, A = machine_of(device), A if isinstance(A, Structure) else Problem.of(A)
    asked = Asked(device=device, **setting)
    rounding(A, asked.values, asked.dtype, device)  # refuses
    target = asked.target(A, machine)
    counts = [target.threads]
    if asked.threads == AUTO:
        counts = thread_numbers(calibrated_profile(machine), target)
    choices = [whole_matrix(structure_of(A), replace(target, threads=count), machine) for count in counts]
    candidates = dict.fromkeys(candidate for choice in choices for candidate in choice.candidates)
    return Choice(tuple(candidates), choices[0].refused)


def forecasts_at_hand(
    A: Any, wanted: str | None = None, device: str = PROCESSOR, **setting: Any
) -> Prediction | None:
    """Return the forecasts of this machine without calibrating for them; None if it has no basis for them.

    `setting` is that of `choice`. An InputError refuses a `wanted` profile of another machine: its forecasts
    have no measurement here.
    """
    machine, asked = machine_of(device), Asked(device=device, **setting)
    profile = find_profile(wanted) if wanted else calibrated_profile(machine)
    require_own(profile.name, machine)
    if not model_records(profile, asked.target(A, machine)):
        return None
    try:
        prediction = predict(A, profile, **asdict(asked))
    except DisturbedError:
        return None
    return None if prediction.transferred_from else prediction
