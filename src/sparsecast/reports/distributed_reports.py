"""Table and JSON document of measured products on many ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rich.table import Table

from sparsecast.benchmark.cluster_replay import GOOD
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import group_of
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Configuration, product_flops
from sparsecast.reports.documents import Document, matrix
from sparsecast.reports.tables import time
from sparsecast.results.cluster import ClusterEvaluation, ClusterRow, ClusterScore, MeasuredProduct


def document(
    about: Structure,
    name: str,
    measured: Sequence[MeasuredProduct],
    forecasts: Mapping[Configuration, ClusterForecast],
    refused: Mapping[str, str],
) -> Document:
    """Return the measurements, fastest first, with the keys of one process and those of ranks."""
    return {
        "matrix": matrix(about, name),
        "measurements": [_measurement(each, forecasts.get(each.record.configuration)) for each in measured],
        "refused": dict(refused),
    }


def _measurement(found: MeasuredProduct, expected: ClusterForecast | None) -> Document:
    record, way = found.record, found.record.configuration
    return {
        "algorithm": way.algorithm,
        "format": way.format,
        "remote_format": way.remote_format,
        "partition": way.partition,
        "ranks": way.ranks,
        "nodes": way.nodes,
        "oversubscribed": record.is_oversubscribed,
        "kernel": None,
        "device": PROCESSOR,
        "dtype": way.dtype,
        "threads": 1,
        "parameters": {},
        "time_s": record.time_s,
        "spread": record.spread,
        "noise": record.noise,
        "gflops": product_flops(record.nnz, way.dtype) / record.time_s / 1e9,
        "convert_s": found.convert_s,
        "energy_j": None,
        "energy_source": None,
        "error": record.error,
        "parts_s": dict(record.parts_s),
        "samples_s": list(record.samples_s),
        "forecast_s": expected.time_s if expected else None,
        "forecast_low_s": expected.low_s if expected else None,
        "forecast_high_s": expected.high_s if expected else None,
    }


def table(
    title: str,
    measured: Sequence[MeasuredProduct],
    forecasts: Mapping[Configuration, ClusterForecast],
    refused: Mapping[str, str],
) -> Table:
    """Return the measurements, fastest first, where their time goes, and what was refused."""
    shown = Table(title=title, title_justify="left", caption_justify="left")
    for heading in ("algorithm", "format", "partition"):
        shown.add_column(heading)
    for heading in ("time", "noise", "forecast", "GFlop/s", "local", "commun.", "remote", "error"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for each in measured:
        record, way = each.record, each.record.configuration
        names = dict.fromkeys((way.format, way.remote_format))
        expected = forecasts.get(way)
        shown.add_row(
            way.algorithm,
            " + ".join(name.upper() for name in names),
            way.partition,
            time(record.time_s),
            "-" if record.noise is None else f"{100 * record.noise:.1f} %",
            time(expected.time_s if expected else None),
            f"{product_flops(record.nnz, way.dtype) / record.time_s / 1e9:.2f}",
            *(_most(record.parts_s.get(name)) for name in ("local", "communication", "remote")),
            "-" if record.error is None else f"{record.error:.1e}",
        )
    lines = ["local, commun., remote: of the rank that takes longest in each; waiting is communication"]
    shown.caption = "\n".join([*lines, *(f"{what}: {why}" for what, why in refused.items())])
    shown.min_width = max(len(line) for line in (title, *lines))
    return shown


def _most(seconds: Sequence[float] | None) -> str:
    return time(max(seconds)) if seconds else "-"


def evaluation(found: ClusterEvaluation) -> Document:
    """Return the scores of models of many ranks, the best first, and every forecast that they rest on."""
    return {
        "profile": found.profile,
        "rows": [_row(each) for each in found.rows],
        "models": {name: dataclasses.asdict(score) for name, score in found.models.items()},
        "refused": dict(found.refused),
        "oversubscribed": found.oversubscribed,
    }


def _row(found: ClusterRow) -> Document:
    record, way = found.record, found.record.configuration
    return {
        "matrix": record.matrix,
        "nnz": record.nnz,
        "group": group_of(record.matrix),
        "algorithm": way.algorithm,
        "format": way.format,
        "remote_format": way.remote_format,
        "partition": way.partition,
        "ranks": way.ranks,
        "nodes": way.nodes,
        "dtype": way.dtype,
        "model": found.model,
        "predicted_s": found.forecast.time_s,
        "measured_s": record.time_s,
        "error": found.error,
        "low_s": found.forecast.low_s,
        "high_s": found.forecast.high_s,
        "noise": record.noise,
        "measured_at": record.measured_at,
    }


def scores(found: ClusterEvaluation) -> Table:
    """Return a line for each model, the best first."""
    title = f"Models of products on many ranks, on kept products of {found.profile}"
    shown = Table(title=title, title_justify="left", caption_justify="left")
    shown.add_column("model")
    headings = ("median", "mean", "90 %", "covered", "forecasts", "none", "found", "good", "regret", "noise")
    for heading in headings:
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, score in found.models.items():
        shown.add_row(name, *_score_cells(score))
    lines = [
        "Each model forecasts matrices of groups that it has not seen. none: measured without a forecast",
        f"found: the choice was the fastest way; good: or takes at most {100 * GOOD:.0f} % longer",
    ]
    if found.oversubscribed:
        lines.append(f"{found.oversubscribed} products on more ranks than cores are not scored")
    shown.caption = "\n".join(lines)
    shown.min_width = max(map(len, (title, *lines)))
    return shown


def _score_cells(score: ClusterScore) -> tuple[str, ...]:
    return (
        *(_percent(each) for each in (score.median_error, score.mean_error, score.p90_error, score.coverage)),
        *(str(each) for each in (score.forecasts, score.unforecast)),
        *(_percent(each) for each in (score.found, score.good, score.regret, score.median_noise)),
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
