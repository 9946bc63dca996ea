"""JSON documents: the keys that programs rely on (docs/design.md, section 4)."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow, ModelScore
from sparsecast.benchmark.gahvari.comparison import Comparison
from sparsecast.benchmark.gahvari.search_space import Point, size_class
from sparsecast.benchmark.gahvari.summary import FIGURES, BenchResult, Rating
from sparsecast.benchmark.plan_check import PlanCheck
from sparsecast.benchmark.published import Imported
from sparsecast.benchmark.twin_comparison import Twins
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.models.transfer import Setting
from sparsecast.partitioning.comparison import Partitioned, Partitions
from sparsecast.planning.placement import Placements
from sparsecast.planning.plan import Plan
from sparsecast.planning.prediction import Prediction, Probe
from sparsecast.records import VALUE_BYTES, Bandwidth, Candidate, Conditions, Forecast, Record
from sparsecast.system.version import VERSION

Document = dict[str, Any]


def _fields(item: object, *names: str) -> Document:
    """Return attributes whose names are their JSON keys."""
    return {name: getattr(item, name) for name in names}


def _candidate(candidate: Candidate) -> Document:
    fields = _fields(candidate, "format", "kernel", "device", "dtype", "threads")
    return {**fields, "parameters": dict(candidate.parameters)}


def matrix(about: Structure, name: str) -> Document:
    """Return what identifies a matrix."""
    return {"name": name, **_fields(about, "rows", "cols", "nnz")}


def structure(name: str, found: Structure, notes: Sequence[str]) -> Document:
    """Return every field of a Structure, and what the reader noticed."""
    return {"matrix": matrix(found, name), "structure": found.to_dict(), "notes": list(notes)}


def forecast(item: Forecast) -> Document:
    """Return one forecast."""
    times = _fields(item, "time_s", "low_s", "high_s", "bytes", "gflops")
    others = _fields(item, "energy_j", "energy_low_j", "energy_high_j", "convert_s")
    return {**_candidate(item.candidate), **times, **others, "why": dict(item.why), "basis": item.basis}


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
        **_fields(found, "method", "imbalance", "edge_cut", "volume_words"),
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
        **_fields(found, "profile", "model", "predict_s"),
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
            **_fields(item.candidate, "format", "kernel"),
            **_fields(item, "time_s", "low_s", "high_s"),
        }
        for name, prediction in found.items()
        for item in prediction
    ]
    return {
        **_fields(first, "profile", "model"),
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
        **_candidate(record.candidate),
        **_fields(record, "time_s", "spread", "noise", "gflops", "convert_s"),
        **_fields(record, "energy_j", "energy_source", "error"),
        **_fields(record.conditions or Conditions(), "idle_w", "frequency_hz"),
        "bytes": record.traffic_bytes,
        "retaken": record.retaken,
        "samples_s": list(record.samples_s),
        "forecast_s": expected.time_s if expected else None,
        "forecast_low_s": expected.low_s if expected else None,
        "forecast_high_s": expected.high_s if expected else None,
    }


def plan(made: Plan, check: PlanCheck | None) -> Document:
    """Return a plan, and how it measured where it was checked."""
    blocks = [
        {
            **_fields(block, "first_row", "last_row"),
            **_fields(block.candidate, "format", "kernel"),
            **_fields(block, "time_s", "convert_s"),
        }
        for block in made.blocks
    ]
    checked = {} if check is None else {"check": {**dataclasses.asdict(check), "gain": check.gain}}
    return {
        "blocks": blocks,
        **_fields(made, "iterations", "time_s", "low_s", "high_s", "convert_s", "objective"),
        **_fields(made, "energy_j", "energy_low_j", "energy_high_j"),
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
            **_fields(each.plan, "time_s", "convert_s"),
            **_fields(each, "transfer_s", "total_s", "travelling_s"),
            "transferred_from": transferred_from(each.plan.transferred_from),
        }
        for each in found.placements
    ]
    return {"devices": devices, **_fields(found, "break_even_iterations", "refused")}


def evaluation_row(row: EvaluationRow) -> Document:
    """Return one forecast with its measurement."""
    unit = {"time": "s", "energy": "j"}[row.quantity]
    return {
        **_fields(row, "matrix", "group"),
        "nnz": row.record.nnz,
        **_candidate(row.estimate.candidate),
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
        **_fields(found, "refused", "interrupted", "taken_over"),
    }


def bench_figures(found: BenchResult) -> Document:
    """Return the figures of a result: those of its first target, None where nothing was measured."""
    return dataclasses.asdict(found.ratings[0].figures) if found.ratings else dict.fromkeys(FIGURES)


def bench(found: BenchResult) -> Document:
    """Return a result of the five-minute benchmark: its first target's figures, then every target."""
    main = found.ratings[0] if found.ratings else None
    return {
        "figures": bench_figures(found),
        "errors": main.errors if main else dict.fromkeys(FIGURES),
        **_fields(found, "budget_s", "used_s"),
        "noise": main.noise if main else None,
        "machine": machine(found.machine),
        "versions": versions(),
        "phases_s": found.phases,
        "notes": list(found.notes),
        "interrupted": found.interrupted,
        "settings": [_rating(rating) for rating in found.ratings],
    }


