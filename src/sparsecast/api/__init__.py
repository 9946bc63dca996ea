"""The functions of ``import sparsecast``, and those behind the command line."""

from __future__ import annotations

from sparsecast.api.applications import (
    application_cost,
    application_question,
    cg,
    pagerank,
    run_application,
)
from sparsecast.api.calibrating import (
    QUICK_BUDGET_S,
    calibrate,
    calibration,
    machines,
    machines_at_hand,
    own_profile,
    profile,
)
from sparsecast.api.cluster_evaluating import cluster_fits, replay_ranks
from sparsecast.api.clustering import cluster
from sparsecast.api.collecting import collection_report, first_readable, matrix_reports
from sparsecast.api.comparing import compare, profiles_to_compare
from sparsecast.api.doctor import checkup, next_steps
from sparsecast.api.evaluating import chosen_models, evaluate, fits_of, replay
from sparsecast.api.executing import (
    check,
    compile,
    held_frequency,
    measure,
    measure_here,
    measuring_steps,
    unmetered,
)
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
from sparsecast.api.matrices import (
    is_table,
    named_problems,
    read_matrix,
    read_question,
    read_table,
    shared_structure,
    structure,
)
from sparsecast.api.other_machines import import_machine, new_machine, told_figures
from sparsecast.api.partitioning import distribute, keep_partition, kept_partition, partition, partitions
from sparsecast.api.ranks import AskedProducts, measure_on_ranks, on_ranks, rank_calibration
from sparsecast.api.reporting import matrix_report
from sparsecast.api.targets import contents, disturbances, origin
from sparsecast.devices.naming import machine_of
from sparsecast.machines.profile import user_path
from sparsecast.matrices.gallery import gallery_matrices
from sparsecast.measuring.command_meter import CommandMeter
from sparsecast.planning.machine_comparison import prices_of

__all__ = [
    "PROBE_S",
    "QUICK_BUDGET_S",
    "AskedProducts",
    "CommandMeter",
    "application_cost",
    "application_question",
    "calibrate",
    "calibration",
    "cg",
    "check",
    "checkup",
    "choice",
    "chosen_models",
    "cluster",
    "cluster_fits",
    "collection_report",
    "compare",
    "compile",
    "contents",
    "distribute",
    "disturbances",
    "evaluate",
    "first_readable",
    "fits_of",
    "forecasts_at_hand",
    "gallery_matrices",
    "held_frequency",
    "import_machine",
    "is_table",
    "keep_partition",
    "kept_partition",
    "machine_of",
    "machines",
    "machines_at_hand",
    "matrix_report",
    "matrix_reports",
    "measure",
    "measure_here",
    "measure_on_ranks",
    "measuring_steps",
    "named_problems",
    "new_machine",
    "next_steps",
    "on_ranks",
    "origin",
    "own_profile",
    "pagerank",
    "partition",
    "partitions",
    "place",
    "plan",
    "predict",
    "predict_table",
    "prices_of",
    "profile",
    "profiles_to_compare",
    "rank_calibration",
    "read_matrix",
    "read_question",
    "read_table",
    "refuse_probe",
    "replay",
    "replay_ranks",
    "run_application",
    "shared_structure",
    "structure",
    "threads_of",
    "told_figures",
    "uncalibrated_devices",
    "unmetered",
    "user_path",
]
