"""sparsecast predict MATRIX, STRUCTURE.json, TABLE.csv or counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.profile_choice import profile_for
from sparsecast.cli.reading import read_question, shown_parts


@command("predict", Panel.FORECASTS)
def predict(
    matrix: options.QuestionArgument,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.ForecastDeviceOption = None,
    model: options.ModelOption = None,
    as_met: options.AsMetOption = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="Measure CSR here, correct the others by it, and measure what may be fastest."
        ),
    ] = False,
    power_model: options.PowerModelOption = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Forecast the time of one product in every format that suits the matrix, fastest first."""
    from sparsecast import api
    from sparsecast.features.structure import Structure
    from sparsecast.reports import documents, tables
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render

    options.refuse_figure(figure)
    probe_s = api.PROBE_S if probe else None
    if api.is_table(matrix):
        api.refuse_probe(probe_s, as_met, device, has_matrix=False)
        chosen_of = {"threads": threads, "dtype": dtype, "device": device}
        _table(matrix, profile, chosen_of, model, as_met, figure, as_json)
        return
    name, found = read_question(matrix)
    api.refuse_probe(probe_s, as_met, device, has_matrix=not isinstance(found, Structure))
    chosen = profile_for(found, profile, threads, dtype, device)
    asked: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device, "model": model}
    asked["power_model"] = options.power_file(power_model)
    with shown_parts():
        prediction = api.predict(found, chosen, **asked, as_met=as_met, probe_s=probe_s)
    options.warn(prediction.notes)
    title = f"Forecast of y = A x: {name} on {prediction.profile}"
    if figure is not None:
        rows = intervals.forecast_rows(prediction)
        render(intervals.times({name: rows}, "one product"), f"{title}, model {prediction.model}", figure)
    table = tables.forecasts(title, prediction, prediction.refused)
    options.show(as_json, documents.prediction(name, prediction), table)


def _table(
    path: str,
    profile: str | None,
    asked: dict[str, Any],
    model: str | None,
    as_met: bool,
    figure: Path | None,
    as_json: bool,
) -> None:
    from sparsecast import api
    from sparsecast.reports import documents, tables
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.progress import counted_bar

    structures, refused = api.read_table(path)
    if figure is not None:
        intervals.refuse_many(len(structures))
    chosen = profile_for(next(iter(structures.values())), profile, **asked)
    found = {}
    with counted_bar(options.screen(), "forecasting", len(structures)) as advance:
        for name, prediction in api.predict_table(structures, chosen, **asked, model=model, as_met=as_met):
            found[name] = prediction
            advance()
    document = documents.table_of_forecasts(found, refused)
    title = f"Forecasts on {chosen.name}"
    if figure is not None:
        rows_of = {name: intervals.forecast_rows(prediction) for name, prediction in found.items()}
        render(intervals.times(rows_of, "one product"), title, figure)
    options.warn(document["notes"])
    options.show(as_json, document, tables.table_of_forecasts(title, found, refused))
