"""Applications, such as PageRank: run them, or forecast them loop by loop before they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypedDict, TypeVar

import numpy as np

from sparsecast.api.executing import in_csr, load, operator_of
from sparsecast.api.profiles import model_records
from sparsecast.api.sessions import Session
from sparsecast.devices import AUTO, DEVICES, machine_of, number_of, parse_device
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import Meter, ProcessorMeter, used_joules
from sparsecast.measuring.timing import measure as measure_calls
from sparsecast.models.product_files import ProductForecast, product_forecast
from sparsecast.models.training import TrainingSet
from sparsecast.operators.applications import APPLICATIONS
from sparsecast.operators.applications import cg as conjugate_gradients
from sparsecast.operators.applications import pagerank as power_method
from sparsecast.operators.applications.application import (
    PRODUCT,
    Application,
    Iterations,
    Laps,
    OnIteration,
    no_iteration,
)
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE
from sparsecast.operators.block_operator import Operator
from sparsecast.planning.application_cost import Usual, costs_of, usual_conversion, usual_over_full
from sparsecast.results.application import ApplicationCost, ApplicationRun
from sparsecast.results.plan import Plan
from sparsecast.results.prediction import Prediction

Ran = TypeVar("Ran", power_method.PageRank, conjugate_gradients.Solution)

#: Time to make a plan: products that take less in total in plain CSR stay in it. 0.4 to 0.9 s were measured.
PLANNING_S = 1.0

#: Time limit of the iterations that forecast the number of all: no longer than the plan after them.
TRIED_S = 1.0

#: Number of measured runs of an application, as long as their total stays below this number of seconds.
RUNS, REPEATED_S = 10, 1.0


class PageRankOptions(TypedDict, total=False):
    """Options of `Session.pagerank` beside a graph.

    `damping`, `epsilon`, `most` and `on_iteration` are as in
    `sparsecast.operators.applications.pagerank.pagerank`. `personalization` and `dangling` are arrays of
    shape (nodes,), with the probability of each node when a surfer follows no link: at any time, and from a
    dangling node. Both are divided by their sums. By default all nodes have the same probability, and
    `dangling` is `personalization`. `start` has the initial ranks, divided by their sum; by default all are
    equal.
    """

    damping: float
    epsilon: float
    most: int
    on_iteration: OnIteration
    personalization: Any
    dangling: Any
    start: Any


class CgOptions(TypedDict, total=False):
    """Options of `Session.cg` beside a system.

    `preconditioner` is ``"jacobi"``, the diagonal, or None; `tolerance`, `most` and `on_iteration` are as in
    `sparsecast.operators.applications.cg.conjugate_gradients`.
    """

    preconditioner: str | None
    tolerance: float
    most: int | None
    on_iteration: OnIteration


def ranked(
    session: Session,
    A: Any,
    plan: Plan | None,
    *,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    most: int = power_method.MOST_ITERATIONS,
    on_iteration: OnIteration = no_iteration,
    personalization: Any = None,
    dangling: Any = None,
    start: Any = None,
) -> power_method.PageRank:
    """Return the PageRank of a graph: see `Session.pagerank`."""
    _refuse_unused(session, "PageRank")
    power_method.refuse_settings(damping, epsilon, most)
    ranking = power_method.PageRankOfGraph(Problem.of(A).matrix, damping, epsilon)
    run = partial(ranking.ranked, on_iteration=on_iteration)
    if personalization is not None or dangling is not None:
        anywhere = _shares(
            ranking, np.ones(ranking.graph.nodes) if personalization is None else personalization
        )
        from_dangling = anywhere if dangling is None else _shares(ranking, dangling)
        run = partial(run, jumps=(anywhere, from_dangling))
    if start is not None:
        begun = power_method.PageRank(_shares(ranking, start), 0, (), "most iterations")
        run = partial(run, start=begun)
    if plan is not None:
        return run(operator_of(Problem.of(ranking.matrix), plan), most)
    op = in_csr(ranking.matrix, number_of(session.setting.threads), all_alike=ranking.is_alike)
    return _planned_on_the_way(ranking, op, session, most, run)


def _shares(ranking: power_method.PageRankOfGraph, weights: Any) -> Any:
    """Return weights of the nodes of a graph, divided by their sum."""
    weights, nodes = np.asarray(weights), ranking.graph.nodes
    total = weights.sum() if weights.dtype.kind in "biuf" else np.nan
    if weights.shape != (nodes,) or not 0 < total < np.inf or weights.min() < 0:
        raise InputError(
            f"weights of nodes of type {weights.dtype} and shape {weights.shape}, with the sum {total:g}: "
            f"expected numbers from 0 on of shape ({nodes},), not all 0; correct them"
        )
    return np.divide(weights, total, dtype=ranking.matrix.dtype)


def solved(
    session: Session,
    A: Any,
    b: Any,
    plan: Plan | None,
    *,
    preconditioner: str | None = None,
    tolerance: float = TOLERANCE,
    most: int | None = None,
    on_iteration: OnIteration = no_iteration,
) -> conjugate_gradients.Solution:
    """Solve A x = b: see `Session.cg`."""
    _refuse_unused(session, "conjugate gradients")
    problem = Problem.of(A)
    conjugate_gradients.refuse_settings(tolerance, 1 if most is None else most)
    solver = conjugate_gradients.ConjugateGradients(problem.matrix, tolerance, preconditioner)
    b, rows = np.asarray(b), problem.matrix.shape[0]
    if b.shape != (rows,) or b.dtype.kind not in "biuf":
        raise InputError(
            f"b is {b.dtype} of shape {b.shape}: expected real numbers of shape ({rows},), one for each row; "
            f"correct b"
        )
    run = partial(solver.solved, b=b, on_iteration=on_iteration)
    most = solver.most_iterations if most is None else most
    if plan is not None:
        return run(operator_of(problem, plan), most=most)
    op = in_csr(solver.matrix, number_of(session.setting.threads))
    return _planned_on_the_way(solver, op, session, most, run)


def _refuse_unused(session: Session, what: str) -> None:
    """Raise an InputError for options that a run of an application here does not have."""
    session.require_here()
    session.refuse_given(what, "dtype", "vectors", "values", "as_printed")
    device = session.setting.device
    if device is not None and not DEVICES.get(parse_device(device)[0]).shares_host:
        raise InputError(f"{what} on {device}: expected a device that computes on the host; leave it out")


def _planned_on_the_way(
    application: Application, op: Operator, session: Session, most: int, run: Callable[..., Ran]
) -> Ran:
    """Run an application: first some iterations with an operator, then the expected rest by a plan.

    There is no plan if the remaining products take less time than making one.
    """
    laps = Laps()
    begun = run(op, most=min(application.trials, most), lap=laps)
    if begun.stop != "most iterations" or begun.iterations == most:
        return begun
    left = min(application.told(begun).expected, most) - begun.iterations
    if left * laps.time_s[PRODUCT] / laps.runs[PRODUCT] > PLANNING_S:
        problem = Problem.of(application.matrix)
        op = operator_of(problem, session.changed(anyway=True).plan(problem, products=left))
    return run(op, most=most, start=begun)


@dataclass(frozen=True, slots=True, eq=False)
class ApplicationQuestion:
    """An application of a matrix, and the problem of its products."""

    application: Application
    problem: Problem


def application_question(name: str, A: Any, **settings: Any) -> ApplicationQuestion:
    """Return an application of a matrix, checked.

    `name` is one of APPLICATIONS, and `settings` are those of the application. An unknown name, an unsuitable
    matrix and an unknown setting are refused.
    """
    kind, problem = APPLICATIONS.get(name), Problem.of(A)
    application = kind.with_settings(problem.matrix, settings)
    if application.matrix is not problem.matrix:
        problem = Problem.of(application.matrix, f"{name} of {problem.name}")
    return ApplicationQuestion(application, problem)


def application_cost(
    session: Session,
    question: ApplicationQuestion,
    *,
    iterations: int | None = None,
    networks: Sequence[Path] = (),
    measures: bool = True,
) -> ApplicationCost:
    """Forecast a whole run of an application, with the best format for its number of products.

    Without `measures`, nothing is timed, and no iterations are done.

    `iterations` is the number of iterations, if it is known. Otherwise some iterations are done here to
    forecast it, also for another machine, as the number does not depend on the machine. With this machine's
    profile and several threads, their loops over vectors are timed.

    `networks` are files that forecast the product in place of the model: its time, its energy, or one file
    for each. The product is then done in CSR on one thread, for which they were trained, and nothing is
    timed.

    Errors are those of `Session.plan`, `Session.predict` and `product_forecast`, and a ProfileError for a
    profile without Bandwidths. Those of this machine are measured first, unless `measures` is false.
    """
    if session.setting.threads == AUTO:
        raise InputError(f"threads {AUTO} of a whole run: expected one number; name it, or leave it out")
    threads = number_of(session.setting.threads)
    if networks:
        if threads not in (None, 1):
            what = f"threads {threads} with a network"
            raise InputError(f"{what}: expected 1, which it forecasts; leave them out")
        threads = 1
    application, problem = question.application, question.problem
    session.refuse_given("the cost of a run", "dtype", "vectors", "values", "as_printed")
    session = session.changed(threads=threads)
    profile, _ = session.question(problem)
    is_here = profile.name == machine_of(PROCESSOR).name
    if measures and is_here and not profile.bandwidths:
        profile = profile.with_bandwidths(DEVICES.get(PROCESSOR).measure_bandwidths(profile.machine, 1))
        session = Session(profile, session.setting, session.trust)
    times, loops_s = measures and not networks, dict[str, float]()
    if iterations is not None:
        expected = Iterations.known(iterations)
    elif not measures:
        expected = application.untried()
    else:
        # Several threads leave parts of the vectors in the cache of another core, which bandwidths do not
        # include: loops over vectors are timed.
        is_timed = times and is_here and threads != 1
        expected, loops_s = _tried(application, threads, is_here=is_here, is_timed=is_timed)
    plan = session.plan(problem, products=expected.expected, probe_s=None if times else 0)
    prediction = session.changed(drift_correction=False).predict(problem)
    forecasts = [product_forecast(problem, profile, path) for path in networks]
    if forecasts:
        time_s = next((f.time_s for f in forecasts if f.time_s is not None), plan.baseline.time_s)
        plan = plan.csr_alone(time_s)
    csr = plan.baseline.candidate
    stored = {(block.candidate.format, block.candidate.parameters) for block in plan.blocks}
    product_bytes = max(f.bytes for f in prediction if (f.candidate.format, f.candidate.parameters) in stored)
    target = Target(csr.device, csr.dtype, csr.index_bits, csr.threads)
    records = model_records(profile, target)
    loops = costs_of(application, plan, profile, product_bytes, usual_over_full(records), loops_s)
    is_forecast = plan.convert_s > 0 and plan.trials is None
    slower = usual_conversion(TrainingSet.of(profile, records), plan) if is_forecast else Usual()
    notes = (expected.why, *plan.notes, *(forecast.note for forecast in forecasts))
    if not DEVICES.get(csr.device).shares_host:
        notes = (
            *notes,
            "Vectors are taken to stay on the device: the built-in solvers hold them on the host, and copy x "
            "and y for each product.",
        )
    power_w = _power_w(plan, prediction, forecasts)
    low_s, convert_s, high_s = (f * plan.convert_s for f in (slower.low, slower.expected, slower.high))
    costs = prediction.profile, expected, plan, loops, power_w, notes, convert_s
    return ApplicationCost(application.name, *costs, (low_s, high_s))


def _tried(
    application: Application, threads: int | None, *, is_here: bool, is_timed: bool
) -> tuple[Iterations, dict[str, float]]:
    """Do some iterations here; return the number that they tell, and the mean seconds of timed loops."""
    start, laps = perf_counter(), Laps()
    op = in_csr(application.matrix, threads) if is_timed else None
    expected = application.iterations(op, laps, TRIED_S)
    loops_s = {name: total_s / laps.runs[name] for name, total_s in laps.time_s.items()} if is_timed else {}
    if not expected.tried:
        return expected, loops_s
    where = "The iterations were tried on this machine; their number is the same on any."
    why = expected.why if is_here else f"{expected.why} {where}"
    return replace(expected, why=why, tried_s=perf_counter() - start), loops_s


def _power_w(plan: Plan, prediction: Prediction, networks: Sequence[ProductForecast]) -> float | None:
    """Return the power of the product, by networks before the forecast of its Candidate; None without joules.

    The loops over vectors wait for memory as the product does: the same power.
    """
    for network in networks:
        if network.energy_j is not None:
            return network.energy_j / plan.time_s
    for forecast in prediction:
        if forecast.energy_j is not None and forecast.candidate == plan.blocks[0].candidate:
            return forecast.energy_j / forecast.time_s
    return None


def run_application(
    question: ApplicationQuestion,
    plan: Plan,
    *,
    most: int | None = None,
    on_iteration: OnIteration = no_iteration,
    meter: Meter | None = None,
) -> ApplicationRun:
    """Build a plan, run the application, and time its loops.

    A conversion and two iterations are done first, for work that a process does only once. A short run is
    repeated up to RUNS times within REPEATED_S seconds, and the shortest one counts, since disturbances only
    add time. Energy is read if there is a meter and the runs are long enough; it is the mean of the runs.

    A run ends after `most` iterations, by default the limit of the application. `on_iteration` is called in
    the first run. `meter` counts the joules, by default that of the device.
    """
    problem, application = question.problem, question.application
    load(problem, plan)
    operator_of(problem, plan)  # starts threads and loads what converts
    start = perf_counter()
    op = operator_of(problem, plan)
    convert_s = plan.convert_s if plan.trials else perf_counter() - start  # trials have built and timed it
    most = application.most_iterations if most is None else most
    application.run(op, 2, no_iteration, Laps())
    meter = meter or DEVICES.get(plan.device).meter()
    # A product that follows another product, as in a Record.
    x, out = op.domain.host_zeros(), op.range.host_zeros()
    cores = DEVICES.get(plan.device).core_speed(plan.threads)
    product_s = measure_calls({PRODUCT: lambda: op.matvec(x, out=out)}, cores=cores)[PRODUCT].time_s
    before = meter.joules() if meter else None
    runs: list[ApplicationRun] = []
    products = 0
    while not runs or (len(runs) < RUNS and sum(run.time_s for run in runs) < REPEATED_S):
        laps = Laps()
        outcome = application.run(op, most, no_iteration if runs else on_iteration, laps)
        loops = {name: seconds / laps.runs[name] for name, seconds in laps.time_s.items()}
        total_s, products = sum(laps.time_s.values()), products + laps.runs[PRODUCT]
        measured = outcome.iterations, outcome.stop, total_s, loops, outcome.residuals[-1]
        runs.append(ApplicationRun(*measured, product_s, convert_s))
    shortest = min(runs, key=lambda run: run.time_s)
    if meter is None or sum(run.time_s for run in runs) < meter.run_s:
        return shortest  # too short for the meter to see
    if isinstance(meter, ProcessorMeter):
        meter.work(products * application.matrix.nnz)
    joules = used_joules(before, meter.joules())
    return replace(shortest, energy_j=None if joules is None else joules / len(runs))
