"""JSON documents: the keys that programs rely on (docs/reference/documents.md)."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.models.transfer import Setting
from sparsecast.records import Bandwidth, Candidate, Conditions, Forecast, Record
from sparsecast.results.evaluation import Evaluation, EvaluationRow, ModelScore
from sparsecast.results.machines import Imported
from sparsecast.results.partitions import Partitioned, Partitions
from sparsecast.results.plan import Placements, Plan, PlanCheck
from sparsecast.results.prediction import Prediction, Probe
from sparsecast.system.version import VERSION

Document = dict[str, Any]


def fields(item: object, *names: str) -> Document:
    """Return attributes whose names are their JSON keys."""
    return {name: getattr(item, name) for name in names}


def candidate(about: Candidate) -> Document:
    """Return the way of doing a product."""
    named = fields(about, "format", "kernel", "device", "dtype", "threads")
    return {**named, "parameters": dict(about.parameters)}


def matrix(about: Structure, name: str) -> Document:
    """Return what identifies a matrix."""
    return {"name": name, **fields(about, "rows", "cols", "nnz")}


def structure(name: str, found: Structure, notes: Sequence[str]) -> Document:
    """Return every field of a Structure, and what the reader noticed."""
    return {"matrix": matrix(found, name), "structure": found.to_dict(), "notes": list(notes)}


def forecast(item: Forecast) -> Document:
    """Return one forecast."""
    times = fields(item, "time_s", "low_s", "high_s", "bytes", "gflops")
    others = fields(item, "energy_j", "energy_low_j", "energy_high_j", "convert_s")
    return {**candidate(item.candidate), **times, **others, "why": dict(item.why), "basis": item.basis}


def _probe(found: Probe | None) -> Document | None:
    return None if found is None else {**dataclasses.asdict(found), "measured": list(found.measured)}


def transferred_from(found: Setting | None) -> Document | None:
    """Return the setting of the Records that were forecast from; None where it is the one asked about."""
    return None if found is None else dataclasses.asdict(found)


def partitions(name: str, found: Partitions, value_bytes: int) -> Document:
    """Return what partitions make of a matrix, least communication first."""
    about = found.distribution
    return {
        "matrix": {"name": name, "rows": about.shape[0], "cols": about.shape[1], "nnz": int(about.nnz.sum())},
        "ranks": about.ranks,
        "partitions": [_partition(each, value_bytes) for each in found.partitions],
        "refused": dict(found.refused),
    }


def _partition(made: Partitioned, value_bytes: int) -> Document:
    found = made.distribution
    counts = {
        **fields(found, "method", "imbalance", "edge_cut", "volume_words"),
        "volume_bytes": value_bytes * found.volume_words,
        "halo_share": found.halo_share,
        "empty_ranks": int((found.rows == 0).sum()),
        "rows_most": int(found.rows.max()),
        "nnz_most": int(found.nnz.max()),
        "partition_s": made.partition_s,
    }
    exchanged = {
        "received_words": found.received_words,
        "messages": found.sent_messages + found.received_messages,
        "neighbours": found.received_messages,
    }
    for key, each in exchanged.items():
        counts[f"{key}_mean"] = None if found.is_2d else float(each.mean())
        counts[f"{key}_most"] = None if found.is_2d else int(each.max())
    return counts


def prediction(name: str, found: Prediction) -> Document:
    """Return the forecasts of a matrix, fastest first."""
    return {
        "matrix": matrix(found.structure, name),
        **fields(found, "profile", "model", "predict_s"),
        "forecasts": [forecast(item) for item in found],
        "refused": found.refused,
        "notes": list(found.notes),
        "probe": _probe(found.probe),
        "transferred_from": transferred_from(found.transferred_from),
    }


def table_of_forecasts(found: Mapping[str, Prediction], refused: Mapping[str, str]) -> Document:
    """Return the forecasts of a table of matrices, in its order, and why some matrices have none."""
    first = next(iter(found.values()))
    rows = [
        {
            "matrix": name,
            **fields(item.candidate, "format", "kernel"),
            **fields(item, "time_s", "low_s", "high_s"),
        }
        for name, prediction in found.items()
        for item in prediction
    ]
    return {
        **fields(first, "profile", "model"),
        "rows": rows,
        "refused": dict(refused),
        "notes": list(dict.fromkeys(note for each in found.values() for note in each.notes)),
        "transferred_from": transferred_from(first.transferred_from),
    }


def imported(found: Imported, path: Path) -> Document:
    """Return what became of published results."""
    profile = found.profile
    return {
        "profile": profile.name,
        "path": str(path),
        "records": len(profile.records),
        "matrices": len(profile.matrices),
        "left_out": dict(found.left_out),
        "machine": machine(profile.machine),
    }


def made(profile: Profile, path: Path) -> Document:
    """Return a machine that was made from a data sheet."""
    return {
        "profile": profile.name,
        "path": str(path),
        "records": len(profile.records),
        "machine": machine(profile.machine),
    }


def measurement(record: Record, expected: Forecast | None) -> Document:
    """Return one measurement, with the forecast of the same Candidate where there is one."""
    return {
        **candidate(record.candidate),
        **fields(record, "time_s", "spread", "noise", "gflops", "convert_s"),
        **fields(record, "energy_j", "energy_source", "error"),
        **fields(record.conditions or Conditions(), "idle_w", "frequency_hz"),
        "bytes": record.traffic_bytes,
        "samples_s": list(record.samples_s),
        "forecast_s": expected.time_s if expected else None,
        "forecast_low_s": expected.low_s if expected else None,
        "forecast_high_s": expected.high_s if expected else None,
    }


def plan(made: Plan, check: PlanCheck | None) -> Document:
    """Return a plan, and how it measured where it was checked."""
    blocks = [
        {
            **fields(block, "first_row", "last_row"),
            **fields(block.candidate, "format", "kernel"),
            **fields(block, "time_s", "convert_s"),
        }
        for block in made.blocks
    ]
    checked = {} if check is None else {"check": {**dataclasses.asdict(check), "gain": check.gain}}
    return {
        "blocks": blocks,
        **fields(made, "iterations", "time_s", "low_s", "high_s", "convert_s", "objective"),
        **fields(made, "energy_j", "energy_low_j", "energy_high_j"),
        "baseline": {"format": made.baseline.candidate.format, "time_s": made.baseline.time_s},
        "break_even_iterations": made.break_even_iterations,
        "notes": list(made.notes),
        "probe": _probe(made.probe),
        "as_printed": made.as_printed,
        **checked,
    }


def placements(found: Placements) -> Document:
    """Return the devices that were compared, the best first."""
    devices = [
        {
            "device": each.plan.device,
            "profile": each.profile,
            **fields(each.plan, "time_s", "convert_s"),
            **fields(each, "transfer_s", "total_s", "travelling_s"),
            "transferred_from": transferred_from(each.plan.transferred_from),
        }
        for each in found.placements
    ]
    return {"devices": devices, **fields(found, "break_even_iterations", "refused")}


def evaluation_row(row: EvaluationRow) -> Document:
    """Return one forecast with its measurement."""
    unit = {"time": "s", "energy": "j"}[row.quantity]
    return {
        **fields(row, "matrix", "group"),
        "nnz": row.record.nnz,
        **candidate(row.estimate.candidate),
        "model": row.model,
        f"predicted_{unit}": row.estimate.value,
        f"low_{unit}": row.estimate.low,
        f"high_{unit}": row.estimate.high,
        f"measured_{unit}": row.measured,
        f"again_{unit}": row.measured_again,
        "error": row.error,
        "noise": row.record.noise,
        "measured_at": row.record.measured_at,
    }


def _score(score: ModelScore) -> Document:
    worst = [{"matrix": matrix, "error": error} for matrix, error in score.worst]
    return {**dataclasses.asdict(score), "worst": worst}


def evaluation(found: Evaluation) -> Document:
    """Return an evaluation."""
    return {
        "profile": found.profile,
        "rows": [evaluation_row(row) for row in found.rows],
        "models": {name: _score(score) for name, score in found.models.items()},
        "repeats": None if found.repeats is None else dataclasses.asdict(found.repeats),
        **fields(found, "refused", "interrupted", "taken_over"),
    }


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


def bandwidths(measured: Iterable[Bandwidth]) -> list[Document]:
    """Return the bandwidths of a profile, in the order measured."""
    return [{**dataclasses.asdict(each), **fields(each, "bandwidth_bytes_per_s")} for each in measured]


def finite(value: Any) -> Any:
    """Return `value` with every number that JSON cannot say (NaN, infinity) as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
