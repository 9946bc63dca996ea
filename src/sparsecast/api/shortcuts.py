"""One-line functions: ``predict(A)`` is ``session().predict(A)``, and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from sparsecast.api.applications import CgOptions, PageRankOptions
from sparsecast.api.campaigns import CollectionOptions
from sparsecast.api.sessions import session
from sparsecast.api.settings import SessionOptions, split_options
from sparsecast.machines.profile import Profile
from sparsecast.measuring.energy import Meter
from sparsecast.operators.applications.cg import Solution
from sparsecast.operators.applications.pagerank import PageRank
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.evaluation import Evaluation
from sparsecast.results.plan import Plan
from sparsecast.results.prediction import Prediction


def predict(
    A: Any,
    profile: Profile | None = None,
    *,
    probe_s: float | None = None,
    **options: Unpack[SessionOptions],
) -> Prediction:
    """Forecast the product of a matrix in every format that suits it, as `Session.predict` does.

    Parameters
    ----------
    A : sparse matrix or Structure
    profile : Profile, optional
        Profile of the machine; by default that of this machine, which is calibrated first if necessary.
    probe_s : float, optional
        Seconds to measure for.
    **options
        As in `session`: `threads`, `dtype`, `device`, `vectors`, `values`, `library`, `model`,
        `drift_correction`, `as_printed`, `power_model`, `energy_model` and `anyway`.
    """
    return session(profile, **options).predict(A, probe_s=probe_s)


def plan(
    A: Any,
    profile: Profile | None = None,
    *,
    products: int = 1000,
    objective: str = "time",
    probe_s: float | None = None,
    **options: Unpack[SessionOptions],
) -> Plan:
    """Find the best formats for a number of products, conversion included, as `Session.plan` does.

    Parameters
    ----------
    A : sparse matrix
    profile, **options
        As in `predict`.
    products, objective, probe_s
        As in `Session.plan`: the number of products, what to minimise, and seconds to measure for.
    """
    return session(profile, **options).plan(A, products=products, objective=objective, probe_s=probe_s)


def compile(
    A: Any,
    plan: Plan | None = None,
    *,
    products: int = 1000,
    transpose: bool | Plan = False,
    adapt: bool = False,
    **options: Unpack[SessionOptions],
) -> BlockOperator:
    """Build a SciPy LinearOperator for a matrix in the formats of a plan; see `Session.compile`.

    Parameters
    ----------
    A : sparse matrix
    plan : Plan, optional
        Made by `plan`; by default one for this machine.
    products, transpose, adapt
        As in `Session.compile`.
    **options
        As in `predict`.
    """
    return session(**options).compile(A, plan, products=products, transpose=transpose, adapt=adapt)


def measure(
    A: Any,
    table: Prediction | Sequence[Forecast | Candidate] | None = None,
    *,
    name: str = "matrix",
    keeps: bool = True,
    meter: Meter | None = None,
    **options: Unpack[SessionOptions],
) -> list[Record]:
    """Measure the product of a matrix here, fastest first, as `Session.measure` does.

    Parameters
    ----------
    A : sparse matrix
    table, name, keeps, meter
        As in `Session.measure`: what to measure, the name of the matrix, whether Records are kept, and the
        counter of joules.
    **options
        As in `predict`.
    """
    return session(**options).measure(A, table, name=name, keeps=keeps, meter=meter)


class EvaluateOptions(SessionOptions, CollectionOptions, total=False):
    """Options of `evaluate`: those of `session`, and those of CollectionOptions."""


def evaluate(
    matrices: Sequence[Any],
    profile: Profile | None = None,
    *,
    models: Sequence[str] | None = None,
    on_matrix: Callable[[str, Evaluation], None] | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Forecast a collection of matrices with all models, and measure them, as `Session.evaluate` does.

    Parameters
    ----------
    matrices, models, on_matrix
        As in `Session.evaluate`.
    profile : Profile, optional
        This machine's by default.
    **options
        As in `predict`; and `keeps`, `resume`, `shard`, `transpose` and `on_progress`, as in
        `Session.evaluate`.
    """
    collection, of_session = split_options(CollectionOptions, options)
    return session(profile, **of_session).evaluate(matrices, models=models, on_matrix=on_matrix, **collection)


class RankOptions(SessionOptions, PageRankOptions, total=False):
    """Options of `pagerank`: those of `session`, and those of PageRankOptions."""


def pagerank(A: Any, *, plan: Plan | None = None, **options: Unpack[RankOptions]) -> PageRank:
    """Return the PageRank of the nodes of a graph, as `Session.pagerank` does.

    Parameters
    ----------
    A : sparse matrix of shape (nodes, nodes)
    plan : Plan, optional
        As in `Session.pagerank`.
    **options
        As in `predict`; and `damping`, `epsilon`, `most`, `on_iteration`, `personalization`, `dangling` and
        `start`, as in `Session.pagerank`.
    """
    own, of_session = split_options(PageRankOptions, options)
    return session(**of_session).pagerank(A, plan=plan, **own)


class SolveOptions(SessionOptions, CgOptions, total=False):
    """Options of `cg`: those of `session`, and those of CgOptions."""


def cg(A: Any, b: Any, *, plan: Plan | None = None, **options: Unpack[SolveOptions]) -> Solution:
    """Solve A x = b by conjugate gradients, as `Session.cg` does.

    Parameters
    ----------
    A : sparse matrix of shape (rows, rows)
    b : float array of shape (rows,)
    plan : Plan, optional
        As in `Session.cg`.
    **options
        As in `predict`; and `preconditioner`, `tolerance`, `most` and `on_iteration`, as in `Session.cg`.
    """
    own, of_session = split_options(CgOptions, options)
    return session(**of_session).cg(A, b, plan=plan, **own)
