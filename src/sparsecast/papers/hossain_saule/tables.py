"""The tables of the paper with our columns, and its times over ranks as a chart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from sparsecast.papers.hossain_saule.clusters.hossain_linear import SUITE
from sparsecast.papers.hossain_saule.comparison import MEASURED, ComparedTime, summaries
from sparsecast.papers.hossain_saule.published_times import published_times
from sparsecast.papers.hossain_saule.table_one import ALGORITHMS_OF_THE_PAPER
from sparsecast.reports.charts.chart import Chart, axis, counts_axis, format_look, panels
from sparsecast.results.cluster import ClusterEvaluation
from sparsecast.results.columns import within
from sparsecast.results.paper import known_mean
from sparsecast.system.grouping import grouped
from sparsecast.system.tabular import Column, Columns, Table, lines_of
from sparsecast.system.texts import percent

#: The paper's model of each table, and which of them our names are.
PAPER_MODELS = {
    **dict.fromkeys(MEASURED, "micro-benchmarks"),
    **dict.fromkeys(("VIII", "IX"), "lines"),
    **dict.fromkeys(("X", "XI"), "regression"),
}
MODEL_KINDS = {"hossain-micro": "micro-benchmarks", "hossain-linear": "lines", "hossain-svr": "regression"}

WAY: Columns = (Column("algorithm", "algorithm"), Column("format", "format", text=str.upper))
RANKS = Column("ranks", "ranks")

SUMMARY: Columns = (
    Column("table", "table"),
    *WAY,
    Column("paper_model", "paper's model", lambda row: PAPER_MODELS[row["table"]]),
    Column("paper_error", "paper", text=percent),
    Column("micro_error", "hossain-micro", text=percent),
    Column("micro_distance", "from the paper's forecasts", text=percent),
    Column("fitted", "an input fitted to it"),
    Column("ours_error", "sparsecast, other matrices known", text=percent),
    Column("plain_error", "sparsecast, nothing known", text=percent),
)

MATRIX, OURS = Column("matrix", "matrix"), Column("ours_error", "sparsecast", text=percent)

#: Of a graph in an algorithm and a format, over its numbers of ranks.
BY_GRAPH: Columns = (
    MATRIX,
    *WAY,
    Column("fewest_s", "measured, fewest ranks"),
    Column("most_s", "most ranks"),
    *(Column(kind, f"paper, {kind}", text=percent) for kind in dict.fromkeys(PAPER_MODELS.values())),
    Column("micro_error", "hossain-micro", text=percent),
    OURS,
)

OF_RMAT: Columns = (
    dataclasses.replace(MATRIX, value="published.matrix"),
    *within("published.configuration", (*WAY, RANKS)),
    Column("actual_s", "measured"),
    Column("paper_s", "paper", "published.predicted_s"),
    Column("ours_s", "sparsecast", "forecasts_s.ours"),
    Column("paper_error", "paper, error", text=percent),
    Column("ours_error", "sparsecast, error", partial(ComparedTime.error, model="ours"), percent),
)

ON_RANKS: Columns = (
    *WAY,
    RANKS,
    Column("model", "model"),
    Column("products", "products"),
    Column("error", "mean error", text=percent),
    Column("paper", "the paper's, on its cluster", text=percent),
)

#: What a chart shows of each format: line, dashed line and points.
_SHOWN = ("sparsecast", "the paper's", "measured")


def tables(rows: Sequence[ComparedTime]) -> tuple[Table, ...]:
    """Return the mean errors of all tables, those of each graph, and the R-MAT matrices of table XI."""
    by_kind = grouped(rows, lambda row: row.published.table == "XI")
    graphs = list(_by_graph(by_kind.get(False, ())))
    return (
        Table("Tables II to XI: mean errors", SUMMARY, summaries(rows)),
        Table("Tables II to X by graph: mean errors over the numbers of ranks", BY_GRAPH, graphs),
        Table("Table XI: regression on R-MAT matrices", OF_RMAT, by_kind.get(True, ())),
    )


def _by_graph(rows: Sequence[ComparedTime]) -> Iterator[dict[str, Any]]:
    of_graphs = grouped(rows, lambda row: (row.published.matrix, *row.published.key[1:]))
    for (matrix, algorithm, name), own in of_graphs.items():
        ordered = sorted(own, key=lambda row: row.published.configuration.ranks)
        papers = grouped(own, lambda row: PAPER_MODELS[row.published.table])
        yield {
            **{"matrix": matrix, "algorithm": algorithm, "format": name},
            **{"fewest_s": ordered[0].actual_s, "most_s": ordered[-1].actual_s},
            **dict.fromkeys(PAPER_MODELS.values()),
            **{kind: fmean(row.paper_error for row in of_kind) for kind, of_kind in papers.items()},
            **{f"{model}_error": known_mean(row.error(model) for row in own) for model in ("micro", "ours")},
        }


def ranks_table(scores: ClusterEvaluation) -> Table:
    """Return the mean errors on products of matrices that no line is learned from, next to the paper's."""
    printed = grouped(published_times(), lambda time: (PAPER_MODELS[time.table], *time.key[1:]))
    of_papers = [
        row
        for row in scores.rows
        if row.record.suite != SUITE and row.record.configuration.algorithm in ALGORITHMS_OF_THE_PAPER
    ]
    names = ("algorithm", "format", "ranks")
    groups = grouped(
        of_papers, lambda row: (*(getattr(row.record.configuration, name) for name in names), row.model)
    )
    rows = []
    for (algorithm, name, ranks, model), own in sorted(groups.items()):
        kind = MODEL_KINDS.get(model.removesuffix(" (as printed)"), "")
        paper = known_mean(time.error for time in printed.get((kind, algorithm, name), ()))
        row = {"algorithm": algorithm, "format": name, "ranks": ranks, "model": model, "paper": paper}
        rows.append({**row, "products": len(own), "error": fmean(each.error for each in own)})
    refused = {what: why for what, why in scores.refused.items() if "local-1d-overlap" not in what}
    title = f"Products on ranks of {scores.profile}: mean errors"
    return Table(title, ON_RANKS, rows, lines_of(refused))


def chart(rows: Sequence[ComparedTime]) -> Chart:
    """Return times over ranks, a panel for each algorithm and graph."""
    measured = [row for row in rows if row.published.table in MEASURED]
    cases = grouped(measured, lambda row: (row.published.configuration.algorithm, row.published.matrix))
    drawn = [_case(f"{algorithm}, {matrix}", own) for (algorithm, matrix), own in sorted(cases.items())]
    return panels("hossain-saule", "", drawn, len({matrix for _, matrix in cases}))


def _case(caption: str, rows: Sequence[ComparedTime]) -> Chart:
    points: list[dict[str, Any]] = []
    for row in rows:
        way = row.published.configuration
        times_s = (row.forecasts_s["ours"], row.published.predicted_s, row.actual_s)
        points += [
            {"ranks": way.ranks, "time_s": time_s, "what": f"{way.format.upper()}: {what}"}
            for what, time_s in zip(_SHOWN, times_s, strict=True)
        ]
    formats = sorted({row.published.configuration.format.upper() for row in rows})
    names = [f"{name}: {what}" for name in formats for what in _SHOWN]
    colours = [colour for colour in format_look(formats)["color"]["scale"]["range"] for _ in _SHOWN]
    dashes = [dash for _ in formats for dash in ([1, 0], [2, 3], [1, 0])]
    what = {"field": "what", "type": "nominal", "title": None}
    encoding = {
        "x": counts_axis("ranks", "ranks", [point["ranks"] for point in points]),
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
