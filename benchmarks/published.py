"""Forecasts of machines that others measured, learned from their published results.

GINKGO is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. REAL and ARTIFICIAL are tables of cslab-ntua/SpMV-Research that
`sparsecast.benchmark.published_moments` describes. Errors are abs(forecast - measured) / measured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from experiment import Rows, experiment, geometric_mean
from sparsecast.benchmark.published import (
    FIVE,
    OPTIONAL,
    REQUIRED,
    import_published,
    published_profiles,
)
from sparsecast.benchmark.published_moments import COUNTS, LOCALITY, MOMENTS, moment_results, table_lines
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX, group_of
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.power import PowerModel
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.papers import published
from sparsecast.records import Estimate, Record

PANEL = "Published results"
Floats = NDArray[np.float64]

#: Groups of matrices are held out in as many parts, in turn.
PARTS = 5

#: Entries above which a matrix is large.
LARGE = 1_000_000

Ginkgo = Annotated[Path, typer.Argument(metavar="GINKGO")]
Machine = Annotated[str, typer.Argument(metavar="MACHINE")]
Real = Annotated[Path, typer.Argument(metavar="REAL")]
Artificial = Annotated[list[Path] | None, typer.Argument(metavar="ARTIFICIAL...")]

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


@dataclass(frozen=True)
class Scored:
    """A measured result, in seconds or joules, with our forecast and that of plain trees."""

    record: Record
    measured: float
    estimate: Estimate
    plain: float

    def error(self, forecast: float) -> float:
        """Return the error of a forecast."""
        return abs(forecast / self.measured - 1)

    @property
    def is_inside(self) -> bool:
        """Whether the measured value lies in the interval."""
        return (self.estimate.low or 0) <= self.measured <= (self.estimate.high or math.inf)


def rows_of_kernels(results: Sequence[Scored], large: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the errors for each kernel, and the regret of choosing by forecasts."""
    for kernel in sorted({result.record.candidate.kernel for result in results}):
        of_kernel = [result for result in results if result.record.candidate.kernel == kernel]
        row: dict[str, Any] = {"kernel": kernel, "results": len(of_kernel)}
        for name, forecast in _FORECASTS.items():
            errors = [result.error(forecast(result)) for result in of_kernel]
            row[f"{name}, median error"] = float(np.median(errors))
            row[f"{name}, 90th percentile error"] = float(np.quantile(errors, 0.9))
            if large is not None:
                beyond = [result.error(forecast(result)) for result in of_kernel if result.record.nnz > large]
                row[f"{name}, large, median error"] = float(np.median(beyond)) if beyond else None
        yield row | {"within": float(np.mean([result.is_inside for result in of_kernel]))}
    yield {
        "kernel": "regret of the choice",
        **{f"{name}, median error": regret(results, forecast) for name, forecast in _FORECASTS.items()},
    }


_FORECASTS: dict[str, Callable[[Scored], float]] = {
    "ours": lambda result: result.estimate.value,
    "plain": lambda result: result.plain,
}


def regret(results: Sequence[Scored], forecast: Callable[[Scored], float]) -> float:
    """Return the time of the chosen kernel over the least, less 1: the geometric mean."""
    of_matrix: dict[str, list[Scored]] = {}
    for result in results:
        of_matrix.setdefault(result.record.matrix, []).append(result)
    ratios = [
        min(several, key=forecast).measured / min(result.measured for result in several)
        for several in of_matrix.values()
        if len(several) > 1
    ]
    return geometric_mean(ratios) - 1


def folds(profile: Profile) -> Iterator[tuple[list[Record], list[Record]]]:
    """Yield Records to learn from and Records of groups that were held out."""
    groups = sorted({group_of(record.matrix) for record in profile.records})
    shuffled = np.random.default_rng(0).permutation(groups)
    for part in range(PARTS):
        held_out = set(shuffled[part::PARTS])
        learned = [record for record in profile.records if group_of(record.matrix) not in held_out]
        yield learned, [record for record in profile.records if group_of(record.matrix) in held_out]


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
    return [float(value) for value in forecasts]


