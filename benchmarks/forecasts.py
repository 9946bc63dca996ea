"""How good forecasts are, and what each part of them brings."""

from __future__ import annotations

import sys
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import Matrices, ProfileName, Rows, Threads, experiment, named
from sparsecast import api
from sparsecast.api.profiles import training_for
from sparsecast.benchmark.replay import replay
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.models.linear import LinearModel, WorkCosts
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import ProductWork
from sparsecast.operators.applications.application import Laps, ScipyOperator, no_iteration
from sparsecast.records import Candidate
from sparsecast.results.evaluation import EvaluationRow
from sparsecast.system.texts import percent

PANEL = "Forecasts"


class _WithoutSuite(SparsecastModel):
    left_out: ClassVar[str]

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return suite != cls.left_out


class WithoutAtlas(_WithoutSuite):
    """Strips, varied rows, blocks, diagonals, and the gallery."""

    name, left_out = "without the atlas", "atlas"


class WithoutUserRecords(_WithoutSuite):
    """The calibration alone."""

    name, left_out = "without the user's Records", "user"


class WithoutTrees(LinearModel):
    """The linear cost model, learned from all Records as in the whole model."""

    name = "without the trees"

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return True


class _Bytes(ProductWork):
    def of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Any]:
        storage: Any = FORMATS.get(candidate.format)
        widths = candidate.value_bytes, candidate.index_bytes
        size = storage.predicted_bytes(blocks, *widths, **candidate.parameters)
        return {"start": np.ones(len(blocks.rows)), "bytes": np.asarray(size, dtype=float)}


class _ByteCosts(WorkCosts):
    work = _Bytes


class WithoutCostModel(SparsecastModel):
    """One cost for each byte of a format, and the trees."""

    name, physics_class = "without the linear cost model", _ByteCosts


class WithSlowRecords(SparsecastModel):
    """Also what was measured while the cores were slow."""

    name = "with slow Records"

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        return training.where(lambda record: record.regime == "warm")


VARIANTS = (
    *(SparsecastModel, WithoutAtlas, WithoutUserRecords, WithoutTrees, WithoutCostModel, WithSlowRecords),
)


@experiment(PANEL)
def parts(profile: ProfileName = None, threads: Threads = 1) -> Rows:
    """Replay stored Records with the model `sparsecast` less one part after the other; no hardware is used.

    First calibrate (`sparsecast calibrate --budget 300 --threads N --dtype float64`) and measure matrices
    (`sparsecast evaluate FILE... --threads N`), whose Records are kept.
    """
    chosen = sc.profile(profile)
    training = training_for(chosen, Target.on(chosen.machine, "float64", threads))
    found = WorkCosts.counted(SparsecastModel.used(training))[0].product_caches[-1].bytes
    printed = chosen.machine.product_caches[-1].bytes
    yield f"The Records tell a last cache of {found >> 20} MiB; {printed >> 20} MiB are reported."
    evaluation = replay(training, VARIANTS)
    for name, score in evaluation.models.items():
        yield {
            "model": name,
            "median error": score.median_error,
            "mean error": score.mean_error,
            "90th percentile error": score.p90_error,
            "regret": score.regret,
            "worst choice": score.worst_ratio,
            **_of_intervals([row for row in evaluation.rows if row.model == name]),
        }
    yield from (f"{name}: {reason}" for name, reason in evaluation.refused.items())


def _of_intervals(rows: list[EvaluationRow]) -> dict[str, float]:
    """Return how many intervals hold the measurement, how wide they are, and both in one number.

    That is the interval score of Gneiting and Raftery (2007), in logarithms of time: the width, and for a
    measurement outside how far it is, over half of the share that may be outside. Less is better.
    """
    known = [
        (row.estimate.low, row.estimate.high, row.measured) for row in rows if row.estimate.low is not None
    ]
    if not known:
        return {}
    low, high, measured = np.log(np.array(known)).T
    outside = np.maximum(np.maximum(low - measured, measured - high), 0.0)
    width = high - low
    return {
        "in the interval": float((outside == 0).mean()),
        "high over low": float(np.exp(np.median(width))),
        "high over low, mean": float(np.exp(width).mean()),
        "interval score": float((width + 2 / (1 - INTERVAL_SHARE) * outside).mean()),
    }


#: Gallery matrices that the number of iterations is told of, by application.
TRIED = {
    "pagerank": (
        *("rmat?scale=13", "rmat?scale=15&degree=4", "poisson2d?n=60", "banded?n=5000", "circuit?n=20000"),
    ),
    "cg": (
        *("poisson2d?n=100", "poisson2d?n=200", "poisson2d?n=300", "poisson3d?n=35", "poisson3d?n=50"),
        *("poisson3d?n=30&points=27", "elasticity3d?n=12", "elasticity3d?n=16"),
    ),
}

_SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "pagerank": ({},),
    "cg": ({"preconditioner": None}, {"preconditioner": "jacobi"}),
}


@experiment(PANEL)
def iterations(
    matrices: Matrices = None,
    application: Annotated[str, typer.Option(help="pagerank, or cg without and with Jacobi.")] = "pagerank",
    tried: Annotated[
        int | None, typer.Option(help="Iterations that tell; the usual ones by default.")
    ] = None,
) -> Rows:
    """Count the iterations of an application beside those expected after some; nothing is timed.

    Matrices that it is not for are left out, and runs that end while they are tried, or not at all. PageRank
    takes values as 1, so that any square matrix is a graph.
    """
    factors, inside = list[float](), list[bool]()
    for problem in named(matrices, TRIED[application]):
        A = problem.matrix
        if application == "pagerank":
            A = csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
        for settings in _SETTINGS[application]:
            try:
                asked: Any = api.application_question(application, A, **settings).application
                asked.trials = tried or asked.trials
                expected = asked.iterations()
            except InputError as error:
                print(f"{problem.name}: {error}", file=sys.stderr)
                continue
            op = ScipyOperator(asked.matrix)
            run = asked.run(op, asked.most_iterations, no_iteration, Laps())
            if run.iterations <= expected.tried or run.stop != "converged":
                continue
            factors.append(expected.expected / run.iterations)
            inside.append(expected.low <= run.iterations <= expected.high)
            yield {
                "matrix": problem.name,
                **settings,
                "iterations": run.iterations,
                "expected": expected.expected,
                "low": expected.low,
                "high": expected.high,
                "error": factors[-1] - 1,
                "inside": inside[-1],
            }
    ratios = np.exp(np.abs(np.log(factors)))
    sizes = np.abs(np.array(factors) - 1)
    within = ", ".join(f"{int((sizes <= most).sum())} within {percent(most)}" for most in (0.1, 0.15))
    yield (
        f"{len(factors)} runs: {percent(float(np.median(sizes)))} off in the median, "
        f"{percent(float(sizes.mean()))} in the mean; {within}; a factor of {np.median(ratios):.2f} in the "
        f"median, {np.quantile(ratios, 0.9):.2f} at the 90th percentile; {sum(inside)} in the interval."
    )
