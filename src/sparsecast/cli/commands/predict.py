"""sparsecast predict MATRIX, STRUCTURE.json, TABLE.csv or counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import profile_for, read_question, shown_parts, transposed

if TYPE_CHECKING:
    from pathlib import Path


@command("predict", Panel.FORECASTS, figure=True, csv=True)
def predict(
    matrix: options.QuestionArgument,
    profile: options.ProfileOption = None,
    threads: options.AnyThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.ForecastDeviceOption = None,
    vectors: options.VectorsOption = 1,
    values: options.ValuesOption = None,
    library: options.LibraryOption = None,
    transpose: options.TransposeOption = False,
    model: options.ModelOption = None,
    no_drift_correction: options.NoDriftOption = False,
    anyway: options.AnywayOption = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Measure CSR here, correct the others by it, and measure what may be fastest."
        ),
    ] = False,
    power_model: options.PowerModelOption = None,
    energy_model: options.EnergyModelOption = None,
    figure: options.FigureOption = None,
) -> Output:
    """Forecast the time of one product in every format that suits the matrix, from fastest to slowest."""
    from sparsecast import Structure, api
    from sparsecast.errors import InputError
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.results.columns import matrix_document
    from sparsecast.results.prediction import DOCUMENTS

    setting: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device}
    how: dict[str, Any] = {"model": model, "drift_correction": not no_drift_correction, "anyway": anyway}
    how |= {"power_model": options.power_file(power_model), "energy_model": energy_model}
    probe_s = api.PROBE_S if probe else None
    if api.is_table(matrix):
        if vectors > 1 or transpose or values or library:
            given = "--vectors, --values, --library or --transpose"
            raise InputError(f"{matrix} with {given}: expected a matrix; name it")
        api.refuse_probe(probe_s, not no_drift_correction, device, has_matrix=False)
        return _table(matrix, profile, setting, how, figure)
    notes: list[str] = []
    name, question = read_question(matrix)
    if transpose:
        question = transposed(question, notes)
    api.refuse_probe(probe_s, not no_drift_correction, device, has_matrix=not isinstance(question, Structure))
    api.rounding(question, values, dtype, device)
    chosen = profile_for(question, profile, **setting)
    how |= {"probe_s": probe_s, "vectors": vectors, "values": values, "library": library}
    with shown_parts():
        prediction = api.predict(question, chosen, **setting, **how)
    of = "y = A x" if vectors == 1 else f"Y = A X, {vectors} vectors"
    title = f"Forecast of {of}: {name} on {prediction.profile}"

    def draw(path: Path) -> None:
        chart = intervals.times({name: intervals.forecast_rows(prediction)}, "one product")
        render(chart, f"{title}, model {prediction.model}", path)

    item = {"matrix": matrix_document(name, prediction.structure), "prediction": prediction}
    return Output(DOCUMENTS["predict"], item, [prediction.table(title)], (*notes, *prediction.notes), draw)


def _table(
    path: str, profile: str | None, setting: dict[str, Any], how: dict[str, Any], figure: Path | None
) -> Output:
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.prediction import DOCUMENTS, TableForecasts

    structures, refused = api.read_table(path)
    if figure is not None:
        intervals.refuse_many(len(structures))
    chosen = profile_for(next(iter(structures.values())), profile, **setting)
    predictions = {}
    with counted_bar(options.screen(), "forecasting", len(structures)) as advance:
        for name, prediction in api.predict_table(structures, chosen, **setting, **how):
            predictions[name] = prediction
            advance()
    forecasts = TableForecasts(predictions, refused)
    table = forecasts.table()

    def draw(drawn: Path) -> None:
        rows_of = {name: intervals.forecast_rows(prediction) for name, prediction in predictions.items()}
        render(intervals.times(rows_of, "one product"), table.title, drawn)

    return Output(DOCUMENTS["predict TABLE.csv"], forecasts, [table], forecasts.notes, draw)
