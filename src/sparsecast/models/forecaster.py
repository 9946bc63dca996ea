"""The interface of what forecasts products: times or joules of Candidates on row blocks.

So is the cost of building a format from CSR.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.target import memory_bytes, passes
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.models.fitting import Interval, typical_costs
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Estimate, Forecast
from sparsecast.system.tabular import grouped


@dataclass(frozen=True)
class ConversionCost:
    """Seconds to build a format: a fixed cost, one a row, a stored entry, and a byte beyond the last cache.

    The last is mostly that of memory that the system has to give first, which it recycles for small arrays;
    on a virtual machine it can be ten times the work of the conversion itself.

    Formats are built on the host for a GPU too, alike for all kernels of a format, and the copying counts:
    the caches are the host's, and one cost stands for a format's kernels.
    """

    last_cache_bytes: int
    #: Of each format whose conversion was timed, shape (4,), at least 0; narrow CSR is one of its own.
    costs: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def fitted(cls, training: TrainingSet) -> Self:
        """Learn from the conversions whose times the Records hold."""
        fit = cls(max((cache.bytes for cache in training.machine.caches), default=0))
        timed = [record for record in training.records if record.convert_s is not None]
        for name, records in sorted(grouped(timed, lambda record: what_is_built(record.candidate)).items()):
            records = [record for record in records if record.convert_s]
            if not records:
                fit.costs[name] = np.zeros(4)  # CSR: there is nothing to build
                continue
            terms = [fit._terms(r.candidate, RowBlocks.of(training.structure(r))) for r in records]
            seconds = np.array([record.convert_s for record in records])
            fit.costs[name] = typical_costs(np.concatenate(terms), seconds)
        return fit

    def seconds(self, candidate: Candidate, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast seconds to build each block; a ProfileError for a format that was never built.

        Narrow CSR that was never built takes as long as the quickest conversion that was timed.
        """
        if candidate.format not in self.costs:
            raise ProfileError(
                f"the profile has no time of a conversion to {candidate.format}: expected those of a "
                f"calibration, which plans need; calibrate the machine, or ask for a forecast"
            )
        name = what_is_built(candidate)
        # On a GPU even CSR takes time: that of its copy there.
        timed = [costs for kind, costs in self.costs.items() if costs.any() and kind != candidate.format]
        known = [self.costs[name]] if name in self.costs else timed
        if not known:
            return np.zeros(len(blocks.rows))
        terms = self._terms(candidate, blocks)
        return np.asarray(np.min([terms @ costs for costs in known], axis=0))

    def _terms(self, candidate: Candidate, blocks: RowBlocks) -> NDArray[np.float64]:
        storage: Any = FORMATS.get(candidate.format)
        parameters, widths = candidate.parameters, (candidate.value_bytes, candidate.index_bytes)
        stored = storage.stored_entries(blocks, **parameters)
        size = storage.predicted_bytes(blocks, *widths, **parameters)
        beyond = np.maximum(size - self.last_cache_bytes, 0)
        return np.column_stack([np.ones(len(stored)), blocks.rows, stored, beyond]).astype(np.float64)


def what_is_built(candidate: Candidate) -> str:
    """Return what is built: CSR in narrow storage is converted, unlike CSR itself."""
    is_narrow = candidate.parameters and not FORMATS.get(candidate.format).is_converted
    return f"narrow {candidate.format}" if is_narrow else candidate.format


#: What is forecast: the term that each quantity has among the terms of a forecast, and that Records measure.
QUANTITIES = {"time": "time_s", "energy": "energy_j"}