def _rating(rating: Rating) -> Document:
    measured = ("errors", "noise", "bandwidth_share", "largest_dimension", "sizes", "refilled")
    return {
        **_fields(rating, "device", "dtype", "threads"),
        "figures": dataclasses.asdict(rating.figures),
        **_fields(rating, *measured),
        "points": [_bench_point(record, rating) for record in rating.records],
    }


def _bench_point(record: Record, rating: Rating) -> Document:
    point = Point.named(record.matrix)
    value_bytes = VALUE_BYTES[rating.dtype]
    return {
        "matrix": record.matrix,
        "kind": point.series.name,
        **_fields(point, "dimension", "nnz_per_row"),
        "size": size_class(point.dimension, point.nnz_per_row, value_bytes, rating.cache_bytes),
        **_fields(record.candidate, "format", "kernel"),
        "nnz": record.nnz,
        "bytes": record.traffic_bytes,
        "mflops": 1e3 * record.gflops,
        **_fields(record, "time_s", "noise"),
        "samples_s": list(record.samples_s),
    }


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def comparison(found: Comparison) -> Document:
    """Return a comparison of two results of the five-minute benchmark."""
    keys = ("first", "second", "ratio", "error", "is_different")
    return {
        "machines": list(found.machines),
        "settings": list(found.targets),
        "figures": {name: _fields(each, *keys) for name, each in found.figures.items()},
        **_fields(found, "points", "points_ratio"),
    }


def twins(found: Twins) -> Document:
    """Return what real matrices and their twins took, as ratios, and the scores of each kind of twin."""
    kinds = ("again", "bands", "structure")
    rows = [
        {
            **_fields(row, "matrix", "nnz"),
            **_candidate(row.candidate),
            **_fields(row, "block", "time_s", *kinds),
        }
        for row in found.rows
    ]
    scores = [
        {
            **_fields(score, "format", "threads", "matrices"),
            **{
                kind: dict(zip(("median_error", "p90_error"), getattr(score, kind), strict=True))
                for kind in kinds
            },
        }
        for score in found.scores
    ]
    return {"rows": rows, "scores": scores, **_fields(found, "refused", "interrupted")}


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


def bandwidths(measured: Iterable[Bandwidth]) -> list[Document]:
    """Return the bandwidths of a profile, in the order measured."""
    return [{**dataclasses.asdict(each), **_fields(each, "bandwidth_bytes_per_s")} for each in measured]


def finite(value: Any) -> Any:
    """Return `value` with every number that JSON cannot say (NaN, infinity) as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
