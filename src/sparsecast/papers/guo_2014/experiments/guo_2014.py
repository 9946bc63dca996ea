"""`sparsecast paper guo-2014`: errors of section 5.1 of Guo, Wang and Chen (2014), and Table 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np

from sparsecast.api.executing import check
from sparsecast.api.forecasting import plan
from sparsecast.api.trials import Trial, Trials, measured_trials, recorded_trials
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.strip_lines import Grid
from sparsecast.papers import published
from sparsecast.papers.guo_2014.models.guo import GuoModel
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.fits import Fit, fits, forecasts
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent

#: Forecasts that differ by less are equal.
EQUAL = 1e-9

#: An error that the paper counts as small (section 5.1).
SMALL_ERROR = 0.09

ITEMS = (
    PaperItem("Section 5.1, Figs 13 to 17, errors by format", "done", "with our fits and as printed"),
    PaperItem("Table 3, optimal solutions", "done", "of whole matrices, ties named; split ones under OPT"),
    PaperItem(
        "Table 3, ELL on 10 of the 22", "differs", "our limit of padding decides where ELL is measured"
    ),
    PaperItem("Fig. 18, errors of OPT", "done", "plans as printed, built and measured; not with --from"),
    PaperItem(
        "Fig. 19, gains of OPT", "differs", "of the fastest format that was measured, and of OPT over CSR"
    ),
    PaperItem("Section 4, the tool", "done", "`plan --as-printed --model guo`, with the printed fits"),
    PaperItem("Section 3.2.2, lengths beyond 1,024", "done", "2,048 and 3,072 non-zeros a row for CSR"),
    PaperItem("Figs 4 to 7, time over P and I", "done", "a chart"),
    PaperItem("Tesla C2050", "cannot be had here", "no such GPU"),
)

_ERRORS = (Column("ours", "our fits", text=percent), Column("printed", "as printed", text=percent))
MEANS = (
    Column("format", "format", text=str.upper),
    Column("matrices", "matrices"),
    *_ERRORS,
    Column("paper", "the paper", text=percent),
    Column("sparsecast", "our model sparsecast", text=percent),
)
SMALL = (
    Column("whose", "whose"),
    Column("below", "errors below 9 %"),
    Column("of", "of"),
)
TRIALS = (
    Column("matrix", "matrix"),
    Column("format", "format", text=str.upper),
    Column("measured_s", "measured"),
    Column("ours_s", "our fits"),
    Column("printed_s", "as printed"),
    *_ERRORS,
)
SOLUTIONS = (
    Column("matrix", "matrix"),
    Column("paper", "the paper"),
    Column("ours", "forecast, our fits", text=str.upper),
    Column("printed", "forecast, as printed", text=str.upper),
    Column("fastest", "fastest measured", text=str.upper),
    *(Column(f"gain_{name}", f"gain over {name.upper()}", text=percent) for name in ("csr", "coo", "hyb")),
)
OPTIMAL = (
    Column("matrix", "matrix"),
    Column("solution", "solution"),
    Column("forecast_s", "forecast"),
    Column("measured_s", "measured"),
    Column("error", "error", text=percent),
    Column("gain_csr", "gain over CSR", text=percent),
)
GAINS = (
    Column("format", "over", text=str.upper),
    Column("matrices", "matrices"),
    Column("ours", "fastest measured", text=percent),
    Column("paper", "OPT of the paper", text=percent),
)


@EXPERIMENTS.register("guo-2014")
class Guo2014(Experiment):
    """Models of strips for CSR, ELL, COO and HYB, next to the errors and choices that the paper prints."""

    paper = Paper(
        name="guo-2014",
        authors="P. Guo, L. Wang, P. Chen",
        title="A Performance Modeling and Optimization Analysis Tool for Sparse Matrix-Vector Multiplication "
        "on GPUs",
        forecasts="products on a GPU in CSR, ELL, COO and HYB, and the best split of a matrix",
        headline="mean errors of {csr:.1%} (CSR), {ell:.1%} (ELL), {coo:.1%} (COO), {hyb:.1%} (HYB)".format(
            **published("guo_2014")["mean_errors"]
        ),
        never_run="its Tesla C2050",
    )

    def run(self, setting: Setting) -> PaperReport:
        """Measure the benchmark matrices, then the matrices that are named, and the plans of each."""
        start_s = perf_counter()
        measured = measured_trials(setting, [MODELS.get("guo")], "guo")
        return self._report(measured, list(_optimal(setting, measured, start_s)))

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Take what was measured before."""
        return self._report(recorded_trials(profile, setting, [MODELS.get("guo")]))

    def _report(self, measured: Trials, optimal: Sequence[dict[str, Any]] = ()) -> PaperReport:
        trials = measured.rows
        solutions, means = list(_solutions(trials)), list(_means(trials))
        tables = [
            Table("Mean errors (section 5.1, Fig. 17)", MEANS, means),
            Table("Errors below 9 % (section 5.1)", SMALL, list(_small(trials))),
            Table("Fastest formats (Table 3)", SOLUTIONS, solutions, most=30),
            Table("Mean gains (Fig. 19)", GAINS, list(_gains(solutions))),
            Table("Times by matrix (Figs 13 to 16)", TRIALS, list(_rows(trials)), most=40),
        ]
        if optimal:
            mean, paper = fmean(row["error"] for row in optimal), published("guo_2014")["opt"]["mean_error"]
            below = f"mean error {percent(mean)}; the paper, six matrices of two blocks: {percent(paper)}"
            tables.append(Table("OPT as printed (Fig. 18)", OPTIMAL, optimal, (below,)))
        with_ell = len({t.matrix for t in trials if t.candidate.format == "ell"})
        known = [f"suitesparse:{s['suitesparse']}" for s in _published() if "suitesparse" in s]
        notes = (
            f"ELL was measured on {with_ell} of {len(solutions)} matrices, the paper's on "
            f"{published('guo_2014')['cases']['ell']} of {len(_published())}: others pad beyond our limit.",
            "Gain: (time of the format - time of the fastest) / time of the format. The paper's means are of "
            "the six matrices that it splits.",
            f"Matrices of Table 3: {', '.join(known)}; Dense is not "
            "in the collection, and seven matrices have the rows of QCD.",
        )
        errors = [f"{row['ours']:.1%} ({row['format'].upper()})" for row in means if row["ours"] is not None]
        ours = f"mean errors of {', '.join(errors)}" if errors else ""
        charts = {"guo-2014-fits": _fits(measured.fitted[0][0])}
        if trials:
            charts["guo-2014"] = forecasts(
                "forecasts",
                {
                    name.upper(): [
                        (t.matrix, way, t.measured_s, seconds)
                        for t in trials
                        if t.candidate.format == name
                        for way, seconds in (("our fits", t.ours_s), ("as printed", t.printed_s))
                    ]
                    for name in dict.fromkeys(t.candidate.format for t in trials)
                },
            )
        return PaperReport(
            self.paper,
            measured.profile.name,
            tuple(tables),
            ITEMS,
            charts=charts,
            notes=(*notes, *measured.notes),
            ours=ours,
        )


