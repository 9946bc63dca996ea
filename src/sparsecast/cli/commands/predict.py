"""sparsecast predict MATRIX, STRUCTURE.json, TABLE.csv or counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import profile_for, read_question, shown_parts, transposed

if TYPE_CHECKING:
    from pathlib import Path


@command("predict", Panel.FORECASTS, figure=True, csv=True)
def predict(
    matrix: options.QuestionArgument,
    question: options.Question,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Measure CSR here, correct the others by it, and measure what may be fastest."
        ),
    ] = False,
    figure: options.FigureOption = None,
) -> Output:
    """Forecast the time of one product in every format that suits the matrix, from fastest to slowest."""
    from sparsecast import Structure, api
    from sparsecast.errors import InputError
    from sparsecast.reports.charts import intervals
    from sparsecast.results.prediction import DOCUMENTS

    probe_s, drifts = api.PROBE_S if probe else None, not question.no_drift_correction
    if api.is_table(matrix):
        if question.vectors > 1 or question.transpose or question.values or question.library:
            given = "--vectors, --values, --library or --transpose"
            raise InputError(f"{matrix} with {given}: expected a matrix; name it")
        api.refuse_probe(probe_s, drifts, has_matrix=False)
        return _table(matrix, question, figure)
    notes: list[str] = []
    name, A = read_question(matrix)
    A = transposed(A, notes) if question.transpose else A
    api.refuse_probe(probe_s, drifts, has_matrix=not isinstance(A, Structure))
    api.rounding(A, question.values, question.dtype, question.device)
    profile = profile_for(A, question.profile, **question.setting)
    with shown_parts():
        prediction = api.predict(A, profile, **question.asked, probe_s=probe_s)
    of = "y = A x" if question.vectors == 1 else f"Y = A X, {question.vectors} vectors"
    title = f"Forecast of {of}: {name} on {prediction.profile}"

    def chart() -> Drawn:
        drawn = intervals.times({name: intervals.forecast_rows(prediction)}, "one product")
        return drawn, f"{title}, model {prediction.model}"

    item = {"name": name, "prediction": prediction}
    return Output(DOCUMENTS["predict"], item, [prediction.table(title)], (*notes, *prediction.notes), chart)


def _table(path: str, question: options.Question, figure: Path | None) -> Output:
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.prediction import DOCUMENTS, TableForecasts

    structures, refused = api.read_table(path)
    if figure is not None:
        intervals.refuse_many(len(structures))
    setting = question.setting
    profile = profile_for(next(iter(structures.values())), question.profile, **setting)
    predictions = {}
    with counted_bar(options.screen(), "forecasting", len(structures)) as advance:
        for name, prediction in api.predict_table(structures, profile, **setting, **question.model_settings):
            predictions[name] = prediction
            advance()
    forecasts = TableForecasts(predictions, refused)
    table = forecasts.table()

    def chart() -> Drawn:
        rows_of = {name: intervals.forecast_rows(prediction) for name, prediction in predictions.items()}
        return intervals.times(rows_of, "one product"), table.title

    return Output(DOCUMENTS["predict TABLE.csv"], forecasts, [table], forecasts.notes, chart)
