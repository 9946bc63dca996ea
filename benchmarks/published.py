"""Forecasts of machines that others measured, learned from their published results.

GINKGO is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. REAL and ARTIFICIAL are tables of cslab-ntua/SpMV-Research that
`sparsecast.benchmark.published_moments` describes. Errors are abs(forecast - measured) / measured.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from experiment import Rows, experiment, geometric_mean
from sparsecast import models
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
from sparsecast.machines.data_sheet import DataSheet
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX, group_of
from sparsecast.models import MODELS
from sparsecast.models.data_sheets import Law, Learned, Products, kind_of, made_profile
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


#: What is tried: shares of the peak, powers of cores times frequency, and shares of the caches.
SHARES, POWERS, KEPT = np.linspace(0.1, 1.0, 10), np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5)

#: Places along log(time / start) at which intervals end, and the share of the errors that they hold.
PLACES, INSIDE = 8, 0.9

PROCESSORS_MEASURED = ("Epyc1", "Epyc64", "Icy")


@dataclass(frozen=True)
class MeasuredMachine:
    """A measured machine: its profile, its data sheet, its products, and where each Record is."""

    profile: Profile
    sheet: DataSheet
    products: Products
    places: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, profile: Profile) -> MeasuredMachine:
        """Return the machine of a profile whose data sheet is known."""
        assert profile.machine.sheet is not None
        places = {(r.matrix, r.candidate.kernel): place for place, r in enumerate(profile.records)}
        return cls(profile, profile.machine.sheet, Products.of(profile.records, profile.matrices), places)

    def common(self, other: MeasuredMachine) -> tuple[Products, Products]:
        """Return the products of both that are the same, in one order."""
        keys = [key for key in self.places if key in other.places]
        return (
            self.products.part([self.places[key] for key in keys]),
            other.products.part([other.places[key] for key in keys]),
        )


Machines = Mapping[str, MeasuredMachine]


@dataclass(frozen=True)
class Scaled:
    """Products of one machine, forecast from those of another: arrays of shape (products,)."""

    forecast_s: Floats
    start_s: Floats
    measured: Products

    @property
    def logs(self) -> Floats:
        """log(measured / forecast)."""
        return np.log(self.measured.time_s / self.forecast_s)

    @property
    def over_start(self) -> Floats:
        """log(forecast / start)."""
        return np.log(np.maximum(self.forecast_s / self.start_s, 1.0))

    def error(self) -> float:
        """Return the median error."""
        return float(np.median(np.abs(np.expm1(-self.logs))))


def scaled(like: MeasuredMachine, target: MeasuredMachine, law: Law) -> Scaled:
    """Forecast a machine from another one and both data sheets."""
    known, wanted = like.common(target)
    return Scaled(law.scaled(known, like.sheet, target.sheet), known.start_s, wanted)


def law_of(machines: Machines) -> Law:
    """Return the law that machines teach; fewer than two teach none."""
    common = [(like, target, *like.common(target)) for like, target in permutations(machines.values(), 2)]
    if not common:
        return Law()

    def loss(law: Law) -> float:
        medians = [
            np.median(np.abs(np.log(wanted.time_s / law.scaled(known, like.sheet, target.sheet))))
            for like, target, known, wanted in common
        ]
        return float(np.mean(medians))

    laws = (Law(round(float(s), 2), float(p), float(k)) for s, p, k in product(SHARES, POWERS, KEPT))
    return min(laws, key=loss)


def learned_from(machines: Machines) -> Learned:
    """Return the law of machines, and how far off each of them is that is left out."""
    results = []
    for name, target in machines.items():
        others = {other: machine for other, machine in machines.items() if other != name}
        law = law_of(others)
        results += [scaled(like, target, law) for like in others.values()]
    # Each pair counts the same: as many of its products as the smallest pair has, evenly spread.
    least = min(len(result.forecast_s) for result in results)
    spread = [np.linspace(0, len(result.forecast_s) - 1, least).astype(int) for result in results]
    x = np.concatenate([result.over_start[places] for result, places in zip(results, spread, strict=True)])
    y = np.concatenate([result.logs[places] for result, places in zip(results, spread, strict=True)])
    windows = np.array_split(np.argsort(x, kind="stable"), PLACES)
    beyond = (1 - INSIDE) / 2

    def ends(pick: Callable[[NDArray[np.int64]], Any]) -> tuple[float, ...]:
        return tuple(round(float(pick(window)), 4) for window in windows)

    return Learned(
        law_of(machines),
        tuple(machines),
        ends(lambda window: np.median(x[window])),
        ends(lambda window: np.quantile(y[window], beyond)),
        ends(lambda window: np.quantile(y[window], 1 - beyond)),
    )


def nearest(sheet: DataSheet, machines: Machines) -> str:
    """Return the machine with the nearest data sheet, by bandwidth and by cores times frequency."""

    def distance(name: str) -> float:
        other = machines[name].sheet
        bandwidth = abs(math.log(other.bandwidth_bytes_per_s / sheet.bandwidth_bytes_per_s))
        return bandwidth + abs(math.log(other.cycles_per_s / sheet.cycles_per_s))

    return min(machines, key=distance)


def share_inside(result: Scaled, learned: Learned) -> float:
    """Return the share of products in the intervals."""
    low, high = (
        np.interp(result.over_start, learned.over_start, ends) for ends in (learned.low, learned.high)
    )
    return float(np.mean((np.minimum(low, 0) <= result.logs) & (result.logs <= np.maximum(high, 0))))


def forecast_errors(like: MeasuredMachine, target: MeasuredMachine, learned: Learned) -> tuple[float, float]:
    """Return median error and share inside where the matrices are not known either: a fifth of the groups."""
    held_out = set(sorted({group_of(record.matrix) for record in target.profile.records})[::PARTS])
    made = made_profile("left-out", like.profile, target.sheet, learned)
    rest = [record for record in made.records if group_of(record.matrix) not in held_out]
    model = SparsecastModel().fit(TrainingSet.of(made, rest))
    candidates = {record.candidate.kernel: record.candidate for record in made.records}
    errors, holds = [], []
    for record in target.profile.records:
        candidate = candidates.get(record.candidate.kernel)
        if candidate and group_of(record.matrix) in held_out and model.serves(candidate):
            for estimate in model.estimates(target.profile.structure(record), [candidate]):
                errors.append(abs(estimate.value / record.time_s - 1))
                holds.append((estimate.low or 0) <= record.time_s <= (estimate.high or math.inf))
    return float(np.median(errors)), float(np.mean(holds))


@experiment(PANEL)
def data_sheets(
    ginkgo: Ginkgo,
    real: Real,
    write: Annotated[
        bool, typer.Option("--write", help="Write the law of all machines into the package.")
    ] = False,
) -> Rows:
    """Score machines that are forecast from a data sheet: each measured one is left out once.

    For each machine the law is learned from the others of its kind. "like" has the nearest data sheet. Errors
    are medians: times as they are, divided by the ratio of the bandwidths, and by the law; "any" over all
    others in place of the nearest. "whole way": a fifth of the groups of matrices is held out too.
    """
    profiles = published_profiles(ginkgo)
    profiles = {name: profile for name, profile in profiles.items() if kind_of(profile.machine) == "gpu"}
    profiles |= {name: import_published([real], name, name).profile for name in PROCESSORS_MEASURED}
    kinds: dict[str, dict[str, MeasuredMachine]] = {"gpu": {}, "cpu": {}}
    for name, profile in profiles.items():
        kinds[kind_of(profile.machine)][name] = MeasuredMachine.of(profile)
    if write:
        laws = {kind: asdict(learned_from(machines)) for kind, machines in kinds.items()}
        path = Path(models.__file__).parent / "data_sheets.json"
        path.write_text(json.dumps(laws, indent=1) + "\n", encoding="utf-8")
        yield f"Written: {path.name}."
        return
    for machines in kinds.values():
        for name, target in machines.items():
            others = {other: machine for other, machine in machines.items() if other != name}
            learned, like = learned_from(others), nearest(target.sheet, others)
            times, wanted = others[like].common(target)
            ratio = others[like].sheet.bandwidth_bytes_per_s / target.sheet.bandwidth_bytes_per_s
            by_law = scaled(others[like], target, learned.law)
            any_other = [scaled(other, target, learned.law) for other in others.values()]
            error, within = forecast_errors(others[like], target, learned)
            yield {
                "machine": name,
                "like": like,
                "results": len(by_law.forecast_s),
                "as it is error": Scaled(times.time_s, times.start_s, wanted).error(),
                "bandwidth error": Scaled(ratio * times.time_s, times.start_s, wanted).error(),
                "law error": by_law.error(),
                "any, law error": float(np.median([result.error() for result in any_other])),
                "within": share_inside(by_law, learned),
                "any within": float(np.mean([share_inside(result, learned) for result in any_other])),
                "whole way error": error,
                "whole way within": within,
            }
