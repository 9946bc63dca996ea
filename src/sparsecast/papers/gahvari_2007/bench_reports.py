"""The five-minute benchmark, comparisons of two results, and twins: their columns."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from operator import itemgetter
from typing import Any

from sparsecast.papers.gahvari_2007.comparison import Comparison
from sparsecast.papers.gahvari_2007.search_space import Point, size_class
from sparsecast.papers.gahvari_2007.summary import FIGURES, BenchResult, Rating
from sparsecast.papers.gahvari_2007.twin_comparison import TWINS, Twins, TwinScore
from sparsecast.records import VALUE_BYTES, Record
from sparsecast.results.columns import within
from sparsecast.results.machines import machine_document
from sparsecast.system.tabular import Column, Columns, Table, keys, lines_of
from sparsecast.system.texts import percent
from sparsecast.system.version import VERSION


def bench_table(result: BenchResult) -> Table:
    """Return the figures of every target, each with its error, and below them the phases."""
    rows: list[tuple[str, Callable[[Rating], str]]] = [
        *((_figure(name), partial(_rated, name=name)) for name in FIGURES),
        ("noise", lambda rating: percent(rating.noise)),
        ("share of the bandwidth", lambda rating: percent(rating.bandwidth_share)),
        ("largest dimension", lambda rating: f"{rating.largest_dimension:,}"),
        ("small, medium, large", _sizes),
        ("refilled", lambda rating: f"{rating.refilled:,}"),
    ]
    columns = [Column("figure", "figure", itemgetter(0))]
    columns += [Column(rating.setting, rating.setting, partial(_cell, rating)) for rating in result.ratings]
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result.phases.items())
    used = f"{result.used_s:.0f} of {result.budget_s:g} s used: {phases}"
    return Table(f"MFLOP/s of {result.machine.name}", tuple(columns), rows, (used,))


def _cell(rating: Rating, row: tuple[str, Callable[[Rating], str]]) -> str:
    return row[1](rating)


def sentence_of(ratings: Sequence[Rating]) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not ratings or ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = ratings[0]
    value = _with_error(rating.figures.blocked_median_mflops, rating.errors["blocked_median_mflops"])
    return f"Blocked median, the one number: {value} MFLOP/s ({rating.setting})."


def comparison_table(comparison: Comparison) -> Table:
    """Return the figures of two results, their ratio, and whether it exceeds the errors."""
    rows = [{"name": name, "figure": figure} for name, figure in comparison.figures.items()]
    columns = (Column("figure", "figure", lambda row: _figure(row["name"])), *within("figure", COMPARED))
    pairs = zip(("first", "second"), comparison.machines, comparison.targets, strict=True)
    lines = [f"{which}: {machine}, {target}" for which, machine, target in pairs]
    if comparison.points_ratio is not None:
        ratio = f"median ratio of their speeds {comparison.points_ratio:.3f}"
        lines.append(f"same matrices: {comparison.points:,}, {ratio}")
    return Table("MFLOP/s", columns, rows, tuple(lines))


def twins_tables(twins: Twins) -> list[Table]:
    """Return for each matrix how much longer its twins take, and the errors of each kind of twin."""
    return [
        Table("Synthetic twins against real matrices", TWIN, twins.rows, lines_of(twins.refused)),
        Table("Errors of the twins", TWIN_SCORE, twins.scores),
    ]


def _figure(name: str) -> str:
    return name.removesuffix("_mflops").replace("_", " ")


def _sizes(rating: Rating) -> str:
    return ", ".join(f"{count:,}" for count in rating.sizes.values()) or f"{len(rating.records):,}, unknown"


def _rated(rating: Rating, name: str) -> str:
    return _with_error(getattr(rating.figures, name), rating.errors[name])


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f} ± {100 * error:.1f} %" if error is not None else f"{value:,.0f}"


def figures_of(ratings: Sequence[Rating]) -> dict[str, float | None]:
    """Return the figures of the first target, None where nothing was measured."""
    return dataclasses.asdict(ratings[0].figures) if ratings else dict.fromkeys(FIGURES)


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def _main(name: str) -> Callable[[BenchResult], Any]:
    """Return a function that gives what is known of the first target, None without one."""
    return lambda result: getattr(result.ratings[0], name) if result.ratings else None


def _points(rating: Rating) -> list[dict[str, Any]]:
    return [{"record": record, **_point(record, rating)} for record in rating.records]


def _point(record: Record, rating: Rating) -> dict[str, Any]:
    point = Point.named(record.matrix)
    value_bytes = VALUE_BYTES[rating.dtype]
    size = size_class(point.dimension, point.nnz_per_row, value_bytes, rating.cache_bytes)
    return {"point": point, "size": size}


#: Of a measured matrix.
POINT: Columns = (
    Column("matrix", value="record.matrix"),
    Column("kind", value="point.series.name"),
    *within("point", keys("dimension", "nnz_per_row")),
    Column("size"),
    *within("record.candidate", keys("format", "kernel")),
    Column("nnz", value="record.nnz"),
    Column("bytes", value="record.traffic_bytes"),
    Column("mflops", value=lambda row: 1e3 * row["record"].gflops),
    *within("record", keys("time_s", "noise", "samples_s")),
)

#: Of a Rating.
RATING: Columns = (
    *keys("device", "dtype", "threads"),
    Column("figures", columns=keys(*FIGURES)),
    Column("errors", columns=keys(*FIGURES)),
    *keys("noise", "bandwidth_share", "largest_dimension", "sizes", "refilled"),
    Column("points", value=_points, columns=POINT),
)

#: Of a ComparedFigure.
COMPARED: Columns = (
    Column("first", "first", text="{:,.0f}".format),
    Column("second", "second", text="{:,.0f}".format),
    Column("ratio", "ratio", text="{:.3f}".format),
    Column("error", "error", text=percent),
    Column("is_different", "differ"),
)


def _longer(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


#: Of a TwinRow: ratios of times.
TWIN: Columns = (
    Column("matrix", "matrix"),
    Column("nnz"),
    Column("format", "format", "candidate.format", str.upper),
    *within("candidate", keys("kernel", "device", "dtype")),
    Column("threads", "threads", "candidate.threads"),
    Column("parameters", value="candidate.parameters"),
    Column("block", "block", text=lambda size: f"{size} x {size}" if size > 1 else "-"),
    Column("time_s", "one product"),
    Column("again", "measured again", text=_longer),
    Column("bands", "paper's twin", text=_longer),
    Column("structure", "our twin", text=_longer),
)


def _errors(kind: str, score: TwinScore) -> dict[str, float]:
    return dict(zip(("median_error", "p90_error"), getattr(score, kind), strict=True))


#: Of a TwinScore.
TWIN_SCORE: Columns = (
    Column("format", "format", text=str.upper),
    Column("threads", "threads"),
    Column("matrices", "matrices"),
    *(
        Column(
            kind,
            f"{heading}: median, 90 %",
            partial(_errors, kind),
            lambda errors: ", ".join(map(percent, errors.values())),
            columns=keys("median_error", "p90_error"),
        )
        for kind, heading in zip(TWINS, ("measured again", "paper's twin", "our twin"), strict=True)
    ),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "bench": (
        Column("figures", value=lambda result: figures_of(result.ratings), columns=keys(*FIGURES)),
        Column("errors", value=_main("errors"), columns=keys(*FIGURES)),
        *keys("budget_s", "used_s"),
        Column("noise", value=_main("noise")),
        Column("machine", value=lambda result: machine_document(result.machine)),
        Column("versions", value=lambda result: versions()),
        Column("phases_s", value="phases"),
        *keys("notes", "interrupted"),
        Column("settings", value="ratings", columns=RATING),
    ),
    "bench --compare": (
        Column("machines"),
        Column("settings", value="targets"),
        Column("figures", columns=COMPARED, by="figure"),
        *keys("points", "points_ratio"),
    ),
    "bench --twins": (
        Column("rows", columns=TWIN),
        Column("scores", columns=TWIN_SCORE),
        *keys("refused", "interrupted"),
    ),
}
