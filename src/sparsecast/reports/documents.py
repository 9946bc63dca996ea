"""JSON documents: the keys that programs rely on (docs/design.md, section 4)."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow
from sparsecast.benchmark.gahvari.comparison import Comparison
from sparsecast.benchmark.gahvari.search_space import Point, size_class
from sparsecast.benchmark.gahvari.summary import FIGURES, BenchResult, Rating
from sparsecast.benchmark.plan_check import PlanCheck
from sparsecast.benchmark.twin_comparison import Twins
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.planning.placement import Placements
from sparsecast.planning.plan import Plan
from sparsecast.planning.prediction import Prediction
from sparsecast.records import Bandwidth, Candidate, Forecast, Record
from sparsecast.version import VERSION

Document = dict[str, Any]


def matrix(name: str, shape: tuple[int, int], nnz: int) -> Document:
    """Return what identifies a matrix."""
    return {"name": name, "rows": shape[0], "cols": shape[1], "nnz": nnz}


def structure(name: str, found: Structure, notes: Sequence[str]) -> Document:
    """Return every field of a Structure, and what the reader noticed."""
    return {
        "matrix": matrix(name, (found.rows, found.cols), found.nnz),
        "structure": found.to_dict(),
        "notes": list(notes),
    }


def forecast(item: Forecast) -> Document:
    """Return one forecast."""
    return {
        **_candidate(item.candidate),
        "time_s": item.time_s,
        "low_s": item.low_s,
        "high_s": item.high_s,
        "bytes": item.bytes,
        "gflops": item.gflops,
        "energy_j": item.energy_j,
        "energy_low_j": item.energy_low_j,
        "energy_high_j": item.energy_high_j,
        "convert_s": item.convert_s,
        "why": dict(item.why),
    }


def prediction(name: str, found: Prediction) -> Document:
    """Return the forecasts of a matrix, fastest first."""
    structure = found.structure
    return {
        "matrix": matrix(name, (structure.rows, structure.cols), structure.nnz),
        "profile": found.profile,
        "model": found.model,
        "predict_s": found.predict_s,
        "forecasts": [forecast(item) for item in found],
        "refused": found.refused,
        "notes": list(found.notes),
    }


def measurements(records: Iterable[Record], expected: Mapping[Candidate, Forecast]) -> list[Document]:
    """Return measurements in the order given."""
    return [measurement(record, expected.get(record.candidate)) for record in records]


def measurement(record: Record, expected: Forecast | None) -> Document:
    """Return one measurement, with the forecast of the same Candidate where there is one."""
    return {
        **_candidate(record.candidate),
        "time_s": record.time_s,
        "spread": record.spread,
        "noise": record.noise,
        "gflops": record.gflops,
        "convert_s": record.convert_s,
        "energy_j": record.energy_j,
        "energy_source": record.energy_source,
        "error": record.error,
        "bytes": record.traffic_bytes,
        "retaken": record.retaken,
        "samples_s": list(record.samples_s),
        "forecast_s": expected.time_s if expected else None,
        "forecast_low_s": expected.low_s if expected else None,
        "forecast_high_s": expected.high_s if expected else None,
    }


def plan(made: Plan, check: PlanCheck | None) -> Document:
    """Return a plan, and how it measured where it was checked."""
    document: Document = {
        "blocks": [
            {
                "first_row": block.first_row,
                "last_row": block.last_row,
                "format": block.candidate.format,
                "kernel": block.candidate.kernel,
                "time_s": block.time_s,
                "convert_s": block.convert_s,
            }
            for block in made.blocks
        ],
        "iterations": made.iterations,
        "time_s": made.time_s,
        "low_s": made.low_s,
        "high_s": made.high_s,
        "convert_s": made.convert_s,
        "baseline": {"format": made.baseline.candidate.format, "time_s": made.baseline.time_s},
        "break_even_iterations": made.break_even_iterations,
        "notes": list(made.notes),
    }
    if check is not None:
        document["check"] = {**dataclasses.asdict(check), "gain": check.gain}
    return document


def placements(found: Placements) -> Document:
    """Return the devices that were compared, the best first."""
    return {
        "devices": [
            {
                "device": placement.plan.device,
                "profile": placement.profile,
                "time_s": placement.plan.time_s,
                "convert_s": placement.plan.convert_s,
                "transfer_s": placement.transfer_s,
                "total_s": placement.total_s,
                "travelling_s": placement.travelling_s,
            }
            for placement in found.placements
        ],
        "break_even_iterations": found.break_even_iterations,
        "refused": found.refused,
    }


def evaluation_row(row: EvaluationRow) -> Document:
    """Return one forecast with its measurement."""
    return {
        "matrix": row.matrix,
        "format": row.estimate.candidate.format,
        "kernel": row.estimate.candidate.kernel,
        "model": row.model,
        **_compared(row),
        "error": row.error,
        "noise": row.record.noise,
    }


def _compared(row: EvaluationRow) -> Document:
    unit = {"time": "s", "energy": "j"}[row.quantity]
    return {f"predicted_{unit}": row.estimate.value, f"measured_{unit}": row.measured}


def evaluation(found: Evaluation) -> Document:
    """Return an evaluation."""
    return {
        "profile": found.profile,
        "rows": [evaluation_row(row) for row in found.rows],
        "models": {name: dataclasses.asdict(score) for name, score in found.models.items()},
        "refused": found.refused,
        "interrupted": found.interrupted,
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
        "budget_s": found.budget_s,
        "used_s": found.used_s,
        "noise": main.noise if main else None,
        "machine": machine(found.machine),
        "versions": versions(),
        "phases_s": found.phases,
        "notes": list(found.notes),
        "interrupted": found.interrupted,
        "settings": [_rating(rating) for rating in found.ratings],
    }


def _rating(rating: Rating) -> Document:
    return {
        "device": rating.device,
        "dtype": rating.dtype,
        "threads": rating.threads,
        "figures": dataclasses.asdict(rating.figures),
        "errors": rating.errors,
        "noise": rating.noise,
        "bandwidth_share": rating.bandwidth_share,
        "largest_dimension": rating.largest_dimension,
        "sizes": rating.sizes,
        "refilled": rating.refilled,
        "points": [_bench_point(record, rating) for record in rating.records],
    }


def _bench_point(record: Record, rating: Rating) -> Document:
    point = Point.named(record.matrix)
    value_bytes = np.dtype(rating.dtype).itemsize
    return {
        "matrix": record.matrix,
        "kind": point.series.name,
        "dimension": point.dimension,
        "nnz_per_row": point.nnz_per_row,
        "size": size_class(point.dimension, point.nnz_per_row, value_bytes, rating.cache_bytes),
        "format": record.candidate.format,
        "kernel": record.candidate.kernel,
        "nnz": record.nnz,
        "bytes": record.traffic_bytes,
        "mflops": 1e3 * record.gflops,
        "time_s": record.time_s,
        "noise": record.noise,
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
    return {
        "machines": list(found.machines),
        "settings": list(found.targets),
        "figures": {
            name: {
                "first": each.first,
                "second": each.second,
                "ratio": each.ratio,
                "error": each.error,
                "is_different": each.is_different,
            }
            for name, each in found.figures.items()
        },
        "points": found.points,
        "points_ratio": found.points_ratio,
    }


def twins(found: Twins) -> Document:
    """Return what real matrices and their twins took, as ratios, and the scores of each kind of twin."""
    return {
        "rows": [
            {
                "matrix": row.matrix,
                "nnz": row.nnz,
                **_candidate(row.candidate),
                "block": row.block,
                "time_s": row.time_s,
                "again": row.again,
                "bands": row.bands,
                "structure": row.structure,
            }
            for row in found.rows
        ],
        "scores": [
            {
                "format": score.format,
                "threads": score.threads,
                "matrices": score.matrices,
                **{
                    kind: {"median_error": errors[0], "p90_error": errors[1]}
                    for kind, errors in (
                        ("again", score.again),
                        ("bands", score.bands),
                        ("structure", score.structure),
                    )
                },
            }
            for score in found.scores
        ],
        "refused": found.refused,
        "interrupted": found.interrupted,
    }


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


def bandwidths(bandwidths: Iterable[Bandwidth]) -> list[Document]:
    """Return the bandwidths of a profile, in the order measured."""
    return [
        {**dataclasses.asdict(stream), "bandwidth_bytes_per_s": stream.bandwidth_bytes_per_s}
        for stream in bandwidths
    ]


def finite(value: Any) -> Any:
    """Return `value` with every number that JSON cannot say (NaN, infinity) as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _candidate(candidate: Candidate) -> Document:
    return {
        "format": candidate.format,
        "kernel": candidate.kernel,
        "device": candidate.device,
        "dtype": candidate.dtype,
        "threads": candidate.threads,
        "parameters": dict(candidate.parameters),
    }
