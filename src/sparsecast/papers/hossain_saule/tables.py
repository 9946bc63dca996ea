"""The tables of the paper with our columns, and its times over ranks as a chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from sparsecast.papers.hossain_saule.clusters.hossain_linear import SUITE
from sparsecast.papers.hossain_saule.comparison import ComparedTime, summaries
from sparsecast.papers.hossain_saule.published_times import published_times
from sparsecast.papers.hossain_saule.table_one import ALGORITHMS_OF_THE_PAPER
from sparsecast.reports.charts.chart import Chart, axis, counts_axis, format_look, panels
from sparsecast.results.cluster import ClusterEvaluation
from sparsecast.system.tabular import Column, Columns, Table, lines_of
from sparsecast.system.texts import percent

#: The paper's model of each table.
PAPER_MODELS = dict.fromkeys(("II", "III", "IV", "V", "VI", "VII"), "micro-benchmarks") | {
    "VIII": "lines",
    "IX": "lines",
    "X": "regression",
    "XI": "regression",
}

#: Which of them our names are.
MODEL_KINDS = {
    "hossain-micro": "micro-benchmarks",
    "hossain-linear": "lines",
    "hossain-svr": "regression",
}

SUMMARY: Columns = (
    Column("table", "table"),
    Column("algorithm", "algorithm"),
    Column("format", "format", text=str.upper),
    Column("paper_model", "paper's model", lambda row: PAPER_MODELS[row["table"]]),
    Column("paper_error", "paper", text=percent),
    Column("micro_error", "hossain-micro", text=percent),
    Column("micro_distance", "from the paper's forecasts", text=percent),
    Column("fitted", "an input fitted to it"),
    Column("ours_error", "sparsecast, other matrices known", text=percent),
    Column("plain_error", "sparsecast, nothing known", text=percent),
)

TIMES: Columns = (
    Column("matrix", "matrix", "published.matrix"),
    Column("algorithm", "algorithm", "published.configuration.algorithm"),
    Column("format", "format", "published.configuration.format", str.upper),
    Column("ranks", "ranks", "published.configuration.ranks"),
    Column("actual_s", "measured"),
    Column("paper_s", "paper", "published.predicted_s"),
    Column("micro_s", "hossain-micro"),
    Column("ours_s", "sparsecast"),
    Column("paper_error", "paper, error", text=percent),
    Column("micro_error", "hossain-micro, error", lambda row: row.error(row.micro_s), percent),
    Column("ours_error", "sparsecast, error", lambda row: row.error(row.ours_s), percent),
)

RANKS: Columns = (
    Column("algorithm", "algorithm"),
    Column("format", "format", text=str.upper),
    Column("ranks", "ranks"),
    Column("model", "model"),
    Column("products", "products"),
    Column("error", "mean error", text=percent),
    Column("paper", "the paper's, on its cluster", text=percent),
)

#: What a chart shows of each format: line, dashed line and points.
_SHOWN = ("sparsecast", "the paper's", "measured")


def tables(rows: Sequence[ComparedTime]) -> tuple[Table, ...]:
    """Return the mean errors of all tables, then each table row by row."""
    by_table: dict[str, list[ComparedTime]] = defaultdict(list)
    for row in rows:
        by_table[row.published.table].append(row)
    shown = [Table("Tables II to XI: mean errors", SUMMARY, summaries(rows))]
    for name, own in by_table.items():
        shown.append(Table(f"Table {name}: {PAPER_MODELS[name]}", TIMES, own))
    return tuple(shown)


def ranks_table(scores: ClusterEvaluation) -> Table:
    """Return the mean errors on products of matrices that no line is learned from, next to the paper's."""
    groups, printed = defaultdict(list), defaultdict(list)
    for row in scores.rows:
        way = row.record.configuration
        if row.record.suite != SUITE and way.algorithm in ALGORITHMS_OF_THE_PAPER:
            groups[way.algorithm, way.format, way.ranks, row.model].append(row.error)
    for time in published_times():
        if time.error is not None:  # table XI prints none
            way = time.configuration
            printed[PAPER_MODELS[time.table], way.algorithm, way.format].append(time.error)
    rows = []
    for (algorithm, name, ranks, model), errors in sorted(groups.items()):
        paper = printed.get((MODEL_KINDS.get(model.removesuffix(" (as printed)"), ""), algorithm, name))
        rows.append(
            {
                **{"algorithm": algorithm, "format": name, "ranks": ranks, "model": model},
                **{"products": len(errors), "error": fmean(errors), "paper": fmean(paper) if paper else None},
            }
        )
    refused = {what: why for what, why in scores.refused.items() if "local-1d-overlap" not in what}
    title = f"Products on ranks of {scores.profile}: mean errors"
    return Table(title, RANKS, rows, tuple(lines_of(refused)))


def chart(rows: Sequence[ComparedTime]) -> Chart:
    """Return times over ranks, a panel for each algorithm and graph."""
    cases: dict[tuple[str, str], list[ComparedTime]] = defaultdict(list)
    for row in rows:
        if PAPER_MODELS[row.published.table] == "micro-benchmarks":
            cases[row.published.configuration.algorithm, row.published.matrix].append(row)
    drawn = [_case(f"{algorithm}, {matrix}", own) for (algorithm, matrix), own in sorted(cases.items())]
    return panels("hossain-saule", "", drawn, len({matrix for _, matrix in cases}))


def _case(caption: str, rows: Sequence[ComparedTime]) -> Chart:
    formats = sorted({row.published.configuration.format.upper() for row in rows})
    points: list[dict[str, Any]] = [
        {
            "ranks": row.published.configuration.ranks,
            "time_s": seconds,
            "what": f"{row.published.configuration.format.upper()}: {what}",
        }
        for row in rows
        for what, seconds in zip(_SHOWN, (row.ours_s, row.published.predicted_s, row.actual_s), strict=True)
    ]
    names = [f"{name}: {what}" for name in formats for what in _SHOWN]
    colours = [colour for colour in format_look(formats)["color"]["scale"]["range"] for _ in _SHOWN]
    dashes = [dash for _ in formats for dash in ([1, 0], [2, 3], [1, 0])]
    what = {"field": "what", "type": "nominal", "title": None}
    encoding = {
        "x": counts_axis("ranks", "ranks", [row.published.configuration.ranks for row in rows]),
        "y": axis("time_s", "one product", [point["time_s"] for point in points], "s"),
        "color": {**what, "scale": {"domain": names, "range": colours}},
    }
    is_measured = f"indexof(datum.what, ': {_SHOWN[-1]}') > 0"
    lines = {
        "transform": [{"filter": f"!({is_measured})"}],
        "mark": "line",
        "encoding": {**encoding, "strokeDash": {**what, "scale": {"domain": names, "range": dashes}}},
    }
    measured = {"transform": [{"filter": is_measured}], "mark": "point", "encoding": encoding}
    spec = {"data": {"values": points}, "layer": [lines, measured], "width": 200, "height": 180}
    return Chart("times", caption, spec)
