"""sparsecast structure MATRIX."""

from __future__ import annotations

from sparsecast.cli import options


def command(matrix: options.MatrixArgument, as_json: options.JsonOption = False) -> None:
    """Show what the models read of a matrix."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    if as_json:
        options.print_document(documents.structure(found.name, found.structure, found.notes))
        return
    options.page().print(tables.structure(found.name, found.structure))
    options.say(*found.notes)
