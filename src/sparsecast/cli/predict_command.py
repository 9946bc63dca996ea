"""sparsecast predict MATRIX."""

from __future__ import annotations

from sparsecast.cli import options
from sparsecast.cli.profile_choice import profile_for


def command(
    matrix: options.MatrixArgument,
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

    found = api.read_matrix(matrix)
    chosen = profile_for(found, profile, threads, dtype, device)
    prediction = api.predict(
        found, chosen, threads=threads, dtype=dtype, device=device, model=model, as_met=as_met
    )
    options.warn(prediction.notes)
    title = f"Forecast of y = A x: {found.name} on {prediction.profile}"
    table = tables.forecasts(title, prediction, prediction.refused)
    options.show(as_json, documents.prediction(found.name, prediction), table)
