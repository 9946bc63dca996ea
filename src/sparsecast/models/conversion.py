"""The cost of building a format from CSR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.models.fitting import fitted_costs
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate


class ConversionCost:
    """Seconds to build a format: a fixed cost, one a stored entry, and one a byte beyond the last cache.

    The last is mostly that of memory that the system has to give first, which it recycles for small arrays;
    on a virtual machine it can be ten times the work of the conversion itself.

    Formats are built on the host for a GPU too, alike for all kernels of a format, and the copying counts:
    the caches are the host's, and one cost stands for a format's kernels.

    Attributes
    ----------
    coefficients_ : dict of str to float array of shape (3,)
        The costs, all at least 0, of each format whose conversion was timed.
    """

    def fit(self, training: TrainingSet) -> Self:
        """Learn from the conversions whose times the Records hold."""
        self._last_cache = _last_cache(training.machine)
        self.coefficients_: dict[str, NDArray[np.float64]] = {}
        timed = [record for record in training.records if record.convert_s is not None]
        for name in sorted({record.candidate.format for record in timed}):
            own = [record for record in timed if record.candidate.format == name and record.convert_s]
            if not own:
                self.coefficients_[name] = np.zeros(3)  # CSR: there is nothing to build
                continue
            terms = [self._terms(r.candidate, RowBlocks.of(training.structure(r))) for r in own]
            seconds = np.array([record.convert_s for record in own])
            self.coefficients_[name] = fitted_costs(np.concatenate(terms), seconds)
        return self

    def to_state(self) -> dict[str, list[float]]:
        """Return what was learned as plain data."""
        return {name: costs.tolist() for name, costs in self.coefficients_.items()}

    def restored(self, state: Mapping[str, Sequence[float]], machine: Machine) -> Self:
        """Take over what `to_state` gave, and return self."""
        self._last_cache = _last_cache(machine)
        self.coefficients_ = {name: np.array(costs, dtype=float) for name, costs in state.items()}
        return self

    def scaled(self, factors: Mapping[str, float]) -> ConversionCost:
        """Return the costs, those of some formats multiplied by a factor."""
        other = ConversionCost()
        other._last_cache = self._last_cache
        costs = self.coefficients_.items()
        other.coefficients_ = {name: factors.get(name, 1.0) * own for name, own in costs}
        return other

    def seconds(self, candidate: Candidate, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast seconds to build each block.

        Raises
        ------
        ProfileError
            If no conversion to this format was ever timed.
        """
        if candidate.format not in self.coefficients_:
            raise ProfileError(
                f"the profile has no time of a conversion to {candidate.format}: expected those of a "
                f"calibration, which plans need; calibrate the machine, or ask for a forecast"
            )
        costs = self.coefficients_[candidate.format]
        if not costs.any():
            return np.zeros(len(blocks.rows))
        return np.asarray(self._terms(candidate, blocks) @ costs)

    def _terms(self, candidate: Candidate, blocks: RowBlocks) -> NDArray[np.float64]:
        storage: Any = FORMATS.get(candidate.format)
        parameters, widths = candidate.parameters, (candidate.value_bytes, candidate.index_bytes)
        stored = storage.stored_entries(blocks, **parameters)
        size = storage.predicted_bytes(blocks, *widths, **parameters)
        beyond = np.maximum(size - self._last_cache, 0)
        return np.column_stack([np.ones(len(stored)), stored, beyond]).astype(np.float64)


def _last_cache(machine: Machine) -> int:
    return max((cache.bytes for cache in machine.caches), default=0)
