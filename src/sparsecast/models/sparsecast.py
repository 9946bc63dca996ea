"""The model of this project: physics whose terms can be read, and a learner for what they leave.

The physics is the linear model: bytes by cache level, row ends, misses of x, imbalance, start-up, each with a
cost of this machine. Extremely randomised trees learn log(measured / physics) of all formats together, from
features of the Structure and of the Candidate. Much of what is left is common to all formats of a matrix, so
one forest serves them better than one for each.

Intervals come from conformal prediction: whole groups of matrices are left out in turn, and forecast by what
was learned from the others. An interval is so wide that nine tenths of these errors were within it. It is
wider in proportion for a matrix that is farther from all known ones.

From published results, which tell of a matrix no more than counts, something else is learned
(`published_trees.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.models.forest import Floats, Forest
from sparsecast.models.intervals import INTERVAL_FOLDS, Interval, conformal_bound
from sparsecast.models.linear import WorkCosts
from sparsecast.models.model import Model
from sparsecast.models.published_trees import PublishedTrees
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CountedWork, unit_cost
from sparsecast.records import Candidate

#: As many of the known matrices tell how far a new one is from them.
_NEIGHBOURS = 3

#: Octaves of the distance of reuse up to which its shares are features.
_REUSE_LEVELS = [1, 3, 5, 7, 9, 12, 15, 18]

#: Settings of the forest: scikit-learn's, but for fewer trees that look at half of the features, for the time
#: of a fit.
FOREST: dict[str, Any] = {"n_estimators": 60, "max_features": 0.5, "random_state": 0}


@dataclass(frozen=True)
class _Known:
    """The matrices that were learned from, as points in the space of their features.

    Attributes
    ----------
    mean, deviation : float arrays of shape (features,)
    points : float array of shape (matrices, features)
        Scaled by these.
    typical : float
        Median distance of a known matrix from the others.
    """

    mean: Floats
    deviation: Floats
    points: Floats
    typical: float

    @classmethod
    def of(cls, structures: Sequence[Structure]) -> _Known:
        raw = np.array([of_matrix(structure) for structure in structures])
        mean, deviation = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        points = (raw - mean) / deviation
        known = cls(mean, deviation, points, 1.0)
        return replace(known, typical=float(np.median([known._distance(point, 1) for point in points])))

    def _distance(self, point: Floats, skipped: int = 0) -> float:
        nearest = np.sort(np.linalg.norm(self.points - point, axis=1))[skipped : skipped + _NEIGHBOURS]
        return float(nearest.mean())

    def widening(self, structure: Structure) -> float:
        """Return how much wider the interval of a matrix is than at distance 0."""
        point = (np.array(of_matrix(structure)) - self.mean) / self.deviation
        return 1.0 + self._distance(point) / max(self.typical, 1e-9)


@dataclass(frozen=True)
class _Samples:
    """Records as the trees learn from them: one element, or row, for each.

    Attributes
    ----------
    matrices : tuple of Structure
    matrix : int array of shape (records,)
        Place of each Record's matrix among these.
    group : object array of shape (records,)
    kinds : tuple of str
        Formats, formats with their kernels, and parameters of narrow storage, that are features.
    features : float array of shape (records, features)
        But for those that the physics gives.
    work : list of CountedWork
        What the physics counts.
    log_time : float array of shape (records,)
    """

    matrices: tuple[Structure, ...]
    matrix: NDArray[np.int64]
    group: NDArray[np.object_]
    kinds: tuple[str, ...]
    features: Floats
    work: list[CountedWork]
    log_time: Floats

    @classmethod
    def of(cls, training: TrainingSet, work: list[CountedWork]) -> _Samples:
        records = training.records
        structures = {record.matrix: training.structure(record) for record in records}
        places = {name: place for place, name in enumerate(structures)}
        blocks = {name: RowBlocks.of(structure) for name, structure in structures.items()}
        points = {name: of_matrix(structure) for name, structure in structures.items()}
        kinds = tuple(sorted({kind for record in records for kind in _kinds_of(record.candidate)}))
        features = [
            [*points[r.matrix], *_of_candidate(r.candidate, blocks[r.matrix], kinds)] for r in records
        ]
        return cls(
            tuple(structures.values()),
            np.array([places[record.matrix] for record in records]),
            np.array([training.group(record) for record in records], dtype=object),
            kinds,
            np.array(features),
            work,
            np.log([record.time_s for record in records]),
        )

    def explained(self, physics: WorkCosts) -> tuple[Floats, Floats]:
        """Return the features with those that the physics gives, and its log(time_s); NaN if not served."""
        terms = _term_names(self.work)
        shares, log_physics = np.zeros((len(self.log_time), len(terms))), np.full(len(self.log_time), np.nan)
        for work in self.work:
            costs = physics.costs.get(work.label)
            if costs is not None:
                each_s = work.counts * [unit_cost(costs, kind) for kind in work.kinds]
                total_s = np.maximum(each_s.sum(axis=1), np.finfo(float).tiny)
                columns = [terms.index(kind) for kind in work.kinds]
                shares[work.places[:, None], columns] = each_s / total_s[:, None]
                log_physics[work.places] = np.log(total_s)
        return np.column_stack([self.features, shares, np.nan_to_num(log_physics)]), log_physics


def _term_names(work: Sequence[CountedWork]) -> list[str]:
    return sorted({kind for counted in work for kind in counted.kinds})


@dataclass(frozen=True)
class _Learned:
    """Physics, the trees that correct it, and the matrices that both were learned from."""

    physics: WorkCosts
    forest: Forest
    known: _Known
    kinds: tuple[str, ...]
    terms: tuple[str, ...]

    @classmethod
    def of(
        cls,
        fit: Callable[[Sequence[CountedWork]], WorkCosts],
        samples: _Samples,
        chosen: NDArray[np.bool_],
    ) -> _Learned | None:
        """Have the physics, and trees what it leaves, learn the chosen ones of the samples.

        None where they do not suffice for the physics of any format.
        """
        physics = fit([work.part(chosen) for work in samples.work])
        if not physics.kernels:
            return None
        features, log_physics = samples.explained(physics)
        used = chosen & np.isfinite(log_physics)
        forest = Forest.grown(features[used], (samples.log_time - log_physics)[used], **FOREST)
        known = _Known.of([samples.matrices[place] for place in np.unique(samples.matrix[used])])
        return cls(physics, forest, known, samples.kinds, tuple(_term_names(samples.work)))

    def scores(self, samples: _Samples, chosen: NDArray[np.bool_]) -> Floats:
        """Return |log(measured / forecast)| of samples that are not known, over their matrices' widening."""
        features, log_physics = samples.explained(self.physics)
        used = chosen & np.isfinite(log_physics)
        errors = samples.log_time[used] - log_physics[used] - self.forest.median(features[used])
        places, of_record = np.unique(samples.matrix[used], return_inverse=True)
        widening = np.array([self.known.widening(samples.matrices[place]) for place in places])
        return np.asarray(np.abs(errors) / widening[of_record])

    def corrections(
        self, candidates: Sequence[Candidate], whole: RowBlocks, terms: Sequence[Mapping[str, Floats]]
    ) -> Floats:
        """Return log(measured / physics) of Candidates as the trees expect it, by the terms of the matrix."""
        features, point = [], of_matrix(whole.matrix)
        for candidate, seconds in zip(candidates, terms, strict=True):
            time_s = float(seconds["time_s"][0])
            shares = [float(seconds[name][0]) / time_s if name in seconds else 0.0 for name in self.terms]
            features.append([*point, *_of_candidate(candidate, whole, self.kinds), *shares, np.log(time_s)])
        return self.forest.median(np.array(features)) if features else np.empty(0)


