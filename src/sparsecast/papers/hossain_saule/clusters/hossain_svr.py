"""The support vector regression of Hossain and Saule for products on many ranks.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.B: a
regression with a polynomial kernel for each number of ranks, algorithm and format, whose C and gamma a grid
search with 5-fold cross-validation chooses.

What the paper leaves open, and what is done here, is as in
`sparsecast.papers.hossain_saule.models.hossain_svr`: degree, epsilon and coef0, and logarithms that are
standardised. Of the paper's features the deviation of the row lengths is left out: a DistributedRecord does
not hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Floats,
    Question,
    memory_bytes,
)
from sparsecast.papers.hossain_saule.clusters.hossain_micro import ALGORITHMS_OF_THE_PAPER
from sparsecast.papers.hossain_saule.models.hossain_linear import FORMATS_OF_THE_PAPER
from sparsecast.papers.hossain_saule.models.hossain_svr import LEAST_RECORDS, best_regression, regressed
from sparsecast.records import VALUE_BYTES, Configuration

_Key = tuple[int, str, str]


@dataclass(frozen=True)
class _Fit:
    """A regression, and how its features and its target were scaled."""

    regression: dict[str, Any]
    center: Floats
    scale: Floats
    middle: float
    unit: float
    ends: tuple[Floats, Floats]

    @classmethod
    def of(cls, features: Floats, time_s: Floats) -> _Fit:
        target = np.log(time_s)
        center, scale = features.mean(axis=0), _spread(features)
        middle, unit = float(target.mean()), float(_spread(target))
        best = best_regression((features - center) / scale, (target - middle) / unit)
        learned = {
            "gamma": best.gamma,
            "vectors": best.support_vectors_,
            "weights": best.dual_coef_[0],
            "intercept": float(best.intercept_[0]),
        }
        return cls(learned, center, scale, middle, unit, (features.min(axis=0), features.max(axis=0)))

    def __call__(self, features: Floats) -> tuple[float, int]:
        """Return the seconds, and how many features were beyond those learned from and taken to their end."""
        within = np.clip(features, *self.ends)
        found = regressed(self.regression, ((within - self.center) / self.scale)[None, :])[0]
        return float(np.exp(self.middle + self.unit * found)), int((within != features).sum())


@CLUSTER_MODELS.register("hossain-svr")
class HossainSVRCluster(ClusterModel):
    """A support vector regression for each number of ranks, algorithm and format.

    Attributes
    ----------
    fits_ : dict of (int, str, str) to a regression
    """

    name: ClassVar[str] = "hossain-svr"
    algorithms: ClassVar[tuple[str, ...] | None] = ALGORITHMS_OF_THE_PAPER
    formats: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER

    def fit(self, training: ClusterTraining) -> Self:
        """Learn from DistributedRecords alone."""
        points: dict[_Key, list[tuple[Floats, float]]] = {}
        for record, question in self._learnable(training):
            features = _features(record.configuration, question.distribution)
            points.setdefault(_key(record.configuration), []).append((features, record.time_s))
        self.fits_ = {
            key: _Fit.of(*map(np.array, zip(*measured, strict=True)))
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
        """Return that too few products were measured on that number of ranks."""
        outside = super().lacking(configuration, question)
        if outside is not None or _key(configuration) in self.fits_:
            return outside
        return (
            f"the {self.name} model expected {LEAST_RECORDS} measured products of {configuration.algorithm} "
            f"in {configuration.format} on {configuration.ranks} ranks; measure them"
        )

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        """Return a forecast that does not tell communication from computation."""
        features = _features(configuration, question.distribution)
        time_s, beyond = self.fits_[_key(configuration)](features)
        terms = (("features_beyond", float(beyond)),)
        memory = memory_bytes(configuration, question)
        return ClusterForecast(configuration, time_s, None, None, None, None, memory, terms)


def _features(configuration: Configuration, found: Distribution) -> Floats:
    """Return section III.B.2's features, in logarithms: five of local 1D concern communication."""
    rows, nnz = float(found.rows.mean()), float(found.nnz.mean())
    density = nnz / max(rows * found.shape[1], 1.0)
    features = [rows + 1, nnz + 1, nnz / max(rows, 1.0) + 1e-3, density + 1e-15]
    if configuration.algorithm == "local-1d":
        value = VALUE_BYTES[configuration.dtype]
        communicated = (
            found.local_nnz,
            found.remote_nnz,
            found.received_messages,
            value * found.received_words,
        )
        features += [float(each.mean()) + 1 for each in communicated]
    return np.asarray(np.log(features))


def _spread(values: Floats) -> Floats:
    found = values.std(axis=0)
    return np.asarray(np.where(found > 1e-9 * np.abs(values).max(axis=0), found, 1.0))


def _key(configuration: Configuration) -> _Key:
    return configuration.ranks, configuration.algorithm, configuration.format
