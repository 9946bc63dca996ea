"""Forecasts for one matrix, corrected by what was measured of it.

What a forecast is wrong by is to a large part common to all formats of a matrix, and to the machine as it is
now. So one measured product of CSR corrects the forecasts of all others. How much of its error the others
share, and how wide the intervals are afterwards, is learned from Records of matrices that were left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.models.fitting import INTERVAL_FOLDS, LEAST_RANKED, Interval, half_width, prediction_interval
from sparsecast.models.forecaster import AdjustedForecaster, Forecaster, what_is_built
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Forecast, Parameters
from sparsecast.system.tabular import grouped


def is_plain_csr(candidate: Candidate) -> bool:
    """Tell whether it is what is measured first: nothing has to be converted for it."""
    return candidate.format == "csr" and not candidate.parameters


#: No error is more half widths off: its exponential must be a number.
_MOST = 100.0

#: Under this name stands what holds for formats with too few Records of their own.
_ALL = "all formats"


class PairedErrors(NamedTuple):
    """The errors log(measured / forecast) of CSR and of another format, on a matrix that was left out.

    `half_width` is that of the model's interval, of logarithms of time; None where it has none.
    """

    format: str
    csr_error: float
    error: float
    half_width: float | None


@dataclass(frozen=True)
class Correction:
    """How the measured time of CSR corrects the forecasts of other formats."""

    #: For each format, how much of the error of CSR it shares: of log(measured / forecast).
    shares: Mapping[str, float]
    #: For each format, the ends of what is left of log(measured / corrected), in half widths of the model's
    #: interval. Formats without intervals are missing.
    widths: Mapping[str, tuple[float, float]]

    @classmethod
    def learned(cls, model: Model, training: TrainingSet) -> Correction:
        """Learn it from Records that `model` can be fitted to: whole groups of matrices are left out in turn.

        A format with fewer matrices than LEAST_RANKED takes what holds for all formats together.

        A ProfileError says that fewer than LEAST_RANKED Records are of a matrix whose CSR was measured with
        them.
        """
        pairs = left_out_pairs(model, training)
        if len(pairs) < LEAST_RANKED:
            raise ProfileError(
                f"the profile has {len(pairs)} records beside those of CSR that the {model.name} model can "
                f"be tried on: expected {LEAST_RANKED}, from which a probe corrects forecasts; calibrate "
                f"with a larger budget, or leave --probe out"
            )
        pairs_of = grouped(sorted(pairs, key=lambda pair: pair.format), lambda pair: pair.format)
        enough = {name: of_name for name, of_name in pairs_of.items() if len(of_name) >= LEAST_RANKED}
        shares, widths = {}, {}
        for name, of_name in {_ALL: pairs, **enough}.items():
            shares[name] = shared_error(of_name)
            rest = [
                (pair.error - shares[name] * pair.csr_error) / pair.half_width
                for pair in of_name
                if pair.half_width is not None
            ]
            if len(rest) >= LEAST_RANKED:
                low, high = prediction_interval(np.exp(np.clip(rest, -_MOST, _MOST)).tolist())
                widths[name] = math.log(low), math.log(high)
        return cls(shares, widths)

    def share(self, format_name: str) -> float:
        """Return how much of the error of CSR a format shares."""
        return self.shares.get(format_name, self.shares[_ALL])

    def forecasts(self, forecasts: Sequence[Forecast], csr_s: float) -> list[Forecast]:
        """Return forecasts of a matrix without that of CSR, corrected by its measured time.

        None are returned where CSR is not among them.
        """
        csr = next((forecast for forecast in forecasts if is_plain_csr(forecast.candidate)), None)
        if csr is None:
            return []
        csr_factor, corrected = csr_s / csr.time_s, []
        for forecast in forecasts:
            if not is_plain_csr(forecast.candidate):
                time_s = forecast.time_s * csr_factor ** self.share(forecast.candidate.format)
                half = half_width(forecast.low_s, forecast.high_s)
                low_s, high_s = self.interval(forecast.candidate, time_s, half)
                changed = replace(forecast, time_s=time_s, low_s=low_s, high_s=high_s, basis="corrected")
                corrected.append(changed)
        return corrected

    def interval(self, candidate: Candidate, value: float, half: float | None) -> Interval:
        """Return the ends of a corrected forecast, for half the width of the model's own interval."""
        ends = self.widths.get(candidate.format if candidate.format in self.shares else _ALL)
        if half is None or ends is None:
            return None, None
        return value * math.exp(half * ends[0]), value * math.exp(half * ends[1])


