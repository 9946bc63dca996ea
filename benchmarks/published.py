"""Forecasts of machines that others measured, learned from their published results.

GINKGO is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. REAL and ARTIFICIAL are tables of cslab-ntua/SpMV-Research that
`sparsecast.benchmark.published_moments` describes. Errors are abs(forecast - measured) / measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiment import Rows, error_columns, experiment
from sparsecast.benchmark.evaluation import choice_ratios, regret
from sparsecast.benchmark.published import (
    FIVE,
    OPTIONAL,
    REQUIRED,
    import_published,
    published_profiles,
)
from sparsecast.benchmark.published_moments import COUNTS, LOCALITY, MOMENTS, moment_results, table_lines
from sparsecast.benchmark.replay import held_out
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX
from sparsecast.models.power import PowerModel
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Estimate, Record
from sparsecast.system.tabular import grouped

PANEL = "Published results"

#: Entries above which a matrix is large.
LARGE = 1_000_000

Machine = Annotated[str, typer.Argument(metavar="MACHINE")]
Real = Annotated[Path, typer.Argument(metavar="REAL")]

#: Columns of Ginkgo's table that plain gradient boosting learns from.
BASELINE = (
    *("rows", "cols", "nnz", "psym", "nsym", *FIVE),
    *("rd_mean", "rd_variance", "rd_skewness", "rd_kurtosis"),
)

#: Columns of the other tables that plain trees learn from: those that a Structure is made of, and the rest.
_KEYS = (*COUNTS, *MOMENTS, *LOCALITY)
_REST = (
    *("density_pct", "mem_footprint_MB", "avg_nnz_per_row", "avg_bw_scaled", "std_bw_scaled"),
    *("std_sc", "avg_sc_scaled", "std_sc_scaled"),
)

#: A published result, our forecast and that of plain trees.
Scored = tuple[Record, Estimate, float]


def _is_inside(estimate: Estimate, measured: float) -> bool:
    return (estimate.low or 0) <= measured <= (estimate.high or math.inf)


def rows_of_kernels(results: Sequence[Scored]) -> Iterator[dict[str, Any]]:
    """Yield the errors for each kernel, and the regret of choosing by forecasts."""
    kernels = np.array([record.candidate.kernel for record, _, _ in results])
    measured = np.array([record.time_s for record, _, _ in results])
    is_large = np.array([record.nnz > LARGE for record, _, _ in results])
    is_inside = np.array([_is_inside(estimate, record.time_s) for record, estimate, _ in results])
    forecasts = {
        "ours": np.array([estimate.value for _, estimate, _ in results]),
        "plain": np.array([plain for _, _, plain in results]),
    }
    for kernel in np.unique(kernels):
        own = kernels == kernel
        row: dict[str, Any] = {"kernel": str(kernel), "results": int(own.sum())}
        for name, values in forecasts.items():
            row |= error_columns(values[own] / measured[own] - 1, f"{name}, ")
            beyond = own & is_large
            errors = np.abs(values[beyond] / measured[beyond] - 1)
            row[f"{name}, large, median error"] = float(np.median(errors)) if len(errors) else None
        yield row | {"within": float(is_inside[own].mean())}
    matrices = [record.matrix for record, _, _ in results]
    ratios = {name: choice_ratios(matrices, values, measured) for name, values in forecasts.items()}
    if len(ratios["ours"]):  # with one kernel there is no choice
        regrets = {f"{name}, median error": regret(found) for name, found in ratios.items()}
        yield {"kernel": "regret of the choice", **regrets}


def plain_forecasts(
    regressor: Callable[[], Any],
    learned: Sequence[tuple[Record, float]],
    records: Sequence[Record],
    columns: Mapping[str, list[float]],
) -> list[float]:
    """Return what a plain regressor, one for each kernel on the logarithm, forecasts of Records."""
    forecasts = np.empty(len(records))
    for kernel in {record.candidate.kernel for record in records}:
        known = [(r, value) for r, value in learned if r.candidate.kernel == kernel]
        fit = regressor().fit([columns[r.matrix] for r, _ in known], np.log([value for _, value in known]))
        places = [i for i, record in enumerate(records) if record.candidate.kernel == kernel]
        forecasts[places] = np.exp(fit.predict([columns[records[i].matrix] for i in places]))
    return forecasts.tolist()


def scored(
    training: TrainingSet,
    target: Profile,
    records: Sequence[Record],
    regressor: Callable[[], Any],
    columns: Any,
) -> list[Scored]:
    """Return what is learned from a training set, and by a plain regressor, beside Records of `target`."""
    model = SparsecastModel().fit(training)
    served = [record for record in records if model.serves(record.candidate)]
    times = [(record, record.time_s) for record in training.records]
    plain = plain_forecasts(regressor, times, served, columns)
    ours = [model.estimates(target.structure(record), [record.candidate])[0] for record in served]
    return list(zip(served, ours, plain, strict=True))


def differences(records: Sequence[Record], columns: Mapping[str, list[float]]) -> dict[str, float]:
    """Return by kernel the median difference of times of matrices of which the table says the same."""
    found: dict[str, list[float]] = {}
    alike = grouped(records, lambda record: (record.candidate.kernel, *columns[record.matrix]))
    for (kernel, *_), own in alike.items():
        times_s = [record.time_s for record in own]
        found.setdefault(kernel, []).extend(abs(a / b - 1) for a, b in pairwise(times_s))
    return {kernel: float(np.median(values)) for kernel, values in found.items() if values}


@experiment(PANEL)
def published_machines(
    ginkgo: Annotated[Path, typer.Argument(metavar="GINKGO")],
    machines: Annotated[list[str] | None, typer.Argument(metavar="MACHINE...")] = None,
) -> Rows:
    """Score the model `sparsecast` beside plain gradient boosting on published machines, groups held out.

    Plain is scikit-learn's HistGradientBoostingRegressor with its usual settings, one for each kernel, on
    log(time), from the columns of the table. "large" are matrices above a million entries. "alike" is the
    median difference between matrices of which the columns are the same: no forecast can know it.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    lines = table_lines(ginkgo, REQUIRED, (*OPTIONAL, *(name for name in BASELINE if name not in REQUIRED)))
    columns = {
        f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}": [
            np.nan if line[name] is None else line[name] for name in BASELINE
        ]
        for line in lines
    }
    for name, profile in published_profiles(ginkgo).items():
        if name not in (machines or [name]) or (not machines and len(profile.matrices) < 500):
            continue
        training, results = TrainingSet.of(profile), list[Scored]()
        alike = differences(profile.records, columns)
        large = differences([record for record in profile.records if record.nnz > LARGE], columns)
        for part in held_out(np.random.default_rng(0).permutation(training.groups()).tolist()):
            learned, tested = training.of_groups(set(training.groups()) - set(part)), training.of_groups(part)
            regressor = partial(HistGradientBoostingRegressor, random_state=0)
            results += scored(learned, profile, tested.records, regressor, columns)
        for row in rows_of_kernels(results):
            kernel = row["kernel"]
            of_alike = {"alike error": alike.get(kernel), "large, alike error": large.get(kernel)}
            yield {"machine": name, **row, **of_alike}


