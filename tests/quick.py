"""Few trees and short samples: for the tests, and for processes that they start."""

from __future__ import annotations

from typing import Any

from sparsecast.measuring.timing import DEFAULT_EFFORT
from sparsecast.models import power, published_trees, sparsecast
from sparsecast.papers.barreda_2020 import block_model


def take_few_trees_and_samples() -> dict[str, Any]:
    """Have our own models grow few trees, and what measures by default take 4 short samples instead of 80.

    What models learn with all trees is tested in their own files; what all samples do, with efforts of those
    tests and by processes of the command line. Returns the usual settings of the trees that are boosted.
    """
    usual = dict(published_trees.BOOSTING)
    sparsecast.FOREST["n_estimators"] = 6
    published_trees.BOOSTING.update(n_estimators=30, learning_rate=0.2)
    block_model.TREES["n_estimators"] = power.FOREST["n_estimators"] = 15
    for name, value in {"samples": 4, "sample_s": 1e-4, "most_s": 0.01, "wait_s": 0.01}.items():
        object.__setattr__(DEFAULT_EFFORT, name, value)  # it is frozen, and the default of arguments
    return usual
