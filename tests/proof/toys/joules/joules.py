"""A model of energy: joules a byte that a product streams, and joules a product, for each format."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate


@MODELS.register("joules")
class JoulesModel(Model):
    name: ClassVar[str] = "joules"
    quantity: ClassVar[str] = "energy"
    costs_: dict[str, list[float]]

    def __init__(self, least_records: int = 4) -> None:
        self.least_records = least_records

    def _fit(self, training: TrainingSet) -> None:
        self.costs_ = {}
        for name in sorted({record.candidate.format for record in training.records}):
            records = [record for record in training.records if record.candidate.format == name]
            if len(records) >= self.least_records:
                counts = [(1.0, record.traffic_bytes) for record in records]
                measured = np.array([self.measured(record) for record in records])
                # Relative residuals: small matrices count as much as large ones.
                relative = np.array(counts) / measured[:, None]
                self.costs_[name] = np.linalg.lstsq(relative, np.ones(len(records)))[0].tolist()

    def formats(self) -> list[str]:
        return list(self.costs_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, np.ndarray]:
        start, a_byte = self.costs_[candidate.format]
        widths = candidate.value_bytes, candidate.index_bytes
        stored = FORMATS.get(candidate.format).predicted_bytes(blocks, *widths, **candidate.parameters)
        streamed = stored + (blocks.rows + blocks.matrix.cols) * candidate.value_bytes
        return {"energy_j": np.maximum(start + a_byte * streamed, 1e-12)}
