"""What a probe brings: stored Records of CSR correct the forecasts of the other formats.

    python benchmarks/probed.py [--profile NAME|PATH] [--threads N] [--model NAME]

Records as for `parts.py`. The model and what corrects it are learned from four of five parts of the groups of
matrices, and tried on the other one. The choice is the format with the least forecast; with CSR measured, the
least of that time and of the corrected forecasts; with contenders measured, the fastest of CSR and of all
whose interval reaches below the least.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import sparsecast as sc
from sparsecast.api.resolving import stored_target, training_for
from sparsecast.benchmark.journal import USER_SUITE
from sparsecast.benchmark.replay import FOLDS
from sparsecast.errors import SparsecastError
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.probing import PROBED, Correction
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Estimate


class Tried(NamedTuple):
    """One matrix: its measured times, and the forecasts with and without the measured CSR."""

    measured: Mapping[Candidate, float]
    plain: list[Estimate]
    corrected: list[Estimate]

    def csr_s(self) -> float:
        """Return the measured time of CSR."""
        return next(time_s for candidate, time_s in self.measured.items() if candidate.format == PROBED)

    def chosen_s(self) -> tuple[float, float, float]:
        """Return the times of the choices: by forecasts, with CSR measured, with contenders measured."""
        plain = min(self.plain, key=lambda each: each.value).candidate
        best = min(self.corrected, key=lambda each: each.value, default=None)
        corrected_s = self.csr_s()
        least_s = corrected_s if best is None else min(corrected_s, best.value)
        if best is not None and best.value < corrected_s:
            corrected_s = self.measured[best.candidate]
        reach = [self.measured[e.candidate] for e in self.corrected if e.low is None or e.low <= least_s]
        return self.measured[plain], corrected_s, min([self.csr_s(), *reach])


@dataclass(frozen=True)
class Errors:
    """Errors of forecasts, and whether intervals held the measurements."""

    error: list[float]
    is_held: list[bool]
    width: list[float]

    @classmethod
    def of(cls, pairs: Iterator[tuple[Estimate, float]]) -> Errors:
        """Compare forecasts with measurements."""
        found = cls([], [], [])
        for each, time_s in pairs:
            found.error.append(abs(each.value / time_s - 1))
            if each.low is not None and each.high is not None:
                found.is_held.append(each.low <= time_s <= each.high)
                found.width.append((each.high - each.low) / each.value)
        return found


def tried(training: TrainingSet, name: str) -> Iterator[Tried]:
    """Try a model on matrices of the user whose CSR was measured; whole groups are left out of its fit."""
    own = training.where(lambda record: record.suite == USER_SUITE and record.regime == "warm")
    groups = own.groups()
    for first in range(FOLDS):
        part = set(groups[first::FOLDS])
        rest = training.where(lambda record, part=part: training.group(record) not in part)
        model = MODELS.get(name)().fit(rest)
        correction = Correction.learned(model, rest)
        by_matrix: dict[str, dict[Candidate, float]] = {}
        for record in own.of_groups(part).records:
            by_matrix.setdefault(record.matrix, {})[record.candidate] = record.time_s
        for matrix, measured in by_matrix.items():
            plain = model.estimates(training.matrices[matrix].structure, measured)
            csr_s = [time_s for candidate, time_s in measured.items() if candidate.format == PROBED]
            if csr_s:
                yield Tried(measured, plain, correction.estimates(plain, csr_s[0]))


def show(found: list[Tried], title: str) -> None:
    """Print the errors of the formats beside CSR, and the regret of the choices."""
    beside = [[e for e in each.plain if e.candidate.format != PROBED] for each in found]
    plain = Errors.of((e, t.measured[e.candidate]) for t, own in zip(found, beside, strict=True) for e in own)
    corrected = Errors.of((e, t.measured[e.candidate]) for t in found for e in t.corrected)
    ratios = np.array([np.array(each.chosen_s()) / min(each.measured.values()) for each in found])
    table = Table("", "median error", "90th percentile", "held", "mean width", "regret", "worst", title=title)
    rows = [("forecasts alone", plain), ("with CSR measured", corrected), ("with contenders measured", None)]
    for column, (what, errors) in enumerate(rows):
        cells = ["", "", "", ""]
        if errors:
            figures = (np.median(errors.error), np.quantile(errors.error, 0.9))
            cells = [
                f"{float(each):.1%}" for each in (*figures, np.mean(errors.is_held), np.mean(errors.width))
            ]
        regret = float(np.exp(np.log(ratios[:, column]).mean()) - 1)
        table.add_row(what, *cells, f"{regret:.2%}", f"{ratios[:, column].max():.2f}")
    Console().print(table)


def main() -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    asked = parser.parse_args()
    try:
        profile = sc.profile(asked.profile)
        training = training_for(profile, stored_target(profile.machine, "float64", asked.threads))
        found = list(tried(training, asked.model))
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    if not found:
        print(
            "0 matrices: expected some that were measured here; run sparsecast evaluate FILE...",
            file=sys.stderr,
        )
        return 2
    show(found, f"{asked.model}, {len(found)} matrices, formats beside CSR")
    return 0


if __name__ == "__main__":
    sys.exit(main())
