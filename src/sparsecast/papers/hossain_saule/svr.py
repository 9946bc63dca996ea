"""The support vector regressions of Hossain and Saule: of one process, and of many ranks.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.B: a
regression with a polynomial kernel for each format, and on ranks for each number of them and algorithm, whose
C and gamma a grid search with 5-fold cross-validation chooses. Features are rows and non-zeros of a process,
non-zeros a row, density, and deviation of the row lengths; four more of local 1D describe communication.

What the paper leaves open, and what is done here:

- Degree, epsilon and coef0: 3, 0.1 and 1. The pair of C and gamma with the least squared error is the best.
- Features and time are standardised; else an epsilon of 0.1 seconds would swallow every time. Ours takes
  logarithms of both before, because times from a microsecond to a tenth of a second would leave the small
  ones within epsilon; `as_printed` takes them as they are.
- The paper chooses test matrices within the range of the training set. Here features beyond that range are
  taken to its end and counted. Where the regression gives no time above 0, the least measured one takes its
  place.
- A record on ranks without the deviation of the row lengths is not learned from.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
    memory_bytes,
)
from sparsecast.models.fitting import Floats, above_zero
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate, Configuration

#: Section III.B.1: the grid, and the parts of the cross-validation.
GRID_C = tuple(2.0**k for k in range(-2, 6))
GRID_GAMMA = (*(k / 100 for k in range(1, 10)), 0.1, 0.2, 0.3)
FOLDS = 5

#: What the paper does not state. A regression that takes more steps is far from the best pair.
DEGREE, EPSILON, COEF0, MOST_STEPS = 3, 0.1, 1.0, 5_000

#: Fewest measurements: as many in each part as there are features. Most Records of a format in one process,
#: evenly chosen: the paper has 90 matrices, and the time of the search grows with their square.
LEAST_RECORDS, MOST_RECORDS = 25, 200

_Key = tuple[int, str, str]


@dataclass(frozen=True)
class Regression:
    """A fitted regression, and how its features and its target were scaled.

    `least`, `most`, `center` and `scale` have an entry per feature; `middle` and `unit` are mean and
    deviation of the target, the time or its logarithm. `vectors` are the support vectors v, `weights` their
    alpha, and the rest is that of the sum of alpha (gamma <v, x> + coef0)^degree.
    """

    least: Floats
    most: Floats
    center: Floats
    scale: Floats
    is_of_logarithms: bool
    middle: float
    unit: float
    vectors: Floats
    weights: Floats
    intercept: float
    gamma: float
    least_s: float

    @classmethod
    def fitted(cls, features: Floats, time_s: Floats, *, is_of_logarithms: bool = True) -> Regression:
        target = np.log(time_s) if is_of_logarithms else time_s
        center, scale = features.mean(axis=0), _deviation(features)
        middle, unit = float(target.mean()), float(_deviation(target))
        best = best_regression((features - center) / scale, (target - middle) / unit)
        return cls(
            least=features.min(axis=0),
            most=features.max(axis=0),
            center=center,
            scale=scale,
            is_of_logarithms=is_of_logarithms,
            middle=middle,
            unit=unit,
            vectors=best.support_vectors_,
            weights=best.dual_coef_[0],
            intercept=float(best.intercept_[0]),
            gamma=best.gamma,
            least_s=float(time_s.min()),
        )

    def terms(self, features: Floats) -> dict[str, Floats]:
        """Return the forecast, and how many features lie beyond the range of the measurements."""
        within = np.clip(features, self.least, self.most)
        x = (within - self.center) / self.scale
        kernel = (self.gamma * (x @ self.vectors.T) + COEF0) ** DEGREE
        target = self.middle + self.unit * (kernel @ self.weights + self.intercept)
        time_s = np.exp(target) if self.is_of_logarithms else target
        return {
            "features_beyond": np.sum(features != within, axis=1, dtype=float),
            "time_s": above_zero(time_s, self.least_s),
        }


def best_regression(x: Floats, y: Floats) -> Any:
    """Return scikit-learn's regression with the C and gamma that cross-validation prefers (section III.B.1).

    `x` of shape (measurements, features) and `y` are standardised.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV, PredefinedSplit
    from sklearn.svm import SVR

    search = GridSearchCV(
        SVR(kernel="poly", degree=DEGREE, coef0=COEF0, epsilon=EPSILON, max_iter=MOST_STEPS),
        {"C": GRID_C, "gamma": GRID_GAMMA},
        scoring="neg_mean_squared_error",
        cv=PredefinedSplit(np.random.default_rng(0).permutation(len(y)) % FOLDS),
    )
    # The fits are small and hundreds: checks of their arrays would take most of the time.
    unchecked = config_context(assume_finite=True, skip_parameter_validation=True)
    with warnings.catch_warnings(), unchecked:
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(x, y).best_estimator_


