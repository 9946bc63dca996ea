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
from sparsecast.models.forecaster import AdjustedForecaster, Forecaster
from sparsecast.models.intervals import (
    INTERVAL_FOLDS,
    LEAST_RANKED,
    Interval,
    half_width,
    prediction_interval,
)
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Estimate, Record

#: The format that a probe measures first: nothing has to be converted for it.
PROBED = "csr"

#: Under this name stands what holds for formats with too few Records of their own.
_ALL = "all formats"


class _Left(NamedTuple):
    """The errors log(measured / forecast) of CSR and of another format, on a matrix that was left out.

    `half` is half the width of the model's interval, of logarithms of time; None where it has none.
    """

    format: str
    of_csr: float
    own: float
    half: float | None


@dataclass(frozen=True)
class Correction:
    """How the measured time of CSR corrects the forecasts of other formats.

    Attributes
    ----------
    shares : dict of str to float
        For each format, how much of the error of CSR it shares: of log(measured / forecast).
    widths : dict of str to (float, float)
        For each format, the ends of what is left of log(measured / corrected), in half widths of the model's
        interval. Formats without intervals are missing.
    """

    shares: Mapping[str, float]
    widths: Mapping[str, tuple[float, float]]

    @classmethod
    def learned(cls, model: Model, training: TrainingSet) -> Correction:
        """Learn it from Records that `model` can be fitted to: whole groups of matrices are left out in turn.

        A format with fewer matrices than LEAST_RANKED takes what holds for all formats together.

        Raises
        ------
        ProfileError
            If fewer than LEAST_RANKED Records are of a matrix whose CSR was measured with them.
        """
        found = _left_out(model, training)
        if len(found) < LEAST_RANKED:
            raise ProfileError(
                f"the profile has {len(found)} records beside those of CSR that the {model.name} model can "
                f"be tried on: expected {LEAST_RANKED}, from which a probe corrects forecasts; calibrate "
                f"with a larger budget, or leave --probe out"
            )
        names = {name: [each for each in found if each.format == name] for name in {f.format for f in found}}
        enough = {name: own for name, own in sorted(names.items()) if len(own) >= LEAST_RANKED}
        of_names = {_ALL: found, **enough}
        shares = {name: _share(own) for name, own in of_names.items()}
        widths = {name: _width(own, shares[name]) for name, own in of_names.items()}
        return cls(shares, {name: ends for name, ends in widths.items() if ends is not None})

    def share(self, format_name: str) -> float:
        """Return how much of the error of CSR a format shares."""
        return self.shares.get(format_name, self.shares[_ALL])

    def width(self, format_name: str) -> tuple[float, float] | None:
        """Return what is left of a format's error, as in `widths`; None where no interval is known."""
        return self.widths.get(format_name if format_name in self.shares else _ALL)

    def estimates(self, found: Sequence[Estimate], csr_s: float) -> list[Estimate]:
        """Return estimates of a matrix without that of CSR, corrected by its measured time.

        None are returned where CSR is not among them.
        """
        own = next((each for each in found if each.candidate.format == PROBED), None)
        others = [each for each in found if each.candidate.format != PROBED]
        return [] if own is None else [self._corrected(each, csr_s / own.value) for each in others]

    def _corrected(self, found: Estimate, csr_factor: float) -> Estimate:
        value = found.value * csr_factor ** self.share(found.candidate.format)
        low, high = self.interval(found.candidate, value, half_width(found.low, found.high))
        return replace(found, value=value, low=low, high=high)

    def interval(self, candidate: Candidate, value: float, half: float | None) -> Interval:
        """Return the ends of a corrected forecast, for half the width of the model's own interval."""
        ends = self.width(candidate.format)
        if half is None or ends is None:
            return None, None
        return value * math.exp(half * ends[0]), value * math.exp(half * ends[1])


