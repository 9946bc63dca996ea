"""`sparsecast paper wang-2017`: errors, factors and wins of section 4 of Wang, Gu and Li (2017)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np

from sparsecast.api.trials import Trial, Trials, measured_trials, recorded_trials, records_of, shown_name
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import Profile
from sparsecast.machines.strips import strip_rows
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.papers import published
from sparsecast.papers.wang_2017.grids import LENGTHS
from sparsecast.papers.wang_2017.row_length_model import GPU_VECTOR, P1, WangModel
from sparsecast.records import Candidate
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.fits import Fit, fits, forecasts
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent

#: The kernels of the paper, by their names in `published.toml`.
KERNELS = {"csr_vector": "CSR-V", "csr": "CSR-S", "ell": "ELL", "jad": "JAD"}

ITEMS = (
    PaperItem(
        "Section 3.1, grids",
        "differs",
        "what exceeds memory or budget is left out; T(P) of long rows at fewer strips on a large GPU",
    ),
    PaperItem(
        "Section 3.1, spread of the lengths",
        "differs",
        "not printed: 0.25 and 0.5; a run that measures has a table of its effect",
    ),
    PaperItem("CSR-V and CSR-S", "differs", "rows of their own; a processor has no half-warps, so no CSR-V"),
    PaperItem("Single precision", "done", "float32 without --dtype"),
    PaperItem(
        "Section 4, the 30 matrices",
        "cannot be had here",
        "the paper names six of them, which can be named as MATRIX",
    ),
    PaperItem("Section 4, means, factors, wins", "done", "with our fits and as printed"),
    PaperItem("Section 4, order of the models", "differs", "two tables say why"),
    PaperItem("Figures 7 to 14, by matrix", "done", "as a table and a chart: the paper prints no numbers"),
    PaperItem("Figures 1 to 6, lines of the fits", "done", "figure 6, a surface, as its lines"),
    PaperItem("GeForce GTX 540M", "cannot be had here", "no such GPU"),
    PaperItem("Published machines", "cannot be had here", "no times of such matrices, nor of JAD"),
)

_WAYS = (
    Column("ours", "our fits", text=percent),
    Column("printed", "as printed", text=percent),
    Column("paper", "the paper", text=percent),
)
MEANS = (
    Column("kernel", "kernel"),
    Column("model", "model"),
    Column("matrices", "matrices"),
    *_WAYS,
    Column("sparsecast", "our model sparsecast", text=percent),
)
#: The longest row over the mean one, up to which the rows of a matrix count as alike.
ALIKE = 2.0

SKEW = (
    Column("kernel", "kernel"),
    Column("model", "model"),
    Column("alike", f"matrices up to {ALIKE:g}"),
    Column("alike_error", "error", text=percent),
    Column("skewed", "matrices above"),
    Column("skewed_error", "error", text=percent),
    Column("skewed_at_mean", "error, P the mean", text=percent),
)
OVER_FIXED = (
    Column("kernel", "kernel"),
    Column("points", "sizes"),
    *(Column(lengths, lengths, text="{:.2f}".format) for lengths in LENGTHS if lengths != "fixed"),
)
#: Deviations over the mean that are tried, and the strips of the matrices.
SPREADS_TRIED, SPREAD_STRIPS = (0.125, 0.25, 0.5), 5

SPREADS = (
    Column("lengths", "row lengths"),
    Column("spread", "deviation over mean", text="{:g}".format),
    *(Column(key, f"{name}, over fixed", text="{:.2f}".format) for key, name in KERNELS.items()),
)
FACTORS = (
    Column("kernel", "kernel"),
    Column("model", "model"),
    Column("ours", "our fits"),
    Column("printed", "as printed"),
    Column("paper", "the paper"),
)
WINS = (
    Column("kernel", "kernel"),
    Column("model", "model"),
    Column("against", "against"),
    Column("ours", "wins, our fits"),
    Column("printed", "wins, as printed"),
    Column("matrices", "of"),
    Column("paper", "the paper, of 30"),
)
TRIALS = (
    Column("matrix", "matrix", text=shown_name),
    Column("kernel", "kernel"),
    Column("model", "model"),
    Column("measured_s", "measured"),
    Column("ours_s", "our fits"),
    Column("printed_s", "as printed"),
    Column("ours", "error, our fits", text=percent),
    Column("printed", "error, as printed", text=percent),
)


@EXPERIMENTS.register("wang-2017")
class Wang2017(Experiment):
    """Models of four distributions of row lengths, next to the errors that the paper prints."""

    paper = Paper(
        name="wang-2017",
        authors="R. Wang, T. Gu, M. Li",
        title="Performance Prediction Based on Statistics of Sparse Matrix-Vector Multiplication on GPUs",
        forecasts="products on a GPU in CSR-V, CSR-S, ELL and JAD",
        headline="mean errors of {csr_vector:.1%} (CSR-V) to {jad:.1%} (JAD), normal row lengths".format(
            **published("wang_2017")["mean_errors"]["wang-normal"]
        ),
        never_run="its GeForce GTX 540M, and 24 matrices that it does not name",
    )

    def run(self, setting: Setting) -> PaperReport:
        """Measure the benchmark matrices, then the matrices that are named, and spreads of row lengths."""
        trials = measured_trials(setting, _models(), "wang")
        return self._report(trials, list(_spreads(setting, trials)))

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Take what was measured before."""
        return self._report(recorded_trials(profile, setting, _models()))

    def _report(self, trials: Trials, spreads: Sequence[dict[str, Any]] = ()) -> PaperReport:
        by_kernel = {key: [trial for trial in trials.rows if _kernel(trial) == key] for key in KERNELS}
        means = list(_means(by_kernel))
        models = {model.name: model for model, _ in trials.fitted if isinstance(model, WangModel)}
        tables = [
            Table("Mean errors (section 4, figures 7 to 10)", MEANS, means),
            Table(
                "Error of wang-fixed over that of the model (section 4)", FACTORS, list(_factors(by_kernel))
            ),
            Table("Matrices with the smaller error (section 4)", WINS, list(_wins(by_kernel))),
            Table(
                "Mean errors by the longest row over the mean one", SKEW, list(_by_skew(by_kernel, models))
            ),
            Table(
                "Time over that of rows of one length, median of the grid",
                OVER_FIXED,
                list(_over_fixed(models)),
            ),
            Table("Times and errors by matrix (figures 7 to 14)", TRIALS, list(_rows(trials.rows)), most=40),
        ]
        if spreads:
            tables.append(Table("Time of a product by the spread of its row lengths", SPREADS, spreads))
        notes = [
            "wang-fixed is the model of reference 16, for the same kernels; wang-binomial is ours.",
            "P of a matrix is its longest row but for CSR-V (below equation 6). Where that is far above the "
            "mean, as in graphs, every model is far too long, and such matrices decide the mean errors. The "
            "table by the longest row has their errors with the mean row as P, too.",
            "wang-fixed was measured on rows of one length, the others on rows that end irregularly, or are "
            "padded. Where that takes long (table of times over those of rows of one length), and a matrix "
            "has rows that are alike, wang-fixed is ahead.",
            *trials.notes,
        ]
        missing = [KERNELS[key] for key, of_kernel in by_kernel.items() if not of_kernel]
        if missing:
            notes.append(f"Without measurements or fits: {', '.join(missing)}.")
        normal = [
            f"{row['ours']:.1%} ({row['kernel']})"
            for row in means
            if row["model"] == "wang-normal" and row["ours"] is not None
        ]
        ours = f"mean errors of {', '.join(normal)}, normal row lengths" if normal else ""
        charts = {"wang-2017-fits": _fits(trials.fitted)}
        if trials.rows:
            charts["wang-2017"] = forecasts(
                "forecasts",
                {
                    KERNELS[key]: [(shown_name(t.matrix), t.model, t.measured_s, t.ours_s) for t in of_kernel]
                    for key, of_kernel in by_kernel.items()
                    if of_kernel
                },
            )
        return PaperReport(
            self.paper,
            trials.profile.name,
            tuple(tables),
            ITEMS,
            charts=charts,
            notes=tuple(notes),
            ours=ours,
        )


