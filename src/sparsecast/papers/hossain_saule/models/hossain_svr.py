"""The support vector regression of Hossain and Saule for one process.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.B:
a regression with a polynomial kernel for each format, whose C and gamma a grid search with 5-fold cross-
validation chooses. Features: rows and non-zeros of a process, non-zeros a row, density, and deviation of
the row lengths; the others describe communication, and one process has none.

What the paper leaves open is at the head of `papers/hossain_saule/regression.py`. Ours takes logarithms of
features and time, because times from a microsecond to a tenth of a second would leave the small ones within
epsilon; `as_printed` takes them as they are.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule.regression import LEAST_RECORDS, Regression
from sparsecast.papers.hossain_saule.table_one import FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate

#: Most Records of a format, evenly chosen: the paper has 90 matrices, and the time of the search grows with
#: their square.
MOST_RECORDS = 200


@MODELS.register("hossain-svr")
class HossainSVR(AsPrinted, Model):
    """A support vector regression for each format.

    `as_printed` takes features and times as they are. `most_` counts the Records of the format that had most.
    """

    name: ClassVar[str] = "hossain-svr"
    version: ClassVar[int] = 3
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    fits_: dict[str, Regression]
    most_: int

    def _fit(self, training: TrainingSet) -> None:
        self.fits_ = {}
        self.most_ = 0
        for name in FORMATS_OF_THE_PAPER:
            records = [record for record in training.records if record.candidate.format == name]
            self.most_ = max(self.most_, len(records))
            if len(records) >= LEAST_RECORDS:
                places = np.linspace(0, len(records) - 1, min(len(records), MOST_RECORDS)).astype(int)
                records = [records[place] for place in places]
                shapes = [RowBlocks.of(training.structure(record)) for record in records]
                self.fits_[name] = Regression.fitted(
                    np.concatenate([self._features(shape) for shape in shapes]),
                    np.array([record.time_s for record in records]),
                    is_of_logarithms=not self.as_printed,
                )

    def _features(self, blocks: RowBlocks) -> Floats:
        features = features_of(blocks)
        # Counts and lengths may be 0, and a density is far below 1.
        return features if self.as_printed else np.log(features + np.array([1, 1, 1, 1e-12, 1]))

    def needed(self) -> str:
        return (
            f"{LEAST_RECORDS} of one format, of which they have {self.most_}; add them by "
            f"`sparsecast calibrate` with a larger budget"
        )

    def formats(self) -> list[str]:
        return list(self.fits_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        return self.fits_[candidate.format].terms(self._features(blocks))


def features_of(blocks: RowBlocks) -> Floats:
    """Return section III.B.2's features of each block that concern one process, of shape (blocks, 5).

    They are rows, non-zeros, non-zeros a row, density, and the deviation of the row lengths. The last
    is exact for rows of less than 64 entries; the longer ones between two levels count as equally long.
    """
    rows, nnz = blocks.rows.astype(float), blocks.nnz.astype(float)
    mean = nnz / np.maximum(rows, 1)
    density = mean / max(blocks.matrix.cols, 1)
    at_least = blocks.rows_at_least.astype(float)
    below = blocks.entries_up_to - at_least * blocks.levels  # entries of the rows below each level
    nothing = np.zeros((len(rows), 1))
    count = at_least - np.hstack([at_least[:, 1:], nothing])
    entries = np.hstack([below[:, 1:], nnz[:, None]]) - below
    length = entries / np.maximum(count, 1)
    variance = (count * (length - mean[:, None]) ** 2).sum(axis=1) / np.maximum(rows, 1)
    return np.column_stack([rows, nnz, mean, density, np.sqrt(variance)])
