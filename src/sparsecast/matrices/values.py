"""Types of values: the default for a matrix, and which type may replace another."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecast.errors import InputError
from sparsecast.records import DTYPES

#: The types of DTYPES, in this machine's byte order.
VALUE_TYPES: tuple[np.dtype[Any], ...] = tuple(np.dtype(name) for name in DTYPES)


def computed_dtype(held: np.dtype[Any]) -> np.dtype[Any]:
    """Return the default type to compute with: `held` if one of VALUE_TYPES, else complex128 or float64."""
    native = np.dtype(held).newbyteorder("=")
    if native in VALUE_TYPES:
        return native
    return np.dtype(np.complex128 if held.kind == "c" else np.float64)


def require_imaginary(held: np.dtype[Any], dtype: np.dtype[Any] | str, what: str) -> None:
    """Refuse a real type for complex values of `what`: their imaginary parts would be lost."""
    if held.kind == "c" and np.dtype(dtype).kind != "c":
        complex_types = " or ".join(name for name in DTYPES if np.dtype(name).kind == "c")
        raise InputError(
            f"dtype {dtype} for {what}: expected {complex_types}, as the imaginary parts of its values would "
            f"be lost; name one of these, or none"
        )
