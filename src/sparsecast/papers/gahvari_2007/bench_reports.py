"""The five-minute benchmark, comparisons of two results, and twins: as tables and as JSON documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.table import Table

from sparsecast.papers.gahvari_2007.comparison import Comparison
from sparsecast.papers.gahvari_2007.search_space import Point, size_class
from sparsecast.papers.gahvari_2007.summary import FIGURES, BenchResult, Rating
from sparsecast.papers.gahvari_2007.twin_comparison import Twins
from sparsecast.records import VALUE_BYTES, Record
from sparsecast.reports.documents import Document, candidate, fields, machine, versions
from sparsecast.reports.tables import add_refused, numbers, percent, time


def setting(rating: Rating) -> str:
    """Return the type and the threads of a rating in words."""
    return f"{rating.dtype}, {rating.threads} thread{'s' if rating.threads > 1 else ''}"


def bench_table(found: BenchResult) -> Table:
    """Return the figures of every target, each with its error, and below them the phases."""
    table = numbers(f"MFLOP/s of {found.machine.name}", "figure", *map(setting, found.ratings))
    for name in FIGURES:
        shown = (_with_error(getattr(r.figures, name), r.errors[name]) for r in found.ratings)
        table.add_row(_figure(name), *shown)
    table.add_row("noise", *(percent(rating.noise) for rating in found.ratings))
    table.add_row("share of the bandwidth", *(percent(rating.bandwidth_share) for rating in found.ratings))
    table.add_row("largest dimension", *(f"{rating.largest_dimension:,}" for rating in found.ratings))
    table.add_row("small, medium, large", *(_sizes(rating) for rating in found.ratings))
    table.add_row("refilled", *(f"{rating.refilled:,}" for rating in found.ratings))
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in found.phases.items())
    table.caption = f"{found.used_s:.0f} of {found.budget_s:g} s used: {phases}"
    return table


def sentence_of(ratings: Sequence[Rating]) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not ratings or ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = ratings[0]
    value = _with_error(rating.figures.blocked_median_mflops, rating.errors["blocked_median_mflops"])
    return f"Blocked median, the one number: {value} MFLOP/s ({setting(rating)})."


def comparison_table(found: Comparison) -> Table:
    """Return the figures of two results, their ratio, and whether it exceeds the errors."""
    table = numbers("MFLOP/s", "figure", "first", "second", "ratio", "error", "differ")
    for name, each in found.figures.items():
        table.add_row(
            _figure(name),
            _with_error(each.first, None),
            _with_error(each.second, None),
            "-" if each.ratio is None else f"{each.ratio:.3f}",
            percent(each.error),
            {None: "-", True: "yes", False: "no"}[each.is_different],
        )
    lines = [
        f"{which}: {machine}, {target}"
        for which, machine, target in zip(("first", "second"), found.machines, found.targets, strict=True)
    ]
    if found.points_ratio is not None:
        ratio = f"median ratio of their speeds {found.points_ratio:.3f}"
        lines.append(f"same matrices: {found.points:,}, {ratio}")
    table.caption = "\n".join(lines)
    return table


def twins_table(found: Twins) -> Table:
    """Return for each matrix how much longer its twins take, and below them the scores."""
    title = "Synthetic twins against real matrices"
    table = numbers(title, "matrix", "format", "threads", "block", "one product")
    for heading in ("measured again", "paper's twin", "our twin"):
        table.add_column(heading, justify="right")
    matrix = None
    for row in found.rows:
        table.add_row(
            row.matrix if row.matrix != matrix else "",
            row.candidate.format.upper(),
            str(row.candidate.threads),
            f"{row.block} x {row.block}" if row.block > 1 else "-",
            time(row.time_s),
            *(f"{100 * (ratio - 1):+.1f} %" for ratio in (row.again, row.bands, row.structure)),
        )
        matrix = row.matrix
    for score in found.scores:
        table.add_section()
        each = (score.again, score.bands, score.structure)
        for label, errors in zip(("median error", "90th percentile"), zip(*each, strict=True), strict=True):
            named = (f"{label}, {score.matrices}", score.format.upper(), str(score.threads))
            table.add_row(*named, "", "", *map(percent, errors))
    add_refused(table, found.refused)
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


def bench_document(found: BenchResult) -> Document:
    """Return a result of the five-minute benchmark: its first target's figures, then every target."""
    main = found.ratings[0] if found.ratings else None
    return {
        "figures": figures_of(found.ratings),
        "errors": main.errors if main else dict.fromkeys(FIGURES),
        **fields(found, "budget_s", "used_s"),
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
        **fields(rating, "device", "dtype", "threads"),
        "figures": dataclasses.asdict(rating.figures),
        **fields(rating, *measured),
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


def comparison_document(found: Comparison) -> Document:
    """Return a comparison of two results of the five-minute benchmark."""
    keys = ("first", "second", "ratio", "error", "is_different")
    return {
        "machines": list(found.machines),
        "settings": list(found.targets),
        "figures": {name: fields(each, *keys) for name, each in found.figures.items()},
        **fields(found, "points", "points_ratio"),
    }


def twins_document(found: Twins) -> Document:
    """Return what real matrices and their twins took, as ratios, and the scores of each kind of twin."""
    kinds = ("again", "bands", "structure")
    rows = [
        {
            **fields(row, "matrix", "nnz"),
            **candidate(row.candidate),
            **fields(row, "block", "time_s", *kinds),
        }
        for row in found.rows
    ]
    scores = [
        {
            **fields(score, "format", "threads", "matrices"),
            **{
                kind: dict(zip(("median_error", "p90_error"), getattr(score, kind), strict=True))
                for kind in kinds
            },
        }
        for score in found.scores
    ]
    return {"rows": rows, "scores": scores, **fields(found, "refused", "interrupted")}
