"""sparsecast measure MATRIX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecast.cli import options

if TYPE_CHECKING:
    from sparsecast.errors import InputError
    from sparsecast.records import Candidate


def command(
    matrix: options.MatrixArgument,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    keep: options.KeepOption = True,
    as_json: options.JsonOption = False,
) -> None:
    """Measure the product here in every format that suits, and compare with the forecasts."""
    from sparsecast import api
    from sparsecast.machines.machine import PROCESSOR
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import counted_bar

    found = api.read_matrix(matrix)
    choice = api.choice(found, threads=threads, dtype=dtype, device=device)
    prediction = api.forecasts_at_hand(found, profile, threads=threads, dtype=dtype, device=device)
    refused = dict(choice.refused)

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.setdefault(candidate.format, str(why))

    forecasts = {forecast.candidate: forecast for forecast in prediction or ()}
    steps = api.measuring_steps(choice.candidates)
    with counted_bar(options.screen(), "measuring", steps) as advance:
        records = api.measure_here(
            found,
            choice.candidates,
            api.machine_of(device),
            keeps=keep,
            on_sample=advance,
            on_left_out=leave_out,
        )
    document = {
        "matrix": documents.matrix(found.structure, found.name),
        "measurements": [documents.measurement(r, forecasts.get(r.candidate)) for r in records],
        "refused": refused,
    }
    table = tables.measurements(f"Measured: {found.name}", records, forecasts, refused)
    asked = "" if device == PROCESSOR else f" --device {device}"
    without = f"No forecast: this machine has no calibration for it yet (sparsecast calibrate{asked})."
    options.show(as_json, document, table, *([without] if prediction is None else []))