def _fits(model: Model) -> Chart:
    """Return figures 4 to 7: the relationships of CSR, ELL and COO."""
    assert isinstance(model, GuoModel)
    kernels: dict[str, dict[str, Fit]] = {}
    for name, lines in (("csr", model.csr_), ("ell", model.ell_)):
        if lines is not None:
            kernels[name.upper()] = {"fit": Fit.of(model.grids_[name], lines)}
    if (line := model.coo_) is not None:
        grid = model.grids_["coo"]  # of which strips of non-zeros alone count
        alike = Grid(np.ones(len(grid.strips)), grid.strips, grid.time_s)
        kernels["COO"] = {"fit": Fit(alike, lambda nnz_per_row, strips: line(strips))}
    return fits("fits", kernels)


def _published() -> list[dict[str, Any]]:
    solutions: list[dict[str, Any]] = published("guo_2014")["solutions"]
    return solutions


def _stem(matrix: str) -> str:
    """Return the name of a matrix in the collection, of its specification."""
    return matrix.rpartition("/")[2].partition(".")[0].partition("?")[0]


def _solution(solution: dict[str, Any] | None) -> str | None:
    """Return a row of Table 3 as the paper writes it."""
    if solution is None:
        return None
    return ", ".join(
        f"[{block['strips'][0]}, {block['strips'][1]}] {'/'.join(block['formats']).upper()}"
        for block in solution["blocks"]
    )


