"""JSON documents: the keys that programs rely on (docs/design.md, section 4)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow
from sparsecast.benchmark.plan_check import PlanCheck
from sparsecast.benchmark.twins import Twins
from sparsecast.machines.machine import Machine
from sparsecast.planning.plan import Plan
from sparsecast.planning.prediction import Prediction
from sparsecast.records import Candidate, Forecast, Record, Structure

Document = dict[str, Any]


def matrix(name: str, shape: tuple[int, int], nnz: int) -> Document:
    """Return what identifies a matrix."""
    return {"name": name, "rows": shape[0], "cols": shape[1], "nnz": nnz}


def structure(name: str, found: Structure, notes: Sequence[str]) -> Document:
    """Return every field of a Structure, and what was noticed on reading the matrix."""
    return {
        "matrix": matrix(name, (found.rows, found.cols), found.nnz),
        "structure": dataclasses.asdict(found),
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
    }
    if check is not None:
        document["check"] = {**dataclasses.asdict(check), "gain": check.gain}
    return document


def evaluation_row(row: EvaluationRow) -> Document:
    """Return one forecast beside its measurement."""
    return {
        "matrix": row.matrix,
        "format": row.forecast.candidate.format,
        "kernel": row.forecast.candidate.kernel,
        "model": row.model,
        "predicted_s": row.forecast.time_s,
        "measured_s": row.record.time_s,
        "error": row.error,
        "noise": row.record.noise,
    }


def evaluation(found: Evaluation) -> Document:
    """Return an evaluation."""
    return {
        "profile": found.profile,
        "rows": [evaluation_row(row) for row in found.rows],
        "models": {name: dataclasses.asdict(score) for name, score in found.models.items()},
        "refused": found.refused,
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
    }


def machine(described: Machine) -> Document:
    """Return a machine with its name."""
    return {"name": described.name, **described.to_dict()}


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
    }
