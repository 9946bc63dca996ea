"""The types of values: which one a matrix is computed with, and which can stand for another."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecast.errors import InputError
from sparsecast.records import DTYPES

#: The types of DTYPES, in this machine's byte order.
VALUE_TYPES: tuple[np.dtype[Any], ...] = tuple(np.dtype(name) for name in DTYPES)


def computed_dtype(held: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type to compute with where values of type `held` are given and no type is asked for.

    One of VALUE_TYPES is kept. Of the others, complex ones become complex128, and whatever else float64.
    """
    if held in VALUE_TYPES:
        return np.dtype(held)
    return np.dtype(np.complex128 if held.kind == "c" else np.float64)


def require_imaginary(held: np.dtype[Any], asked: np.dtype[Any] | str, what: str) -> None:
    """Refuse a real type for complex values of `what`: their imaginary parts would be lost."""
    if held.kind == "c" and np.dtype(asked).kind != "c":
        wanted = " or ".join(name for name in DTYPES if np.dtype(name).kind == "c")
        raise InputError(
            f"dtype {asked} for {what}: expected {wanted}, as the imaginary parts of its values would be "
            f"lost; name one of these, or none"
        )
