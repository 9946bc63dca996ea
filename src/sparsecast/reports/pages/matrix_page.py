"""The page of one matrix: where it is slow, the plan for it, and how reliable that is."""

from __future__ import annotations

import shlex

from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.planning.plan import break_even
from sparsecast.reports.charts import intervals, patterns, plans, rooflines
from sparsecast.reports.pages.rendering import page
from sparsecast.results.columns import BUILT, within
from sparsecast.results.prediction import FORECAST
from sparsecast.results.reports import MatrixReport
from sparsecast.results.structure import structure_table
from sparsecast.system import texts
from sparsecast.system.tabular import Column, Table

#: Row blocks of a plan that have a row in the table.
_BLOCKS_SHOWN = 40


def matrix_page(report: MatrixReport) -> str:
    """Return the page as HTML."""
    prediction, nnz, A = report.prediction, report.structure.nnz, report.problem.matrix
    shown = [
        patterns.pattern(A, report.plan.blocks if report.plan else ()),
        patterns.row_lengths(A),
        patterns.diagonals(A),
        intervals.intervals(
            "forecasts",
            "Forecast time of one product in each format, fastest first; the bar holds 90 of 100."
            + (" Diamonds: measured, with their noise." if report.measured else ""),
            intervals.forecast_rows(prediction, report.measured),
            "one product",
            "s",
        ),
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


def _forecast_table(report: MatrixReport) -> Table:
    """Return the forecasts and measurements, with the number of products from which each format pays."""
    csr = next((other for other in report.prediction if other.candidate.format == "csr"), None)
    rows = []
    for forecast in report.prediction:
        if csr is None or forecast.convert_s is None or csr.convert_s is None:
            pays = "unknown"
        elif forecast is csr:
            pays = "-"
        elif forecast.time_s >= csr.time_s:
            pays = "never"
        else:
            products = break_even(forecast.convert_s - csr.convert_s, csr.time_s - forecast.time_s)
            pays = texts.counted(products or 1, "product")
        record = report.measured.get(forecast.candidate.format)
        measured = texts.time(record.time_s) if record else "not measured"
        error = forecast.time_s / record.time_s - 1 if record else None
        rows.append({"forecast": forecast, "measured": measured, "error": error, "pays": pays})
    columns = (
        *within("forecast", (*FORECAST, *BUILT)),
        Column("", "measured", "measured"),
        Column("", "error", "error", texts.signed_percent),
        Column("", "pays from", "pays"),
    )
    return Table("", columns, rows)


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