def _models() -> list[type[Model]]:
    return [MODELS.get(name) for name in published("wang_2017")["mean_errors"]]


def _fits(fitted: Sequence[tuple[Model, Model]]) -> Chart:
    """Return the fits of normal and uniform lengths, a kernel after the other."""
    kernels: dict[str, dict[str, Fit]] = {}
    for model, _ in fitted:
        assert isinstance(model, WangModel)
        for label, lines in model.fits_.items() if model.lengths in ("normal", "uniform") else ():
            fit = Fit.of(model.grids_[label], lines)
            kernels.setdefault(label.upper(), {})[model.lengths] = fit
    return fits("fits", kernels)


def _spreads(setting: Setting, trials: Trials) -> Iterator[dict[str, Any]]:
    """Measure matrices of normal and uniform lengths with several spreads, over rows of one length."""
    rows = SPREAD_STRIPS * strip_rows(trials.profile.machine, trials.target.threads, "ell")
    fixed: dict[str, float] = {}
    for lengths, spread in (("fixed", None), *product(("normal", "uniform"), SPREADS_TRIED)):
        shape = f"lengths?rows={rows}&mean_length={P1}&lengths={lengths}"
        problem = Problem.named(f"row {shape}" if spread is None else f"spread {shape}&spread={spread:g}")
        setting.on_progress(setting.budget_s, setting.budget_s, problem.name)
        records = records_of(problem, trials.target, setting, trials.fitted)
        times_s = {
            key: min(r.time_s for r in records if _kernel_of(r.candidate) == key)
            for key in {_kernel_of(r.candidate) for r in records} & KERNELS.keys()
        }
        fixed = fixed or times_s
        yield {
            "lengths": lengths,
            "spread": spread or 0.0,
            **{
                key: times_s[key] / fixed[key] if key in times_s and key in fixed else None for key in KERNELS
            },
        }


