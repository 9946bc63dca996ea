"""Five papers, one folder for each: its models, benchmark matrices, commands and experiment.

A paper is found as a plug-in is. `[members]` of its `paper.toml` says which module registers what: models,
`suites` of benchmark matrices, `families` of matrices, `features`, `clusters` (models of ranks), `commands`,
`planners`. A file in a folder of such a name, as in `experiments/`, registers one member.
No paper imports another, and nothing outside this package imports one.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsecast.results.paper import Paper


def published(paper: str) -> dict[str, Any]:
    """Return the numbers that a paper prints, from `published.toml` in its folder."""
    return _stored(paper, "published.toml")


def described(paper: str) -> Paper:
    """Return what `paper.toml` in the folder of a paper says; its headline takes published numbers."""
    from sparsecast.results.paper import Paper, PaperItem  # imports Numba, unlike a list of commands

    stored = _stored(paper, "paper.toml")
    headline = stored.pop("headline").format(**published(paper))
    items = tuple(PaperItem(*item) for item in stored.pop("items"))
    stored.pop("members", None)  # for the registries
    return Paper(headline=headline, items=items, notes=tuple(stored.pop("notes", ())), **stored)


def _stored(paper: str, file: str) -> dict[str, Any]:
    text = resources.files(__name__).joinpath(paper, file).read_text(encoding="utf-8")
    return tomllib.loads(text)
