"""PageRank and conjugate gradients: run, or forecast loop by loop before they start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.api.calibrating import own_profile
from sparsecast.api.executing import compile
from sparsecast.api.forecasting import plan as plan_of
from sparsecast.api.forecasting import predict
from sparsecast.api.resolving import model_records
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, remedy_for
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import used_joules
from sparsecast.operators.applications import cg as cg_application
from sparsecast.operators.applications import iterations as iteration_counts
from sparsecast.operators.applications import pagerank as pagerank_application
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE
from sparsecast.operators.applications.graphs import Links, links
from sparsecast.operators.applications.iterations import Iterations
from sparsecast.operators.applications.laps import Laps, VectorLoop
from sparsecast.planning.application_cost import RunConditions, WorkingSet, costs_of, usual_over_full
from sparsecast.records import VALUE_BYTES
from sparsecast.results.application import ApplicationCost, ApplicationRun
from sparsecast.results.plan import Plan

Floats = NDArray[np.floating[Any]]

#: Of the applications, as `cost` takes them.
APPLICATIONS = ("pagerank", "cg")

#: Runs of an application that are measured, while they take no longer together than so many seconds.
RUNS, REPEATED_S = 10, 1.0

#: Vectors that an iteration goes through: p, the new p, and what is sent; x, r, p, q, and with a
#: preconditioner z and the diagonal.
_VECTORS = {"pagerank": 4, "cg": 4, "cg with jacobi": 6}


def _no_iteration(iteration: int, residual: float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Settings:
    """How an application runs.

    Attributes
    ----------
    damping, epsilon : float
        Of PageRank.
    tolerance : float
        Of conjugate gradients.
    preconditioner : str or None
        ``"jacobi"`` or None, of conjugate gradients.
    """

    damping: float = DAMPING
    epsilon: float = EPSILON
    tolerance: float = TOLERANCE
    preconditioner: str | None = None


def pagerank(
    A: Any,
    *,
    plan: Plan | None = None,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    most: int = pagerank_application.MOST_ITERATIONS,
    threads: int | None = None,
    on_iteration: Callable[[int, float], object] = _no_iteration,
) -> pagerank_application.PageRank:
    """Return the PageRank of the nodes of a graph, by products in the format that suits so many.

    Parameters
    ----------
    A : sparse matrix
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
    pagerank_application.refuse_settings(damping, epsilon, most)
    graph = links(Problem.of(A).matrix)
    expected = pagerank_application.most_iterations(damping, epsilon)
    made = plan or plan_of(Problem.of(graph.matrix), iterations=expected, threads=threads)
    return pagerank_application.pagerank(
        compile(graph.matrix, made),
        graph.dangling,
        graph.inverse_weight,
        damping=damping,
        epsilon=epsilon,
        most=most,
        on_iteration=on_iteration,
    )