def _means(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    for name, paper in published("guo_2014")["mean_errors"].items():
        of_format = [trial for trial in trials if trial.candidate.format == name]
        means = {
            way: fmean(getattr(trial, way) for trial in of_format) if of_format else None
            for way in ("ours", "printed")
        }
        own = [trial.sparsecast for trial in of_format if trial.sparsecast is not None]
        means["sparsecast"] = fmean(own) if own else None
        yield {"format": name, "matrices": len({t.matrix for t in of_format}), **means, "paper": paper}


def _small(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    for way, whose in (("ours", "our fits"), ("printed", "as printed")):
        below = sum(getattr(trial, way) < SMALL_ERROR for trial in trials)
        yield {"whose": whose, "below": below, "of": len(trials)}
    cases = published("guo_2014")["cases"]
    yield {"whose": "the paper", "below": cases["below_9_percent"], "of": cases["all"]}


def _solutions(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    printed = {
        solution["suitesparse"].rpartition("/")[2]: solution
        for solution in _published()
        if "suitesparse" in solution
    }
    for matrix in dict.fromkeys(trial.matrix for trial in trials):
        of_matrix = [trial for trial in trials if trial.matrix == matrix]
        fastest = min(of_matrix, key=lambda trial: trial.measured_s)
        times_s: dict[str, float] = {}
        for trial in of_matrix:
            times_s.setdefault(trial.candidate.format, trial.measured_s)
        yield {
            "matrix": matrix,
            "paper": _solution(printed.get(_stem(matrix))),
            "ours": _least(of_matrix, lambda trial: trial.ours_s),
            "printed": _least(of_matrix, lambda trial: trial.printed_s),
            "fastest": fastest.candidate.format,
            **{
                f"gain_{name}": (times_s[name] - fastest.measured_s) / times_s[name]
                if name in times_s
                else None
                for name in ("csr", "coo", "hyb")
            },
        }


def _least(trials: Sequence[Trial], seconds: Callable[[Trial], float]) -> str:
    """Return the formats of the least forecast: HYB with all entries in its ELL part is one with ELL."""
    least_s = min(map(seconds, trials))
    return "/".join(dict.fromkeys(t.candidate.format for t in trials if seconds(t) <= (1 + EQUAL) * least_s))


def _optimal(setting: Setting, measured: Trials, start_s: float) -> Iterator[dict[str, Any]]:
    """Plan each matrix as printed, and measure what was planned, within the budget."""
    for name in dict.fromkeys(trial.matrix for trial in measured.rows):
        used_s, problem = perf_counter() - start_s, Problem.rebuilt(name)
        if problem is None or used_s > setting.budget_s:
            continue
        setting.on_progress(used_s, setting.budget_s, f"plan of {problem.name}")
        candidate = measured.rows[0].candidate
        chosen = plan(
            problem,
            measured.profile,
            threads=candidate.threads,
            dtype=candidate.dtype,
            model="guo",
            as_printed=True,
            drift_correction=False,
        )
        checked = check(problem, chosen, device=setting.device)
        yield {
            "matrix": name,
            "solution": ", ".join(
                f"rows {block.first_row:,} to {block.last_row:,} {block.candidate.format.upper()}"
                for block in chosen.blocks
            ),
            "forecast_s": chosen.time_s,
            "measured_s": checked.time_s,
            "error": abs(chosen.time_s - checked.time_s) / checked.time_s,
            "gain_csr": 1 - checked.time_s / checked.baseline_s,
        }


def _gains(solutions: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for name, paper in published("guo_2014")["gains"]["mean"].items():
        gains = [row[f"gain_{name}"] for row in solutions if row[f"gain_{name}"] is not None]
        yield {
            "format": name,
            "matrices": len(gains),
            "ours": fmean(gains) if gains else None,
            "paper": paper,
        }


def _rows(trials: Sequence[Trial]) -> Iterator[dict[str, Any]]:
    for trial in trials:
        names = ("matrix", "measured_s", "ours_s", "printed_s", "ours", "printed")
        yield {"format": trial.candidate.format, **{name: getattr(trial, name) for name in names}}
