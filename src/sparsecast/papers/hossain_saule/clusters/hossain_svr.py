"""The support vector regression of Hossain and Saule for products on many ranks.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.B: a
regression with a polynomial kernel for each number of ranks, algorithm and format, whose C and gamma a grid
search with 5-fold cross-validation chooses.

What the paper leaves open is at the head of `papers/hossain_saule/regression.py`. Features and time are
logarithms; `as_printed` takes them as they are. A record without the deviation of the row lengths, the fifth
feature, is not learned from.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Floats,
    Question,
    memory_bytes,
)
from sparsecast.models.model import AsPrinted
from sparsecast.papers.hossain_saule.regression import LEAST_RECORDS, Regression
from sparsecast.papers.hossain_saule.table_one import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER
from sparsecast.records import Configuration

_Key = tuple[int, str, str]


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
