"""A model of time: a cost for a product, a row, an entry and a used column, by the feature group."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.models import MODELS
from sparsecast.models.fitting import fitted_costs
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

LEAST_RECORDS = 8


@MODELS.register("columns")
class ColumnsModel(Model):
    name: ClassVar[str] = "columns"
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "column_lengths")
    costs_: dict[str, list[float]]

    def _fit(self, training: TrainingSet) -> None:
        self.costs_ = {}
        for name in sorted({record.candidate.format for record in training.records}):
            records = [record for record in training.records if record.candidate.format == name]
            if len(records) >= LEAST_RECORDS:
                counts = [self._counts(RowBlocks.of(training.structure(record)))[:, 0] for record in records]
                time_s = np.array([record.time_s for record in records])
                self.costs_[name] = fitted_costs(np.array(counts), time_s).tolist()

    def formats(self) -> list[str]:
        return list(self.costs_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, np.ndarray]:
        costs = np.array(self.costs_[candidate.format])[:, None] * self._counts(blocks)
        names = ("start", "rows", "entries", "columns")
        return {**dict(zip(names, costs, strict=True)), "time_s": np.maximum(costs.sum(axis=0), 1e-9)}

    @staticmethod
    def _counts(blocks: RowBlocks) -> np.ndarray:
        used = blocks.matrix.require("column_lengths").used * blocks.nnz / max(blocks.matrix.nnz, 1)
        return np.array([np.ones(len(blocks.rows)), blocks.rows, blocks.nnz, used], dtype=float)
