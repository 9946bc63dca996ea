"""How good forecasts are, what each part of them brings, and what disturbs them."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import Folder, Matrices, ProfileName, Rows, Threads, experiment, in_folder, named, percent
from sparsecast import api
from sparsecast.api.profiles import model_records, training_for
from sparsecast.benchmark.replay import FOLDS, replay
from sparsecast.devices import machine_of
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.models.fitting import INTERVAL_SHARE, UNTRIED_FACTOR
from sparsecast.models.linear import LinearModel, WorkCosts
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.models.transfer import (
    Setting,
    Transfer,
    TransferredForecaster,
    transfer_errors,
    widening,
)
from sparsecast.models.work import CountedWork, ProductWork, at_one_speed
from sparsecast.records import Candidate, Estimate
from sparsecast.results.evaluation import EvaluationRow

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


@experiment(PANEL)
def parts(profile: ProfileName = None, threads: Threads = 1) -> Rows:
    """Replay stored Records with the model `sparsecast` less one part after the other; no hardware is used.

    First calibrate (`sparsecast calibrate --budget 300 --threads N --dtype float64`) and measure matrices
    (`sparsecast evaluate FILE... --threads N`), whose Records are kept.
    """
    variants = (
        SparsecastModel,
        WithoutAtlas,
        WithoutUserRecords,
        WithoutTrees,
        WithoutCostModel,
        WithoutThreads,
        WithoutStart,
        WithPrintedCache,
        WithSlowRecords,
    )
    chosen = sc.profile(profile)
    training = training_for(chosen, Target.on(chosen.machine, "float64", threads))
    found = WorkCosts.counted(SparsecastModel.used(training))[0].product_caches[-1].bytes
    printed = chosen.machine.product_caches[-1].bytes
    yield f"The Records tell a last cache of {found >> 20} MiB; {printed >> 20} MiB are reported."
    evaluation = replay(training, variants)
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


def errors_of(pairs: list[tuple[Estimate, float]]) -> dict[str, float]:
    """Return the errors of estimates beside measured values, and how many of these lie in the intervals."""
    if not pairs:
        return {}
    errors = [abs(estimate.value / measured - 1) for estimate, measured in pairs]
    intervals = [
        (e.low, e.high, measured) for e, measured in pairs if e.low is not None and e.high is not None
    ]
    return {
        "median error": float(np.median(errors)),
        "90th percentile error": float(np.quantile(errors, 0.9)),
        "within": float(np.mean([low <= measured <= high for low, high, measured in intervals])),
    }


@experiment(PANEL)
def transfer(profile: ProfileName = None) -> Rows:
    """Replay forecasts for a type of values, or a number of threads, without Records.

    For each two settings that a profile has Records of, the linear model of the first forecasts the gallery
    in the second. Below are the factors that transfers were wrong by, by what changes: the 90th percentile of
    all, rounded up, is UNTRIED_FACTOR of `sparsecast.models.fitting`.
    """
    from sparsecast.devices.target import Target

    chosen = sc.profile(profile)
    settings = dict.fromkeys(Setting.of(record.candidate) for record in chosen.records)
    targets = [Target(chosen.machine.device, setting.dtype, 32, setting.threads) for setting in settings]
    sets = {Setting.of(t): training_for(chosen, t) for t in targets if model_records(chosen, t)}
    fits = {setting: LinearModel().fit(training) for setting, training in sets.items()}
    factors: dict[str, list[float]] = {}
    for source, target in permutations(sets, 2):
        carried = Transfer.to(target, fits[source], sets[source])
        errors = transfer_errors(carried, sets[source], sets[target].records)
        for name in (" and ".join(sorted(source.changes(target))), "all"):
            factors.setdefault(name, []).extend(math.exp(abs(error)) for error in errors)
        others = [r for setting, own in sets.items() if setting != target for r in own.records]
        factor = widening(carried, sets[source], others) or UNTRIED_FACTOR
        held_out = sets[target].where(lambda record: record.suite == HELD_OUT_SUITE)
        own_fit = _pairs(fits[target], held_out)
        yield {
            "from": f"{source.dtype}, {source.threads} threads",
            "for": f"{target.dtype}, {target.threads} threads",
            **errors_of(_pairs(TransferredForecaster(fits[source], carried, factor), held_out)),
            "factor": factor,
            "own fit, median error": errors_of(own_fit)["median error"],
        }
    for name, values in sorted(factors.items(), key=lambda item: len(item[0])):
        median, p90 = np.quantile(values, (0.5, 0.9))
        yield f"{name}: {len(values)} transfers, factor {median:.2f} (median), {p90:.2f} (90th percentile)."


def _pairs(model: Any, held_out: TrainingSet) -> list[tuple[Estimate, float]]:
    return [
        (estimate, record.time_s)
        for record in held_out.records
        for estimate in model.estimates(held_out.structure(record), [record.candidate])
    ]


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


def _application_of(name: str, A: csr_array[Any], settings: dict[str, Any]) -> Any:
    """Return an application; PageRank takes values as 1, so that any square matrix is a graph."""
    if name == "pagerank":
        A = csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    return api.application_question(name, A, **settings).application


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
    takes values as 1.
    """
    from sparsecast.operators.applications.application import Laps, no_iteration, scipy_operator

    factors, inside = list[float](), list[bool]()
    for problem in named(matrices, (f"gallery:{name}" for name in TRIED[application])):
        for settings in _SETTINGS[application]:
            try:
                asked = _application_of(application, problem.matrix, settings)
                asked.trials = tried or asked.trials
                expected = asked.iterations()
            except InputError as error:
                print(f"{problem.name}: {error}", file=sys.stderr)
                continue
            op = scipy_operator(asked.matrix)
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


