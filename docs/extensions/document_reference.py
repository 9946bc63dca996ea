"""The directive ``document-reference``: the keys of every JSON document, from the columns of the results."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import sparsecast
from sparsecast.system.tabular import Columns

#: Packages whose modules list documents.
_HOLDERS = ("sparsecast.results.", "sparsecast.papers.", "sparsecast.cli.commands.")


class DocumentReference(SphinxDirective):
    """A section for each command, in alphabetical order, with its keys."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections = [
            "\n".join([f"## `{name}`", "", "```text", *_lines(columns), "```"])
            for name, columns in sorted(documents().items())
        ]
        return self.parse_text_to_nodes("\n\n".join(sections), allow_section_headings=True)


def documents() -> dict[str, Columns]:
    """Return the columns of the documents of all commands, by how these are called."""
    collected: dict[str, Columns] = {}
    for module in pkgutil.walk_packages(sparsecast.__path__, "sparsecast."):
        if module.name.startswith(_HOLDERS):
            collected |= getattr(importlib.import_module(module.name), "DOCUMENTS", {})
    return collected


def _lines(columns: Columns, indent: str = "") -> Iterator[str]:
    """Yield a line for each key, and below it those of the objects in its value."""
    for column in columns:
        if column.key:
            yield f"{indent}{column.key:{28 - len(indent)}} {column.about}".rstrip()
            if column.by:
                yield f"{indent}  {{{column.by}}}"
            yield from _lines(column.columns, indent + ("    " if column.by else "  "))


def setup(app: object) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("document-reference", DocumentReference)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
