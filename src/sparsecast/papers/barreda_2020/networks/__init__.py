"""Networks of blocks of entries: those of Barreda, Dolz and Castano (2020), and one that sees more.

They learn from labels that were measured before, and forecast; nothing here runs a kernel or reads a clock.
They need PyTorch, which `pip install 'sparsecast[cnn]'` brings. Everything else works without it, the model
`blocks` too.
"""

from __future__ import annotations

from typing import Any

from sparsecast.errors import InputError

#: What the extra `cnn` installs, by what it is for.
_PACKAGES = {
    "torch": "networks",
    "safetensors": "files of weights",
    "optuna": "the search",
    "h5py": "published labels",
}


def required(package: str) -> Any:
    """Return a package of the extra `cnn`; an InputError says what to install where it is missing."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"{_PACKAGES[package.partition('.')[0]]} without {package}: expected the extra cnn; "
            f"pip install 'sparsecast[cnn]'"
        ) from error