class Forecaster(ABC):
    """Forecasts what one product costs.

    A fitted Model is one; others correct what a model says, and have no fit of their own.
    """

    quantity: ClassVar[str] = "time"  # what it forecasts: a name of QUANTITIES
    #: machine_, device_: that the forecasts are for.
    machine_: Machine
    device_: str
    conversion_: ConversionCost

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the model that the forecasts are from, as it is registered."""

    @property
    @abstractmethod
    def groups(self) -> tuple[str, ...]:
        """Feature groups without which it cannot forecast."""

    @abstractmethod
    def formats(self) -> list[str]:
        """Return the formats that it can forecast."""

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return the kernels of a format that have their own fits; none if one fit is for all kernels.

        On a processor, each matrix is measured with the kernel that the rule chooses; on a GPU, with all.
        """
        return ()

    def serves(self, candidate: Candidate) -> bool:
        """Tell whether there is a forecast for a Candidate's device, format, kernel and parameters.

        Candidates with parameters whose sizes the format does not predict are not served.
        """
        kernels = self.kernels(candidate.format)
        is_known = candidate.format in self.formats() and (not kernels or candidate.kernel in kernels)
        return is_known and candidate.device == self.device_ and has_predicted_size(candidate)

    @abstractmethod
    def lacking(self, format_name: str) -> str:
        """Return in words why it does not forecast a format, and after a semicolon the remedy."""

    @abstractmethod
    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, NDArray[np.float64]]:
        """Return the terms of a Candidate that it serves, each a float array with one element a block.

        The term that is called as QUANTITIES says is the forecast, above 0.
        """

    def values(self, candidate: Candidate, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast of one product with each block, in seconds or joules."""
        return self.terms(candidate, blocks)[QUANTITIES[self.quantity]]

    @abstractmethod
    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the low and high end of a forecast for `matrix`, or for a block of its rows."""

    def estimates(self, structure: Structure, candidates: Iterable[Candidate]) -> list[Estimate]:
        """Return what a product of a whole matrix costs in each Candidate that is served.

        A FeatureError says that the Structure lacks a feature group that is needed.
        """
        for name in self.groups:
            structure.require(name)
        blocks, estimates = RowBlocks.of(structure), []
        for candidate in filter(self.serves, candidates):
            terms = {name: float(values[0]) for name, values in self.terms(candidate, blocks).items()}
            value = terms.pop(QUANTITIES[self.quantity])
            low, high = self.interval(candidate, value, structure)
            estimates.append(Estimate(candidate, value, low, high, tuple(terms.items())))
        return estimates

    def forecast(self, structure: Structure, candidates: Iterable[Candidate]) -> list[Forecast]:
        """Return the Forecasts of whole-matrix Candidates, fastest first: of what forecasts time.

        Candidates that are not served are left out.
        """
        blocks, forecasts = RowBlocks.of(structure), []
        for estimate in self.estimates(structure, candidates):
            candidate = estimate.candidate
            storage: Any = FORMATS.get(candidate.format)
            widths = candidate.value_bytes, candidate.index_bytes
            matrix_bytes = int(storage.predicted_bytes(blocks, *widths, **candidate.parameters)[0])
            vector_bytes = (structure.rows + structure.cols) * candidate.value_bytes
            is_timed = candidate.format in self.conversion_.costs
            built_bytes, building_bytes = memory_bytes(candidate, blocks)
            forecast = Forecast(
                candidate=candidate,
                nnz=structure.nnz,
                time_s=estimate.value,
                low_s=estimate.low,
                high_s=estimate.high,
                bytes=passes(candidate) * matrix_bytes + candidate.vectors * vector_bytes,
                energy_j=None,
                convert_s=float(self.conversion_.seconds(candidate, blocks)[0]) if is_timed else None,
                why=estimate.why,
                basis=self.basis(candidate),
                built_bytes=built_bytes,
                building_bytes=building_bytes,
            )
            forecasts.append(forecast)
        return sorted(forecasts, key=lambda forecast: forecast.time_s)

    def basis(self, candidate: Candidate) -> str:
        """Return what the time of a Candidate for the whole matrix rests on, as in a Forecast."""
        return "model"


class AdjustedForecaster(Forecaster):
    """Forecasts what a fitted model of time does, adjusted; by itself, it says of formats what that says."""

    def __init__(self, model: Forecaster) -> None:
        self._model = model
        self.machine_, self.device_, self.conversion_ = model.machine_, model.device_, model.conversion_

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def groups(self) -> tuple[str, ...]:
        return self._model.groups

    def formats(self) -> list[str]:
        return self._model.formats()

    def kernels(self, format_name: str) -> tuple[str, ...]:
        return self._model.kernels(format_name)

    def serves(self, candidate: Candidate) -> bool:
        return self._model.serves(candidate)

    def lacking(self, format_name: str) -> str:
        return self._model.lacking(format_name)


def has_predicted_size(candidate: Candidate) -> bool:
    """Tell whether the size of a Candidate's format follows from its parameters, without building it."""
    return FORMATS.get(candidate.format).predicts(candidate.parameters)
