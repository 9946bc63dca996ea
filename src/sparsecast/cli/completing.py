"""What the shell completes: matrices, profiles and models, without importing what they need.

An answer is wanted while a key is held down, so names come from files and from their folders.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeGuard

#: Set by the scripts of `sparsecast completion` when they ask.
VARIABLE = "_SPARSECAST_COMPLETE"

_GALLERY = "gallery:"


def matrices(incomplete: str) -> list[str]:
    """Return the files, folders and gallery matrices that begin with what was typed."""
    return [*(name for name in _gallery() if name.startswith(incomplete)), *_paths(incomplete)]


def profiles(incomplete: str) -> list[str]:
    """Return the profiles whose names begin with what was typed, shipped ones and the user's; and files."""
    from sparsecast.machines.storage import home

    folders = Path(__file__).parent.parent / "machines" / "profiles", home() / "profiles"
    names = {path.stem for folder in folders for path in folder.glob("*.parquet")}
    return [*sorted(name for name in names if name.startswith(incomplete)), *_paths(incomplete)]


def models(incomplete: str) -> list[str]:
    """Return the models whose names begin with what was typed."""
    from sparsecast.models import MODELS

    return [name for name in MODELS.names() if name.startswith(incomplete)]


def asked_command(commands: Sequence[str]) -> Sequence[str]:
    """Return of `commands` the one that a shell asks about, so that no other is imported; else all."""
    if VARIABLE not in os.environ:
        return commands
    words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()
    # Behind the last word may be a cursor: "sparsecast plan" may become "sparsecast planning".
    named = words[1:2] if len(words) > 2 or os.environ.get("COMP_CWORD", "") == "2" else []
    return [name for name in commands if name in named] or commands


def prepare() -> None:
    """Let Typer answer shells, which it does by itself only with options that we do not show."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
        sys.argv[0] = "sparsecast"


def _gallery() -> list[str]:
    """Return the gallery's names from the text of its module, which imports Numba."""
    spec = find_spec("sparsecast.matrices.gallery")
    if spec is None or spec.origin is None:
        return []
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "_GALLERY":
            return sorted(_GALLERY + part.id for part in ast.walk(node.value) if _is_matrix(part))
    return []


def _is_matrix(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != "function"


def _paths(incomplete: str) -> list[str]:
    folder, slash, begin = incomplete.rpartition("/")
    try:
        beside = sorted(Path(folder + slash or ".").expanduser().iterdir())
    except OSError:  # no such folder, or not ours to read: nothing completes it
        return []
    shown = [path for path in beside if path.name.startswith(begin) and (begin or path.name[0] != ".")]
    return [f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}" for path in shown]
