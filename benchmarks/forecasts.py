"""How good forecasts are, what each part of them brings, and what disturbs them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import Matrices, ProfileName, Rows, Threads, experiment, named
from sparsecast import api
from sparsecast.api.profiles import training_for
from sparsecast.benchmark.evaluation import errors_of
from sparsecast.benchmark.replay import replay
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.machines.storage import HOME_VARIABLE
from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.models.linear import LinearModel, WorkCosts
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CountedWork, ProductWork, at_one_speed
from sparsecast.operators.applications.application import Laps, ScipyOperator, no_iteration
from sparsecast.records import Candidate
from sparsecast.results.evaluation import EvaluationRow
from sparsecast.system.tabular import grouped
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


class _OfOneThread(ProductWork):
    def of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Any]:
        return super().of(replace(candidate, threads=1), blocks)


class _OfOneThreadCosts(WorkCosts):
    work = _OfOneThread


class WithoutThreads(SparsecastModel):
    """Nobody waits for the longest row or adds up buffers, and threads have the caches of one."""

    name, physics_class = "without the work of threads", _OfOneThreadCosts


class _WithoutStart(ProductWork):
    def of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Any]:
        return {**super().of(candidate, blocks), "start": np.zeros(len(blocks.rows))}


class _WithoutStartCosts(WorkCosts):
    work = _WithoutStart


class WithoutStart(SparsecastModel):
    """A product without entries takes no time: with several threads, there is no hand-off."""

    name, physics_class = "without the start", _WithoutStartCosts


class _PrintedCacheCosts(WorkCosts):
    @classmethod
    def counted(cls, training: TrainingSet) -> tuple[Machine, list[CountedWork]]:
        work = cls.work(training.machine).counted(training)
        return training.machine, at_one_speed(training.machine, work, training.records)


class WithPrintedCache(SparsecastModel):
    """The last cache is as large as the processor reports it."""

    name, physics_class = "with the printed last cache", _PrintedCacheCosts


class WithSlowRecords(SparsecastModel):
    """Also what was measured while the cores were slow."""

    name = "with slow Records"

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        return training.where(lambda record: record.regime == "warm")


VARIANTS = (
    *(SparsecastModel, WithoutAtlas, WithoutUserRecords, WithoutTrees, WithoutCostModel, WithoutThreads),
    *(WithoutStart, WithPrintedCache, WithSlowRecords),
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


@contextmanager
def running(commands: list[list[str]]) -> Iterator[None]:
    """Keep other processes running while the body runs."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    others = [subprocess.Popen(command, start_new_session=True, **quiet) for command in commands]
    try:
        yield
    finally:
        for other in others:
            with suppress(ProcessLookupError):  # a command may have come to its end
                os.killpg(other.pid, signal.SIGKILL)
            other.wait()


_GALLERY = (
    *("gallery:poisson2d?n=300", "gallery:poisson3d?n=40&points=27", "gallery:circuit?n=30000"),
    *("gallery:banded?n=100000&half_bandwidth=4", "gallery:rmat?scale=14&degree=10"),
    *("gallery:random?n=60000&nnz_per_row=10", "gallery:elasticity3d?n=14"),
)


def command_document(home: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON document of a command with its own data folder."""
    command = [sys.executable, "-c", "from sparsecast.cli.main import main; main()", *arguments, "--json"]
    environment = {**os.environ, HOME_VARIABLE: str(home)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


@experiment(PANEL)
def busy_calibrations(
    matrices: Matrices = None,
    budget: int = 60,
    threads: Threads = 1,
    busy: Annotated[int, typer.Option(help="Busy loops beside the second calibration.")] = 1,
    beside: Annotated[
        str | None, typer.Option(help="A command, such as a test suite, beside a third one.")
    ] = None,
) -> Rows:
    """Calibrate undisturbed and beside other programs; compare the forecasts with the undisturbed ones.

    The kernels are compiled before. All forecasts are made undisturbed.
    """
    setting = ["--threads", str(threads)]
    api.calibration(budget, threads=threads, dtype="float64").compile_kernels()
    busy_loop = [sys.executable, "-c", "while True: pass"]
    programs = {"nothing": [], "busy loops": [busy_loop] * busy}
    programs |= {beside: [shlex.split(beside)]} if beside else {}
    quiet: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, others) in enumerate(programs.items()):
            home = Path(folder) / str(number)
            with running(others):
                calibrate = ["calibrate", "--budget", str(budget), *setting, "--dtype", "float64"]
                calibrated = command_document(home, *calibrate)
            times = {
                (matrix, forecast["format"]): forecast["time_s"]
                for matrix in matrices or _GALLERY
                for forecast in command_document(home, "predict", matrix, *setting, "--anyway")["forecasts"]
            }
            quiet = quiet or times
            differences = [abs(time_s / quiet[key] - 1) for key, time_s in times.items() if key in quiet]
            yield {
                "beside": name,
                "records": calibrated["records"],
                "forecasts": len(differences),
                "median difference": float(np.median(differences)),
                "90th percentile difference": float(np.quantile(differences, 0.9)),
            }
            yield from (f"Beside {name}: {note}" for note in calibrated["notes"])


@experiment(PANEL)
def library_errors(matrices: Matrices = None, threads: Threads = 1) -> Rows:
    """Forecast and measure real matrices with every library that is installed, held back from the fit.

    This machine's profile must have Records of libraries (calibrate --libraries). An error is |forecast /
    measured - 1|; the ratio of medians says how much worse libraries are forecast than our formats.
    """
    asked = matrices or ["gallery:poisson3d?n=30", "gallery:rmat?scale=12"]
    found = sc.evaluate(asked, threads=threads, library="any", models=["sparsecast"], keeps=False)
    formats = grouped(found.rows, lambda row: row.estimate.candidate.format)

    def kind(row: EvaluationRow) -> str:
        return "all libraries" if FORMATS.get(row.record.candidate.format).is_library else "all of ours"

    kinds, medians = grouped(found.rows, kind), {}
    for name, rows in {**dict(sorted(formats.items())), **kinds}.items():
        score = errors_of(rows)
        medians[name] = score.median_error
        yield {
            "format": name,
            "matrices": len({row.matrix for row in rows}),
            "median error": score.median_error,
            "90th percentile error": score.p90_error,
            "within": score.coverage,
        }
    if kinds.keys() == {"all libraries", "all of ours"}:
        ratio = medians["all libraries"] / medians["all of ours"]
        yield f"Median error of libraries over that of our formats: {ratio:.2f}."
    yield from (f"{name} left out: {why}" for name, why in found.refused.items())
