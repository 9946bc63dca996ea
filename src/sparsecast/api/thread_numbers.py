"""Questions with threads "auto": asked for each number of threads of which a profile has Records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from sparsecast.api.profiles import model_records
from sparsecast.api.session import Asked, question
from sparsecast.devices import AUTO
from sparsecast.devices.target import Target
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.planning.plan import LEAST_GAIN
from sparsecast.results.plan import Plan, amount
from sparsecast.results.prediction import Prediction

_Ask = TypeVar("_Ask", bound=Callable[..., Any])


def thread_numbers(profile: Profile, target: Target) -> list[int]:
    """Return the numbers of threads that a profile has Records of, in ascending order.

    Without any of the target's it is its own number, whose forecasts say what is missing.
    """
    if target.is_published:
        return [target.threads]
    counts = sorted({record.candidate.threads for record in profile.select(device=target.device)})
    known = [count for count in counts if model_records(profile, replace(target, threads=count))]
    return known or [target.threads]


def for_each_number(in_one: Callable[[Sequence[Any]], Any]) -> Callable[[_Ask], _Ask]:
    """Return a decorator of a question, which asks for each number of threads and puts the answers `in_one`.

    So it does with threads "auto" alone.
    """

    def decorate(ask: _Ask) -> _Ask:
        @functools.wraps(ask)
        def asked(A: Any, profile: Profile | None = None, **options: Any) -> Any:
            if options.get("threads") != AUTO:
                return ask(A, profile, **options)
            A = A if isinstance(A, Structure) else Problem.of(A)
            setting = Asked(None, options.get("dtype"), options.get("device"))
            profile, target = question(A, profile, setting)
            counts = thread_numbers(profile, target)
            return in_one([ask(A, profile, **options | {"threads": count}) for count in counts])

        return cast("_Ask", asked)

    return decorate


def in_one_plan(plans: Sequence[Plan]) -> Plan:
    """Return the plan with the fewest threads that no other beats by LEAST_GAIN in what it makes least."""
    least = min(map(_cost, plans))
    best = next(plan for plan in plans if _cost(plan) <= least * (1 + LEAST_GAIN))
    return replace(best, thread_plans=tuple(plans))


def _cost(plan: Plan) -> float:
    """Return the seconds of all products and the conversion, or the joules, or both multiplied."""
    total_s = plan.convert_s + plan.iterations * plan.time_s
    joules = None if plan.energy_j is None else plan.energy_j / plan.time_s * total_s
    return amount(plan.objective, total_s, joules)


def in_one_prediction(predictions: Sequence[Prediction]) -> Prediction:
    """Return all forecasts in one ranking; what was measured for them is that of the fastest."""
    fastest = min(predictions, key=lambda prediction: prediction[0].time_s if prediction else float("inf"))
    notes = dict.fromkeys(note for prediction in predictions for note in prediction.notes)
    refused: Mapping[str, str] = {
        name: why for prediction in predictions for name, why in prediction.refused.items()
    }
    # Where one thread does the product whatever is asked for, the first answer stands for all.
    forecasts = {each.candidate: each for prediction in predictions[::-1] for each in prediction}.values()
    return replace(
        fastest,
        forecasts=tuple(sorted(forecasts, key=lambda forecast: forecast.time_s)),
        refused=dict(refused),
        predict_s=sum(prediction.predict_s for prediction in predictions),
        notes=tuple(notes),
    )
