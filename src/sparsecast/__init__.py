"""Sparsecast: forecasts, plans and runs sparse matrix-vector products.

The public names are imported when they are first used, so that importing the package costs next to nothing;
`__init__.pyi` lists them.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import lazy_loader

from sparsecast.system.version import VERSION

__version__ = VERSION

_core, _, _names = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted({*_names, *_of_papers()})
    if name not in _names and not name.startswith("_") and name in _of_papers():
        return getattr(importlib.import_module(_of_papers()[name]), name)
    return _core(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


@functools.cache
def _of_papers() -> dict[str, str]:
    """Return the functions that papers offer, each with its module."""
    from sparsecast.system.registry import papers

    offered: dict[str, str] = {}
    for paper in papers():
        offered |= getattr(importlib.import_module(paper), "FUNCTIONS", {})
    return offered
