"""sparsecast predict MATRIX, sparsecast predict TABLE.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import flag
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import counted_bar, read_question, session_for, shown_parts, transposed
from sparsecast.errors import InputError


@command("predict", Panel.FORECASTS, figure=True, csv=True)
def predict(
    matrix: options.QuestionArgument,
    setting: options.SettingGroup,
    trust: options.TrustGroup,
    probe: Annotated[
        bool,
        flag("--probe", "Measure CSR here, correct the others by it, and measure those that may be fastest."),
    ] = False,
    figure: options.FigureOption = None,
) -> Output:
    """Forecast the time of one product in every format that suits the matrix, from fastest to slowest."""
    from sparsecast.reports.charts import intervals
    from sparsecast.results.prediction import DOCUMENTS

    if api.is_table(matrix):
        if probe or setting.vectors > 1 or setting.transpose or setting.values or setting.library:
            given = "--probe, --vectors, --values, --library or --transpose"
            raise InputError(f"{matrix} with {given}: expected a matrix; name it")
        return _table(matrix, setting, trust, figure)
    notes: list[str] = []
    name, A = read_question(matrix)
    A = transposed(A, notes) if setting.transpose else A
    session = session_for(setting, trust)
    with shown_parts():
        prediction = session.predict(A, probe_s=api.PROBE_S if probe else None)
    of = "y = A x" if setting.vectors == 1 else f"Y = A X, {setting.vectors} vectors"
    title = f"Forecast of {of}: {name} on {prediction.profile}"

    def chart() -> Drawn:
        rows_of = {name: intervals.forecast_rows(prediction)}
        return intervals.times(rows_of, "one product"), f"{title}, model {prediction.model}"

    item, notes = {"name": name, "prediction": prediction}, [*notes, *prediction.notes]
    return Output(DOCUMENTS["predict"], item, [prediction.table(title)], notes, chart)


def _table(
    path: str, setting: options.SettingGroup, trust: options.TrustGroup, figure: Path | None
) -> Output:
    from sparsecast.reports.charts import intervals
    from sparsecast.results.prediction import DOCUMENTS, TABLE_ROW
    from sparsecast.system.tabular import Table, lines_of

    structures, refused = api.read_table(path)
    if figure is not None:
        intervals.refuse_many(len(structures))
    session = session_for(setting, trust)
    with shown_parts():
        session.question(next(iter(structures.values())))
    predictions = {}
    with counted_bar("forecasting", len(structures)) as advance:
        for name, structure in structures.items():
            predictions[name] = session.predict(structure)
            advance()
    first = next(iter(predictions.values()))  # whose profile and model are those of all
    rows = [{"matrix": name, "forecast": item} for name, made in predictions.items() for item in made]
    notes = list(dict.fromkeys(note for prediction in predictions.values() for note in prediction.notes))
    table = Table(f"Forecasts on {first.profile}", TABLE_ROW, rows, lines_of(refused))
    item = {"first": first, "rows": rows, "refused": refused, "notes": notes}

    def chart() -> Drawn:
        rows_of = {name: intervals.forecast_rows(prediction) for name, prediction in predictions.items()}
        return intervals.times(rows_of, "one product"), table.title

    return Output(DOCUMENTS["predict TABLE.csv"], item, [table], notes, chart)
