"""What every model does: learn from a Profile's Records, forecast Candidates on row blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Cache
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.models.conversion import ConversionCost
from sparsecast.records import Candidate, Forecast, Record, Structure

#: Probability that an interval is meant to hold the measurement with, from the ratios measured / forecast on
#: matrices held out of the fit.
INTERVAL_SHARE = 0.9


class Model(ABC):
    """A forecaster of one product's time.

    The steps are those of scikit-learn: `fit` learns and returns self, learned state ends in ``_``.

    Attributes
    ----------
    ratios_ : dict of str to (float, float)
        For each format, the ends of the interval of measured over forecast time, from the held-out Records.
    conversion_ : ConversionCost
        What building each format costs.
    """

    name: ClassVar[str]

    def fit(self, records: Sequence[Record], caches: Sequence[Cache] = ()) -> Self:
        """Learn from the Records of one device, dtype and number of threads.

        Parameters
        ----------
        records : sequence of Record
        caches : sequence of Cache
            Of the machine that the Records are from; without them, a model that reads them takes the
            machine for one without caches.

        Raises
        ------
        ProfileError
            If they do not suffice for any format.
        """
        self._fit(records, caches)
        if not self.formats():
            raise ProfileError(
                f"the profile's {len(records)} records do not suffice for the {self.name} model: "
                f"expected a calibration that ran to its end; calibrate with a larger budget"
            )
        self.conversion_ = ConversionCost().fit(records, caches)
        self.ratios_ = self._held_out_ratios([r for r in records if r.suite == "gallery"])
        return self

    @abstractmethod
    def _fit(self, records: Sequence[Record], caches: Sequence[Cache]) -> None:
        """Learn what `time_s` needs, of each format whose Records suffice."""

    @abstractmethod
    def formats(self) -> list[str]:
        """Return the formats that the Records sufficed for."""

    @abstractmethod
    def terms(self, format_name: str, blocks: RowBlocks) -> dict[str, NDArray[np.float64]]:
        """Return the model's terms for each block; the one called ``"time_s"`` is the forecast, > 0."""

    def time_s(self, format_name: str, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast time of one product with each block, in seconds."""
        return self.terms(format_name, blocks)["time_s"]

    def forecast(self, structure: Structure, candidates: Iterable[Candidate]) -> list[Forecast]:
        """Return the Forecasts of whole-matrix Candidates, fastest first.

        Candidates whose format the Records did not suffice for are left out.
        """
        blocks = RowBlocks.of(structure)
        known = self.formats()
        forecasts = [self._forecast(structure, blocks, c) for c in candidates if c.format in known]
        return sorted(forecasts, key=lambda forecast: forecast.time_s)

    def _forecast(self, structure: Structure, blocks: RowBlocks, candidate: Candidate) -> Forecast:
        terms = {name: float(values[0]) for name, values in self.terms(candidate.format, blocks).items()}
        time_s = terms.pop("time_s")
        low, high = self.interval(candidate.format, time_s)
        value_bytes = np.dtype(candidate.dtype).itemsize
        stored = FORMATS.get(candidate.format).predicted_bytes(blocks, value_bytes, candidate.index_bits // 8)
        return Forecast(
            candidate=candidate,
            nnz=structure.nnz,
            time_s=time_s,
            low_s=low,
            high_s=high,
            bytes=int(stored[0]) + (structure.rows + structure.cols) * value_bytes,
            energy_j=None,
            convert_s=float(self.conversion_.seconds(candidate.format, blocks)[0]),
            why=tuple(terms.items()),
        )

    def interval(self, format_name: str, time_s: float) -> tuple[float | None, float | None]:
        """Return the low and high end of a forecast; None where too few Records were held out."""
        if format_name not in self.ratios_:
            return None, None
        low, high = self.ratios_[format_name]
        return time_s * low, time_s * high

    def _held_out_ratios(self, held_out: Sequence[Record]) -> dict[str, tuple[float, float]]:
        ratios: dict[str, list[float]] = {name: [] for name in self.formats()}
        for record in held_out:
            name = record.candidate.format
            if name in ratios:
                expected = float(self.time_s(name, RowBlocks.of(record.structure))[0])
                ratios[name].append(record.time_s / expected)
        return {name: prediction_interval(found) for name, found in ratios.items() if len(found) > 1}


def prediction_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the interval that holds the next ratio with probability INTERVAL_SHARE.

    Ratios of times scatter by factors, so their logarithms are taken for normally distributed; a handful of
    them leaves its own doubt, which Student's distribution adds (the prediction interval of one more
    observation, mean -+ t s sqrt(1 + 1/n)).
    """
    from scipy.special import stdtrit

    logarithms = np.log(ratios)
    count = len(logarithms)
    t = float(stdtrit(count - 1, (1 + INTERVAL_SHARE) / 2))
    half = t * float(logarithms.std(ddof=1)) * np.sqrt(1 + 1 / count)
    middle = float(logarithms.mean())
    return float(np.exp(middle - half)), float(np.exp(middle + half))