#: Inputs of the model `blocks` that are dropped together, by their places.
_OF_BLOCKS = {"ends of rows": (0, 2), "steps between columns": (2, 8), "lines and pages of x": (8, 12)}
_OF_MATRICES = {"sizes": (2, 5), "mispredicted rows": (5, 7), "reuse of x": (7, 13), "kernel": (13, 18)}


@experiment(PANEL)
def block_models() -> Rows:
    """Replay labels of blocks that `sparsecast label` kept: trees, without some inputs, and always the mean.

    Groups of matrices are left out in turn, in five parts. A block's error is relative, its median over all
    blocks; a matrix' error is that of the mean over its blocks.
    """
    from sparsecast.models.forest import Forest
    from sparsecast.papers.barreda_2020.block_model import TREES, learnable
    from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_FEATURES
    from sparsecast.papers.barreda_2020.label_files import kept_labels

    whole = len(BLOCK_FEATURES)
    labels, inputs, measured_ns = [], [], []
    for label in kept_labels(machine_of("cpu").name, "float64"):
        problem = Problem.rebuilt(label.matrix)
        if problem is not None:
            block_inputs, ns = learnable(label, problem.sampled_structure)
            labels.append(label)
            inputs.append(block_inputs)
            measured_ns.append(ns)
    groups = sorted({label.group for label in labels})
    np.random.default_rng(0).shuffle(groups)
    dropped = {name: range(*places) for name, places in _OF_BLOCKS.items()}
    dropped |= {name: range(whole + a, whole + b) for name, (a, b) in _OF_MATRICES.items()}
    for name, places in {"always the mean": None, "trees": (), **dropped}.items():
        of_blocks, of_matrices = [], []
        for fold in range(FOLDS):
            held_out = set(groups[fold::FOLDS])
            learned = [i for i, label in enumerate(labels) if label.group not in held_out]
            log_ns = np.log(np.concatenate([measured_ns[i] for i in learned]))
            if places is not None:
                kept = np.concatenate([np.delete(inputs[i], list(places), axis=1) for i in learned])
                forest = Forest.boosted(kept, log_ns, **TREES)
            for i in set(range(len(labels))) - set(learned):
                if places is None:
                    forecast = np.full(len(measured_ns[i]), np.exp(log_ns).mean())
                else:
                    forecast = np.exp(forest.mean(np.delete(inputs[i], list(places), axis=1)))
                of_blocks.append(np.abs(forecast / measured_ns[i] - 1))
                of_matrices.append(abs(forecast.mean() / measured_ns[i].mean() - 1))
        yield {
            "model": name if name in ("always the mean", "trees") else f"trees without {name}",
            "block, median error": float(np.median(np.concatenate(of_blocks))),
            "matrix, median error": float(np.median(of_matrices)),
            "matrix, 90th percentile error": float(np.quantile(of_matrices, 0.9)),
        }


