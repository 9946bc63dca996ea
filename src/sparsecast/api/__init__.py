"""The functions of ``import sparsecast``, and those behind the command line."""

from __future__ import annotations

from sparsecast.api.calibrating import (
    QUICK_BUDGET_S,
    bench,
    bench_result,
    calibrate,
    calibration,
    machines,
    own_profile,
    profile,
    twins,
)
from sparsecast.api.evaluating import evaluate, replay
from sparsecast.api.executing import check, compile, measure, measure_here, measuring_steps
from sparsecast.api.forecasting import (
    PROBE_S,
    choice,
    forecasts_at_hand,
    place,
    plan,
    predict,
    predict_table,
    refuse_probe,
    threads_of,
    uncalibrated_devices,
)
from sparsecast.api.publishing import import_machine, is_table, read_table
from sparsecast.api.resolving import (
    contents,
    machine_of,
    read_matrix,
    read_question,
    shared_structure,
    structure,
)
from sparsecast.api.trust import disturbances

__all__ = [
    "PROBE_S",
    "QUICK_BUDGET_S",
    "bench",
    "bench_result",
    "calibrate",
    "calibration",
    "check",
    "choice",
    "compile",
    "contents",
    "disturbances",
    "evaluate",
    "forecasts_at_hand",
    "import_machine",
    "is_table",
    "machine_of",
    "machines",
    "measure",
    "measure_here",
    "measuring_steps",
    "own_profile",
    "place",
    "plan",
    "predict",
    "predict_table",
    "profile",
    "read_matrix",
    "read_question",
    "read_table",
    "refuse_probe",
    "replay",
    "shared_structure",
    "structure",
    "threads_of",
    "twins",
    "uncalibrated_devices",
]