def moment_columns(paths: Sequence[Path]) -> dict[str, list[float]]:
    """Return the columns that plain trees learn from of each matrix, by its specification."""
    columns = {}
    for path in paths:
        rest = {
            tuple(line[name] for name in _KEYS): [line[name] for name in _REST]
            for line in table_lines(path, (*_KEYS, *_REST), ())
        }
        for line in moment_results(path):
            keys = tuple(line[name] for name in _KEYS)
            columns[f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}"] = [*keys, *rest[keys]]
    return columns


def _extra_trees() -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(random_state=0, n_jobs=-1)


@experiment(PANEL)
def artificial_to_real(
    machine: Machine, real: Real, artificial: Annotated[list[Path], typer.Argument()]
) -> Rows:
    """Score forecasts of real matrices that were learned from artificial ones alone.

    Plain is scikit-learn's ExtraTreesRegressor with its usual settings, one for each kernel, on log(time),
    from all columns of numbers that the tables have.
    """
    target = import_published([real], machine, machine).profile
    training = TrainingSet.of(import_published(artificial, machine, machine).profile)
    kernels = {record.candidate.kernel for record in training.records}
    records = [record for record in target.records if record.candidate.kernel in kernels]
    columns = moment_columns([real, *artificial])
    yield from rows_of_kernels(scored(training, target, records, _extra_trees, columns))


@experiment(PANEL)
def published_power(
    machine: Machine,
    real: Real,
    artificial: Annotated[list[Path] | None, typer.Argument(metavar="ARTIFICIAL...")] = None,
) -> Rows:
    """Score forecasts of power and energy of real matrices, learned from artificial ones or from the others.

    Without ARTIFICIAL, fifths of the real matrices are held out in turn. Errors are of the watts where the
    time is measured (ours, and plain trees on all columns), and of the joules at the forecast time.
    """
    target = import_published([real], machine, machine).profile
    columns = moment_columns([real, *(artificial or ())])
    measured = [record for record in target.records if record.energy_j is not None]
    pairs: list[tuple[TrainingSet, list[Record]]] = []
    if artificial:
        known = TrainingSet.of(import_published(artificial, machine, machine).profile)
        kernels = {record.candidate.kernel for record in known.records}
        pairs.append((known, [record for record in measured if record.candidate.kernel in kernels]))
    else:
        for part in held_out(sorted({record.matrix for record in measured})):
            known = TrainingSet.of(target).where(lambda record, part=part: record.matrix not in part)
            pairs.append((known, [record for record in measured if record.matrix in part]))
    rows: dict[str, list[dict[str, float]]] = {}
    for known, records in pairs:
        model = PowerModel().fit(known)
        served = [record for record in records if model.serves(record.candidate)]
        watts = [(r, r.energy_j / r.time_s) for r in known.records if r.energy_j is not None]
        for r, plain in zip(served, plain_forecasts(_extra_trees, watts, served, columns), strict=True):
            structure, true_w = target.structure(r), r.energy_j / r.time_s
            ours_w = model.watts(r.candidate, RowBlocks.of(structure), np.array([r.time_s]))["watts"][0]
            estimate = model.estimates(structure, [r.candidate])[0]
            rows.setdefault(r.candidate.kernel, []).append(
                {
                    "watts error": ours_w / true_w - 1,
                    "plain watts error": plain / true_w - 1,
                    "joules error": estimate.value / r.energy_j - 1,
                    "within": _is_inside(estimate, r.energy_j),
                }
            )
    for kernel, values in sorted(rows.items()):
        row: dict[str, Any] = {"kernel": kernel, "matrices": len(values)}
        for name in ("watts", "plain watts", "joules"):
            row |= error_columns([value[f"{name} error"] for value in values], f"{name}, ")
        yield row | {"within": float(np.mean([value["within"] for value in values]))}