def cg(
    A: Any,
    b: Floats,
    *,
    plan: Plan | None = None,
    preconditioner: str | None = None,
    tolerance: float = TOLERANCE,
    most: int | None = None,
    threads: int | None = None,
    on_iteration: Callable[[int, float], object] = _no_iteration,
) -> cg_application.Solution:
    """Solve A x = b by conjugate gradients, with products in the format that suits as many as are expected.

    Parameters
    ----------
    A : sparse matrix
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
    cg_application.refuse_settings(tolerance, most or 1)
    inverse = _checked_for_cg(problem, preconditioner)
    b, rows = np.asarray(b), problem.matrix.shape[0]
    if b.shape != (rows,) or b.dtype.kind not in "biuf":
        raise InputError(
            f"b is {b.dtype} of shape {b.shape}: expected real numbers of shape ({rows},), one for each row; "
            f"correct b"
        )
    if plan is None:
        expected = iteration_counts.of_cg(problem.matrix, inverse, tolerance).expected
        plan = plan_of(problem, iterations=expected, threads=threads)
    op = compile(problem, plan)
    return cg_application.conjugate_gradients(
        op, b, inverse, tolerance=tolerance, most=most, on_iteration=on_iteration
    )


@dataclass(frozen=True, slots=True, eq=False)
class ApplicationQuestion:
    """An application of a matrix, ready to be forecast and to be run."""

    application: str
    problem: Problem
    loops: tuple[VectorLoop, ...]
    vectors: int
    settings: Settings
    graph: Links | None = None
    inverse_diagonal: Floats | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the matrix that a user should hear."""
        if self.graph is None or self.graph.matrix.nnz:
            return ()
        return ("The graph has no edges: all nodes are dangling, and have the same rank.",)

    def iterations(self) -> Iterations:
        """Return how many there will be, from some that are done with SciPy's product."""
        if self.graph is not None:
            return iteration_counts.of_pagerank(self.graph, self.settings.damping, self.settings.epsilon)
        return iteration_counts.of_cg(self.problem.matrix, self.inverse_diagonal, self.settings.tolerance)

    def run(self, op: Any, most: int, on_iteration: Callable[[int, float], object]) -> tuple[Any, Laps]:
        """Return a PageRank, or the Solution for an x of ones, by an operator; and the laps of the run."""
        settings, laps = self.settings, Laps()
        limits: dict[str, Any] = {"most": most, "on_iteration": on_iteration, "lap": laps}
        if self.graph is not None:
            limits |= {"damping": settings.damping, "epsilon": settings.epsilon}
            graph = self.graph.dangling, self.graph.inverse_weight
            laps.start()
            return pagerank_application.pagerank(op, *graph, **limits), laps
        b = op.matvec(np.ones(op.shape[1], dtype=op.dtype))
        limits["tolerance"] = settings.tolerance
        laps.start()  # not before b, which is no part of the run
        return cg_application.conjugate_gradients(op, b, self.inverse_diagonal, **limits), laps


def application_question(application: str, A: Any, settings: Settings | None = None) -> ApplicationQuestion:
    """Return an application of a matrix, checked.

    Parameters
    ----------
    application : str
        One of APPLICATIONS.
    A : sparse matrix or Problem
    settings : Settings, optional

    Raises
    ------
    InputError
        If there is no such application, or it is not for this matrix.
    """
    if application not in APPLICATIONS:
        raise InputError(
            f"application '{application}': expected one of {', '.join(APPLICATIONS)}; "
            f"{remedy_for(application, APPLICATIONS, 'name one of them')}"
        )
    settings, problem = settings or Settings(), Problem.of(A)
    if application == "pagerank":
        pagerank_application.refuse_settings(settings.damping, settings.epsilon, 1)
        graph = links(problem.matrix)
        loops = pagerank_application.loops(
            len(graph.dangling) / graph.nodes, graph.inverse_weight is not None
        )
        transposed = Problem.of(graph.matrix, f"links of {problem.name}")
        return ApplicationQuestion(application, transposed, loops, _VECTORS["pagerank"], settings, graph)
    cg_application.refuse_settings(settings.tolerance, 1)
    inverse = _checked_for_cg(problem, settings.preconditioner)
    loops = cg_application.loops(inverse is not None)
    vectors = _VECTORS["cg" if inverse is None else "cg with jacobi"]
    return ApplicationQuestion(application, problem, loops, vectors, settings, None, inverse)