@experiment(PANEL)
def bench_cuts(result: Annotated[Path, typer.Argument(metavar="RESULT.json")]) -> Rows:
    """Show what cutting large dimensions does to the figures of the five-minute benchmark.

    RESULT is what `sparsecast bench --output RESULT.json` wrote, best with a budget that reached all
    dimensions. It is cut at one dimension after another, without and with the few series (scouts) that go on.
    """
    from sparsecast.papers.gahvari_2007.search_space import MIDDLE, SCOUTS, Point
    from sparsecast.papers.gahvari_2007.summary import FIGURES, figures

    for setting in json.loads(result.read_text(encoding="utf-8"))["settings"]:
        speeds = {Point.named(point["matrix"]): point["mflops"] for point in setting["points"]}
        end = max(point.dimension for point in speeds)
        whole = asdict(figures(speeds, end))
        for dimension in sorted({point.dimension for point in speeds})[:-1]:
            for scouts in (False, True):
                cut = {
                    p: speed
                    for p, speed in speeds.items()
                    if p.dimension < dimension
                    or (
                        p.nnz_per_row == MIDDLE
                        and (p.dimension == dimension or (scouts and p.series in SCOUTS))
                    )
                }
                after = asdict(figures(cut, end))
                yield {
                    "setting": f"{setting['dtype']}, {setting['threads']} threads",
                    "last dimension": dimension,
                    "scouts": scouts,
                    **{
                        f"{name.removesuffix('_mflops')} error": after[name] / whole[name] - 1
                        for name in FIGURES
                    },
                }


