"""The model of this project: physics whose terms can be read, and a learner for what they leave.

The physics is the linear model: bytes by cache level, row ends, misses of x, imbalance, start-up, each with a
cost of this machine. Extremely randomised trees learn log(measured / physics) of all formats together, from
features of the Structure and of the Candidate. Much of what is left is common to all formats of a matrix, so
one forest serves them better than one for each.

Intervals come from conformal prediction: whole groups of matrices are left out in turn, and forecast by what
was learned from the others. An interval is so wide that nine tenths of these errors were within it. It is
wider in proportion for a matrix that is farther from all known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.models.forest import Floats, Forest
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import INTERVAL_SHARE, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

#: Parts into which the groups of matrices are split for the intervals.
_FOLDS = 5

#: As many of the known matrices tell how far a new one is from them.
_NEIGHBOURS = 3

#: Fewest matrices that are learned from.
LEAST_MATRICES = 20

#: Settings of the forest that were not searched for: scikit-learn's but for smaller trees.
FOREST: dict[str, Any] = {"n_estimators": 60, "min_samples_leaf": 2, "max_features": 0.5, "random_state": 0}


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
        raw = np.array([_of_matrix(each) for each in structures])
        mean, deviation = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        points = (raw - mean) / deviation
        found = cls(mean, deviation, points, 1.0)
        return cls(mean, deviation, points, float(np.median([found._distance(each, 1) for each in points])))

    def _distance(self, point: Floats, skipped: int = 0) -> float:
        nearest = np.sort(np.linalg.norm(self.points - point, axis=1))[skipped : skipped + _NEIGHBOURS]
        return float(nearest.mean())

    def widening(self, structure: Structure) -> float:
        """Return how much wider the interval of a matrix is than at distance 0."""
        point = (np.array(_of_matrix(structure)) - self.mean) / self.deviation
        return 1.0 + self._distance(point) / max(self.typical, 1e-9)


@dataclass(frozen=True)
class _Samples:
    """Records as the trees learn from them.

    Attributes
    ----------
    training : TrainingSet
        Whose Records these are, all served by the physics.
    kinds : tuple of str
        Formats, and formats with their kernels, that are features.
    features : float array of shape (records, features)
    log_time : float array of shape (records,)
    """

    training: TrainingSet
    kinds: tuple[str, ...]
    features: Floats
    log_time: Floats

    @classmethod
    def of(cls, training: TrainingSet) -> _Samples:
        records = training.records
        kinds = tuple(sorted({kind for record in records for kind in _kinds_of(record.candidate)}))
        features = [_of_candidate(r.candidate, training.structure(r), kinds) for r in records]
        log_time = np.log([record.time_s for record in records])
        return cls(training, kinds, np.array(features), log_time)

    def part(self, chosen: NDArray[np.bool_]) -> _Samples:
        records = tuple(compress(self.training.records, chosen))
        training = replace(self.training, records=records)
        return _Samples(training, self.kinds, self.features[chosen], self.log_time[chosen])

    def log_physics(self, physics: LinearModel) -> Floats:
        structures = map(self.training.structure, self.training.records)
        asked = zip(self.training.records, structures, strict=True)
        return np.log([physics.values(r.candidate, RowBlocks.of(each))[0] for r, each in asked])


@dataclass(frozen=True)
class _Learned:
    """Physics, the trees that correct it, and the matrices that both were learned from."""

    physics: LinearModel
    forest: Forest
    known: _Known
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, physics: LinearModel, samples: _Samples) -> _Learned:
        """Have trees learn what the physics leaves of the samples."""
        residuals = samples.log_time - samples.log_physics(physics)
        forest = Forest.grown(samples.features, residuals, **FOREST)
        entries = {record.matrix: samples.training.structure(record) for record in samples.training.records}
        return cls(physics, forest, _Known.of(list(entries.values())), samples.kinds)

    def scores(self, samples: _Samples) -> Floats:
        """Return |log(measured / forecast)| of samples that are not known, over their matrices' widening."""
        training = samples.training
        errors = samples.log_time - samples.log_physics(self.physics) - self.forest.of(samples.features)
        widening = {r.matrix: self.known.widening(training.structure(r)) for r in training.records}
        return np.abs(errors) / [widening[record.matrix] for record in training.records]


