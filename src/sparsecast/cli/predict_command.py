"""sparsecast predict MATRIX."""

from __future__ import annotations

from sparsecast.cli.options import (
    AsMetOption,
    DtypeOption,
    ForecastDeviceOption,
    JsonOption,
    MatrixArgument,
    ModelOption,
    ProfileOption,
    ThreadsOption,
    page,
    print_document,
    warn,
)
from sparsecast.cli.profile_choice import profile_for


def command(
    matrix: MatrixArgument,
    profile: ProfileOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: ForecastDeviceOption = None,
    model: ModelOption = None,
    as_met: AsMetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Forecast the time of one product in every format that suits the matrix, fastest first."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    chosen = profile_for(found, profile, threads, dtype, device)
    prediction = api.predict(
        found, chosen, threads=threads, dtype=dtype, device=device, model=model, as_met=as_met
    )
    warn(prediction.notes)
    if as_json:
        print_document(documents.prediction(found.name, prediction))
        return
    title = f"Forecast of y = A x: {found.name} on {prediction.profile}"
    page().print(tables.forecasts(title, prediction, prediction.refused))