@MODELS.register("sparsecast")
class SparsecastModel(Model):
    """Physics times what trees have learned of its errors.

    Attributes
    ----------
    learned_ : _Learned or None
    width_ : float or None
        Half the width of an interval of logarithms of time, at distance 0 from the known matrices; None
        where too few are left when a part of them is left out.
    published_ : PublishedTrees or None
        What was learned in place of these from published results; None from our own.
    """

    name: ClassVar[str] = "sparsecast"
    optional_groups: ClassVar[tuple[str, ...]] = ("locality", "bands", "blocks")
    version: ClassVar[int] = 9
    #: What the trees correct: another class in experiments on the parts of the model.
    physics_class: ClassVar[type[WorkCosts]] = WorkCosts
    learned_: _Learned | None
    width_: float | None
    published_: PublishedTrees | None

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: to all; groups are left out in turn."""
        return True

    _remembered: tuple[Structure, dict[Candidate, float]] | None = None

    def _fit(self, training: TrainingSet) -> None:
        self.learned_ = self.published_ = self.width_ = self._remembered = None
        if self.machine_.published_as is not None:
            self.published_ = PublishedTrees.learned(training)
            return
        work = self.physics_class.work(self.machine_).counted(training)
        samples = _Samples.of(training, work)
        self.learned_ = self._learn(samples, np.ones(len(samples.log_time), dtype=bool))
        if self.learned_ is None:
            raise self.insufficient(training)
        self.width_ = conformal_bound(self._scores_left_out(samples))

    def _learn(self, samples: _Samples, chosen: NDArray[np.bool_]) -> _Learned | None:
        return _Learned.of(partial(self.physics_class.fitted, self.machine_), samples, chosen)

    def _scores_left_out(self, samples: _Samples) -> Floats:
        """Return the scores of groups of matrices, each by what was learned without it."""
        groups = list(dict.fromkeys(samples.group.tolist()))
        scores = []
        for first in range(min(INTERVAL_FOLDS, len(groups))):
            is_out = np.isin(samples.group, groups[first::INTERVAL_FOLDS])
            learned = self._learn(samples, ~is_out)
            if learned is not None:
                scores.append(learned.scores(samples, is_out))
        return np.concatenate(scores) if scores else np.empty(0)

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
        return self.terms_of_all([candidate], blocks)[0]

    def terms_of_all(self, candidates: Sequence[Candidate], blocks: RowBlocks) -> list[dict[str, Floats]]:
        """Return the terms of several Candidates: the trees are asked once."""
        if self.published_:
            return [self.published_.terms(candidate, blocks) for candidate in candidates]
        learned, matrix = self.learned_, blocks.matrix
        assert learned is not None
        terms_of_all = [learned.physics.terms(candidate, blocks) for candidate in candidates]
        if blocks.rows.tolist() == [matrix.rows]:
            factors = np.exp(learned.corrections(candidates, blocks, terms_of_all)).tolist()
        else:
            factors = self._factors_of_blocks(candidates, matrix)
        for terms, factor in zip(terms_of_all, factors, strict=True):
            time_s = terms.pop("time_s")
            terms |= {"correction": time_s * (factor - 1.0), "time_s": time_s * factor}
        return terms_of_all

    def _factors_of_blocks(self, candidates: Sequence[Candidate], matrix: Structure) -> list[float]:
        """Return the factors of a matrix; they are remembered, because a plan asks for each strip."""
        if self._remembered is None or self._remembered[0] is not matrix:
            self._remembered = matrix, {}
        factors, whole = self._remembered[1], RowBlocks.of(matrix)
        if missing := [candidate for candidate in candidates if candidate not in factors]:
            assert self.learned_ is not None
            terms = [self.learned_.physics.terms(candidate, whole) for candidate in missing]
            corrections = self.learned_.corrections(missing, whole, terms)
            factors |= dict(zip(missing, np.exp(corrections).tolist(), strict=True))
        return [factors[candidate] for candidate in candidates]

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the low and high end of a forecast; farther apart the farther all known matrices are."""
        return self.intervals([candidate], [value], matrix)[0]

    def intervals(
        self, candidates: Sequence[Candidate], values: Sequence[float], matrix: Structure
    ) -> list[Interval]:
        """Return the intervals of several Candidates: the known matrices are looked through once."""
        if self.published_:
            return [self.published_.interval(*pair) for pair in zip(candidates, values, strict=True)]
        if self.width_ is None or self.learned_ is None:
            return [(None, None)] * len(values)
        factor = float(np.exp(self.width_ * self.learned_.known.widening(matrix)))
        return [(value / factor, value * factor) for value in values]

    def _ratios(self, used: TrainingSet) -> dict[str, list[float]]:
        return {}  # it learns from what others hold out: `width_` is for its intervals


