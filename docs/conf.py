"""Sphinx: ``make docs`` builds the site, executes the notebook, and takes every warning for an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import sparsecast

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "Sparsecast"
author = "The Sparsecast developers"
version = release = sparsecast.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "command_reference",
    "document_reference",
    "no_network",
]
exclude_patterns = ["_build", "extensions"]
show_warning_types = True

# Links to a heading of a page, as everybody reads them on the pages of a repository.
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types
numpydoc_show_class_members = False

# The kernel of the notebook asks for styles of a terminal that the site's lexer does not know.
os.environ["TTY_COMPATIBLE"] = "0"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

html_theme = "furo"
html_title = "Sparsecast"
html_show_sourcelink = False
html_show_copyright = False


def _folder_of_decisions(app: Any, name: str, source: list[str]) -> None:
    """Let links to the folder of decisions lead to its page, and have it hold them: a site has no folders."""
    source[0] = source[0].replace("](decisions/)", "](decisions/README.md)")
    if name == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n0*\n```\n"


def setup(app: Any) -> None:
    """Connect what Sphinx does not do by itself."""
    app.connect("source-read", _folder_of_decisions)
