"""What every model does: learn from a Profile's Records, forecast Candidates on row blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import DeviceError, ProfileError
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import PROCESSOR, Machine
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
    device_ : str
        What the Records are of.
    gpu_ : GPU or None
        That device, where it is one.
    ratios_ : dict of str to (float, float)
        For each format, or format and kernel, as `label` calls them, the ends of the interval of measured
        over forecast time, from the held-out Records.
    conversion_ : ConversionCost
        What building each format costs.
    """

    name: ClassVar[str]

    def fit(self, records: Sequence[Record], machine: Machine | None = None) -> Self:
        """Learn from the Records of one device, dtype and number of threads that have warm caches.

        Parameters
        ----------
        records : sequence of Record
        machine : Machine, optional
            That the Records are from. Without it, a model that reads caches takes a processor for one that
            has none; Records of a GPU cannot be fitted without its description.

        Raises
        ------
        ProfileError
            If they do not suffice for any format.
        DeviceError
            If they are of another device than `machine`, or than a processor where there is none.
        """
        records = [record for record in records if record.regime == "warm"]
        described = machine.device if machine else PROCESSOR
        self.device_ = records[0].candidate.device if records else described
        if self.device_ != described:
            raise DeviceError(
                f"records of device '{self.device_}': expected those of {described}, which the machine is "
                f"described as; name the profile of such a machine"
            )
        self.gpu_ = machine.gpu if machine else None
        self._fit(records, machine)
        if not self.formats():
            raise ProfileError(
                f"the profile's {len(records)} records do not suffice for the {self.name} model: "
                f"expected a calibration that ran to its end; calibrate with a larger budget"
            )
        self.conversion_ = ConversionCost().fit(records, machine)
        self.ratios_ = self._held_out_ratios([r for r in records if r.suite == "gallery"])
        return self

    @abstractmethod
    def _fit(self, records: Sequence[Record], machine: Machine | None) -> None:
        """Learn what `time_s` needs, of each format whose Records suffice."""

    @abstractmethod
    def formats(self) -> list[str]:
        """Return the formats that the Records sufficed for."""

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return the kernels of a format that were fitted each by itself.

        There are none where one fit stands for all: a processor's matrices are measured with the kernel that
        the rule chooses for each, those of a GPU with every kernel.
        """
        return ()

    def knows(self, candidate: Candidate) -> bool:
        """Tell whether the Records sufficed for a Candidate's format and kernel."""
        kernels = self.kernels(candidate.format)
        return candidate.format in self.formats() and (not kernels or candidate.kernel in kernels)

    @abstractmethod
    def terms(
        self, format_name: str, blocks: RowBlocks, kernel: str | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Return the model's terms for each block; the one called ``"time_s"`` is the forecast, > 0.

        Parameters
        ----------
        format_name : str
            One of `formats`.
        blocks : RowBlocks
        kernel : str, optional
            One of `kernels`; not needed where there are none.
        """

    def time_s(self, format_name: str, blocks: RowBlocks, kernel: str | None = None) -> NDArray[np.float64]:
        """Return the forecast time of one product with each block, in seconds; parameters as in `terms`."""
        return self.terms(format_name, blocks, kernel)["time_s"]

    def forecast(self, structure: Structure, candidates: Iterable[Candidate]) -> list[Forecast]:
        """Return the Forecasts of whole-matrix Candidates, fastest first.

        Candidates whose format or kernel the Records did not suffice for are left out.
        """
        blocks = RowBlocks.of(structure)
        forecasts = [self._forecast(structure, blocks, c) for c in candidates if self.knows(c)]
        return sorted(forecasts, key=lambda forecast: forecast.time_s)

    def _forecast(self, structure: Structure, blocks: RowBlocks, candidate: Candidate) -> Forecast:
        found = self.terms(candidate.format, blocks, candidate.kernel)
        terms = {name: float(values[0]) for name, values in found.items()}
        time_s = terms.pop("time_s")
        low, high = self.interval(candidate.format, time_s, candidate.kernel)
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
            convert_s=self._convert_s(candidate.format, blocks),
            why=tuple(terms.items()),
        )

    def _convert_s(self, format_name: str, blocks: RowBlocks) -> float | None:
        if not self.conversion_.is_known(format_name):
            return None
        return float(self.conversion_.seconds(format_name, blocks)[0])

    def interval(
        self, format_name: str, time_s: float, kernel: str | None = None
    ) -> tuple[float | None, float | None]:
        """Return the low and high end of a forecast; None where too few Records were held out."""
        label = self.label(format_name, kernel)
        if label not in self.ratios_:
            return None, None
        low, high = self.ratios_[label]
        return time_s * low, time_s * high

    def label(self, format_name: str, kernel: str | None) -> str:
        """Name what is fitted as one: a format, or a format and, after a space, one of its kernels."""
        return f"{format_name} {kernel}" if self.kernels(format_name) else format_name

    def _held_out_ratios(self, held_out: Sequence[Record]) -> dict[str, tuple[float, float]]:
        ratios: dict[str, list[float]] = {}
        for record in held_out:
            name, kernel = record.candidate.format, record.candidate.kernel
            if self.knows(record.candidate):
                expected = float(self.time_s(name, RowBlocks.of(record.structure), kernel)[0])
                ratios.setdefault(self.label(name, kernel), []).append(record.time_s / expected)
        return {label: prediction_interval(found) for label, found in ratios.items() if len(found) > 1}


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
