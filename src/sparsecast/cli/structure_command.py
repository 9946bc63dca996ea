"""sparsecast structure MATRIX."""

from __future__ import annotations

from sparsecast.cli.options import JsonOption, MatrixArgument, page, print_document


def command(matrix: MatrixArgument, as_json: JsonOption = False) -> None:
    """Show what the models read of a matrix."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    structure = found.structure
    if as_json:
        print_document(documents.structure(found.name, structure, found.notes))
        return
    page().print(tables.structure(found.name, structure))
    for note in found.notes:
        page().print(note)
