"""Forecasts of machines that others measured, learned from their published results.

GINKGO is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. Errors are abs(forecast - measured) / measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiment import Rows, error_columns, experiment
from sparsecast.benchmark.evaluation import choice_ratios, regret
from sparsecast.benchmark.published import FIVE, OPTIONAL, REQUIRED, published_profiles
from sparsecast.benchmark.published_moments import table_lines
from sparsecast.benchmark.replay import held_out
from sparsecast.matrices.problem import PUBLISHED_PREFIX
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Estimate, Record
from sparsecast.system.tabular import grouped

#: Entries above which a matrix is large.
LARGE = 1_000_000

#: Columns of Ginkgo's table that plain gradient boosting learns from.
BASELINE = (
    *("rows", "cols", "nnz", "psym", "nsym", *FIVE),
    *("rd_mean", "rd_variance", "rd_skewness", "rd_kurtosis"),
)

#: A published result, our forecast and that of plain trees.
Scored = tuple[Record, Estimate, float]

#: What plain trees learn of a matrix, by its specification.
Features = Mapping[str, list[float]]


@experiment("Published results")
def published_machines(
    ginkgo: Annotated[Path, typer.Argument(metavar="GINKGO")],
    machines: Annotated[list[str] | None, typer.Argument(metavar="MACHINE...")] = None,
) -> Rows:
    """Score the model `sparsecast` beside plain gradient boosting on published machines, groups held out.

    Plain is scikit-learn's HistGradientBoostingRegressor with its usual settings, one for each kernel, on
    log(time), from the columns of the table. "large" are matrices above a million entries. "alike" is the
    median difference between matrices of which the columns are the same: no forecast can know it.
    """
    lines = table_lines(ginkgo, REQUIRED, (*OPTIONAL, *(name for name in BASELINE if name not in REQUIRED)))
    features = {
        f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}": [
            np.nan if line[name] is None else line[name] for name in BASELINE
        ]
        for line in lines
    }
    for name, profile in published_profiles(ginkgo).items():
        if name not in (machines or [name]) or (not machines and len(profile.matrices) < 500):
            continue
        training, results = TrainingSet.of(profile), list[Scored]()
        for part in held_out(np.random.default_rng(0).permutation(training.groups()).tolist()):
            learned, tested = training.of_groups(set(training.groups()) - set(part)), training.of_groups(part)
            model = SparsecastModel().fit(learned)
            served = [record for record in tested.records if model.serves(record.candidate)]
            ours = [model.estimates(profile.structure(record), [record.candidate])[0] for record in served]
            plain = plain_forecasts(learned.records, served, features)
            results += zip(served, ours, plain, strict=True)
        for row in rows_of_kernels(results, profile.records, features):
            yield {"machine": name, **row}


def plain_forecasts(learned: Sequence[Record], records: Sequence[Record], features: Features) -> list[float]:
    """Return what gradient boosting, one for each kernel on log(time), forecasts of Records."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    forecasts = np.empty(len(records))
    for kernel in {record.candidate.kernel for record in records}:
        known = [record for record in learned if record.candidate.kernel == kernel]
        regressor = HistGradientBoostingRegressor(random_state=0)
        regressor.fit([features[r.matrix] for r in known], np.log([r.time_s for r in known]))
        places = [place for place, record in enumerate(records) if record.candidate.kernel == kernel]
        forecasts[places] = np.exp(regressor.predict([features[records[place].matrix] for place in places]))
    return forecasts.tolist()


def rows_of_kernels(
    results: Sequence[Scored], records: Sequence[Record], features: Features
) -> Iterator[dict[str, Any]]:
    """Yield the errors for each kernel beside the differences of all records, and the regret of choosing."""
    by_kernel = grouped(results, lambda result: result[0].candidate.kernel)
    for kernel, of_kernel in sorted(by_kernel.items()):
        row: dict[str, Any] = {"kernel": kernel, "results": len(of_kernel)}
        large = [result for result in of_kernel if result[0].nnz > LARGE]
        for place, name in enumerate(("ours", "plain")):
            row |= error_columns([errors(result)[place] for result in of_kernel], f"{name}, ")
            beyond = [errors(result)[place] for result in large]
            row |= {f"{name}, large, median error": float(np.median(beyond)) if beyond else None}
        inside = [
            (ours.low or 0) <= record.time_s <= (ours.high or math.inf) for record, ours, _ in of_kernel
        ]
        own = [record for record in records if record.candidate.kernel == kernel]
        yield {
            **row,
            "within": float(np.mean(inside)),
            "alike error": difference_of_alike(own, features),
            "large, alike error": difference_of_alike([r for r in own if r.nnz > LARGE], features),
        }
    matrices = [record.matrix for record, _, _ in results]
    measured, ours_s, plain_s = np.array([(r.time_s, ours.value, plain) for r, ours, plain in results]).T
    ratios = {"ours": choice_ratios(matrices, ours_s, measured)}
    ratios["plain"] = choice_ratios(matrices, plain_s, measured)
    if len(ratios["ours"]):  # with one kernel there is no choice
        regrets = {f"{name}, median error": regret(found) for name, found in ratios.items()}
        yield {"kernel": "regret of the choice", **regrets}


def errors(result: Scored) -> tuple[float, float]:
    """Return the errors of our forecast and of that of plain trees, without their signs."""
    record, ours, plain = result
    return abs(ours.value / record.time_s - 1), abs(plain / record.time_s - 1)


def difference_of_alike(records: Sequence[Record], features: Features) -> float | None:
    """Return the median difference of times of matrices of which the table says the same."""
    alike = grouped(records, lambda record: tuple(features[record.matrix])).values()
    found = [abs(a.time_s / b.time_s - 1) for own in alike for a, b in pairwise(own)]
    return float(np.median(found)) if found else None
