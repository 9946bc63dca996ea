"""Sparsecast: forecasts, plans and runs sparse matrix-vector products.

The public names are imported when they are first used, so that importing the package costs next to
nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sparsecast.compilation import ensure_cache_folder
from sparsecast.version import VERSION

if TYPE_CHECKING:
    from sparsecast.api import (
        calibrate,
        cluster,
        compile,
        evaluate,
        measure,
        plan,
        predict,
        profile,
        structure,
    )
    from sparsecast.features.structure import Structure
    from sparsecast.machines.profile import Profile
    from sparsecast.matrices.gallery import gallery
    from sparsecast.matrices.reading import load
    from sparsecast.operators import Operator
    from sparsecast.planning.plan import Plan
    from sparsecast.planning.prediction import Prediction
    from sparsecast.records import Candidate, Forecast, Record

__version__ = VERSION

ensure_cache_folder()

_HOMES = {
    "bench": "api",
    "calibrate": "api",
    "cluster": "api",
    "compile": "api",
    "evaluate": "api",
    "measure": "api",
    "plan": "api",
    "predict": "api",
    "profile": "api",
    "structure": "api",
    "Prediction": "planning.prediction",
    "gallery": "matrices.gallery",
    "load": "matrices.reading",
    "Candidate": "records",
    "Forecast": "records",
    "Operator": "operators",
    "Plan": "planning.plan",
    "Profile": "machines.profile",
    "Record": "records",
    "Structure": "features.structure",
}

__all__ = [
    "Candidate",
    "Forecast",
    "Operator",
    "Plan",
    "Prediction",
    "Profile",
    "Record",
    "Structure",
    "bench",
    "calibrate",
    "cluster",
    "compile",
    "evaluate",
    "gallery",
    "load",
    "measure",
    "plan",
    "predict",
    "profile",
    "structure",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sparsecast' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sparsecast.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
