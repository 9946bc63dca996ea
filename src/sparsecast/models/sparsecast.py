"""The model of this project: physics whose terms can be read, and a learner for what they leave.

The physics is the linear model: bytes by cache level, row ends, misses of x, imbalance, start-up, each with a
cost of this machine. Extremely randomised trees learn log(measured / physics) of all formats together, from
features of the Structure and of the Candidate. Much of what is left is common to all formats of a matrix, so
one forest serves them better than one for each.

Intervals come from conformal prediction: whole groups of matrices are left out in turn, and forecast by what
was learned from the others. An interval is so wide that nine tenths of these errors were within it. It is
wider in proportion where the trees agree less (Papadopoulos, Vovk and Gammerman 2011 normalise errors so):
they disagree where what was measured varies, or where little was.

Products of several vectors have the work of such ones at the costs of one vector, times a factor for each
format: the median of what they took beside that.

From published results, which tell of a matrix no more than counts, something else is learned
(`published_trees.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.models.fitting import (
    INTERVAL_FOLDS,
    LEAST_RANKED,
    UNTRIED_FACTOR,
    WIDEST,
    Interval,
    conformal_bound,
    several_factors,
)
from sparsecast.models.forest import Floats, Forest
from sparsecast.models.linear import WorkCosts
from sparsecast.models.model import Model
from sparsecast.models.published_trees import PublishedTrees
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CORRECTION, CountedWork
from sparsecast.records import Candidate

#: Octaves of the distance of reuse up to which its shares are features.
_REUSE_LEVELS = [1, 3, 5, 7, 9, 12, 15, 18]

#: Settings of the forest: scikit-learn's, but for fewer trees that look at half of the features, for the time
#: of a fit.
FOREST: dict[str, Any] = {"n_estimators": 60, "max_features": 0.5, "random_state": 0}

#: Least spread of the trees that counts, in logarithms of time: a repeated measurement differs as much.
_LEAST_SPREAD = 0.01

#: A fit of costs to the work of a part of the samples.
Fit = Callable[[Sequence[CountedWork]], WorkCosts]


@dataclass(frozen=True)
class _Samples:
    """Records as the trees learn from them: one element, or row, for each."""

    group: NDArray[np.object_]
    kinds: tuple[str, ...]  # formats, these with their kernels, and parameters of narrow storage: features
    features: Floats  # shape (records, features), but for those that the physics gives
    work: list[CountedWork]  # what the physics counts
    terms: list[str]  # the kinds of that work, whose shares are features
    log_time: Floats
    #: Those of products of several vectors, which tell their factors and nothing else; empty of others.
    formats_of_several: NDArray[np.str_]

    @classmethod
    def of(cls, training: TrainingSet, work: list[CountedWork]) -> _Samples:
        records = training.records
        structures = {record.matrix: training.structure(record) for record in records}
        blocks = {name: RowBlocks.of(structure) for name, structure in structures.items()}
        points = {name: of_matrix(structure) for name, structure in structures.items()}
        kinds = tuple(sorted({kind for record in records for kind in _kinds_of(record.candidate)}))
        features = [
            [*points[r.matrix], *_of_candidate(r.candidate, blocks[r.matrix], kinds)] for r in records
        ]
        return cls(
            np.array([training.group(record) for record in records], dtype=object),
            kinds,
            np.array(features),
            work,
            sorted({kind for counted in work for kind in counted.kinds}),
            np.log([record.time_s for record in records]),
            np.array([r.candidate.format if r.candidate.vectors > 1 else "" for r in records], dtype=str),
        )

    @property
    def is_several(self) -> NDArray[np.bool_]:
        return np.asarray(self.formats_of_several != "")

    def explained(self, physics: WorkCosts) -> tuple[Floats, Floats]:
        """Return the features with those that the physics gives, and its log(time_s); NaN if not served."""
        count = len(self.log_time)
        shares, log_physics = np.zeros((count, len(self.terms))), np.full(count, np.nan)
        for work in self.work:
            each_s = physics.explained(work)
            if each_s is not None:
                total_s = np.maximum(each_s.sum(axis=1), np.finfo(float).tiny)
                columns = [self.terms.index(kind) for kind in work.kinds]
                shares[work.places[:, None], columns] = each_s / total_s[:, None]
                log_physics[work.places] = np.log(total_s)
        return np.column_stack([self.features, shares, np.nan_to_num(log_physics)]), log_physics


@dataclass(frozen=True)
class _Learned:
    """Physics, and the trees that correct it."""

    physics: WorkCosts
    forest: Forest
    kinds: tuple[str, ...]
    terms: tuple[str, ...]

    @classmethod
    def of(cls, fit: Fit, samples: _Samples, chosen: NDArray[np.bool_]) -> _Learned | None:
        """Have the physics, and trees what it leaves, learn the chosen ones of the samples.

        None where they do not suffice for the physics of any format.
        """
        of_one = chosen & ~samples.is_several
        physics = fit([work.part(of_one) for work in samples.work])
        if not physics.kernels:
            return None
        features, log_physics = samples.explained(physics)
        used = of_one & np.isfinite(log_physics)
        forest = Forest.grown(features[used], (samples.log_time - log_physics)[used], **FOREST)
        return cls(physics, forest, samples.kinds, tuple(samples.terms))

    def errors(self, samples: _Samples) -> tuple[Floats, Floats]:
        """Return log(measured / forecast) of samples, NaN if not served, and the spread of the trees."""
        features, log_physics = samples.explained(self.physics)
        corrections, spread = self._asked(features)
        return samples.log_time - log_physics - corrections, spread

    def correction(
        self, candidate: Candidate, whole: RowBlocks, terms: Mapping[str, Floats] | None
    ) -> tuple[float, float]:
        """Return log(measured / physics) of a Candidate as the trees expect it, and how far they are apart.

        `terms` are those of the whole matrix, where they are known.
        """
        terms = terms or self.physics.terms(candidate, whole)
        time_s = float(terms["time_s"][0])
        shares = [float(terms[name][0]) / time_s if name in terms else 0.0 for name in self.terms]
        own = _of_candidate(candidate, whole, self.kinds)
        features = np.array([[*of_matrix(whole.matrix), *own, *shares, np.log(time_s)]])
        (correction,), (spread,) = self._asked(features)
        return float(correction), float(spread)

    def _asked(self, features: Floats) -> tuple[Floats, Floats]:
        corrections, spread = self.forest.median_and_spread(features)
        return corrections, np.maximum(spread, _LEAST_SPREAD)


def _scores_left_out(fit: Fit, samples: _Samples) -> Floats:
    """Return |log(measured / forecast)| over the spread of the trees, without each group; NaN if none."""
    groups = list(dict.fromkeys(samples.group.tolist()))
    scores = np.full(len(samples.log_time), np.nan)
    for first in range(min(INTERVAL_FOLDS, len(groups))):
        is_out = np.isin(samples.group, groups[first::INTERVAL_FOLDS])
        learned = _Learned.of(fit, samples, ~is_out)
        if learned is not None:
            errors, spread = learned.errors(samples)
            factors = several_factors(samples.formats_of_several, np.where(is_out, np.nan, errors))
            factors[""] = 1.0
            errors -= np.log([factors.get(name, np.nan) for name in samples.formats_of_several])
            scores[is_out] = (np.abs(errors) / spread)[is_out]
    return scores


@MODELS.register("sparsecast")
class SparsecastModel(Model):
    """Physics times what trees have learned of its errors."""

    name: ClassVar[str] = "sparsecast"
    optional_groups: ClassVar[tuple[str, ...]] = ("locality", "bands", "blocks")
    takes_several: ClassVar[bool] = True
    version: ClassVar[int] = 19
    #: What the trees correct: another class in experiments on the parts of the model.
    physics_class: ClassVar[type[WorkCosts]] = WorkCosts
    learned_: _Learned | None
    read_s_: float  # seconds in which a byte of memory was read: no forecast takes less; 0 if it was not read
    #: Half the width of an interval of logarithms of time, over the spread of the trees; None where too few
    #: matrices are left when a part of them is left out.
    width_: float | None
    several_width_: float | None  # of several vectors; None where fewer than LEAST_RANKED were left out
    published_: PublishedTrees | None  # learned in place of these from published results; None from our own

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: to all; groups are left out in turn."""
        return True

    _remembered: tuple[Structure, dict[Candidate, tuple[float, float]]] | None = None

    def _fit(self, training: TrainingSet) -> None:
        self.learned_ = self.published_ = self.width_ = self.several_width_ = self._remembered = None
        self.read_s_ = training.memory_read_s
        if self.machine_.published_as is not None:
            self.published_ = PublishedTrees.learned(training)
            return
        machine, work = self.physics_class.counted(training)
        samples, fit = _Samples.of(training, work), partial(self.physics_class.fitted, machine)
        self.learned_ = _Learned.of(fit, samples, np.ones(len(samples.log_time), dtype=bool))
        if self.learned_ is None:
            raise self.insufficient(training)
        self.several_ = several_factors(samples.formats_of_several, self.learned_.errors(samples)[0])
        scores = _scores_left_out(fit, samples)
        self.width_ = conformal_bound(scores[np.isfinite(scores) & ~samples.is_several])
        of_several = scores[np.isfinite(scores) & samples.is_several]
        self.several_width_ = conformal_bound(of_several) if len(of_several) >= LEAST_RANKED else None

    @property
    def physics(self) -> WorkCosts:
        learned = self.published_ or self.learned_
        assert learned is not None
        return learned.physics

    def formats(self) -> list[str]:
        return list(self.physics.kernels)

    def kernels(self, format_name: str) -> tuple[str, ...]:
        return self.physics.kernels.get(format_name, ())

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of the physics, the correction that the trees add, and the sum.

        The correction is that of the whole matrix, in proportion: blocks as small as those of a plan were
        never measured.
        """
        if self.published_:
            return self.published_.terms(candidate, blocks)
        physics = self.physics
        terms = physics.terms(candidate, blocks)
        is_whole = blocks.rows.tolist() == [blocks.matrix.rows]
        correction, _ = self._correction(candidate, blocks.matrix, terms if is_whole else None)
        time_s = terms.pop("time_s")
        corrected_s = time_s * float(np.exp(correction)) * self.several_factor(candidate)
        if self.read_s_ and physics.machine.product_caches:
            # No faster than memory can be read of what it streams from beyond the caches.
            beyond = physics.work(physics.machine).read_beyond(candidate, blocks)
            corrected_s = np.maximum(corrected_s, self.read_s_ * beyond)
        return {**terms, CORRECTION: corrected_s - time_s, "time_s": corrected_s}

    def _correction(
        self, candidate: Candidate, matrix: Structure, terms: Mapping[str, Floats] | None = None
    ) -> tuple[float, float]:
        """Return what the trees say of a matrix, and their spread; `terms` are those of it, where known.

        They are remembered: a plan asks for each strip, and an interval follows each forecast.
        """
        if self._remembered is None or self._remembered[0] is not matrix:
            self._remembered = matrix, {}
        known = self._remembered[1]
        if candidate not in known:
            assert self.learned_ is not None
            known[candidate] = self.learned_.correction(candidate, RowBlocks.of(matrix), terms)
        return known[candidate]

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the low and high end of a forecast; farther apart where the trees agree less."""
        if self.published_:
            return self.published_.interval(candidate, value)
        if self.width_ is None:
            return None, None
        width, wider = self.width_, 1.0
        if candidate.vectors > 1:
            several = self.several_width_
            width, wider = (self.width_, UNTRIED_FACTOR) if several is None else (several, 1.0)
        _, spread = self._correction(candidate, matrix)
        factor = math.exp(min(width * spread, math.log(WIDEST))) * wider
        return value / factor, value * factor

    def _ratios(self, used: TrainingSet) -> dict[str, list[float]]:
        return {}  # it learns from what others hold out: `width_` is for its intervals


