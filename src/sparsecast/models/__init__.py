"""Models: from Records and a Structure to Forecasts; they never run a kernel and never read a clock."""

from __future__ import annotations

from sparsecast.models.model import Model
from sparsecast.system.registry import Registry

#: Every model, by name.
MODELS: Registry[type[Model]] = Registry(
    "model",
    "sparsecast.models",
    helpers=(
        *(
            "clusters",
            "model",
            "forecaster",
            "state",
            "work",
            "conversion",
            "data_sheets",
            "fitting",
            "forest",
            "knowledge",
            "power_files",
            "probing",
            "published_trees",
            "store",
        ),
        *("strip_lines", "training", "transfer"),
    ),
    separator="-",
)

#: The model that forecasts where none is named.
DEFAULT_MODEL = "sparsecast"
