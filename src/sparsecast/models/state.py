"""What a fit learned as plain data, and back.

msgspec reads annotations of dataclasses and containers; arrays and models inside of models are added to it.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, get_origin

import msgspec
import numpy as np


def to_plain(learned: object) -> Any:
    """Return dataclasses, arrays and containers of these as what JSON can hold."""
    return msgspec.to_builtins(learned, enc_hook=_encoded, str_keys=True)


def from_plain(plain: object, kind: Any) -> Any:
    """Return what `to_plain` gave of something of the type `kind`, such as a dataclass; else a ValueError."""
    return msgspec.convert(plain, kind, dec_hook=_decoded, strict=False)


def _encoded(value: object) -> object:
    if hasattr(value, "to_state"):  # a model that another one holds
        return value.to_state()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value)} cannot be stored: expected a dataclass or an array")
    return {"dtype": value.dtype.str, "shape": value.shape, "bytes": value.tobytes()}


def _decoded(kind: Any, plain: Any) -> object:
    if hasattr(kind, "restored"):
        return kind().restored(plain)
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} cannot be restored: expected a dataclass or an array")
    return np.frombuffer(b64decode(plain["bytes"]), dtype=plain["dtype"]).reshape(plain["shape"])
