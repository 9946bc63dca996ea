"""`sparsecast paper guo-2014`: errors of section 5.1 of Guo, Wang and Chen (2014), and Table 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparsecast.api.trials import (
    ERRORS,
    MATRIX,
    MEAN_ERRORS,
    WAYS,
    StripExperiment,
    Trial,
    Trials,
    left_out_in_words,
    mean_errors,
    shown_name,
    trial_columns,
)
from sparsecast.benchmark.experiments import EXPERIMENTS, ExperimentSetting
from sparsecast.models.model import Model
from sparsecast.models.strip_lines import Grid
from sparsecast.papers import described, published
from sparsecast.papers.guo_2014.plans import Optimum, optima
from sparsecast.papers.guo_2014.strip_models import GuoModel
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.fits import Fit, fits, forecasts
from sparsecast.results.paper import PaperReport, known_mean
from sparsecast.system.tabular import Column, Table, grouped
from sparsecast.system.texts import percent


def _first_blocks(solution: str) -> str:
    blocks = solution.split(", [")
    return solution if len(blocks) <= MOST_BLOCKS else f"{', ['.join(blocks[:3])} ... {len(blocks)} blocks"


#: Blocks of a solution that a table shows.
MOST_BLOCKS = 4

#: An error that the paper counts as small (section 5.1).
SMALL_ERROR = 0.09

FORMAT = Column("format", "format", text=str.upper)
SMALL = (Column("whose", "whose"), Column("below", "errors below 9 %"), Column("of", "of"))
SOLUTIONS = (
    MATRIX,
    Column("paper", "the paper"),
    *(Column(way, heading, text=_first_blocks) for way, heading in WAYS.items()),
    Column("fastest", "fastest whole", text=str.upper),
)
OPTIMA = (
    MATRIX,
    Column("whose", "fits", lambda optimum: WAYS[optimum.way]),
    Column("blocks", "blocks", text=_first_blocks),
    Column("forecast_s", "forecast"),
    Column("measured_s", "measured"),
    Column("error", "error", text=percent),
    *(
        Column(f"gain_{name}", f"gain over {name.upper()}", partial(Optimum.gain, name=name), percent)
        for name in ("csr", "coo", "hyb")
    ),
)
MEAN_OPTIMA = (
    Column("what", "what"),
    Column("matrices", "matrices"),
    *ERRORS,
    Column("paper", "the paper", text=percent),
)


@EXPERIMENTS.register("guo-2014")
class Guo2014(StripExperiment):
    """Models of strips for CSR, ELL, COO and HYB, next to the errors and choices that the paper prints.

    A solution of several blocks is no Record: each run that measures does it again, which takes a second.
    """

    paper = described("guo_2014")
    suite = "guo"

    def models(self) -> list[type[Model]]:
        return [GuoModel]

    def report(self, trials: Trials, setting: ExperimentSetting, start_s: float | None) -> PaperReport:
        numbers = published("guo_2014")
        solved = list(optima(trials, setting, start_s))
        split = [solution for solution in solved if solution.is_split and solution.measured_s is not None]
        whole = [solution for solution in solved if solution not in split]
        by_format = grouped(trials.rows, lambda trial: trial.record.candidate.format)
        means = [
            {"format": name, "paper": paper, **mean_errors(by_format.get(name, []))}
            for name, paper in numbers["mean_errors"].items()
        ]
        columns = trial_columns(Column("format", "format", "record.candidate.format", str.upper))
        left_out = trials.left_out()
        tables: tuple[Table, ...] = (
            Table("Mean errors (section 5.1, Fig. 17)", (FORMAT, *MEAN_ERRORS), means),
            Table("Errors below 9 % (section 5.1)", SMALL, list(_small(trials.rows, solved))),
            Table("Optimal solutions (Table 3)", SOLUTIONS, list(_solutions(trials.rows, solved)), most=30),
            Table("Optimal solutions, measured (Figs 18 and 19)", OPTIMA, [*split, *whole], most=12),
            Table("Means of split solutions (Figs 18 and 19)", MEAN_OPTIMA, list(_mean_optima(split))),
            Table("Times by matrix (Figs 13 to 16)", columns, trials.rows, most=15),
            *((left_out,) if left_out.rows else ()),
        )
        tables = tables if trials.rows else (left_out,)
        refused = sorted({shown_name(o.matrix) for o in solved if o.is_ell_refused})
        known = [f"suitesparse:{s['suitesparse']}" for s in numbers["solutions"] if "suitesparse" in s]
        padding = (
            f"Our limit of padding refuses ELL on {len(refused)} of the {len({o.matrix for o in solved})} "
            f"matrices{': ' if refused else ''}{', '.join(refused)}. The paper has ELL on "
            f"{numbers['cases']['ell']} of its {len(numbers['solutions'])}."
        )
        notes = (
            *([padding] if solved else ()),
            *self.paper.notes,
            f"Matrices of Table 3: {', '.join(known)}; Dense is not in the collection, and seven matrices "
            f"have the rows of QCD.",
            *trials.notes,
        )
        errors = [f"{row['ours']:.1%} ({row['format'].upper()})" for row in means if row["ours"] is not None]
        charts = {"guo-2014-fits": _fits(trials.fitted[0][0])}
        if by_format:
            points = {
                name.upper(): [trial.point(way, heading) for trial in tried for way, heading in WAYS.items()]
                for name, tried in by_format.items()
            }
            charts["guo-2014"] = forecasts("forecasts", points)
        ours = f"mean errors of {', '.join(errors)}" if errors else left_out_in_words(left_out)
        return PaperReport(self.paper, trials.profile.name, tables, charts, notes, ours)


def _fits(model: Model) -> Chart:
    """Return figures 4 to 7: the relationships of CSR, ELL and COO."""
    assert isinstance(model, GuoModel)
    kernels = {
        name.upper(): {"fit": Fit.of(model.grids_[name], model.fits_[name])}
        for name in ("csr", "ell")
        if name in model.fits_
    }
    if "coo" in model.fits_:
        grid, line = model.grids_["coo"], model.fits_["coo"]  # of which strips of non-zeros alone count
        alike = Grid(np.ones(len(grid.strips)), grid.strips, grid.time_s)
        kernels["COO"] = {"fit": Fit(alike, lambda nnz_per_row, strips: line(strips))}
    return fits("fits", kernels)


def _small(trials: Sequence[Trial], solved: Sequence[Optimum]) -> Iterator[dict[str, Any]]:
    for way, heading in WAYS.items():
        errors = [trial.error(way) for trial in trials]
        errors += [o.error for o in solved if o.way == way and o.is_split and o.error is not None]
        yield {"whose": heading, "below": sum(error < SMALL_ERROR for error in errors), "of": len(errors)}
    cases = published("guo_2014")["cases"]
    yield {"whose": "the paper", "below": cases["below_9_percent"], "of": cases["all"]}


def _solutions(trials: Sequence[Trial], solved: Sequence[Optimum]) -> Iterator[dict[str, Any]]:
    """Give the solutions of each matrix next to that of table 3, where it has the matrix."""
    printed = {
        solution["suitesparse"].rpartition("/")[2]: solution["blocks"]
        for solution in published("guo_2014")["solutions"]
        if "suitesparse" in solution
    }
    for matrix, of_matrix in grouped(trials, lambda trial: trial.matrix).items():
        stem = matrix.rpartition("/")[2].partition(".")[0].partition("?")[0]
        fastest = min(of_matrix, key=lambda trial: trial.record.time_s).record.candidate.format
        ours = {o.way: o.blocks for o in solved if o.matrix == matrix}
        yield {
            **dict.fromkeys(WAYS),
            "matrix": matrix,
            "paper": printed.get(stem),
            "fastest": fastest,
            **ours,
        }


def _mean_optima(split: Sequence[Optimum]) -> Iterator[dict[str, Any]]:
    numbers = published("guo_2014")
    for name, paper in {"": numbers["opt"]["mean_error"], **numbers["gains"]["mean"]}.items():
        what = f"gain over {name.upper()} (Fig. 19)" if name else "error (Fig. 18)"
        means = {
            way: known_mean(o.gain(name) if name else o.error for o in split if o.way == way) for way in WAYS
        }
        yield {"what": what, "matrices": len({o.matrix for o in split}), "paper": paper, **means}
