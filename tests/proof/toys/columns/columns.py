"""A model of time: a cost for a product, a row, an entry and a used column, by the feature group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import nnls

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.models import MODELS
from sparsecast.models.model import HELD_OUT_SUITE, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

LEAST_RECORDS = 8


@MODELS.register("columns")
class ColumnsModel(Model):
    name: ClassVar[str] = "columns"
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "column_lengths")

    def _fit(self, training: TrainingSet) -> None:
        self.costs_: dict[str, list[float]] = {}
        own = training.where(lambda record: record.suite != HELD_OUT_SUITE).records
        for name in sorted({record.candidate.format for record in own}):
            records = [record for record in own if record.candidate.format == name]
            if len(records) >= LEAST_RECORDS:
                counts = [self._counts(RowBlocks.of(training.structure(record)))[:, 0] for record in records]
                relative = np.array(counts) / np.array([record.time_s for record in records])[:, None]
                scale = relative.max(axis=0)  # nnls stops at an absolute tolerance
                self.costs_[name] = (nnls(relative / scale, np.ones(len(records)))[0] / scale).tolist()

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

    def _state(self) -> dict[str, Any]:
        return {"costs": self.costs_}

    def _restore(self, learned: Mapping[str, Any]) -> None:
        self.costs_ = dict(learned["costs"])
