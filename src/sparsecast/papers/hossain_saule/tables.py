"""The tables of the paper with our columns, and its times over ranks as a chart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from sparsecast.papers.hossain_saule import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER
from sparsecast.papers.hossain_saule.comparison import MEASURED, ComparedTime, summaries
from sparsecast.papers.hossain_saule.linear import SUITE
from sparsecast.papers.hossain_saule.published_times import published_times
from sparsecast.reports.charts.chart import Chart, axis, counts_axis, format_look, panels
from sparsecast.results.cluster import ClusterEvaluation
from sparsecast.results.paper import known_mean
from sparsecast.system.tabular import Column, Columns, Table, grouped, lines_of
from sparsecast.system.texts import percent

#: The paper's model of each table, and which of them our names are.
PAPER_MODELS = {
    **dict.fromkeys(MEASURED, "micro-benchmarks"),
    **dict.fromkeys(("VIII", "IX"), "lines"),
    **dict.fromkeys(("X", "XI"), "regression"),
}
#: Tables of the same products, in CSR and in COO.
PAIRED = {table: pair for pair in ("II, III", "IV, V", "VI, VII", "VIII, IX") for table in pair.split(", ")}
MODEL_KINDS = {"hossain-micro": "micro-benchmarks", "hossain-linear": "lines", "hossain-svr": "regression"}


def _of_formats(*columns: Column) -> Columns:
    """Return columns of CSR, then the same of COO, for rows of `_side_by_side`."""
    return tuple(
        dataclasses.replace(column, key=f"{name}_{column.key}", heading=f"{name.upper()}: {column.heading}")
        for name in FORMATS_OF_THE_PAPER
        for column in columns
    )


ALGORITHM, MATRIX = Column("algorithm", "algorithm"), Column("matrix", "matrix")
PAPER, OURS = Column("paper", "paper", text=percent), Column("ours_error", "sparsecast", text=percent)
MICRO = Column("micro_error", "hossain-micro", text=percent)

SUMMARY: Columns = (
    Column("table", "tables"),
    ALGORITHM,
    Column("paper_model", "paper's model"),
    *_of_formats(
        dataclasses.replace(PAPER, key="paper_error"),
        MICRO,
        Column("micro_distance", "from the paper's forecasts", text=percent),
        Column("fitted", "an input fitted to it"),
        Column("ours_error", "sparsecast, other matrices known", text=percent),
        Column("plain_error", "nothing known", text=percent),
    ),
)

#: Of a graph in an algorithm, over its numbers of ranks.
BY_GRAPH: Columns = (
    MATRIX,
    ALGORITHM,
    *_of_formats(
        Column("most_s", "measured, most ranks"),
        *(Column(kind, f"paper, {kind}", text=percent) for kind in dict.fromkeys(PAPER_MODELS.values())),
        MICRO,
        OURS,
    ),
)

OF_RMAT: Columns = (
    MATRIX,
    ALGORITHM,
    *_of_formats(
        Column("actual_s", "measured"),
        Column("paper_s", "paper"),
        Column("ours_s", "sparsecast"),
        dataclasses.replace(PAPER, key="paper_error", heading="paper, error"),
        dataclasses.replace(OURS, heading="sparsecast, error"),
    ),
)

ON_RANKS: Columns = (
    ALGORITHM,
    Column("ranks", "ranks"),
    Column("model", "model"),
    Column("products", "products"),
    *_of_formats(
        Column("error", "mean error", text=percent),
        dataclasses.replace(PAPER, heading="the paper's, on its cluster"),
    ),
)

#: What rows of both formats share, beside tables, matrices and algorithms.
SHARED = ("paper_model", "ranks", "model", "products")

#: What a chart shows of each format: line, dashed line and points.
_SHOWN = ("sparsecast", "the paper's", "measured")


def tables(rows: Sequence[ComparedTime]) -> tuple[Table, ...]:
    """Return the mean errors of all tables, those of each graph, and the R-MAT matrices of table XI."""
    by_kind = grouped(rows, lambda row: row.published.table == "XI")
    of_graphs = grouped(by_kind.get(False, ()), lambda row: (row.published.matrix, *row.published.key[1:]))
    graphs, rmat = map(_of_graph, of_graphs.values()), map(_of_rmat, by_kind.get(True, ()))
    means = [
        {**row, "paper_model": PAPER_MODELS[row["table"]], "table": PAIRED.get(row["table"], row["table"])}
        for row in summaries(rows)
    ]
    return (
        Table("Tables II to XI: mean errors", SUMMARY, _side_by_side(means)),
        Table(
            "Tables II to X by graph: mean errors over the numbers of ranks", BY_GRAPH, _side_by_side(graphs)
        ),
        Table("Table XI: regression on R-MAT matrices, 225 ranks", OF_RMAT, _side_by_side(rmat)),
    )


def _side_by_side(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each algorithm and what else rows differ in, with the values of each format."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        shared = {key: row[key] for key in ("table", "matrix", "algorithm", *SHARED) if key in row}
        into = merged.setdefault(tuple(shared.values()), shared)
        into |= {f"{row['format']}_{key}": value for key, value in row.items() if key not in shared}
    none = dict.fromkeys(key for row in merged.values() for key in row)
    return [none | row for row in merged.values()]


def _of_graph(own: Sequence[ComparedTime]) -> dict[str, Any]:
    papers = grouped(own, lambda row: PAPER_MODELS[row.published.table])
    return {
        **_way(own[0]),
        "most_s": max(own, key=lambda row: row.published.configuration.ranks).actual_s,
        **dict.fromkeys(PAPER_MODELS.values()),
        **{kind: fmean(row.paper_error for row in of_kind) for kind, of_kind in papers.items()},
        **{f"{model}_error": known_mean(row.error(model) for row in own) for model in ("micro", "ours")},
    }


def _of_rmat(row: ComparedTime) -> dict[str, Any]:
    times_s = {"paper_s": row.published.predicted_s, "ours_s": row.forecasts_s["ours"]}
    errors = {"paper_error": row.paper_error, "ours_error": row.error("ours")}
    return {**_way(row), "actual_s": row.actual_s, **times_s, **errors}


def _way(row: ComparedTime) -> dict[str, Any]:
    _, algorithm, name = row.published.key
    return {"matrix": row.published.matrix, "algorithm": algorithm, "format": name}


def ranks_table(scores: ClusterEvaluation) -> Table:
    """Return the mean errors on products of matrices that no line is learned from, next to the paper's."""
    printed = grouped(published_times(), lambda time: (PAPER_MODELS[time.table], *time.key[1:]))
    of_papers = [
        row
        for row in scores.rows
        if row.record.suite != SUITE and row.record.configuration.algorithm in ALGORITHMS_OF_THE_PAPER
    ]
    names = ("algorithm", "ranks", "format")
    groups = grouped(
        of_papers, lambda row: (*(getattr(row.record.configuration, name) for name in names), row.model)
    )
    rows = []
    for (algorithm, ranks, name, model), own in sorted(groups.items()):
        kind = MODEL_KINDS.get(model.removesuffix(" (as printed)"), "")
        paper = known_mean(time.error for time in printed.get((kind, algorithm, name), ()))
        row = {"algorithm": algorithm, "format": name, "ranks": ranks, "model": model, "paper": paper}
        rows.append({**row, "products": len(own), "error": fmean(row.error for row in own)})
    refused = {what: why for what, why in scores.refused.items() if "local-1d-overlap" not in what}
    title = f"Products on ranks of {scores.profile}: mean errors"
    return Table(title, ON_RANKS, _side_by_side(rows), lines_of(refused))


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
