"""Randomised and boosted trees as plain arrays: scikit-learn grows them, a compiled loop asks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.jit import njit

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

#: Samples whose leaves are in memory at once: trees may be asked about millions of blocks of a matrix.
_SAMPLES_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Forest:
    """Trees that give numbers: nodes one after another, each followed by its left part, then its right."""

    feature: NDArray[np.int16]  # shape (nodes,): feature that a node asks for; -1 in a leaf
    #: Shape (nodes,): in a node, the threshold: where the feature is at most this, the way is left. In a
    #: leaf, its value: the mean of the samples there.
    number: NDArray[np.float32]

    def __post_init__(self) -> None:
        # Of a stored fit, which may be damaged; compiled loops walk its nodes. A tree ends where
        # its leaves are one more than its other nodes.
        open_nodes = np.cumsum(np.append(0, np.where(self.feature < 0, -1, 1)))
        is_whole = self.feature.shape == self.number.shape and open_nodes[-1] < open_nodes[:-1].min(initial=0)
        if not is_whole or self.feature.min() < -1:
            raise ValueError("a forest without whole trees")

    @classmethod
    def grown(cls, features: Floats, values: Floats, **settings: Any) -> Forest:
        """Return a forest that learned values of shape (samples,) from features of shape (samples, features).

        `settings` are those of scikit-learn's ExtraTreesRegressor (Geurts, Ernst and Wehenkel 2006).
        """
        from sklearn.ensemble import ExtraTreesRegressor

        grown = ExtraTreesRegressor(**settings).fit(features, values)
        return cls._of_trees([tree.tree_ for tree in grown.estimators_])

    @classmethod
    def boosted(cls, features: Floats, values: Floats, **settings: Any) -> Forest:
        """Return trees that learned as `grown`, each what those before it leave.

        `settings` are those of scikit-learn's GradientBoostingRegressor (Friedman 2001).
        """
        from sklearn.ensemble import GradientBoostingRegressor

        grown = GradientBoostingRegressor(**settings).fit(features, values)
        trees = cls._of_trees([tree.tree_ for tree in grown.estimators_[:, 0]])
        first = float(grown.init_.predict(features[:1])[0])
        # The mean of so many trees is then the sum that boosting gives.
        value = first + grown.learning_rate * len(grown.estimators_) * trees.number.astype(np.float64)
        return trees._with_leaves(value)

    @classmethod
    def joined(cls, forests: Sequence[Forest]) -> Forest:
        """Return the trees of several forests, each with as many, whose mean is that of the forests."""
        return cls(
            np.concatenate([forest.feature for forest in forests]),
            np.concatenate([forest.number for forest in forests]),
        )

    def rounded(self, step: float) -> Forest:
        """Return the trees with leaves that are multiples of `step`: a file of them is smaller."""
        return self._with_leaves(step * np.round(self.number / step))

    def _with_leaves(self, value: NDArray[Any]) -> Forest:
        """Return the trees with other values, shape (nodes,), in their leaves."""
        return replace(self, number=np.where(self.feature < 0, value, self.number).astype(np.float32))

    @classmethod
    def _of_trees(cls, trees: Sequence[Any]) -> Forest:
        feature, left, threshold, value = (
            np.concatenate([getattr(tree, name).reshape(tree.node_count) for tree in trees])
            for name in ("feature", "children_left", "threshold", "value")
        )
        own = np.concatenate([np.arange(tree.node_count) for tree in trees])
        is_leaf = left < 0
        if not np.array_equal(left[~is_leaf], own[~is_leaf] + 1):
            raise AssertionError("scikit-learn no longer stores a left child after its node")
        # Samples have single precision, as in scikit-learn: a threshold rounded down divides them alike.
        single = threshold.astype(np.float32)
        below = np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
        return cls(
            np.where(is_leaf, -1, feature).astype(np.int16),
            np.where(is_leaf, value, below).astype(np.float32),
        )

    @cached_property
    def _following(self) -> Integers:
        """The node that comes after all below a node, shape (nodes,)."""
        following = np.empty(len(self.feature), dtype=np.int32)
        _fill_following(self.feature, following)
        return following

    def mean(self, features: Floats) -> Floats:
        """Return the mean of the trees for features of shape (samples, features)."""
        starts = range(0, max(len(features), 1), _SAMPLES_AT_ONCE)
        parts = [self._leaves(features[first : first + _SAMPLES_AT_ONCE]).mean(axis=0) for first in starts]
        return np.concatenate(parts)

    def median_and_spread(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the median of the trees, and their mean distance from it, for features as in `mean`.

        A disturbed measurement is in the leaves of some trees. It moves their mean, and hardly their median.
        """
        leaves = self._leaves(features)
        median = np.median(leaves, axis=0)
        return median, np.abs(leaves - median).mean(axis=0)

    def _leaves(self, features: Floats) -> Floats:
        """Return the value of each tree, shape (trees, samples)."""
        if self.feature.max() >= features.shape[1]:
            raise ValueError(f"a forest that asks for fewer than {features.shape[1]} features")
        is_leaf = self.feature < 0  # one more in each tree than of other nodes
        leaves = np.empty((np.count_nonzero(is_leaf) - np.count_nonzero(~is_leaf), len(features)))
        samples = np.ascontiguousarray(features, dtype=np.float32)
        _fill_leaves(self.feature, self.number, self._following, samples, leaves)
        return leaves


@njit(nogil=True, cache=True)
def _fill_following(feature, following):
    for node in range(len(feature) - 1, -1, -1):
        following[node] = node + 1 if feature[node] < 0 else following[following[node + 1]]


@njit(nogil=True, cache=True)
def _fill_leaves(feature, number, following, samples, leaves):
    for sample in range(len(samples)):
        root = 0
        for tree in range(len(leaves)):
            node = root
            while feature[node] >= 0:
                goes_left = samples[sample, feature[node]] <= number[node]
                node = node + 1 if goes_left else following[node + 1]
            leaves[tree, sample] = number[node]
            root = following[root]
