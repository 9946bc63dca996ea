"""Next steps: forecasts of what would be faster, and is left to the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.profiles import calibrated_profile, model_records
from sparsecast.api.sessions import Session
from sparsecast.devices import DEVICES, machine_of, threads_of
from sparsecast.errors import DisturbedError
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem
from sparsecast.models.probing import is_plain_csr
from sparsecast.planning.plan import LEAST_GAIN, break_even
from sparsecast.records import PANEL_VECTORS
from sparsecast.results.next_steps import NextStep
from sparsecast.results.plan import Plan

#: Next steps that are named, and how many times as fast each must be forecast to be.
MOST_STEPS, WORTH_NAMING = 3, 1 + 2 * LEAST_GAIN


def forecast_next_steps(
    A: Any, session: Session | None = None, plan: Plan | None = None
) -> tuple[NextStep, ...]:
    """Return what would make products faster and is left to the user, what gains most first.

    There are at most MOST_STEPS, each forecast to be WORTH_NAMING times as fast at least. They go on from a
    plan that the session made, for one vector, or begin at plain CSR, in which other programs hold the
    matrix. Without a session they are of this machine on all threads; there are none if it is not calibrated.
    """
    problem = Problem.of(A)
    if session is None:
        machine = machine_of(PROCESSOR)
        profile = calibrated_profile(machine)
        session = Session(profile)
        if not model_records(profile, session.setting.target(problem, machine)):
            return ()
    if plan is not None:
        threads = threads_of(plan.device, plan.threads)
        session = session.changed(threads=threads, library=None, power_model=None, anyway=True)
    _, target = session.question(problem)
    if target.is_published or session.setting.vectors != 1:
        return ()
    try:
        basis = session.basis(problem)
    except DisturbedError:
        return ()
    drift = session.drift(problem), ()
    steps = _steps(basis, basis.structure(problem), drift, plan)
    named = [step for step in steps if step.gain >= WORTH_NAMING]
    return tuple(sorted(named, key=lambda step: -step.gain)[:MOST_STEPS])


def _steps(basis: ForecastBasis, structure: Structure, drift: Any, plan: Plan | None) -> Iterator[NextStep]:
    """Yield every step that a matrix and a device leave open."""
    here = basis.prediction(structure, drift, None)
    csr = next((forecast for forecast in here if is_plain_csr(forecast.candidate)), None)
    if not structure.nnz or csr is None:
        return
    best = now = here[0]
    if plan is None:
        yield NextStep("format", best, csr)
    else:
        planned = plan.blocks[0].candidate if len(plan.blocks) == 1 else best.candidate
        if not (found := [f for f in here if f.candidate == planned]):  # of a library
            return
        now = found[0]
        products = break_even((best.convert_s or 0) - (csr.convert_s or 0), csr.time_s - best.time_s)
        if products is not None and products > plan.products:
            yield NextStep("products", best, now, products)
    changes: dict[str, dict[str, Any]] = {}
    target = basis.target
    if DEVICES.get(target.device).shares_host:
        changes["vectors"] = {"vectors": PANEL_VECTORS}
        if target.dtype in ("float64", "complex128") and target.values is None:
            changes["values"] = {"values": "float32"}
    if target.index_bits == 64 and max(structure.nnz, structure.rows, structure.cols) < 2**31:
        changes["indices"] = {"index_bits": 32}
    for kind, change in changes.items():
        changed = replace(basis, target=replace(target, **change)).prediction(structure, drift, None)
        # Where another format does not pay, none is credited with what the step gains.
        formats = {f.candidate.format for f in changed} if now is best else {now.candidate.format}
        fastest = next((f for f in changed if f.candidate.format in formats), None)
        if fastest is not None and fastest.candidate not in (best.candidate, now.candidate):
            yield NextStep(kind, fastest, now)
