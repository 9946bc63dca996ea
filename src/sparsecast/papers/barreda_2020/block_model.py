"""The model from blocks: boosted trees forecast what runs of 250 entries take within a product in CSR.

It learns from streaming labels (`sparsecast label`), of which sums over blocks are the times of products.
It sees of a block its group of features: ends of rows, steps between columns, lines of x that were not read
before. Of the matrix it sees the width of values, sizes, how soon x is read again, and the kernel. A forecast
looks at some blocks of a matrix, evenly spread, which costs less than one product of a large matrix.
Barreda, Dolz and Castano (2020) ask a convolutional network about every block, and name the cost as its
weakness.

Only labels of matrices that the training set has Records of are learned from: a matrix that is left out of
the Records is left out altogether. A factor and a constant, from the Records, say what a product takes beyond
the sum: its call, or more threads.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import MatrixEntry
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, fitted_costs
from sparsecast.models.forest import Forest
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.barreda_2020.entry_blocks import EntryBlocks, evenly_spread, sampled_blocks
from sparsecast.papers.barreda_2020.label_files import BlockLabels, kept_labels, labels_digest, labels_folder
from sparsecast.records import Candidate

#: Settings of the trees, chosen on groups of matrices that were left out.
TREES = {
    "n_estimators": 150,
    "max_depth": 6,
    "subsample": 0.3,
    "max_features": 0.4,
    "learning_rate": 0.1,
    "min_samples_leaf": 50,
    "random_state": 0,
}

#: Blocks of one matrix that are learned from, evenly spread: else the largest matrices would be all.
_MOST_BLOCKS = 250

#: Kernels of CSR, each an input of 0 or 1.
_KERNELS = ("plain", "unrolled", "masked", "gathered", "vectors")

#: Powers of two of the reads between two of a line, from the first cache to beyond the last.
_REUSES = (6, 9, 12, 15, 18)

#: Below this, a share or a count is as good as none.
_LEAST = 1e-4


@MODELS.register("blocks")
class Blocks(Model):
    """Sums of what trees forecast of blocks."""

    name: ClassVar[str] = "blocks"
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = ("csr",)
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "locality", "entry_blocks")
    trees_: Forest | None  # of logarithms of nanoseconds per entry
    costs_: tuple[float, float]  # factor of the sum over all blocks, and seconds of a product beyond it
    labels_: str  # digest of the labels that there were

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        """Return the Records of CSR whose matrices have labels, or whose Structure has their blocks."""
        whole = super().used(training).where(lambda record: record.candidate.format == "csr")
        labels = _labels_of(whole)
        matrices = dict(whole.matrices)
        for record in whole.records:
            entry = matrices[record.matrix]
            if record.matrix in labels and entry.structure.lacks(["entry_blocks"]):
                features = labels[record.matrix].features[sampled_blocks(labels[record.matrix].nnz)]
                shares = tuple(features.astype(np.float64).ravel().tolist())
                structure = entry.structure.having(EntryBlocks(len(features), shares))
                matrices[record.matrix] = MatrixEntry(entry.specification, entry.name, structure)
        whole = dataclasses.replace(whole, matrices=matrices)
        return whole.where(lambda record: not whole.structure(record).lacks(cls.groups))

    def _fit(self, training: TrainingSet) -> None:
        self.trees_ = None
        self.costs_, self.labels_ = (1.0, 0.0), ""
        labels = _labels_of(training)
        if not labels:
            return
        self.labels_ = labels_digest(training.machine.name, training.records[0].candidate.dtype)
        parts = [learnable(labels[matrix], training.matrices[matrix].structure) for matrix in sorted(labels)]
        inputs, ns = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        self.trees_ = Forest.boosted(inputs, np.log(ns), **TREES)
        sums = np.array([self._sum_s(r.candidate, training.structure(r)) for r in training.records])
        measured = np.array([record.time_s for record in training.records])
        factor, constant = fitted_costs(np.column_stack([sums, np.ones(len(sums))]), measured)
        self.costs_ = float(factor), float(constant)

    def needed(self) -> str:
        return "labels of blocks of matrices that were measured; calibrate, then run sparsecast label"

    def formats(self) -> list[str]:
        return [] if self.trees_ is None else ["csr"]

    def block_ns(self, candidate: Candidate, structure: Structure, features: Floats) -> Floats:
        """Return the nanoseconds an entry, shape (b,), in a product of blocks with these features."""
        return self.costs_[0] * self._learned_ns(candidate, structure, features)

    def _learned_ns(self, candidate: Candidate, structure: Structure, features: Floats) -> Floats:
        """Return the nanoseconds an entry as labels have them: of one thread, when they were measured."""
        assert self.trees_ is not None
        widths = candidate.value_bytes, candidate.index_bytes
        return np.asarray(np.exp(self.trees_.mean(_inputs(features, candidate.kernel, widths, structure))))

    def _sum_s(self, candidate: Candidate, structure: Structure) -> float:
        """Return the seconds of all blocks of a matrix without the factor and the constant of products."""
        group = cast("EntryBlocks", structure.require("entry_blocks"))
        if not group.count:
            return 0.0
        return float(self._learned_ns(candidate, structure, group.features).mean()) * structure.nnz * 1e-9

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds of the blocks and of the rest of a product, and their sum.

        Row blocks share the time of the matrix by their entries.
        """
        share = blocks.nnz / max(blocks.matrix.nnz, 1)
        factor, constant = self.costs_
        terms = {
            "blocks": factor * self._sum_s(candidate, blocks.matrix) * share,
            "call": np.full(len(share), constant),
        }
        return {**terms, "time_s": np.maximum(terms["blocks"] + terms["call"], np.finfo(float).tiny)}

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Take over what was learned, unless there are other labels now."""
        super().restored(state)
        if self.labels_ not in (labels_digest(self.machine_.name, dtype) for dtype in ("float64", "float32")):
            raise ValueError("there are other labels now")
        return self


def _labels_of(training: TrainingSet) -> dict[str, BlockLabels]:
    """Return the labels of the matrices of a training set, by specification."""
    if not training.records:
        return {}
    wanted = {record.matrix for record in training.records}
    machine, dtype = training.machine.name, training.records[0].candidate.dtype
    digest = f"{labels_folder(machine)} {labels_digest(machine, dtype)}"
    return {labels.matrix: labels for labels in _read(machine, dtype, digest) if labels.matrix in wanted}


@functools.lru_cache(maxsize=1)
def _read(machine: str, dtype: str, digest: str) -> tuple[BlockLabels, ...]:
    """Return the labels of a machine; `digest` changes when they do."""
    return tuple(kept_labels(machine, dtype))


def learnable(labels: BlockLabels, structure: Structure) -> tuple[Floats, Floats]:
    """Return inputs and nanoseconds an entry of blocks of one matrix."""
    chosen = evenly_spread(labels.blocks, _MOST_BLOCKS)
    widths = np.dtype(labels.dtype).itemsize, labels.index_bits // 8
    inputs = _inputs(labels.features[chosen].astype(np.float64), labels.kernel, widths, structure)
    ns = (labels.streaming_ns[chosen].astype(np.float64) + labels.streaming_again_ns[chosen]) / 2
    return inputs, np.maximum(ns, 1e-3)


def _inputs(features: Floats, kernel: str, widths: tuple[int, int], structure: Structure) -> Floats:
    """Return the inputs of the trees: features of blocks, shape (b, features), and what all of them share.

    `widths` are the bytes of values and of indices.
    """
    (value, index), rows, nnz = widths, max(structure.rows, 1), max(structure.nnz, 1)
    mispredicted = structure.row_lengths.mispredicted or 0
    # Reads of x an entry that come back to their line after at least 2**k others, and for the first time.
    reuse = np.asarray(structure.locality.reuse_histogram)
    late_reads = np.array([float(reuse[k:].sum()) for k in (*_REUSES, len(reuse) - 1)])
    sizes = [structure.cols * value, nnz * (value + index) + rows * (index + value), nnz / rows]
    shared = [
        value,
        index,
        *np.log2(np.maximum(sizes, _LEAST)),
        mispredicted / nnz,
        mispredicted / rows,
        *np.log2(_LEAST + structure.locality.line_changes / nnz * late_reads),
        *(kernel == name for name in _KERNELS),
    ]
    return np.column_stack([features, np.tile(np.array(shared, dtype=np.float64), (len(features), 1))])
