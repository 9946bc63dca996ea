"""sparsecast structure MATRIX."""

from __future__ import annotations

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix


@command("structure", Panel.MATRICES, figure=True, csv=True)
def structure(matrix: options.MatrixArgument) -> Output:
    """Show the properties of a matrix that the models use."""
    from sparsecast.reports.charts import patterns
    from sparsecast.results.structure import DOCUMENTS, structure_table

    problem = read_matrix(matrix)
    structure, steps = api.shared_structure(problem), api.forecast_next_steps(problem)
    item = {
        "name": problem.name,
        "structure": structure.to_dict(),
        "notes": problem.notes,
        "next_steps": steps,
    }
    shown = [structure_table(problem.name, structure), *problem.notes, *(step.sentence() for step in steps)]
    columns = DOCUMENTS["structure"]
    return Output(columns, item, shown, chart=lambda: (patterns.structure(problem.matrix), problem.name))
