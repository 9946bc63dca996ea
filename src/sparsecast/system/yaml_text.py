"""Plain data as the text of a YAML file, for people to read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: Texts that YAML reads as texts without quotes; all others are quoted as in JSON, which YAML includes.
_BARE = re.compile(r"[A-Za-z_][\w./+-]*", re.ASCII)
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def yaml_text(value: Any, indent: int = 0) -> str:
    """Return what JSON could hold, as lines from the second one on `indent` further; six digits of floats."""
    begin = "\n" + " " * indent
    if isinstance(value, Mapping) and value:
        parts = (f"{_scalar(str(key))}:{_below(item, indent)}" for key, item in value.items())
        return begin.join(parts)
    if isinstance(value, list | tuple) and value:
        if any(isinstance(item, Mapping | list | tuple) for item in value):
            return begin.join(f"- {yaml_text(item, indent + 2)}" for item in value)
        return f"[{', '.join(map(_scalar, value))}]"
    return _scalar(value)


def _below(value: Any, indent: int) -> str:
    """Return a value behind its key: on the same line, or on lines of its own."""
    text = yaml_text(value, indent + 2)
    is_nested = (isinstance(value, Mapping) and value) or text.startswith("- ")
    return f"\n{' ' * (indent + 2)}{text}" if is_nested else f" {text}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if isinstance(value, float):
        text = json.dumps(float(f"{value:.6g}"), allow_nan=False)
        return text if "." in text else text.replace("e", ".0e")  # or YAML 1.1 reads a text
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
