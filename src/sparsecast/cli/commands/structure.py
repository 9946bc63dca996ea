"""sparsecast structure MATRIX."""

from __future__ import annotations

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.reading import read_matrix


@command("structure", Panel.MATRICES)
def structure(
    matrix: options.MatrixArgument,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show what the models read of a matrix."""
    from sparsecast import api
    from sparsecast.reports import documents, tables
    from sparsecast.reports.charts import patterns
    from sparsecast.reports.charts.chart import render

    options.refuse_figure(figure)
    found = read_matrix(matrix)
    known = api.shared_structure(found)
    if figure is not None:
        render(patterns.structure(found.matrix), found.name, figure)
    document = documents.structure(found.name, known, found.notes)
    options.show(as_json, document, tables.structure(found.name, known), *found.notes)
