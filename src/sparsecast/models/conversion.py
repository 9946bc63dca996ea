"""What building a format from CSR costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.records import Record


class ConversionCost:
    """Seconds to build a format: a fixed cost, one a stored entry, and one a byte beyond the last cache.

    The last is mostly that of memory that the system has to give first, which it recycles for small arrays;
    on a virtual machine it can be ten times the work of the conversion itself. All are at least 0.

    Formats are built on the host for a GPU too, alike for all kernels of a format, and the copying counts:
    the caches are the host's, and one cost stands for a format's kernels.

    Attributes
    ----------
    coefficients_ : dict of str to float array of shape (3,)
        The costs for each format, but those whose conversion was never timed.
    """

    def fit(self, records: Sequence[Record], machine: Machine | None = None) -> Self:
        """Learn from the conversions that were timed beside the products."""
        from scipy.optimize import nnls

        self._last_cache = max((cache.bytes for cache in (machine.caches if machine else ())), default=0)
        self.coefficients_: dict[str, NDArray[np.float64]] = {}
        # Blocks of a size that was asked for are not those that a Structure foretells.
        records = [record for record in records if record.candidate.block is None]
        for name in sorted({record.candidate.format for record in records}):
            seconds_of = {
                record: record.convert_s
                for record in records
                if record.candidate.format == name and record.convert_s is not None
            }
            if not seconds_of:
                continue
            candidate = next(iter(seconds_of)).candidate
            self._value_bytes = np.dtype(candidate.dtype).itemsize
            self._index_bytes = candidate.index_bits // 8
            own = {record: seconds for record, seconds in seconds_of.items() if seconds > 0}
            if not own:
                self.coefficients_[name] = np.zeros(3)  # CSR: there is nothing to build
                continue
            terms = np.concatenate([self._terms(name, RowBlocks.of(record.structure)) for record in own])
            seconds = np.array(list(own.values()))
            # Weighted by 1/seconds, the residuals are relative: small matrices count as much as large ones.
            relative = terms / seconds[:, None]
            scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
            self.coefficients_[name] = nnls(relative / scale, np.ones(len(own)))[0] / scale
        return self

    def is_known(self, format_name: str) -> bool:
        """Tell whether a conversion to this format was ever timed."""
        return format_name in self.coefficients_

    def seconds(self, format_name: str, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast seconds to build each block.

        Raises
        ------
        ProfileError
            If no conversion to this format was ever timed.
        """
        if not self.is_known(format_name):
            raise ProfileError(
                f"the profile has no time of a conversion to {format_name}: expected those of a calibration, "
                f"which plans need; calibrate the machine, or ask for a forecast"
            )
        costs = self.coefficients_[format_name]
        if not costs.any():
            return np.zeros(len(blocks.rows))
        return np.asarray(self._terms(format_name, blocks) @ costs)

    def _terms(self, format_name: str, blocks: RowBlocks) -> NDArray[np.float64]:
        storage = FORMATS.get(format_name)
        stored = storage.stored_entries(blocks)
        size = storage.predicted_bytes(blocks, self._value_bytes, self._index_bytes)
        beyond = np.maximum(size - self._last_cache, 0)
        return np.column_stack([np.ones(len(stored)), stored, beyond]).astype(np.float64)