def of_matrix(structure: Structure) -> list[float]:
    """Return the features of a matrix that the trees see; 0 where a group is not known.

    Those who are asked know as much as those who were learned from: where a group is unknown, all are 0.
    """
    lengths, rows, nnz = structure.row_lengths, max(structure.rows, 1), max(structure.nnz, 1)
    mean, of_x = nnz / rows, [0.0] * (len(_REUSE_LEVELS) + 2)
    if not structure.lacks(["locality"]):
        locality = structure.locality
        reuse = np.cumsum(locality.reuse_histogram)[_REUSE_LEVELS]
        total = max(float(np.sum(locality.reuse_histogram)), 1e-9)
        of_x = [locality.line_changes / nnz, *(reuse / total).tolist(), float(locality.reuse_histogram[-1])]
    is_known = not structure.lacks(["bands"])
    bands = (structure.bands.half_bandwidth, structure.bands.diagonals) if is_known else (0, 0)
    fill = structure.blocks.fill if not structure.lacks(["blocks"]) else [1.0] * len(BLOCK_SIZES)
    return [
        np.log10(nnz),
        np.log10(rows),
        np.log10(max(structure.cols, 1)),
        np.log10(mean),
        lengths.deviation / mean,
        np.log10(max(lengths.max, 1) / mean),
        np.log10(max(lengths.mode, 0.1) / mean),
        (lengths.mispredicted or 0) / rows,
        lengths.empty_rows / rows,
        (lengths.changes or 0) / rows,
        *of_x,
        *np.log10(1 + np.array(bands)).tolist(),
        *np.log(np.maximum(fill, 1.0)).tolist(),
    ]


def _kinds_of(candidate: Candidate) -> tuple[str, ...]:
    storage = FORMATS.get(candidate.format).narrow_kinds(candidate.parameters)
    return candidate.format, f"{candidate.format} {candidate.kernel}", *storage


def _of_candidate(candidate: Candidate, blocks: RowBlocks, kinds: Sequence[str]) -> list[float]:
    storage: Any = FORMATS.get(candidate.format)
    matrix, widths = blocks.matrix, (candidate.value_bytes, candidate.index_bytes)
    stored = float(storage.stored_entries(blocks, **candidate.parameters)[0])
    size = float(storage.predicted_bytes(blocks, *widths, **candidate.parameters)[0])
    kinds_of_candidate = _kinds_of(candidate)
    return [
        *(float(kind in kinds_of_candidate) for kind in kinds),
        candidate.index_bytes,
        np.log10(max(stored, 1) / max(matrix.nnz, 1)),
        np.log10(size + 1),
        np.log10((matrix.rows + matrix.cols) * candidate.value_bytes + 1),
    ]
