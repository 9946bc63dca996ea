"""Plain data as the text of a YAML file, for people to read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: Texts that YAML reads as texts without quotes; all others are quoted as in JSON, which YAML includes.
_BARE = re.compile(r"(?!(null|true|false|yes|no|on|off|y|n)$)[a-z_][\w./+-]*", re.ASCII | re.IGNORECASE)


def yaml_text(value: Any, indent: int = 0) -> str:
    """Return what JSON could hold, as lines from the second one on `indent` further; six digits of floats."""
    begin, inner = "\n" + " " * indent, indent + 2
    if isinstance(value, Mapping) and value:
        parts = []
        for key, item in value.items():
            text = yaml_text(item, inner)
            is_below = (isinstance(item, Mapping) and item) or text.startswith("- ")
            parts.append(f"{_scalar(str(key))}:{f'{begin}  ' if is_below else ' '}{text}")
        return begin.join(parts)
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value):
        return begin.join(f"- {yaml_text(item, inner)}" for item in value)
    return f"[{', '.join(map(_scalar, value))}]" if isinstance(value, list | tuple) else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    if isinstance(value, float):
        text = json.dumps(float(f"{value:.6g}"), allow_nan=False)
        return text if "." in text else text.replace("e", ".0e")  # or YAML 1.1 reads a text
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