def of_matrix(structure: Structure) -> list[float]:
    """Return the features of a matrix that the trees and the distances see; 0 where a group is not known.

    Those who are asked know as much as those who were learned from: where a group is unknown, all are 0.
    """
    lengths, rows, nnz = structure.row_lengths, max(structure.rows, 1), max(structure.nnz, 1)
    mean = nnz / rows
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
        *_of_entries(structure),
    ]


def _of_entries(structure: Structure) -> list[float]:
    features = [0.0] * (len(_REUSE_LEVELS) + 2)
    if not structure.lacks(["locality"]):
        locality = structure.locality
        reuse = np.cumsum(locality.reuse_histogram)[_REUSE_LEVELS]
        total = max(float(np.sum(locality.reuse_histogram)), 1e-9)
        changes = locality.line_changes / max(structure.nnz, 1)
        features = [changes, *(reuse / total).tolist(), float(locality.reuse_histogram[-1])]
    is_known = not structure.lacks(["bands"])
    bands = (structure.bands.half_bandwidth, structure.bands.diagonals) if is_known else (0, 0)
    features += np.log10(1 + np.array(bands)).tolist()
    fill = structure.blocks.fill if not structure.lacks(["blocks"]) else [1.0] * len(BLOCK_SIZES)
    return [*features, *np.log(np.maximum(fill, 1.0)).tolist()]


def _kinds_of(candidate: Candidate) -> tuple[str, ...]:
    narrow, chosen = FORMATS.get(candidate.format).narrow_parameters, candidate.parameters
    storage = (f"{name}={chosen[name]}" for name in narrow if name in chosen)
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
