"""Models: from Records and a Structure to Forecasts; they never run a kernel and never read a clock."""

from __future__ import annotations

from sparsecast.errors import InputError
from sparsecast.models.model import Model
from sparsecast.system.registry import Registry

#: Every model, by name.
MODELS: Registry[type[Model]] = Registry(
    "model",
    "sparsecast.models",
    helpers=(
        *("clusters", "fitting", "forecaster", "forest", "model", "probing", "product_files"),
        *("published_trees", "store", "strip_lines", "training", "transfer", "work"),
    ),
    separator="-",
)

#: The model of each quantity that forecasts where none is named.
DEFAULT_MODELS = {"time": "sparsecast", "energy": "power"}
DEFAULT_MODEL = DEFAULT_MODELS["time"]


def model_for(quantity: str, name: str | None = None) -> str:
    """Return the name of the model that forecasts a quantity, the default without one.

    Raises
    ------
    UnknownNameError
        If there is no such model.
    InputError
        If it forecasts something else.
    """
    if name is None:
        return DEFAULT_MODELS[quantity]
    forecast = MODELS.get(name).quantity
    if forecast != quantity:
        option = {"time": "--model", "energy": "--energy-model"}[forecast]
        raise InputError(
            f"model '{name}' forecasts {forecast}: expected a model of {quantity}; name it by {option}"
        )
    return name
