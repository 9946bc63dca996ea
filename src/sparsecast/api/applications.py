"""Applications, such as PageRank: run, or forecast loop by loop before they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsecast.api.calibrating import own_profile
from sparsecast.api.executing import compile
from sparsecast.api.forecasting import plan as plan_of
from sparsecast.api.forecasting import predict
from sparsecast.api.profiles import model_records
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import Meter, ProcessorMeter, used_joules
from sparsecast.models.product_files import product_forecast
from sparsecast.operators.applications import APPLICATIONS
from sparsecast.operators.applications import cg as conjugate_gradients
from sparsecast.operators.applications import pagerank as power_method
from sparsecast.operators.applications.application import (
    PRODUCT,
    Application,
    Iterations,
    Laps,
    no_iteration,
)
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE
from sparsecast.planning.application_cost import RunConditions, WorkingSet, costs_of, usual_over_full
from sparsecast.records import VALUE_BYTES
from sparsecast.results.application import ApplicationCost, ApplicationRun
from sparsecast.results.plan import Plan

#: Runs of an application that are measured, while they take no longer together than so many seconds.
RUNS, REPEATED_S = 10, 1.0


def pagerank(
    A: Any,
    *,
    plan: Plan | None = None,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    most: int = power_method.MOST_ITERATIONS,
    threads: int | None = None,
    on_iteration: Callable[[int, float], object] = no_iteration,
) -> power_method.PageRank:
    """Return the PageRank of the nodes of a graph, by products in the format that suits so many.

    Parameters
    ----------
    A : sparse matrix of shape (nodes, nodes)
        With an edge i -> j of weight a_ij for each entry; not negative.
    plan : Plan, optional
        For the transposed graph, as `application_cost` has it; made here without one.
    damping, epsilon, most, on_iteration
        As in `sparsecast.operators.applications.pagerank.pagerank`.
    threads : int, optional
        Of the products; all of the machine's by default.

    Raises
    ------
    InputError
        If A is no graph with weights from 0 on, or a setting cannot be.
    """
    power_method.refuse_settings(damping, epsilon, most)
    ranking = power_method.PageRankOfGraph(Problem.of(A).matrix, damping, epsilon)
    problem = Problem.of(ranking.matrix)
    expected = power_method.most_iterations(damping, epsilon)
    plan = plan or plan_of(problem, iterations=expected, threads=threads)
    return ranking.ranked(compile(problem, plan), most, on_iteration)


def cg(
    A: Any,
    b: Any,
    *,
    plan: Plan | None = None,
    preconditioner: str | None = None,
    tolerance: float = TOLERANCE,
    most: int | None = None,
    threads: int | None = None,
    on_iteration: Callable[[int, float], object] = no_iteration,
) -> conjugate_gradients.Solution:
    """Solve A x = b by conjugate gradients, with products in the format that suits as many as are expected.

    Parameters
    ----------
    A : sparse matrix of shape (rows, rows)
        Real, symmetric and positive definite.
    b : float array of shape (rows,)
    plan : Plan, optional
        Made here without one.
    preconditioner : str, optional
        ``"jacobi"``: the diagonal.
    tolerance, most, on_iteration
        As in `sparsecast.operators.applications.cg.conjugate_gradients`.
    threads : int, optional
        Of the products; all of the machine's by default.

    Raises
    ------
    InputError
        If A is not square, real and symmetric, or b has another shape, or a setting cannot be.
    """
    problem = Problem.of(A)
    conjugate_gradients.refuse_settings(tolerance, most or 1)
    solver = conjugate_gradients.ConjugateGradients(problem.matrix, tolerance, preconditioner)
    b, rows = np.asarray(b), problem.matrix.shape[0]
    if b.shape != (rows,) or b.dtype.kind not in "biuf":
        raise InputError(
            f"b is {b.dtype} of shape {b.shape}: expected real numbers of shape ({rows},), one for each row; "
            f"correct b"
        )
    plan = plan or plan_of(problem, iterations=solver.iterations().expected, threads=threads)
    return solver.solved(compile(problem, plan), b, most, on_iteration)


@dataclass(frozen=True, slots=True, eq=False)
class ApplicationQuestion:
    """An application of a matrix, and the problem of its products."""

    application: Application
    problem: Problem


def application_question(name: str, A: Any, **settings: Any) -> ApplicationQuestion:
    """Return an application of a matrix, checked.

    Parameters
    ----------
    name : str
        One of APPLICATIONS.
    A : sparse matrix or Problem
    settings
        Those of the application, by name.

    Raises
    ------
    UnknownNameError
        If there is no such application.
    InputError
        If it is not for this matrix, or does not have such a setting.
    """
    kind, problem = APPLICATIONS.get(name), Problem.of(A)
    application = kind.with_settings(problem.matrix, settings)
    if application.matrix is not problem.matrix:
        problem = Problem.of(application.matrix, f"{name} of {problem.name}")
    return ApplicationQuestion(application, problem)


def threads_of_networks(networks: Sequence[Path], threads: int | None) -> int | None:
    """Return the threads of products that networks forecast: one; an InputError refuses others."""
    if networks and threads not in (None, 1):
        raise InputError(f"threads {threads} with a network: expected 1, which it forecasts; leave them out")
    return 1 if networks else threads


def application_cost(
    question: ApplicationQuestion,
    profile: Profile | None = None,
    *,
    iterations: int | None = None,
    threads: int | None = None,
    model: str | None = None,
    networks: Sequence[Path] = (),
    measure: bool = True,
) -> ApplicationCost:
    """Forecast a whole run of an application, with the best format for so many products.

    Parameters
    ----------
    question : ApplicationQuestion
    profile, threads, model
        As in `predict`.
    iterations : int, optional
        How many there will be, where that is known; else some are done with SciPy's product to tell.
    measure : bool
        As in `plan`; nothing is measured with `networks`.
    networks : sequence of Path
        Files that forecast the product in the place of the model: its time, its energy, or one file of each.
        It is done in CSR on one thread then, as they know it.

    Raises
    ------
    InputError, ProfileError
        As `plan`, `predict` and `product_forecast` raise them; if the profile has no Bandwidths.
    """
    threads = threads_of_networks(networks, threads)
    application, problem = question.application, question.problem
    expected = application.iterations() if iterations is None else Iterations.known(iterations)
    options: dict[str, Any] = {"threads": threads, "model": model}
    profile = profile or own_profile(problem, threads=threads)
    measures = measure and not networks
    plan = plan_of(problem, profile, iterations=expected.expected, measure=measures, **options)
    prediction = predict(problem, profile, **options, drift_correction=False)
    forecasts = [product_forecast(problem, profile, path) for path in networks]
    if forecasts:
        time_s = next((f.time_s for f in forecasts if f.time_s is not None), plan.baseline.time_s)
        plan = plan.csr_alone(time_s)
    csr = plan.baseline.candidate
    vector_bytes = problem.matrix.shape[0] * VALUE_BYTES[csr.dtype]
    # The bytes of a product have those of x and y, which are two of the vectors.
    stored = {(block.candidate.format, block.candidate.parameters) for block in plan.blocks}
    product_bytes = max(f.bytes for f in prediction if (f.candidate.format, f.candidate.parameters) in stored)
    vectors_bytes = application.vectors * vector_bytes
    working = WorkingSet(vectors_bytes, product_bytes + vectors_bytes - 2 * vector_bytes)
    target = Target(csr.device, csr.dtype, csr.index_bits, csr.threads)
    slower = usual_over_full(model_records(profile, target))
    loops = costs_of(application.loops, plan, profile, RunConditions(vector_bytes, working, slower))
    notes = (expected.why, *plan.notes, *(forecast.note for forecast in forecasts))
    powers_w = [f.energy_j / plan.time_s for f in forecasts if f.energy_j is not None] or [
        forecast.energy_j / forecast.time_s
        for forecast in prediction
        if forecast.energy_j is not None and forecast.candidate == plan.blocks[0].candidate
    ]
    # The loops over vectors wait for memory as the product does: the same power.
    power_w = powers_w[0] if powers_w else None
    return ApplicationCost(application.name, prediction.profile, expected, plan, loops, power_w, notes)


def run_application(
    question: ApplicationQuestion,
    plan: Plan,
    *,
    most: int | None = None,
    on_iteration: Callable[[int, float], object] = no_iteration,
    meter: Meter | None = None,
) -> ApplicationRun:
    """Build a plan, run the application, and time its loops.

    Two iterations before that compile and warm up. A short run is repeated, RUNS times within REPEATED_S
    seconds, and the shortest one counts: what disturbs a run makes it longer. Energy is read where something
    counts it and the runs are long enough for it; it is that of a run in the mean.

    Parameters
    ----------
    question : ApplicationQuestion
    plan : Plan
        Of the ApplicationCost.
    most : int, optional
        Iterations after which it ends; its own most by default.
    on_iteration : callable
        As in the application, of the first run.
    meter : Meter, optional
        What counts joules; that of the device by default.
    """
    op, application = compile(question.problem, plan), question.application
    most = application.most_iterations if most is None else most
    application.run(op, 2, no_iteration, Laps())
    meter = meter or DEVICES.get(plan.device).meter()
    before = meter.joules() if meter else None
    runs: list[ApplicationRun] = []
    products = 0
    while not runs or (len(runs) < RUNS and sum(run.time_s for run in runs) < REPEATED_S):
        laps = Laps()
        outcome = application.run(op, most, no_iteration if runs else on_iteration, laps)
        loops = {name: seconds / laps.runs[name] for name, seconds in laps.time_s.items()}
        total_s, products = sum(laps.time_s.values()), products + laps.runs[PRODUCT]
        runs.append(ApplicationRun(outcome.iterations, outcome.stop, total_s, loops, outcome.residuals[-1]))
    shortest = min(runs, key=lambda run: run.time_s)
    if meter is None or sum(run.time_s for run in runs) < meter.run_s:
        return shortest  # too short for the meter to see
    if isinstance(meter, ProcessorMeter):
        meter.work(products * application.matrix.nnz)
    joules = used_joules(before, meter.joules())
    return replace(shortest, energy_j=None if joules is None else joules / len(runs))