class Measured(NamedTuple):
    """What was measured of a Candidate of a matrix, as in a Record."""

    candidate: Candidate
    time_s: float
    noise: float | None
    convert_s: float | None


class ProbedForecaster(AdjustedForecaster):
    """A fitted model whose forecasts for one matrix are corrected by Records of it.

    A Candidate that was measured takes its measured time, another one what the Correction makes of its
    forecast. Blocks of the matrix' rows are corrected in proportion: they were not measured.

    `model` is fitted, of time, and `correction` was learned with it. What was `measured` is one a Candidate
    of the matrix, plain CSR among them.
    """

    def __init__(
        self, model: Forecaster, structure: Structure, correction: Correction, measured: Sequence[Measured]
    ) -> None:
        super().__init__(model)
        self._correction = correction
        self._measured = {_storage(record.candidate): record for record in measured}
        blocks = RowBlocks.of(structure)
        self._factors = {
            storage: each.time_s / float(self._model.values(each.candidate, blocks)[0])
            for storage, each in self._measured.items()
        }
        csr = next(record.candidate for record in measured if is_plain_csr(record.candidate))
        self.csr_factor = self._factors[_storage(csr)]
        costs = dict(model.conversion_.costs)
        for record in measured:
            kind = what_is_built(record.candidate)
            forecast_s = float(model.conversion_.seconds(record.candidate, blocks)[0])
            if kind in costs and forecast_s > 0:
                costs[kind] = (record.convert_s or 0.0) / forecast_s * model.conversion_.costs[kind]
        self.conversion_ = replace(model.conversion_, costs=costs)

    def factor(self, candidate: Candidate) -> float:
        """Return how many times longer a product takes than the model forecasts."""
        if (storage := _storage(candidate)) in self._factors:
            return self._factors[storage]
        return float(self.csr_factor ** self._correction.share(candidate.format))

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, NDArray[np.float64]]:
        terms, factor = self._model.terms(candidate, blocks), self.factor(candidate)
        time_s = terms["time_s"]
        return {**terms, "probe": time_s * (factor - 1.0), "time_s": time_s * factor}

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the noise of a time that was measured, else the interval that the Correction leaves."""
        record = self._measured.get(_storage(candidate))
        if record is not None and math.isclose(value, record.time_s):
            if record.noise is None:
                return None, None
            return value / (1 + record.noise), value * (1 + record.noise)
        own = value / self.factor(candidate)
        half = half_width(*self._model.interval(candidate, own, matrix))
        return self._correction.interval(candidate, value, half)

    def basis(self, candidate: Candidate) -> str:
        record = self._measured.get(_storage(candidate))
        return "measured" if record is not None and record.candidate == candidate else "corrected"


def _storage(candidate: Candidate) -> tuple[str, Parameters]:
    """Return what tells a Candidate from others of a matrix; blocks of rows may have other kernels."""
    return candidate.format, candidate.parameters


def left_out_pairs(model: Model, training: TrainingSet) -> list[PairedErrors]:
    """Return the errors on matrices with CSR and other formats, each by a fit without its group."""
    used = model.used(training).having(model.groups)
    pairs = []
    for rest, left_out in used.parts_left_out(INTERVAL_FOLDS):
        other = type(model)(**model.settings())
        try:
            other.fit(rest)
        except ProfileError:
            continue  # the other parts may suffice without theirs
        pairs += _paired_errors(other, left_out)
    return pairs


def _paired_errors(model: Model, left_out: TrainingSet) -> list[PairedErrors]:
    pairs: list[PairedErrors] = []
    of_products = grouped(left_out.records, lambda r: (r.matrix, r.suite, r.candidate.vectors))
    for records in of_products.values():
        measured_s = {record.candidate: record.time_s for record in records}
        estimates = model.estimates(left_out.structure(records[0]), measured_s)
        errors = {e.candidate: math.log(measured_s[e.candidate] / e.value) for e in estimates}
        csr_error = next((errors[candidate] for candidate in errors if is_plain_csr(candidate)), None)
        if csr_error is not None:
            pairs += [
                PairedErrors(e.candidate.format, csr_error, errors[e.candidate], half_width(e.low, e.high))
                for e in estimates
                if not is_plain_csr(e.candidate)
            ]
    return pairs


def shared_error(pairs: Sequence[PairedErrors]) -> float:
    """Return the share s with the least sum of abs(error - s csr_error): a weighted median of ratios."""
    weighted = [(pair.error / pair.csr_error, abs(pair.csr_error)) for pair in pairs if pair.csr_error != 0]
    if not weighted:
        return 0.0
    ratios, weights = np.array(sorted(weighted, key=lambda pair: pair[0])).T
    return float(ratios[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