def differences(records: Sequence[Record], columns: Mapping[str, list[float]], size: str) -> dict[str, float]:
    """Return by kernel the median difference of times of matrices of which the table says the same."""
    of_alike: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        if record.nnz > LARGE or not size:
            key = record.candidate.kernel, *columns[record.matrix]
            of_alike.setdefault(key, []).append(record.time_s)
    found: dict[str, list[float]] = {}
    for (kernel, *_), times_s in of_alike.items():
        found.setdefault(kernel, []).extend(abs(a / b - 1) for a, b in pairwise(times_s))
    return {kernel: float(np.median(values)) for kernel, values in found.items() if values}


@experiment(PANEL)
def published_machines(
    ginkgo: Ginkgo, machines: Annotated[list[str] | None, typer.Argument(metavar="MACHINE...")] = None
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
        results: list[Scored] = []
        alike = {size: differences(profile.records, columns, size) for size in ("", "large, ")}
        for learned, held_out in folds(profile):
            model = SparsecastModel().fit(TrainingSet.of(profile, learned))
            times = [(record, record.time_s) for record in learned]
            served = [record for record in held_out if model.serves(record.candidate)]
            plain = plain_forecasts(
                lambda: HistGradientBoostingRegressor(random_state=0), times, served, columns
            )
            results += [
                Scored(r, r.time_s, model.estimates(profile.structure(r), [r.candidate])[0], value)
                for r, value in zip(served, plain, strict=True)
            ]
        for row in rows_of_kernels(results, LARGE):
            of_alike = {f"{size}alike error": alike[size].get(row["kernel"]) for size in alike}
            yield {"machine": name, **row, **of_alike}


#: Mean errors of Guo et al. (2014).
OF_THE_PAPER = published("guo_2014")["mean_errors"]


def has_even_rows(structure: Structure) -> bool:
    """Tell whether row lengths deviate by a fifth of their mean at most: the kind of the strip models."""
    return bool(structure.row_lengths.deviation <= 0.2 * structure.row_lengths.mean)


def library_of(record: Record) -> str:
    """Return the library of a Record's kernel; each of Ginkgo's further CSR kernels is one by itself."""
    kernel = record.candidate.kernel
    if kernel.startswith(("cusp", "hipsp")):
        return "cusparse" if kernel.startswith("cusp") else "hipsparse"
    return kernel if kernel in ("csrc", "csri", "csrm") else "ginkgo"


@experiment(PANEL)
def published_gpus(ginkgo: Ginkgo) -> Rows:
    """Score the strip models of Guo et al. (2014) and the linear model on published GPUs.

    Strip models are fitted to matrices of their kind, whose row lengths hardly deviate; the linear model to
    every matrix of these groups. Errors are means, as in the paper, whose own stand beside them.
    """
    profiles = {name: profile for name, profile in published_profiles(ginkgo).items() if profile.machine.gpu}
    groups = sorted({group_of(record.matrix) for profile in profiles.values() for record in profile.records})
    held_out = set(groups[1::2])
    for name, profile in profiles.items():
        for library in dict.fromkeys(map(library_of, profile.records)):
            of_library = [record for record in profile.records if library_of(record) == library]
            fit = [record for record in of_library if group_of(record.matrix) not in held_out]
            even = [record for record in fit if has_even_rows(profile.structure(record))]
            strips, linear = _fitted("guo", even, profile), _fitted("linear", fit, profile)
            for format_name, printed in OF_THE_PAPER.items():
                every = [
                    r
                    for r in of_library
                    if r.candidate.format == format_name and group_of(r.matrix) in held_out
                ]
                alike = [record for record in every if has_even_rows(profile.structure(record))]
                if every:
                    yield {
                        **{"machine": name, "format": format_name, "library": library, "results": len(every)},
                        "strips, even rows error": _mean_error(strips, alike, profile),
                        "strips, all error": _mean_error(strips, every, profile),
                        "linear, even rows error": _mean_error(linear, alike, profile),
                        "linear, all error": _mean_error(linear, every, profile),
                        "paper error": printed,
                    }


def _fitted(name: str, records: Sequence[Record], profile: Profile) -> Model | None:
    """Return a model; None where the Records do not suffice."""
    try:
        return MODELS.get(name)().fit(TrainingSet.of(profile, records))
    except ProfileError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


def _mean_error(model: Model | None, records: Sequence[Record], profile: Profile) -> float | None:
    if model is None or not records or not model.serves(records[0].candidate):
        return None
    values = [model.values(r.candidate, RowBlocks.of(profile.structure(r)))[0] for r in records]
    return float(np.mean([abs(value / r.time_s - 1) for value, r in zip(values, records, strict=True)]))


def moment_columns(path: Path) -> dict[str, list[float]]:
    """Return the columns that plain trees learn from of each matrix, by its specification."""
    rest = {
        tuple(line[name] for name in _KEYS): [line[name] for name in _REST]
        for line in table_lines(path, (*_KEYS, *_REST), ())
    }
    columns = {}
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
    known = import_published(artificial, machine, machine).profile
    columns = {key: values for path in (real, *artificial) for key, values in moment_columns(path).items()}
    kernels = {record.candidate.kernel for record in known.records}
    records = [record for record in target.records if record.candidate.kernel in kernels]
    model = SparsecastModel().fit(TrainingSet.of(known))
    times = [(record, record.time_s) for record in known.records]
    plain = plain_forecasts(_extra_trees, times, records, columns)
    results = [
        Scored(r, r.time_s, model.estimates(target.structure(r), [r.candidate])[0], value)
        for r, value in zip(records, plain, strict=True)
    ]
    yield from rows_of_kernels(results)


@experiment(PANEL)
def published_power(machine: Machine, real: Real, artificial: Artificial = None) -> Rows:
    """Score forecasts of power and energy of real matrices, learned from artificial ones or from the others.

    Without ARTIFICIAL, fifths of the real matrices are held out in turn. Errors are of the watts where the
    time is measured (ours, and plain trees on all columns), and of the joules at the forecast time.
    """
    target = import_published([real], machine, machine).profile
    paths = [real, *(artificial or ())]
    columns = {key: values for path in paths for key, values in moment_columns(path).items()}
    measured = [record for record in target.records if record.energy_j is not None]
    pairs: list[tuple[Profile, list[Record]]] = []
    if artificial:
        known = import_published(artificial, machine, machine).profile
        kernels = {record.candidate.kernel for record in known.records}
        pairs.append((known, [record for record in measured if record.candidate.kernel in kernels]))
    else:
        names = sorted({record.matrix for record in measured})
        for first in range(PARTS):
            held_out = set(names[first::PARTS])
            rest = replace(target, records=tuple(r for r in target.records if r.matrix not in held_out))
            pairs.append((rest, [record for record in measured if record.matrix in held_out]))
    rows: dict[str, list[dict[str, float]]] = {}
    for known, records in pairs:
        model = PowerModel().fit(TrainingSet.of(known))
        served = [record for record in records if model.serves(record.candidate)]
        watts = [(r, r.energy_j / r.time_s) for r in known.records if r.energy_j is not None]
        for r, plain in zip(served, plain_forecasts(_extra_trees, watts, served, columns), strict=True):
            assert r.energy_j is not None
            blocks, true_w = RowBlocks.of(target.structure(r)), r.energy_j / r.time_s
            ours_w = model.watts(r.candidate, blocks, np.array([r.time_s]))["watts"][0]
            estimate = model.estimates(target.structure(r), [r.candidate])[0]
            rows.setdefault(r.candidate.kernel, []).append(
                {
                    "watts error": abs(ours_w / true_w - 1),
                    "plain watts error": abs(plain / true_w - 1),
                    "joules error": abs(estimate.value / r.energy_j - 1),
                    "within": (estimate.low or 0) <= r.energy_j <= (estimate.high or math.inf),
                }
            )
    for kernel, values in sorted(rows.items()):
        row: dict[str, Any] = {"kernel": kernel, "matrices": len(values)}
        for name in ("watts error", "plain watts error", "joules error"):
            errors = [value[name] for value in values]
            row[f"median, {name}"] = float(np.median(errors))
            row[f"90th percentile, {name}"] = float(np.quantile(errors, 0.9))
        yield row | {"within": float(np.mean([value["within"] for value in values]))}
