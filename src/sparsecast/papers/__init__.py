"""Five papers, one folder for each: its models, benchmark matrices, commands and experiment.

A paper is found as a plug-in is, by the folders that it has: a file `models/NAME.py` registers a model, one
in `suites/` benchmark matrices, in `families/` a family of matrices, in `features/` a feature group, in
`clusters/` a model of ranks, in `commands/` a command, in
`planners/` how it plans, in `experiments/` its experiment.
No paper imports another, and nothing outside this package imports one.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def published(paper: str) -> dict[str, Any]:
    """Return the numbers that a paper prints, from `published.toml` in its folder."""
    text = resources.files(__name__).joinpath(paper, "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
