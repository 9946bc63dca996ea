"""Randomised and boosted trees as plain arrays: scikit-learn grows them, numpy alone asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees that give numbers, their nodes one after another.

    Attributes
    ----------
    roots : int64 array of shape (trees,)
        Node at which each tree begins.
    feature : int64 array of shape (nodes,)
        Feature that a node asks for; -1 in a leaf.
    threshold : float64 array of shape (nodes,)
        Where the feature is at most this, the next node is `left`, else `left` + `right`.
    left, right : int64 arrays of shape (nodes,)
        The next nodes; a leaf is its own.
    value : float64 array of shape (nodes,)
        Mean of what was learned there.
    """

    roots: Integers
    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    value: Floats

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
        return replace(trees, value=first + grown.learning_rate * len(trees.roots) * trees.value)

    @classmethod
    def joined(cls, forests: Sequence[Forest]) -> Forest:
        """Return the trees of several forests, each with as many, whose mean is that of the forests."""
        before = np.cumsum([0, *(len(each.feature) for each in forests[:-1])])

        def together(name: str, is_place: bool = False) -> NDArray[Any]:
            arrays = (getattr(each, name) for each in forests)
            return np.concatenate([a + b * is_place for a, b in zip(arrays, before, strict=True)])

        return cls(
            together("roots", True),
            together("feature"),
            together("threshold"),
            together("left", True),
            together("right", True),
            together("value"),
        )

    @classmethod
    def _of_trees(cls, trees: Sequence[Any]) -> Forest:
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)

        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees])

        feature = joined("feature").astype(np.int64)
        is_leaf, own = feature < 0, np.arange(sum(sizes))
        first = np.repeat(roots, sizes)
        return cls(
            roots,
            np.where(is_leaf, -1, feature),
            np.where(is_leaf, 0.0, joined("threshold")),
            np.where(is_leaf, own, joined("children_left") + first),
            np.where(is_leaf, own, joined("children_right") + first),
            joined("value").reshape(-1),
        )

    def of(self, features: Floats) -> Floats:
        """Return the mean of the trees for features of shape (samples, features)."""
        samples = np.arange(len(features))
        node = np.repeat(self.roots[:, None], len(features), axis=1)
        while True:
            asked = self.feature[node]
            is_inner = asked >= 0
            if not is_inner.any():
                return np.asarray(self.value[node].mean(axis=0))
            goes_left = features[samples, asked] <= self.threshold[node]
            node = np.where(goes_left, self.left[node], self.right[node])

    def to_state(self) -> dict[str, Any]:
        """Return the forest as plain data."""
        return {name: array.tolist() for name, array in asdict(self).items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Forest:
        """Return the forest that `to_state` gave.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is something else.
        """
        floats = ("threshold", "value")
        arrays: dict[str, Any] = {
            name: np.array(state[name], dtype=np.float64 if name in floats else np.int64)
            for name in cls.__slots__
        }
        return cls(**arrays)
