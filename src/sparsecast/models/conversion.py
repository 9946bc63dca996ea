"""The cost of building a format from CSR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.models.fitting import typical_costs
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate
from sparsecast.system.grouping import grouped


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

    def scaled(self, factors: Mapping[str, float]) -> ConversionCost:
        return replace(self, costs={name: factors.get(name, 1.0) * c for name, c in self.costs.items()})

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
