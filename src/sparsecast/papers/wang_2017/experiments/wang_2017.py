"""`sparsecast paper wang-2017`: errors, factors and wins of section 4 of Wang, Gu and Li (2017)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from statistics import median
from typing import Any

import numpy as np

from sparsecast.api.trials import (
    MATRIX,
    MEAN_ERRORS,
    WAYS,
    StripExperiment,
    Trial,
    Trials,
    left_out_in_words,
    mean_errors,
    records_of,
)
from sparsecast.benchmark.experiments import EXPERIMENTS, ExperimentSetting
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import strip_rows
from sparsecast.matrices.atlas import atlas
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.papers import described, published
from sparsecast.papers.wang_2017.row_length_model import GPU_VECTOR, LENGTHS, P1, WangModel
from sparsecast.records import Record
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.fits import Fit, fits, forecasts
from sparsecast.results.paper import PaperReport, known_mean
from sparsecast.system.tabular import Column, Table, grouped
from sparsecast.system.texts import percent

#: The kernels of the paper, by their names in `published.toml`.
KERNELS = {"csr_vector": "CSR-V", "csr": "CSR-S", "ell": "ELL", "jad": "JAD"}

#: Matrices by default: meshes, bands and a graph of the gallery, and twins of real ones whose rows are alike.
GALLERY = tuple(
    f"gallery:{name}"
    for name in (
        *("poisson2d?n=400", "elasticity3d?n=18", "banded?n=40000&half_bandwidth=12"),
        *("poisson3d?n=40&points=27", "rmat?scale=15&degree=12", "poisson3d?n=90&points=7"),
        *("random?n=150000&nnz_per_row=6", "poisson3d?n=36&points=27", "banded?n=100000&half_bandwidth=4"),
        *("banded?n=20000&half_bandwidth=30", "poisson3d?n=50&points=27", "elasticity3d?n=24"),
    )
)
TWINS, TWIN_ENTRIES, LEAST_ROWS = 22, range(60_000, 2_000_000), 3_000

#: The longest row over the mean one, up to which the rows of a matrix count as alike.
ALIKE = 2.0

#: Deviations over the mean that are tried, and the strips of the matrices.
SPREADS_TRIED, SPREAD_STRIPS = (0.125, 0.25, 0.5), 5

#: The distributions whose times are compared with those of rows of one length.
VARIED = tuple(lengths for lengths in LENGTHS if lengths != "fixed")

KERNEL, MODEL = Column("kernel", "kernel"), Column("model", "model")
SKEW = (
    KERNEL,
    MODEL,
    Column("skewed", "matrices"),
    Column("skewed_error", "error", text=percent),
    Column("skewed_at_mean", "error, P the mean", text=percent),
)
OVER_FIXED = (
    KERNEL,
    Column("points", "sizes"),
    *(Column(lengths, lengths, text="{:.2f}".format) for lengths in VARIED),
)
SPREADS = (
    Column("lengths", "row lengths"),
    Column("spread", "deviation over mean", text="{:g}".format),
    *(Column(key, f"{name}, over fixed", text="{:.2f}".format) for key, name in KERNELS.items()),
)
#: Errors, and those of wang-fixed over them.
MEANS = (
    KERNEL,
    MODEL,
    *MEAN_ERRORS,
    *(Column(f"{way}_factor", f"wang-fixed over it, {heading}") for way, heading in WAYS.items()),
    Column("paper_factor", "wang-fixed over it, the paper"),
)
WINS = (
    KERNEL,
    MODEL,
    Column("against", "against"),
    *(Column(way, f"wins, {heading}") for way, heading in WAYS.items()),
    Column("matrices", "of"),
    Column("paper", "the paper, of 30"),
)

BY_MATRIX = (
    MATRIX,
    KERNEL,
    Column("measured_s", "measured"),
    *(Column(name, name, text=percent) for name in published("wang_2017")["mean_errors"]),
)

#: What the first tables are of.
LIKE = (
    f"Of matrices whose longest row is within {ALIKE:g} times the mean. Others are in a table below: P "
    f"of a model is the longest row."
)

#: Trials by kernel and model.
Tried = Mapping[tuple[str, str], Sequence[Trial]]


@EXPERIMENTS.register("wang-2017")
class Wang2017(StripExperiment):
    """Models of four distributions of row lengths, next to the errors that the paper prints."""

    paper = described("wang_2017")
    suite = "wang"

    def models(self) -> list[type[Model]]:
        return [MODELS.get(name) for name in published("wang_2017")["mean_errors"]]

    def default_matrices(self) -> Sequence[str]:
        """Return matrices whose rows are alike, and a graph."""
        twins = atlas().twins(
            lambda found: (
                found.nnz in TWIN_ENTRIES
                and found.rows >= LEAST_ROWS
                and found.row_lengths.max <= ALIKE * found.row_lengths.mean
            )
        )
        return (*GALLERY, *islice(twins, TWINS))

    def report(self, trials: Trials, setting: ExperimentSetting, start_s: float | None) -> PaperReport:
        """Return the tables; a run that measures has spreads of row lengths, too."""
        tried, skewed = (
            grouped(
                [trial for trial in trials.rows if _is_skewed(trial) == wanted],
                lambda trial: (_kernel(trial.record), trial.model),
            )
            for wanted in (False, True)
        )
        models = [model for model, _ in trials.fitted if isinstance(model, WangModel)]
        means, by_matrix = list(_means(tried)), list(_by_matrix(trials.rows))
        over_title, left_out = "Time over that of rows of one length, median of the grid", trials.left_out()
        over_fixed = Table(over_title, OVER_FIXED, list(_over_fixed(models)))
        skew_title = f"Matrices whose longest row is above {ALIKE:g} times the mean"
        tables = [
            Table("Mean errors and factors (section 4, figures 7 to 10)", MEANS, means, (LIKE,)),
            Table("Matrices with the smaller error (section 4)", WINS, list(_wins(tried))),
            Table("Times and errors by matrix (figures 7 to 14)", BY_MATRIX, by_matrix, most=12),
            over_fixed,
            Table(skew_title, SKEW, list(_of_skewed(skewed, models))),
        ]
        tables = [*(tables if trials.rows else [over_fixed]), *([left_out] if left_out.rows else [])]
        if start_s is not None:
            spreads = list(_spreads(setting, trials))
            tables.append(Table("Time of a product by the spread of its row lengths", SPREADS, spreads))
        points = {
            name: [trial.point("ours", trial.model) for trial in trials.rows if _kernel(trial.record) == key]
            for key, name in KERNELS.items()
        }
        charts = {"wang-2017-fits": _fits(models)}
        if trials.rows:
            charts["wang-2017"] = forecasts("forecasts", {name: own for name, own in points.items() if own})
        missing = ", ".join(name for name, of_kernel in points.items() if not of_kernel)
        lacking = [f"Without measurements or fits: {missing}."] if missing else []
        normal = [
            f"{row['ours']:.1%} ({row['kernel']})"
            for row in means
            if row["model"] == "wang-normal" and row["ours"] is not None
        ]
        return PaperReport(
            self.paper,
            trials.profile.name,
            tuple(tables),
            charts,
            (*self.paper.notes, *trials.notes, *lacking),
            f"mean errors of {', '.join(normal)}, normal row lengths, on matrices with rows alike"
            if normal
            else left_out_in_words(left_out),
        )


def _is_skewed(trial: Trial) -> bool:
    lengths = trial.structure.row_lengths
    return lengths.max > ALIKE * lengths.mean


def _kernel(record: Record) -> str:
    return "csr_vector" if record.candidate.kernel == GPU_VECTOR else record.candidate.format


def _fits(models: Sequence[WangModel]) -> Chart:
    """Return the fits of normal and uniform lengths, a kernel after the other."""
    kernels: dict[str, dict[str, Fit]] = {}
    for model in models:
        for label, lines in model.fits_.items() if model.lengths in ("normal", "uniform") else ():
            kernels.setdefault(label.upper(), {})[model.lengths] = Fit.of(model.grids_[label], lines)
    return fits("fits", kernels)


def _means(tried: Tried) -> Iterator[dict[str, Any]]:
    """Give the errors of each kernel that was tried, and the errors of wang-fixed over them."""
    numbers = published("wang_2017")
    for (key, name), (model, printed) in product(KERNELS.items(), numbers["mean_errors"].items()):
        if trials := tried.get((key, model), ()):
            means, fixed = mean_errors(trials), mean_errors(tried.get((key, "wang-fixed"), ()))
            yield {
                **{"kernel": name, "model": model, "paper": printed.get(key), **means},
                **dict.fromkeys(f"{way}_factor" for way in WAYS),
                **{f"{way}_factor": fixed[way] / means[way] for way in WAYS if fixed[way] and means[way]},
                "paper_factor": numbers["factors"].get(model, {}).get(key),
            }


def _wins(tried: Tried) -> Iterator[dict[str, Any]]:
    for printed in published("wang_2017")["comparisons"]:
        key, names = printed["kernel"], (printed["first"], printed["second"])
        first, second = ({trial.matrix: trial for trial in tried.get((key, name), ())} for name in names)
        both = first.keys() & second.keys()
        if not both:
            continue
        wins = {
            way: sum(first[matrix].error(way) < second[matrix].error(way) for matrix in both) for way in WAYS
        }
        row = {"kernel": KERNELS[key], "model": names[0], "against": names[1], "matrices": len(both)}
        yield {**row, **wins, "paper": printed["first_better"]}


def _of_skewed(tried: Tried, models: Sequence[WangModel]) -> Iterator[dict[str, Any]]:
    fitted = {model.name: model for model in models}
    for (key, name), skewed in tried.items():
        at_mean = []  # as if P were the mean row of the matrix, not the longest or the mode
        for trial in skewed:
            mean = np.array([trial.structure.row_lengths.mean])
            blocks = replace(RowBlocks.of(trial.structure), row_length_max=mean, row_length_mode=mean)
            ours_s = float(fitted[name].values(trial.record.candidate, blocks)[0])
            at_mean.append(replace(trial, forecasts_s={"ours": ours_s}).error("ours"))
        yield {
            "kernel": KERNELS[key],
            "model": name,
            "skewed": len(skewed),
            "skewed_error": known_mean(trial.error("ours") for trial in skewed),
            "skewed_at_mean": known_mean(at_mean),
        }


def _by_matrix(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    """Give a row for each matrix and kernel: the time, and the errors of all models."""
    for (matrix, key), own in grouped(trials, lambda trial: (trial.matrix, _kernel(trial.record))).items():
        errors = {trial.model: trial.error("ours") for trial in own}
        yield {"matrix": matrix, "kernel": KERNELS[key], "measured_s": own[0].record.time_s, **errors}


def _over_fixed(models: Sequence[WangModel]) -> Iterator[dict[str, Any]]:
    """Compare the times of the benchmark matrices with those of rows of one length, of the same size."""
    times_s: dict[str, dict[str, dict[tuple[float, float], float]]] = {lengths: {} for lengths in LENGTHS}
    for model in models:
        for label, grid in model.grids_.items():
            sizes = zip(grid.nnz_per_row.tolist(), grid.strips.tolist(), strict=True)
            times_s[model.lengths][label] = dict(zip(sizes, grid.time_s.tolist(), strict=True))
    for label, fixed_s in times_s["fixed"].items():
        medians = {}
        for lengths in VARIED:
            own_s = times_s[lengths].get(label, {})
            ratios = [time_s / fixed_s[size] for size, time_s in own_s.items() if size in fixed_s]
            medians[lengths] = median(ratios) if ratios else None
        kernel = "csr_vector" if GPU_VECTOR in label else label.partition(" ")[0]
        yield {"kernel": KERNELS[kernel], "points": len(fixed_s), **medians}


def _spreads(setting: ExperimentSetting, trials: Trials) -> Iterator[dict[str, Any]]:
    """Measure matrices of normal and uniform lengths with several spreads, over rows of one length."""
    rows = SPREAD_STRIPS * strip_rows(trials.profile.machine, trials.target.threads, "ell")
    fixed_s: dict[str, float] = {}
    for lengths, spread in (("fixed", None), *product(("normal", "uniform"), SPREADS_TRIED)):
        shape = f"row lengths?rows={rows}&mean_length={P1}&lengths={lengths}"
        problem = Problem.named(shape if spread is None else f"{shape}&spread={spread:g}")
        setting.on_progress(setting.budget_s, setting.budget_s, problem.name)
        by_kernel = grouped(records_of(problem, trials.target, setting, trials.fitted), _kernel)
        times_s = {key: min(record.time_s for record in own) for key, own in by_kernel.items()}
        fixed_s = fixed_s or times_s
        ratios = {key: times_s[key] / fixed_s[key] for key in KERNELS if key in times_s and key in fixed_s}
        yield {**dict.fromkeys(KERNELS), "lengths": lengths, "spread": spread or 0.0, **ratios}