class ProbedForecaster(AdjustedForecaster):
    """A fitted model whose forecasts for one matrix are corrected by Records of it.

    A format that was measured takes its measured time, another one what the Correction makes of its forecast.
    Blocks of the matrix' rows are corrected in proportion: they were not measured.

    Parameters
    ----------
    model : Forecaster
        Fitted, of time.
    structure : Structure
        Of the matrix.
    correction : Correction
        Learned with that model.
    records : sequence of Record
        What was measured of the matrix, one a format, CSR among them.
    """

    def __init__(
        self, model: Forecaster, structure: Structure, correction: Correction, records: Sequence[Record]
    ) -> None:
        super().__init__(model)
        self._correction = correction
        self._measured = {record.candidate.format: record for record in records}
        self._blocks = RowBlocks.of(structure)
        self._factors = {name: self._measured_factor(record) for name, record in self._measured.items()}
        self.conversion_ = model.conversion_.scaled(
            {name: self._conversion_factor(record) for name, record in self._measured.items()}
        )

    @property
    def csr_factor(self) -> float:
        return self._factors[PROBED]

    def _measured_factor(self, record: Record) -> float:
        return record.time_s / float(self._model.values(record.candidate, self._blocks)[0])

    def _conversion_factor(self, record: Record) -> float:
        forecast_s = self._model.conversion_.seconds(record.candidate, self._blocks)[0]
        return (record.convert_s or 0.0) / float(forecast_s) if forecast_s > 0 else 1.0

    def factor(self, format_name: str) -> float:
        """Return how many times longer a format takes than the model forecasts."""
        if format_name in self._factors:
            return self._factors[format_name]
        return float(self.csr_factor ** self._correction.share(format_name))

    def terms_of_all(
        self, candidates: Sequence[Candidate], blocks: RowBlocks
    ) -> list[dict[str, NDArray[np.float64]]]:
        adjusted = []
        for candidate, terms in zip(candidates, self._model.terms_of_all(candidates, blocks), strict=True):
            time_s, factor = terms["time_s"], self.factor(candidate.format)
            adjusted.append({**terms, "probe": time_s * (factor - 1.0), "time_s": time_s * factor})
        return adjusted

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the noise of a time that was measured, else the interval that the Correction leaves."""
        record = self._measured.get(candidate.format)
        if record is not None and math.isclose(value, record.time_s):
            if record.noise is None:
                return None, None
            return value / (1 + record.noise), value * (1 + record.noise)
        own = value / self.factor(candidate.format)
        half = half_width(*self._model.interval(candidate, own, matrix))
        return self._correction.interval(candidate, value, half)

    def basis(self, candidate: Candidate) -> str:
        record = self._measured.get(candidate.format)
        return "measured" if record is not None and record.candidate == candidate else "corrected"


def _left_out(model: Model, training: TrainingSet) -> list[_Left]:
    """Return the errors on matrices with CSR and other formats, each by a fit without its group."""
    used = model.used(training).having(model.groups)
    errors = []
    for rest, left_out in used.parts_left_out(INTERVAL_FOLDS):
        other = type(model)(**model.settings())
        try:
            other.fit(rest)
        except ProfileError:
            continue  # the other parts may suffice without theirs
        errors += _errors(other, left_out)
    return errors


def _errors(model: Model, left: TrainingSet) -> list[_Left]:
    together: dict[tuple[str, str], list[Record]] = {}
    for record in left.records:
        together.setdefault((record.matrix, record.suite), []).append(record)
    found = []
    for records in together.values():
        measured = {record.candidate: record.time_s for record in records}
        estimates = model.estimates(left.structure(records[0]), measured)
        errors = {each.candidate: math.log(measured[each.candidate] / each.value) for each in estimates}
        of_csr = next((errors[each] for each in errors if each.format == PROBED), None)
        if of_csr is not None:
            found += [
                _Left(name, of_csr, errors[each.candidate], half_width(each.low, each.high))
                for each in estimates
                if (name := each.candidate.format) != PROBED
            ]
    return found


def _share(found: Sequence[_Left]) -> float:
    """Return the share s for which the sum of abs(own - s of_csr) is least: a weighted median of ratios."""
    pairs = np.array([(each.own / each.of_csr, abs(each.of_csr)) for each in found if each.of_csr != 0])
    if not len(pairs):
        return 0.0
    ratios, weights = pairs[np.argsort(pairs[:, 0])].T
    return float(ratios[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])


def _width(found: Sequence[_Left], share: float) -> tuple[float, float] | None:
    """Return the ends of what a share leaves of the errors, in half widths of the model's intervals."""
    left = [(each.own - share * each.of_csr) / each.half for each in found if each.half is not None]
    if len(left) < LEAST_RANKED:
        return None
    low, high = prediction_interval(np.exp(np.clip(left, -_MOST, _MOST)).tolist())
    return math.log(low), math.log(high)


#: No error is more half widths off: its exponential must be a number.
_MOST = 100.0