@MODELS.register("sparsecast")
class SparsecastModel(Model):
    """Physics times what trees have learned of its errors.

    Attributes
    ----------
    learned_ : _Learned
    width_ : float
        Half the width of an interval of logarithms of time, at distance 0 from the known matrices.
    """

    name: ClassVar[str] = "sparsecast"
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "locality", "bands", "blocks")

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: to all; groups are left out in turn."""
        return True

    def _fit(self, training: TrainingSet) -> None:
        matrices = len({record.matrix for record in training.records})
        if matrices < LEAST_MATRICES:
            raise ProfileError(
                f"the profile's {len(training.records)} records do not suffice for the {self.name} model: "
                f"expected those of {LEAST_MATRICES} matrices, not of {matrices}; calibrate with a larger "
                f"budget"
            )
        physics = self._physics(training)
        samples = _Samples.of(training.where(lambda record: physics.serves(record.candidate)))
        self.learned_ = _Learned.of(physics, samples)
        scores = np.sort(self._scores_left_out(samples))
        rank = int(np.ceil(INTERVAL_SHARE * (len(scores) + 1))) - 1
        self.width_ = float(scores[min(rank, len(scores) - 1)])

    def _physics(self, training: TrainingSet) -> LinearModel:
        return LinearModel().fit_terms(training, self.machine_, self.device_)

    def _scores_left_out(self, samples: _Samples) -> Floats:
        """Return the scores of groups of matrices, each by what was learned without it."""
        training = samples.training
        of_record = np.array([training.group(record) for record in training.records])
        groups = list(dict.fromkeys(of_record.tolist()))
        scores = []
        for first in range(_FOLDS):
            is_out = np.isin(of_record, groups[first::_FOLDS])
            physics = self._physics(samples.part(~is_out).training)
            is_served = np.array([physics.serves(record.candidate) for record in training.records])
            learned = _Learned.of(physics, samples.part(~is_out & is_served))
            scores.append(learned.scores(samples.part(is_out & is_served)))
        return np.concatenate(scores)

    def formats(self) -> list[str]:
        """Return the formats that the physics was fitted to."""
        return self.learned_.physics.formats()

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return a format's kernels that the physics was fitted to; none on a processor."""
        return self.learned_.physics.kernels(format_name)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of the physics, the correction that the trees add, and the sum.

        The correction is that of the whole matrix, in proportion: blocks as small as those of a plan were
        never measured.
        """
        physics = self.learned_.physics.terms(candidate, blocks)
        time_s = physics.pop("time_s")
        features = np.array([_of_candidate(candidate, blocks.matrix, self.learned_.kinds)])
        factor = float(np.exp(self.learned_.forest.of(features)[0]))
        return {**physics, "correction": time_s * (factor - 1.0), "time_s": time_s * factor}

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> tuple[float, float]:
        """Return the low and high end of a forecast; farther apart the farther all known matrices are."""
        factor = float(np.exp(self.width_ * self.learned_.known.widening(matrix)))
        return value / factor, value * factor

    def _ratios(self, used: TrainingSet) -> dict[str, list[float]]:
        return {}  # it learns from what others hold out: `width_` is for its intervals

    def _state(self) -> dict[str, Any]:
        learned, known = self.learned_, self.learned_.known
        return {
            "physics": learned.physics._state(),
            "forest": learned.forest.to_state(),
            "known": {
                "mean": known.mean.tolist(),
                "deviation": known.deviation.tolist(),
                "points": known.points.tolist(),
                "typical": known.typical,
            },
            "kinds": list(learned.kinds),
            "width": self.width_,
        }

    def _restore(self, learned: Mapping[str, Any]) -> None:
        physics = LinearModel()
        physics.machine_, physics.device_ = self.machine_, self.device_
        physics._restore(learned["physics"])
        arrays = {name: np.array(learned["known"][name]) for name in ("mean", "deviation", "points")}
        known = _Known(**arrays, typical=float(learned["known"]["typical"]))
        self.learned_ = _Learned(
            physics, Forest.from_state(learned["forest"]), known, tuple(learned["kinds"])
        )
        self.width_ = float(learned["width"])


def _of_matrix(structure: Structure) -> list[float]:
    """Return the features of a matrix that the trees and the distances see."""
    lengths, locality = structure.row_lengths, structure.locality
    rows, nnz = max(structure.rows, 1), max(structure.nnz, 1)
    mean = nnz / rows
    reuse = np.cumsum(locality.reuse_histogram)[[1, 3, 5, 7, 9, 12, 15, 18]]
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
        locality.line_changes / nnz,
        *(reuse / max(float(np.sum(locality.reuse_histogram)), 1e-9)).tolist(),
        float(locality.reuse_histogram[-1]),
        np.log10(1 + structure.bands.half_bandwidth),
        np.log10(1 + structure.bands.diagonals),
        *np.log(np.maximum(structure.blocks.fill, 1.0)).tolist(),
    ]


def _kinds_of(candidate: Candidate) -> tuple[str, str]:
    return candidate.format, f"{candidate.format} {candidate.kernel}"


def _of_candidate(candidate: Candidate, structure: Structure, kinds: Sequence[str]) -> list[float]:
    """Return the features of a matrix in a Candidate."""
    blocks = RowBlocks.of(structure)
    storage: Any = FORMATS.get(candidate.format)
    widths = candidate.value_bytes, candidate.index_bytes
    stored = float(storage.stored_entries(blocks, **candidate.parameters)[0])
    size = float(storage.predicted_bytes(blocks, *widths, **candidate.parameters)[0])
    own = _kinds_of(candidate)
    return [
        *_of_matrix(structure),
        *(float(kind in own) for kind in kinds),
        candidate.index_bytes,
        np.log10(max(stored, 1) / max(structure.nnz, 1)),
        np.log10(size + 1),
        np.log10((structure.rows + structure.cols) * candidate.value_bytes + 1),
    ]
