"""The roofline of a product: its bytes over the bandwidth of reading as many, and nothing else.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52 (2009): attainable speed = min(peak, bandwidth x
intensity). The intensity of a product, an operation for several bytes, lies left of the ridge of every
machine, so that the bandwidth alone is left. Each level of the memory has its own.

It is fitted to no product. What another model is better by is what it knows beyond bytes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sparsecast.devices.target import passes
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import streamed_bytes
from sparsecast.records import Candidate, reads_of


@MODELS.register("roofline")
class Roofline(Model):
    """Bytes of the matrix, of x and of y, each read or written once, at the bandwidth of the working set.

    Between two arrays that were measured, the logarithm of the bandwidth goes with that of the size.
    """

    name: ClassVar[str] = "roofline"
    takes_several: ClassVar[bool] = True
    #: Bytes of an array and the bytes a second at which all threads read it, the smallest first.
    bandwidths_: list[tuple[int, float]]
    formats_: list[str]

    def _fit(self, training: TrainingSet) -> None:
        threads = training.records[0].candidate.threads if training.records else 1
        reads = reads_of(training.bandwidths, self.device_, threads)
        self.bandwidths_ = [(read.bytes, read.bandwidth_bytes_per_s) for read in reads]
        self.formats_ = sorted({record.candidate.format for record in training.records}) if reads else []

    def needed(self) -> str:
        return "bandwidths of its threads; add them by `sparsecast calibrate`"

    def formats(self) -> list[str]:
        return self.formats_

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds of the bytes of the matrix, of x and of y, and their sum.

        A block of rows has its share of x by its entries.
        """
        storage: Any = FORMATS.get(candidate.format)
        widths, matrix = (candidate.value_bytes, candidate.index_bytes), blocks.matrix
        vector = candidate.vectors * candidate.value_bytes
        stored = storage.predicted_bytes(blocks, *widths, **candidate.parameters)
        moved = {
            "matrix": (passes(candidate) * stored).astype(float),
            "x": vector * matrix.cols * blocks.nnz / max(matrix.nnz, 1),
            "y": (vector * blocks.rows).astype(float),
        }
        per_s = self._bandwidth(streamed_bytes(candidate, blocks, stored)[1])
        terms = {name: size / per_s for name, size in moved.items()}
        # A matrix without rows moves nothing.
        return {**terms, "time_s": np.maximum(sum(terms.values()), np.finfo(float).tiny)}

    def _bandwidth(self, size_bytes: Floats) -> Floats:
        sizes, speeds = np.log(np.array(self.bandwidths_)).T
        return np.asarray(np.exp(np.interp(np.log(size_bytes), sizes, speeds)))