@contextmanager
def running(commands: list[list[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep other processes running while the body runs."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    others = [subprocess.Popen(command, start_new_session=True, **quiet) for command in commands]
    try:
        yield others
    finally:
        for other in others:
            with suppress(ProcessLookupError):  # a command may have come to its end
                os.killpg(other.pid, signal.SIGKILL)
            other.wait()


BUSY_LOOP = [sys.executable, "-c", "while True: pass"]
_GALLERY = (
    *("gallery:poisson2d?n=300", "gallery:poisson3d?n=40&points=27", "gallery:circuit?n=30000"),
    *("gallery:banded?n=100000&half_bandwidth=4", "gallery:rmat?scale=14&degree=10"),
    *("gallery:random?n=60000&nnz_per_row=10", "gallery:elasticity3d?n=14"),
)


def command_document(home: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON document of a command with its own data folder."""
    code = "from sparsecast.cli.main import main; main()"
    environment = {**os.environ, "SPARSECAST_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
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
    programs = {"nothing": [], "busy loops": [BUSY_LOOP] * busy}
    programs |= {beside: [shlex.split(beside)]} if beside else {}
    quiet: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, others) in enumerate(programs.items()):
            home = Path(folder) / str(number)
            with running(others):
                calibrate = ["calibrate", "--budget", str(budget), *setting, "--dtype", "float64"]
                calibrated = command_document(home, *calibrate)
            documents = {
                matrix: command_document(home, "predict", matrix, *setting, "--anyway")
                for matrix in matrices or _GALLERY
            }
            times = {
                (matrix, forecast["format"]): forecast["time_s"]
                for matrix, document in documents.items()
                for forecast in document["forecasts"]
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
def busy_machine(rounds: int = 2, seconds: float = 0.15, threads: Threads = 1) -> Rows:
    """Compare statistics of a product's times beside busy processes with those of the quiet machine.

    Each product is timed call by call: alone, beside one busy process and beside two, all within a second.
    From these times any way of sampling is computed: a quantile of samples of as many calls as take "sample".
    It is what `measuring/timing.py` rests on.
    """
    quantiles = {"median": 0.5, "25 %": 0.25, "10 %": 0.1, "5 %": 0.05, "least": 0.0}
    ratios: dict[tuple[int, float, str], list[float]] = {}
    with running([BUSY_LOOP] * 2) as others:
        for problem in named(None, _GALLERY):
            operator = sc.compile(problem, sc.plan(problem, threads=threads))
            x = np.ones(problem.matrix.shape[1])
            out = operator.matvec(x)
            for _ in range(rounds):
                traces = []
                for busy in range(3):
                    for number, process in enumerate(others):
                        os.killpg(process.pid, signal.SIGCONT if number < busy else signal.SIGSTOP)
                    traces.append(_trace(lambda o=operator, x=x, out=out: o.matvec(x, out), seconds))
                for busy in (1, 2):
                    for sample_s in (0.0, 0.0005, 0.002, 0.008):
                        for name, share in quantiles.items():
                            quiet, beside = (_statistic(traces[k], sample_s, share) for k in (0, busy))
                            ratios.setdefault((busy, sample_s, name), []).append(beside / quiet)
    for busy in (1, 2):
        for sample_s in (0.0, 0.0005, 0.002, 0.008):
            row = {
                name: "{:.2f} ({:.2f})".format(*np.quantile(ratios[busy, sample_s, name], (0.5, 0.9)))
                for name in quantiles
            }
            yield {
                "busy processes": busy,
                "sample": f"{1e3 * sample_s:g} ms" if sample_s else "a call",
                **row,
            }
    yield "Ratios to the quiet machine: median and, in parentheses, 90th percentile."


def _trace(call: Any, seconds: float) -> np.ndarray:
    """Return the seconds of each call, one after the other."""
    times = []
    begin = last = perf_counter()
    while last < begin + seconds:
        start = perf_counter()
        call()
        last = perf_counter()
        times.append(last - start)
    return np.array(times)


def _statistic(times: np.ndarray, sample_s: float, share: float) -> float:
    """Return a quantile of samples of consecutive calls that take about `sample_s` undisturbed."""
    calls = max(1, min(math.ceil(sample_s / np.quantile(times, 0.1)), len(times)))
    whole = len(times) // calls * calls
    return float(np.quantile(times[:whole].reshape(-1, calls).mean(axis=1), share, method="lower"))


@experiment(PANEL)
def library_errors(matrices: Matrices = None, folder: Folder = None, threads: Threads = 1) -> Rows:
    """Forecast and measure real matrices with every library that is installed, held back from the fit.

    This machine's profile must have Records of libraries (calibrate --libraries). An error is |forecast /
    measured - 1|; the ratio of medians says how much worse libraries are forecast than our formats.
    """
    asked = [*(matrices or ()), *in_folder(folder)] or ["gallery:poisson3d?n=30", "gallery:rmat?scale=12"]
    found = sc.evaluate(asked, threads=threads, library="any", models=["sparsecast"], keeps=False)
    errors: dict[str, list[EvaluationRow]] = {}
    for row in found.rows:
        errors.setdefault(row.estimate.candidate.format, []).append(row)
    medians = {}
    for is_library in (False, True):
        names = sorted(name for name in errors if FORMATS.get(name).is_library == is_library)
        for name in (*names, "all libraries" if is_library else "our formats"):
            rows = errors[name] if name in errors else [row for each in names for row in errors[each]]
            values = [abs(row.error) for row in rows]
            medians[is_library] = float(np.median(values)) if values else math.nan
            is_within = [
                row.estimate.low <= row.measured <= row.estimate.high for row in rows if row.estimate.low
            ]
            yield {
                "format": name,
                "matrices": len({row.matrix for row in rows}),
                "median error": medians[is_library],
                "p90 error": float(np.quantile(values, 0.9)) if values else math.nan,
                "within the interval": float(np.mean(is_within)) if is_within else math.nan,
            }
    yield f"Median error of libraries over that of our formats: {medians[True] / medians[False]:.2f}."
    yield from (f"{name} left out: {why}" for name, why in found.refused.items())
