"""Models: from Records and a Structure to Forecasts; they never run a kernel and never read a clock."""

from __future__ import annotations

from sparsecast.models.base import Model
from sparsecast.registry import Registry

#: Every model, by name.
MODELS: Registry[type[Model]] = Registry("model", "sparsecast.models", helpers=("base", "conversion"))

#: The model that forecasts where none is named.
DEFAULT_MODEL = "linear"
