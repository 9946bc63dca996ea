"""sparsecast structure MATRIX."""

from __future__ import annotations

from sparsecast.cli import options


def command(matrix: options.MatrixArgument, as_json: options.JsonOption = False) -> None:
    """Show what the models read of a matrix."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    known = api.shared_structure(found)
    document = documents.structure(found.name, known, found.notes)
    options.show(as_json, document, tables.structure(found.name, known), *found.notes)
