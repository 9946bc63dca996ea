"""Sparsecast: forecasts, plans and runs sparse matrix-vector products.

The public names are imported when they are first used, so that importing the package costs next to
nothing.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from sparsecast.system.version import VERSION

if TYPE_CHECKING:
    from sparsecast.api import (
        calibrate,
        cg,
        cluster,
        compile,
        distribute,
        evaluate,
        measure,
        pagerank,
        partition,
        plan,
        predict,
        profile,
        structure,
    )
    from sparsecast.features.structure import Structure
    from sparsecast.machines.profile import Profile
    from sparsecast.matrices.gallery import gallery
    from sparsecast.matrices.partitioning.distribution import Distribution
    from sparsecast.matrices.partitioning.partition import Partition
    from sparsecast.matrices.reading import load
    from sparsecast.operators.block_operator import Operator
    from sparsecast.records import Candidate, Forecast, Record
    from sparsecast.results.plan import Plan
    from sparsecast.results.prediction import Prediction

__version__ = VERSION

_HOMES = {
    "calibrate": "api",
    "cg": "api",
    "cluster": "api",
    "compile": "api",
    "distribute": "api",
    "evaluate": "api",
    "measure": "api",
    "pagerank": "api",
    "partition": "api",
    "plan": "api",
    "predict": "api",
    "profile": "api",
    "structure": "api",
    "Prediction": "results.prediction",
    "gallery": "matrices.gallery",
    "load": "matrices.reading",
    "Candidate": "records",
    "Distribution": "matrices.partitioning.distribution",
    "Forecast": "records",
    "Operator": "operators.block_operator",
    "Partition": "matrices.partitioning.partition",
    "Plan": "results.plan",
    "Profile": "machines.profile",
    "Record": "records",
    "Structure": "features.structure",
}

__all__ = [
    "Candidate",
    "Distribution",
    "Forecast",
    "Operator",
    "Partition",
    "Plan",
    "Prediction",
    "Profile",
    "Record",
    "Structure",
    "bench",
    "calibrate",
    "cg",
    "cluster",
    "compile",
    "distribute",
    "evaluate",
    "gallery",
    "load",
    "measure",
    "pagerank",
    "partition",
    "plan",
    "predict",
    "profile",
    "structure",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"sparsecast.{_HOMES[name]}"), name)
    if name.startswith("_") or name not in _of_papers():
        raise AttributeError(f"module 'sparsecast' has no attribute '{name}'")
    return getattr(importlib.import_module(_of_papers()[name]), name)


@functools.cache
def _of_papers() -> dict[str, str]:
    """Return the functions that papers offer, each with its module."""
    from sparsecast.system.registry import papers

    offered: dict[str, str] = {}
    for paper in papers():
        offered |= getattr(importlib.import_module(paper), "FUNCTIONS", {})
    return offered


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