def _by_skew(by_kernel: dict[str, list[Trial]], models: Mapping[str, WangModel]) -> Iterator[dict[str, Any]]:
    for key, name in KERNELS.items():
        for model in published("wang_2017")["mean_errors"]:
            alike: list[Trial] = []
            skewed: list[Trial] = []
            for trial in by_kernel[key]:
                if trial.model == model:
                    lengths = trial.structure.row_lengths
                    (alike if lengths.max <= ALIKE * lengths.mean else skewed).append(trial)
            at_mean = [_error_at_mean(trial, models[model]) for trial in skewed]
            yield {
                "kernel": name,
                "model": model,
                "alike": len(alike),
                "alike_error": _mean(alike, model, "ours"),
                "skewed": len(skewed),
                "skewed_error": _mean(skewed, model, "ours"),
                "skewed_at_mean": fmean(at_mean) if at_mean else None,
            }


def _error_at_mean(trial: Trial, model: WangModel) -> float:
    """Return the error of our fits where P is the mean row of the matrix, not the longest or the mode."""
    mean = np.array([trial.structure.row_lengths.mean])
    blocks = replace(RowBlocks.of(trial.structure), row_length_max=mean, row_length_mode=mean)
    return abs(float(model.values(trial.candidate, blocks)[0]) - trial.measured_s) / trial.measured_s


def _over_fixed(models: Mapping[str, WangModel]) -> Iterator[dict[str, Any]]:
    """Compare the times of the benchmark matrices with those of rows of one length, of the same size."""
    times_s = {
        (model.lengths, label): dict(
            zip(zip(grid.nnz_per_row, grid.strips, strict=True), grid.time_s, strict=True)
        )
        for model in models.values()
        for label, grid in model.grids_.items()
    }
    for label in dict.fromkeys(label for lengths, label in times_s if lengths == "fixed"):
        fixed = times_s["fixed", label]
        ratios = {
            lengths: [
                time_s / fixed[size] for size, time_s in times_s[lengths, label].items() if size in fixed
            ]
            for lengths in LENGTHS
            if lengths != "fixed" and (lengths, label) in times_s
        }
        yield {
            "kernel": KERNELS["csr_vector" if GPU_VECTOR in label else label.partition(" ")[0]],
            "points": len(fixed),
            **{lengths: median(of_sizes) for lengths, of_sizes in ratios.items() if of_sizes},
        }


def _kernel(trial: Trial) -> str:
    return _kernel_of(trial.candidate)


def _kernel_of(candidate: Candidate) -> str:
    return "csr_vector" if candidate.kernel == GPU_VECTOR else candidate.format


def _mean(trials: Sequence[Trial], model: str, way: str) -> float | None:
    errors = [error for t in trials if t.model == model and (error := getattr(t, way)) is not None]
    return fmean(errors) if errors else None


def _means(by_kernel: dict[str, list[Trial]]) -> Iterator[dict[str, Any]]:
    for key, name in KERNELS.items():
        for model, printed in published("wang_2017")["mean_errors"].items():
            yield {
                "kernel": name,
                "model": model,
                "matrices": len({trial.matrix for trial in by_kernel[key] if trial.model == model}),
                **{way: _mean(by_kernel[key], model, way) for way in ("ours", "printed", "sparsecast")},
                "paper": printed.get(key),
            }


def _factors(by_kernel: dict[str, list[Trial]]) -> Iterator[dict[str, Any]]:
    for key, name in KERNELS.items():
        for model, printed in published("wang_2017")["factors"].items():
            row: dict[str, Any] = {"kernel": name, "model": model, "paper": printed[key]}
            for way in ("ours", "printed"):
                fixed, error = (_mean(by_kernel[key], m, way) for m in ("wang-fixed", model))
                row[way] = fixed / error if fixed and error else None
            yield row


def _wins(by_kernel: dict[str, list[Trial]]) -> Iterator[dict[str, Any]]:
    for printed in published("wang_2017")["comparisons"]:
        key, first, second = printed["kernel"], printed["first"], printed["second"]
        errors = {(trial.model, trial.matrix): trial for trial in by_kernel[key]}
        pairs = [
            (trial, errors[second, matrix])
            for (model, matrix), trial in errors.items()
            if model == first and (second, matrix) in errors
        ]
        wins = {
            way: sum(getattr(a, way) < getattr(b, way) for a, b in pairs) if pairs else None
            for way in ("ours", "printed")
        }
        yield {
            "kernel": KERNELS[key],
            "model": first,
            "against": second,
            **wins,
            "matrices": len(pairs),
            "paper": printed["first_better"],
        }


def _rows(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    for trial in trials:
        names = ("matrix", "model", "measured_s", "ours_s", "printed_s", "ours", "printed")
        yield {"kernel": KERNELS[_kernel(trial)], **{name: getattr(trial, name) for name in names}}