def _deviation(values: Floats) -> Floats:
    """Return the standard deviation, 1 where all values are alike but for rounding."""
    deviation = values.std(axis=0)
    return np.where(deviation > 1e-9 * np.abs(values).max(axis=0), deviation, 1.0)


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


@CLUSTER_MODELS.register("hossain-svr")
class HossainSVRCluster(AsPrinted, ClusterModel):
    """A support vector regression for each number of ranks, algorithm and format.

    `as_printed` takes features and times as they are, without logarithms.
    """

    name: ClassVar[str] = "hossain-svr"
    algorithms: ClassVar[tuple[str, ...] | None] = ALGORITHMS_OF_THE_PAPER
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER

    def fit(self, training: ClusterTraining) -> Self:
        points: dict[_Key, list[tuple[Floats, float]]] = {}
        for record, question in self._learnable(training):
            if question.deviation is None:
                continue
            features = self._features(record.configuration, question)
            points.setdefault(_key(record.configuration), []).append((features, record.time_s))
        self.fits_ = {
            key: Regression.fitted(
                *map(np.array, zip(*measured, strict=True)), is_of_logarithms=not self.as_printed
            )
            for key, measured in points.items()
            if len(measured) >= LEAST_RECORDS
        }
        if not self.fits_:
            most = max(map(len, points.values()), default=0)
            raise self.insufficient(
                f"{LEAST_RECORDS} measured products of one algorithm, format and number of ranks, of which "
                f"it has {most}; measure more by `mpirun -n N sparsecast measure MATRIX --algorithm NAME`"
            )
        return self

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        outside = super().lacking(configuration, question)
        if outside is not None:
            return outside
        if question.deviation is None:
            return f"the {self.name} model expected the deviation of the row lengths; name the matrix itself"
        if _key(configuration) in self.fits_:
            return None
        return (
            f"the {self.name} model expected {LEAST_RECORDS} measured products of {configuration.algorithm} "
            f"in {configuration.format} on {configuration.ranks} ranks; measure them"
        )

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        features = self._features(configuration, question)
        terms = self.fits_[_key(configuration)].terms(features[None, :])
        shown = (("features_beyond", float(terms["features_beyond"][0])),)
        memory = memory_bytes(configuration, question)
        return ClusterForecast(configuration, float(terms["time_s"][0]), memory, shown)

    def _features(self, configuration: Configuration, question: Question) -> Floats:
        """Return section III.B.2's features: five, and four of local 1D that concern communication."""
        distribution = question.distribution
        rows, nnz = float(distribution.rows.mean()), float(distribution.nnz.mean())
        density = nnz / max(rows * distribution.shape[1], 1.0)
        features = [rows, nnz, nnz / max(rows, 1.0), density, question.deviation or 0.0]
        # Counts may be 0, and a density is far below 1.
        offsets = [1.0, 1.0, 1e-3, 1e-15, 1.0]
        if configuration.algorithm == "local-1d":
            communicated = (
                distribution.local_nnz,
                distribution.remote_nnz,
                distribution.received_messages,
                configuration.value_bytes * distribution.received_words,
            )
            features += [float(counts.mean()) for counts in communicated]
            offsets += [1.0] * len(communicated)
        return np.array(features) if self.as_printed else np.log(np.add(features, offsets))


def _key(configuration: Configuration) -> _Key:
    return configuration.ranks, configuration.algorithm, configuration.format
