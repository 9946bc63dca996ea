"""The page of one matrix: where it is slow, the plan for it, and how reliable that is."""

from __future__ import annotations

import shlex
from typing import Any

from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.planning.plan import break_even
from sparsecast.records import Forecast, Record
from sparsecast.reports.charts import intervals, patterns, plans, rooflines
from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.pages.rendering import page
from sparsecast.results.columns import BUILT, within
from sparsecast.results.prediction import FORECAST, Prediction
from sparsecast.results.reports import MatrixReport
from sparsecast.results.structure import structure_table
from sparsecast.system import texts
from sparsecast.system.tabular import Column, Columns, Table

#: Row blocks of a plan that have a row in the table.
_BLOCKS_SHOWN = 40


def matrix_page(report: MatrixReport) -> str:
    """Return the page as HTML."""
    prediction, nnz, A = report.prediction, report.structure.nnz, report.problem.matrix
    shown = [
        patterns.pattern(patterns.pattern_of(A), report.plan.blocks if report.plan else ()),
        patterns.row_lengths(A),
        patterns.diagonals(A),
        _forecasts(report),
        plans.break_even(prediction),
    ]
    if nnz:  # else it has no operations
        points = rooflines.forecast_points(prediction, report.measured, nnz)
        caption = "Speed over FLOP per byte; dashed: reads in order, from arrays of several sizes."
        shown.append(rooflines.roofline(points, report.roofs, caption))
    fastest = prediction[0]
    span = texts.interval(fastest.low_s, fastest.high_s)
    answer = (
        f"Fastest: {fastest.candidate.format.upper()}, {texts.time(fastest.time_s)} a product "
        f"({span}) with {report.target.threads} thread{'s' * (report.target.threads != 1)}."
    )
    plan = report.plan
    return page(
        "matrix.html",
        shown,
        title=report.problem.name,
        subtitle=f"y = A x in {report.target.dtype} on {prediction.profile}, model {prediction.model}",
        answer=answer,
        notes=prediction.notes,
        features=structure_table("", report.structure).cells(),
        forecasts=_forecast_table(report),
        is_measured=bool(report.measured),
        refused=[(name.upper(), reason) for name, reason in prediction.refused.items()],
        products=f"{plan.products:,}" if plan else "",
        plan_sentences=plan.sentences(prediction.profile) if plan else [report.unplanned],
        next_steps=[step.sentence() for step in report.next_steps],
        blocks=plan.table() if plan else None,
        most_blocks=_BLOCKS_SHOWN,
        machine_rows=machine_rows(report),
        trust_rows=trust_rows(report),
        commands=_commands(report),
    )


def _forecasts(report: MatrixReport) -> Chart:
    caption = "Forecast time of one product in each format, fastest first; the bar holds 90 of 100."
    if report.measured:
        caption += " Diamonds: measured, with their noise."
    rows = intervals.forecast_rows(report.prediction, report.measured)
    return intervals.intervals("forecasts", caption, rows, "one product", "s")


def _forecast_table(report: MatrixReport) -> Table:
    """Return the forecasts and measurements, with the number of products from which each format pays."""
    rows = [
        {
            "forecast": forecast,
            "record": report.measured.get(forecast.candidate.format),
            "pays": _pays_from(forecast, report.prediction),
        }
        for forecast in report.prediction
    ]
    return Table("", _FORECAST, rows)


def _measured(record: Record | None) -> str:
    return texts.time(record.time_s) if record else "not measured"


def _error(row: dict[str, Any]) -> float | None:
    return row["forecast"].time_s / row["record"].time_s - 1 if row["record"] else None


_FORECAST: Columns = (
    *within("forecast", FORECAST),
    *within("forecast", BUILT),
    Column("", "measured", lambda row: _measured(row["record"])),
    Column("", "error", _error, texts.signed_percent),
    Column("", "pays from", "pays"),
)


def _pays_from(forecast: Forecast, prediction: Prediction) -> str:
    """Return the number of products from which a conversion takes less time than it saves against CSR."""
    csr = next((other for other in prediction if other.candidate.format == "csr"), None)
    if csr is None or forecast.convert_s is None or csr.convert_s is None:
        return "unknown"
    if forecast is csr:
        return "-"
    if forecast.time_s >= csr.time_s:
        return "never"
    products = break_even(forecast.convert_s - csr.convert_s, csr.time_s - forecast.time_s)
    return texts.counted(products or 1, "product")


def machine_rows(report: MatrixReport) -> list[tuple[str, str]]:
    """Return the description of the machine."""
    machine = report.profile.machine
    caches = ", ".join(f"L{cache.level} {texts.size(cache.bytes)}" for cache in machine.caches)
    rows = [
        ("name", report.prediction.profile),
        ("processor", machine.processor),
        ("cores and threads", f"{machine.cores} and {machine.threads}"),
        ("caches", caches or "unknown"),
        ("memory", texts.size(machine.memory_bytes)),
    ]
    if report.roofs:
        largest = report.roofs[-1]
        speed = f"{texts.size(largest.bandwidth_bytes_per_s)}/s"
        rows.append(("reads in order", f"{speed} from an array of {texts.size(largest.bytes)}"))
    return rows


def trust_rows(report: MatrixReport) -> list[tuple[str, str]]:
    """Return the basis of a report: the profile in four rows, then the measurements of the matrix."""
    trust = report.trust
    fastest = report.prediction[0]
    has_interval = fastest.low_s is not None and fastest.high_s is not None
    meant = f"meant to hold {100 * INTERVAL_SHARE:.0f} of 100 matrices that the model has not seen"
    # The measurements of the matrix, and the share of them in the intervals.
    pairs = [(forecast, report.measured.get(forecast.candidate.format)) for forecast in report.prediction]
    held = [
        forecast.low_s <= record.time_s <= forecast.high_s
        for forecast, record in pairs
        if record is not None and forecast.low_s is not None and forecast.high_s is not None
    ]
    measured = f"{sum(record is not None for _, record in pairs)} of {len(pairs)} formats"
    if held:
        measured += f"; {sum(held)} of {len(held)} within their intervals"
    return [
        ("learned from", f"{trust.records:,} measurements of {texts.counted(trust.matrices, 'matrix')}"),
        ("noise of these", "unknown" if trust.noise is None else f"{100 * trust.noise:.1f} % in the median"),
        ("newest", "unknown" if trust.age_days is None else f"{trust.age_days:.1f} days ago"),
        ("drift since then", trust.drift),
        ("intervals", meant if has_interval else "none: too few were held out"),
        ("measured here", measured),
        ("warnings", " ".join(report.prediction.notes) or "none"),
    ]


def _commands(report: MatrixReport) -> list[str]:
    """Return the commands that print the content of the page."""
    source = report.problem.specification
    if source.startswith("file:"):
        source = source.removeprefix("file:").rpartition("?")[0]
    setting = f"--threads {report.target.threads} --dtype {report.target.dtype}"
    matrix, profile = shlex.quote(source), f"--profile {shlex.quote(report.prediction.profile)}"
    products = f"--products {report.plan.products} " if report.plan else ""
    forecast = f"{profile} {setting} --model {report.prediction.model}"
    return [
        "sparsecast calibrate",
        f"sparsecast structure {matrix}",
        f"sparsecast predict {matrix} {forecast}",
        f"sparsecast plan {matrix} {products}{forecast}",
        f"sparsecast measure {matrix} {setting}",
        f"sparsecast evaluate --replay {profile} {setting}",
        f"sparsecast report {matrix} {products}{forecast}",
    ]
