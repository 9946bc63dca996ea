"""The five-minute benchmark, comparisons of two results, and twins: as tables and as JSON documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.table import Table

from sparsecast.papers.gahvari_2007.comparison import Comparison
from sparsecast.papers.gahvari_2007.search_space import Point, size_class
from sparsecast.papers.gahvari_2007.summary import FIGURES, BenchResult, Rating
from sparsecast.papers.gahvari_2007.twin_comparison import TWINS, Twins
from sparsecast.records import VALUE_BYTES, Record
from sparsecast.reports.documents import Document, candidate, fields, machine, versions
from sparsecast.reports.tables import add_refused, numbers, percent, time


def bench_table(result: BenchResult) -> Table:
    """Return the figures of every target, each with its error, and below them the phases."""
    ratings = result.ratings
    table = numbers(f"MFLOP/s of {result.machine.name}", "figure", *(rating.setting for rating in ratings))
    for name in FIGURES:
        shown = (_with_error(getattr(rating.figures, name), rating.errors[name]) for rating in ratings)
        table.add_row(_figure(name), *shown)
    table.add_row("noise", *(percent(rating.noise) for rating in ratings))
    table.add_row("share of the bandwidth", *(percent(rating.bandwidth_share) for rating in ratings))
    table.add_row("largest dimension", *(f"{rating.largest_dimension:,}" for rating in ratings))
    table.add_row("small, medium, large", *(_sizes(rating) for rating in ratings))
    table.add_row("refilled", *(f"{rating.refilled:,}" for rating in ratings))
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result.phases.items())
    table.caption = f"{result.used_s:.0f} of {result.budget_s:g} s used: {phases}"
    return table


def sentence_of(ratings: Sequence[Rating]) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not ratings or ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = ratings[0]
    value = _with_error(rating.figures.blocked_median_mflops, rating.errors["blocked_median_mflops"])
    return f"Blocked median, the one number: {value} MFLOP/s ({rating.setting})."


def comparison_table(comparison: Comparison) -> Table:
    """Return the figures of two results, their ratio, and whether it exceeds the errors."""
    table = numbers("MFLOP/s", "figure", "first", "second", "ratio", "error", "differ")
    for name, figure in comparison.figures.items():
        table.add_row(
            _figure(name),
            _with_error(figure.first, None),
            _with_error(figure.second, None),
            "-" if figure.ratio is None else f"{figure.ratio:.3f}",
            percent(figure.error),
            {None: "-", True: "yes", False: "no"}[figure.is_different],
        )
    pairs = zip(("first", "second"), comparison.machines, comparison.targets, strict=True)
    lines = [f"{which}: {machine}, {target}" for which, machine, target in pairs]
    if comparison.points_ratio is not None:
        ratio = f"median ratio of their speeds {comparison.points_ratio:.3f}"
        lines.append(f"same matrices: {comparison.points:,}, {ratio}")
    table.caption = "\n".join(lines)
    return table


def twins_table(twins: Twins) -> Table:
    """Return for each matrix how much longer its twins take, and below them the scores."""
    table = numbers(
        "Synthetic twins against real matrices",
        *("matrix", "format", "threads", "block", "one product"),
        *("measured again", "paper's twin", "our twin"),
    )
    for row in twins.rows:
        table.add_row(
            row.matrix,
            row.candidate.format.upper(),
            str(row.candidate.threads),
            f"{row.block} x {row.block}" if row.block > 1 else "-",
            time(row.time_s),
            *(f"{100 * (getattr(row, kind) - 1):+.1f} %" for kind in TWINS),
        )
    for score in twins.scores:
        table.add_section()
        for place, label in enumerate(("median error", "90th percentile")):
            way = (f"{label}, {score.matrices}", score.format.upper(), str(score.threads))
            table.add_row(*way, "", "", *(percent(getattr(score, kind)[place]) for kind in TWINS))
    add_refused(table, twins.refused)
    return table


def _figure(name: str) -> str:
    return name.removesuffix("_mflops").replace("_", " ")


def _sizes(rating: Rating) -> str:
    return ", ".join(f"{count:,}" for count in rating.sizes.values()) or f"{len(rating.records):,}, unknown"


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f} ± {100 * error:.1f} %" if error is not None else f"{value:,.0f}"


def figures_of(ratings: Sequence[Rating]) -> dict[str, float | None]:
    """Return the figures of the first target, None where nothing was measured."""
    return dataclasses.asdict(ratings[0].figures) if ratings else dict.fromkeys(FIGURES)


def bench_document(result: BenchResult) -> Document:
    """Return a result of the five-minute benchmark: its first target's figures, then every target."""
    main = result.ratings[0] if result.ratings else None
    return {
        "figures": figures_of(result.ratings),
        "errors": main.errors if main else dict.fromkeys(FIGURES),
        **fields(result, "budget_s", "used_s"),
        "noise": main.noise if main else None,
        "machine": machine(result.machine),
        "versions": versions(),
        "phases_s": result.phases,
        "notes": list(result.notes),
        "interrupted": result.interrupted,
        "settings": [_rating(rating) for rating in result.ratings],
    }


def _rating(rating: Rating) -> Document:
    return {
        **fields(rating, "device", "dtype", "threads"),
        "figures": dataclasses.asdict(rating.figures),
        **fields(rating, "errors", "noise", "bandwidth_share", "largest_dimension", "sizes", "refilled"),
        "points": [_bench_point(record, rating) for record in rating.records],
    }


def _bench_point(record: Record, rating: Rating) -> Document:
    point = Point.named(record.matrix)
    value_bytes = VALUE_BYTES[rating.dtype]
    return {
        "matrix": record.matrix,
        "kind": point.series.name,
        **fields(point, "dimension", "nnz_per_row"),
        "size": size_class(point.dimension, point.nnz_per_row, value_bytes, rating.cache_bytes),
        **fields(record.candidate, "format", "kernel"),
        "nnz": record.nnz,
        "bytes": record.traffic_bytes,
        "mflops": 1e3 * record.gflops,
        **fields(record, "time_s", "noise"),
        "samples_s": list(record.samples_s),
    }


def comparison_document(comparison: Comparison) -> Document:
    """Return a comparison of two results of the five-minute benchmark."""
    keys = ("first", "second", "ratio", "error", "is_different")
    return {
        "machines": list(comparison.machines),
        "settings": list(comparison.targets),
        "figures": {name: fields(figure, *keys) for name, figure in comparison.figures.items()},
        **fields(comparison, "points", "points_ratio"),
    }


def twins_document(twins: Twins) -> Document:
    """Return what real matrices and their twins took, as ratios, and the scores of each kind of twin."""
    rows = [
        {
            **fields(row, "matrix", "nnz"),
            **candidate(row.candidate),
            **fields(row, "block", "time_s", *TWINS),
        }
        for row in twins.rows
    ]
    scores = [
        {
            **fields(score, "format", "threads", "matrices"),
            **{
                kind: dict(zip(("median_error", "p90_error"), values, strict=True))
                for kind, values in fields(score, *TWINS).items()
            },
        }
        for score in twins.scores
    ]
    return {"rows": rows, "scores": scores, **fields(twins, "refused", "interrupted")}