def application_cost(
    question: ApplicationQuestion,
    profile: Profile | None = None,
    *,
    iterations: int | None = None,
    threads: int | None = None,
    model: str | None = None,
) -> ApplicationCost:
    """Forecast a whole run of an application, with the best format for so many products.

    Parameters
    ----------
    question : ApplicationQuestion
    profile, threads, model
        As in `predict`.
    iterations : int, optional
        How many there will be, where that is known; else some are done with SciPy's product to tell.

    Raises
    ------
    InputError, ProfileError
        As `plan` and `predict` raise them; if the profile has no Bandwidths.
    """
    expected = question.iterations() if iterations is None else Iterations.known(iterations)
    asked: dict[str, Any] = {"threads": threads, "model": model}
    known = profile or own_profile(question.problem, threads=threads)
    made = plan_of(question.problem, known, iterations=expected.expected, **asked)
    prediction = predict(question.problem, known, **asked, as_met=True)
    dtype = made.baseline.candidate.dtype
    vector_bytes = question.problem.matrix.shape[0] * VALUE_BYTES[dtype]
    # The bytes of a product have those of x and y, which are two of the vectors.
    planned = {block.candidate.format for block in made.blocks}
    product_bytes = max(each.bytes for each in prediction if each.candidate.format in planned)
    vectors_bytes = question.vectors * vector_bytes
    working = WorkingSet(vectors_bytes, product_bytes + vectors_bytes - 2 * vector_bytes)
    way = made.baseline.candidate
    target = Target(way.device, way.dtype, way.index_bits, way.threads)
    slower = usual_over_full(model_records(known, target))
    loops = costs_of(question.loops, made, known, RunConditions(vector_bytes, working, slower))
    cost = ApplicationCost(
        question.application, prediction.profile, expected, made, loops, None, (expected.why, *made.notes)
    )
    power_w = [
        each.energy_j / each.time_s
        for each in prediction
        if each.energy_j is not None and each.candidate == made.blocks[0].candidate
    ]
    # The loops over vectors wait for memory as the product does: the same power.
    return replace(cost, energy_j=power_w[0] * cost.time_s) if power_w else cost


def run_application(
    question: ApplicationQuestion,
    plan: Plan,
    *,
    most: int | None = None,
    on_iteration: Callable[[int, float], object] = _no_iteration,
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
    """
    op = compile(question.problem, plan)
    if most is None:
        is_graph = question.graph is not None
        most = (
            pagerank_application.MOST_ITERATIONS if is_graph else cg_application.most_iterations(op.shape[0])
        )
    question.run(op, 2, _no_iteration)
    meter = DEVICES.get(plan.device).meter()
    before = meter.joules() if meter else None
    runs: list[ApplicationRun] = []
    while not runs or (len(runs) < RUNS and sum(run.time_s for run in runs) < REPEATED_S):
        done, laps = question.run(op, most, on_iteration if not runs else _no_iteration)
        loops = {name: seconds / laps.runs[name] for name, seconds in laps.time_s.items()}
        total_s = sum(laps.time_s.values())
        runs.append(ApplicationRun(done.iterations, done.stop, total_s, loops, done.residuals[-1]))
    shortest = min(runs, key=lambda run: run.time_s)
    if meter is None or sum(run.time_s for run in runs) < meter.run_s:
        return shortest  # too short for the meter to see
    used = used_joules(before, meter.joules())
    return replace(shortest, energy_j=None if used is None else used / len(runs))


def _checked_for_cg(problem: Problem, preconditioner: str | None) -> Floats | None:
    """Refuse a matrix that conjugate gradients are not for; return Jacobi's preconditioner, None for none."""
    A = problem.matrix
    if A.shape[0] != A.shape[1]:
        raise InputError(
            f"conjugate gradients with {A.shape[0]:,} rows and {A.shape[1]:,} columns: expected a square "
            f"matrix; solve the normal equations"
        )
    if A.dtype.kind == "c":
        raise InputError("conjugate gradients with complex values: expected real ones; name another matrix")
    if not np.isfinite(A.data).all():
        raise InputError(
            "conjugate gradients with values that are NaN or infinite: expected finite ones; correct them"
        )
    if problem.structure.symmetry.triangle_nnz is None:
        raise InputError(
            "conjugate gradients with a matrix that is not symmetric: expected equal values on both sides of "
            "the diagonal; use bicg or gmres of SciPy with sc.compile(A)"
        )
    if preconditioner is None:
        return None
    if preconditioner != "jacobi":
        raise InputError(f"preconditioner '{preconditioner}': expected jacobi, or none; name that")
    diagonal = A.diagonal()
    if not (diagonal > 0).all():
        row = int(np.flatnonzero(~(diagonal > 0))[0])
        raise InputError(
            f"the diagonal has {diagonal[row]:g} in row {row:,}: expected values above 0 for jacobi; leave "
            f"the preconditioner out"
        )
    return np.asarray(1 / diagonal)
