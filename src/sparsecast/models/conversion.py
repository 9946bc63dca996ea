"""What building a format from CSR costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.formats import FORMATS
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.records import Record


class ConversionCost:
    """Seconds to build a format: a fixed cost and a cost for each stored entry, both >= 0.

    Attributes
    ----------
    coefficients_ : dict of str to (float, float)
        Seconds, and seconds a stored entry, for each format.
    """

    def fit(self, records: Sequence[Record]) -> Self:
        """Learn from the conversions that were timed beside the products."""
        from scipy.optimize import nnls

        self.coefficients_: dict[str, tuple[float, float]] = {}
        for name in sorted({record.candidate.format for record in records}):
            own = [record for record in records if record.candidate.format == name and record.convert_s > 0]
            if not own:
                self.coefficients_[name] = (0.0, 0.0)  # CSR: there is nothing to build
                continue
            stored = [int(FORMATS.get(name).stored_entries(RowBlocks.of(r.structure))[0]) for r in own]
            seconds = np.array([record.convert_s for record in own])
            # Weighted by 1/seconds, the residuals are relative: small matrices count as much as large ones.
            terms = np.column_stack([np.ones(len(own)), stored]) / seconds[:, None]
            fixed, each = nnls(terms, np.ones(len(own)))[0]
            self.coefficients_[name] = (float(fixed), float(each))
        return self

    def seconds(self, format_name: str, blocks: RowBlocks) -> NDArray[np.float64]:
        """Return the forecast seconds to build each block."""
        fixed, each = self.coefficients_[format_name]
        stored = FORMATS.get(format_name).stored_entries(blocks).astype(np.float64)
        return np.asarray(fixed + each * stored)
