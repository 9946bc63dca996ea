"""The best plan by a fitted model, and answers for several numbers of threads put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.profiles import model_records
from sparsecast.api.settings import Trust
from sparsecast.devices.target import Target, believed
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.narrow_storage import GROUP_ROWS
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import strip_rows
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import model_for as model_for
from sparsecast.models.power import PowerFile as PowerFile
from sparsecast.planning.dynamic_programme import at_most, strip_statistics
from sparsecast.planning.plan import LEAST_GAIN, Goal, make_plan
from sparsecast.planning.plan import refuse_objective as refuse_objective
from sparsecast.planning.planners import PLANNERS, Planner
from sparsecast.results.columns import stored_as
from sparsecast.results.plan import Plan, amount
from sparsecast.results.prediction import Prediction
from sparsecast.system.memory import free_bytes
from sparsecast.system.texts import size as size_text

#: Seconds that `predict --probe` measures for.
PROBE_S = 2.0


def best_plan(basis: ForecastBasis, matrix: Problem, structure: Structure, goal: Goal) -> Plan:
    """Return the plan that `make_plan` finds by a fitted model.

    Where no trial has built it, all entries say that its formats can be built; a note tells where a sample
    misled.
    """
    machine, planner = basis.profile.machine, goal.planner
    strip, coarsening = strip_rows(machine, basis.target.threads), at_most
    if planner:
        coarsening = planner.coarsening
    else:  # columns of 16 bits count from the base of a group, which no block may cut
        strip = -(-strip // GROUP_ROWS) * GROUP_ROWS
    statistics = strip_statistics(matrix.matrix.indptr, structure, strip, coarsening)

    def planned(structure: Structure) -> Plan:
        of_matrix = replace(statistics, matrix=structure)
        return make_plan(of_matrix, basis.model, basis.target, machine, goal)

    best, notes = planned(structure), list[str]()
    if goal.tried:
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


def within_memory(plan: Plan) -> Plan:
    """Return a plan of which a conversion fits in the free memory here: if not its own, that of plain CSR."""
    needed, free = plan.building_bytes, free_bytes()
    if needed <= free:
        return plan
    names = " + ".join(dict.fromkeys(stored_as(block.candidate) for block in plan.blocks))
    sizes = f"{size_text(needed)} while it is built, of {size_text(free)} that are free"
    plain = plan.csr_alone(plan.baseline.time_s)
    return replace(plain, notes=(*plan.notes, f"{names} would take {sizes}: CSR is planned instead."))


def thread_numbers(profile: Profile, target: Target) -> list[int]:
    """Return the numbers of threads that a profile has Records of, in ascending order.

    Without any of the target's it is its own number, whose forecasts say what is missing.
    """
    if target.is_published:
        return [target.threads]
    counts = sorted({record.candidate.threads for record in profile.select(device=target.device)})
    known = [count for count in counts if model_records(profile, replace(target, threads=count))]
    return known or [target.threads]


def merge_plans(plans: Sequence[Plan]) -> Plan:
    """Return the plan with the fewest threads that no other beats by LEAST_GAIN in what it makes least."""
    costs = []
    for plan in plans:
        total_s = plan.convert_s + plan.products * plan.time_s
        joules = None if plan.energy_j is None else plan.energy_j / plan.time_s * total_s
        costs.append(amount(plan.objective, total_s, joules))
    most = min(costs) * (1 + LEAST_GAIN)
    best = next(plan for plan, cost in zip(plans, costs, strict=True) if cost <= most)
    return replace(best, thread_plans=tuple(plans))


def in_one_prediction(predictions: Sequence[Prediction]) -> Prediction:
    """Return all forecasts in one ranking; what was measured for them is that of the fastest."""
    fastest = min(predictions, key=lambda prediction: prediction[0].time_s if prediction else float("inf"))
    notes = dict.fromkeys(note for prediction in predictions for note in prediction.notes)
    refused = {name: why for prediction in predictions for name, why in prediction.refused.items()}
    # Where one thread does the product whatever is asked for, the first answer stands for all.
    forecasts = {each.candidate: each for prediction in predictions[::-1] for each in prediction}.values()
    return replace(
        fastest,
        forecasts=tuple(sorted(forecasts, key=lambda forecast: forecast.time_s)),
        refused=refused,
        predict_s=sum(prediction.predict_s for prediction in predictions),
        notes=tuple(notes),
    )


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


def check_probe(probe_s: float | None, trust: Trust, *, has_matrix: bool = True) -> None:
    """Raise an InputError for an invalid probe; 0 s measure nothing."""
    if probe_s is None:
        return
    if not 0 <= probe_s < math.inf:
        raise InputError(f"a probe of {probe_s:g} s: expected seconds from 0 on; name how long to measure")
    if probe_s and not trust.drift_correction:
        raise InputError(
            "a probe of the machine as it was calibrated: expected one of --probe and "
            "--no-drift-correction; leave one out"
        )
    if probe_s and trust.as_printed:
        raise InputError(
            f"a probe of {probe_s:g} s with fits as printed: expected one of both, as it corrects our fits; "
            f"leave one out"
        )
    if probe_s and not has_matrix:
        raise InputError(
            "a probe without the matrix: expected the matrix, whose products are measured; name its file, or "
            "leave --probe out"
        )
