"""sparsecast predict MATRIX, STRUCTURE.json, TABLE.csv or counts."""

from __future__ import annotations

from typing import Any

from sparsecast.cli import options
from sparsecast.cli.profile_choice import profile_for


def command(
    matrix: options.QuestionArgument,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.ForecastDeviceOption = None,
    model: options.ModelOption = None,
    as_met: options.AsMetOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Forecast the time of one product in every format that suits the matrix, fastest first."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    if api.is_table(matrix):
        asked = {"threads": threads, "dtype": dtype, "device": device}
        _table(matrix, profile, asked, model, as_met, as_json)
        return
    name, found = api.read_question(matrix)
    chosen = profile_for(found, profile, threads, dtype, device)
    prediction = api.predict(
        found, chosen, threads=threads, dtype=dtype, device=device, model=model, as_met=as_met
    )
    options.warn(prediction.notes)
    title = f"Forecast of y = A x: {name} on {prediction.profile}"
    table = tables.forecasts(title, prediction, prediction.refused)
    options.show(as_json, documents.prediction(name, prediction), table)


def _table(
    path: str, profile: str | None, asked: dict[str, Any], model: str | None, as_met: bool, as_json: bool
) -> None:
    from sparsecast import api
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import counted_bar

    structures, refused = api.read_table(path)
    chosen = profile_for(next(iter(structures.values())), profile, **asked)
    found = {}
    with counted_bar(options.screen(), "forecasting", len(structures)) as advance:
        for name, prediction in api.predict_table(structures, chosen, **asked, model=model, as_met=as_met):
            found[name] = prediction
            advance()
    document = documents.table_of_forecasts(found, refused)
    options.warn(document["notes"])
    options.show(as_json, document, tables.table_of_forecasts(f"Forecasts on {chosen.name}", found, refused))
