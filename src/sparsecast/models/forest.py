"""Randomised and boosted trees as plain arrays: scikit-learn grows them, a compiled loop asks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.jit import njit

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

#: Samples whose leaves are in memory at once: trees may be asked about millions of blocks of a matrix.
_SAMPLES_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees that give numbers, their nodes one after another, each followed by its left child.

    Attributes
    ----------
    roots : int32 array of shape (trees,)
        Node at which each tree begins.
    feature : int16 array of shape (nodes,)
        Feature that a node asks for.
    threshold : float64 array of shape (nodes,)
        Where the feature is at most this, the next node is the following one, else `right`; -inf in a leaf.
    right : int32 array of shape (nodes,)
        A leaf is its own.
    value : float32 array of shape (nodes,)
        What was learned there, the mean where it is several samples.
    """

    roots: Integers
    feature: NDArray[np.int16]
    threshold: Floats
    right: Integers
    value: NDArray[np.float32]

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
        value = first + grown.learning_rate * len(trees.roots) * trees.value.astype(np.float64)
        return replace(trees, value=value.astype(np.float32))

    @classmethod
    def joined(cls, forests: Sequence[Forest]) -> Forest:
        """Return the trees of several forests, each with as many, whose mean is that of the forests."""
        before = np.cumsum([0, *(len(each.feature) for each in forests[:-1])], dtype=np.int32)

        def together(name: str, is_place: bool = False) -> NDArray[Any]:
            arrays = [getattr(each, name) for each in forests]
            return np.concatenate(
                [a + b for a, b in zip(arrays, before, strict=True)] if is_place else arrays
            )

        return cls(
            together("roots", True),
            together("feature"),
            together("threshold"),
            together("right", True),
            together("value"),
        )

    @classmethod
    def _of_trees(cls, trees: Sequence[Any]) -> Forest:
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1]))

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        feature = joined("feature")
        is_leaf, own = feature < 0, np.arange(sum(sizes))
        first = np.repeat(roots, sizes)
        if not np.array_equal((joined("children_left") + first)[~is_leaf], own[~is_leaf] + 1):
            raise AssertionError("scikit-learn no longer stores a left child after its node")
        return cls(
            roots.astype(np.int32),
            np.where(is_leaf, 0, feature).astype(np.int16),
            np.where(is_leaf, -np.inf, joined("threshold")),
            np.where(is_leaf, own, joined("children_right") + first).astype(np.int32),
            joined("value").reshape(-1).astype(np.float32),
        )

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
        leaves = np.empty((len(self.roots), len(features)))
        nodes = self.roots, self.feature, self.threshold, self.right, self.value
        _fill_leaves(*nodes, np.ascontiguousarray(features), leaves)
        return leaves


@njit(nogil=True, cache=True)
def _fill_leaves(roots, feature, threshold, right, value, samples, leaves):  # type: ignore[no-untyped-def]
    for sample in range(len(samples)):
        for tree in range(len(roots)):
            node = roots[tree]
            while right[node] != node:
                goes_left = samples[sample, feature[node]] <= threshold[node]
                node = node + 1 if goes_left else right[node]
            leaves[tree, sample] = value[node]
