"""The five-minute benchmark, comparisons of two results, and twins: their columns and tables."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Sequence
from importlib import metadata

from sparsecast.papers.gahvari_2007.comparison import Comparison
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices
from sparsecast.papers.gahvari_2007.search_space import SIZES, Point, size_class
from sparsecast.papers.gahvari_2007.summary import FIGURES, BenchResult, Rating
from sparsecast.papers.gahvari_2007.twin_comparison import TWINS, Twins
from sparsecast.records import VALUE_BYTES
from sparsecast.results.columns import CANDIDATE, within
from sparsecast.results.machines import machine_document
from sparsecast.system.tabular import Column, Columns, Document, Table, keys, lines_of
from sparsecast.system.texts import percent
from sparsecast.system.version import VERSION

#: How the kinds of twins are called, in the order of TWINS.
_TWIN_HEADINGS = dict(zip(TWINS, ("measured again", "paper's twin", "our twin"), strict=True))


def bench_table(result: BenchResult) -> Table:
    """Return the figures of every target, and below them the phases."""
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result.phases.items())
    used = f"{result.used_s:.0f} of {result.budget_s:g} s used: {phases}"
    return figures_table(f"MFLOP/s of {result.machine.name}", result.ratings, used)


def figures_table(title: str, ratings: Sequence[Rating], *below: str) -> Table:
    """Return the figures of some targets, each with its error."""
    lines = [
        (_figure(name), *(_with_error(getattr(r.figures, name), r.errors[name]) for r in ratings))
        for name in FIGURES
    ]
    lines += [
        (
            f"{_figure(name)}, as printed",
            *(_with_error(getattr(r.figures_as_printed, name), None) for r in ratings),
        )
        for name in FIGURES
        if "median" in name
    ]
    lines += [
        ("noise", *(percent(rating.noise) for rating in ratings)),
        ("share of the bandwidth", *(percent(rating.bandwidth_share) for rating in ratings)),
        ("largest dimension", *(f"{rating.largest_dimension:,}" for rating in ratings)),
        ("small, medium, large", *(_sizes(rating) for rating in ratings)),
        ("refilled", *(f"{rating.refilled:,}" for rating in ratings)),
    ]
    headings = "figure", *(rating.setting for rating in ratings)
    columns = tuple(Column("", heading, _place(place)) for place, heading in enumerate(headings))
    return Table(title, columns, lines, below)


def sentence_of(ratings: Sequence[Rating]) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not ratings or ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = ratings[0]
    value = _with_error(rating.figures.blocked_median_mflops, rating.errors["blocked_median_mflops"])
    return f"Blocked median, the one number: {value} MFLOP/s ({rating.setting})."


def figures_of(ratings: Sequence[Rating]) -> dict[str, float | None]:
    """Return the figures of the first target, None where nothing was measured."""
    return dataclasses.asdict(ratings[0].figures) if ratings else dict.fromkeys(FIGURES)


def comparison_table(comparison: Comparison) -> Table:
    """Return the figures of two results, their ratio, and whether it exceeds the errors."""
    columns = (
        Column("", "figure", lambda line: _figure(line[0])),
        Column("", "first", lambda line: line[1].first, "{:,.0f}".format),
        Column("", "second", lambda line: line[1].second, "{:,.0f}".format),
        Column("", "ratio", lambda line: line[1].ratio, "{:.3f}".format),
        Column("", "error", lambda line: line[1].error, percent),
        Column("", "differ", lambda line: line[1].is_different),
    )
    pairs = zip(("first", "second"), comparison.machines, comparison.targets, strict=True)
    below = [f"{which}: {machine}, {target}" for which, machine, target in pairs]
    if comparison.points_ratio is not None:
        ratio = f"median ratio of their speeds {comparison.points_ratio:.3f}"
        below.append(f"same matrices: {comparison.points:,}, {ratio}")
    return Table("MFLOP/s", columns, list(comparison.figures.items()), tuple(below))


def twins_tables(twins: Twins) -> list[Table]:
    """Return for each matrix how much longer its twins take, and how far off they are in all."""
    below = lines_of(twins.refused)
    return [
        Table("Synthetic twins against real matrices", _TWIN_ROW, twins.rows, below),
        Table("Errors of the twins: median and 90th percentile", _TWIN_SCORE, twins.scores),
    ]


def real_tables(real: RealMatrices) -> list[Table]:
    """Return the matrices, and below them how the figures forecast those of each size."""
    below = []
    if sizes := [size for size in SIZES if size not in {row.size for row in real.rows}]:
        cache = f"the last cache holds {real.rating.cache_bytes / 1e6:,.0f} MB"
        below.append(f"no {' or '.join(sizes)} one among the {len(real.rows)} matrices measured: {cache}")
    if real.missing:
        below.append(f"no time for {real.missing:,} matrices: run again to go on")
    lines = [
        (column.heading, *(_cell(column, score) for score in real.scores))
        for column in _REAL_SCORE
        if column.key != "size"
    ]
    headings = "", *(score.size for score in real.scores)
    columns = tuple(Column("", heading or "MFLOP/s", _place(place)) for place, heading in enumerate(headings))
    title = f"The figures against real matrices, {real.rating.setting} (Figures 11 to 13)"
    matrices = "MFLOP/s of real matrices (Figures 3 to 5, 8 to 10)"
    return [
        Table(matrices, _REAL_ROW, real.rows, lines_of(real.refused)),
        Table(title, columns, lines, (_figures_line(real.rating), *below)),
    ]


def _figures_line(rating: Rating) -> str:
    """Return the figures in one line."""
    values = {name: getattr(rating.figures, name) for name in FIGURES}
    shown = (f"{_figure(name)} {value:,.0f}" for name, value in values.items() if value is not None)
    return f"figures: {', '.join(shown)}"


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info  # type: ignore[import-untyped]

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def _place(place: int) -> Callable[[tuple[str, ...]], str]:
    return lambda line: line[place]


def _figure(name: str) -> str:
    return name.removesuffix("_mflops").replace("_", " ")


def _sizes(rating: Rating) -> str:
    return ", ".join(f"{count:,}" for count in rating.sizes.values()) or f"{len(rating.records):,}, unknown"


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f} ± {100 * error:.1f} %" if error is not None else f"{value:,.0f}"


def _points(rating: Rating) -> list[Document]:
    """Return what was measured of each point."""
    value_bytes, documents = VALUE_BYTES[rating.dtype], []
    for record in rating.records:
        point = Point.named(record.matrix)
        documents.append(
            {
                "matrix": record.matrix,
                "kind": point.series.name,
                "dimension": point.dimension,
                "nnz_per_row": point.nnz_per_row,
                "size": size_class(point.dimension, point.nnz_per_row, value_bytes, rating.cache_bytes),
                "format": record.candidate.format,
                "kernel": record.candidate.kernel,
                "nnz": record.nnz,
                "bytes": record.traffic_bytes,
                "mflops": 1e3 * record.gflops,
                "time_s": record.time_s,
                "noise": record.noise,
                "samples_s": list(record.samples_s),
            }
        )
    return documents


_RATING: Columns = (
    *keys("device", "dtype", "threads"),
    Column("figures", columns=keys(*FIGURES)),
    Column(
        "figures_as_printed",
        columns=keys(*FIGURES),
        about="without the refilled dimensions, as the paper has them",
    ),
    *keys("errors", "noise", "bandwidth_share", "largest_dimension", "sizes", "refilled"),
    Column("points", value=_points),
)

_TWIN_ROW: Columns = (
    Column("matrix", "matrix"),
    Column("nnz"),
    *within("candidate", CANDIDATE),
    Column("", "threads", "candidate.threads"),
    Column("block", "block", text=lambda side: f"{side} x {side}" if side > 1 else "-"),
    Column("time_s", "one product"),
    *(
        Column(kind, heading, text=lambda ratio: f"{100 * (ratio - 1):+.1f} %")
        for kind, heading in _TWIN_HEADINGS.items()
    ),
)

_TWIN_SCORE: Columns = (
    Column("format", "format", text=str.upper),
    Column("threads", "threads"),
    Column("matrices", "matrices"),
    *(
        Column(
            kind,
            heading,
            text=lambda errors: f"{percent(errors.median_error)}, {percent(errors.p90_error)}",
            columns=keys("median_error", "p90_error"),
        )
        for kind, heading in _TWIN_HEADINGS.items()
    ),
)


def _cell(column: Column, row: object) -> str:
    value = column.of(row)
    return "-" if value is None else column.text(value) if column.text else f"{value:,}"


def _mflops(value: float) -> str:
    return f"{value:,.0f}"


_REAL_ROW: Columns = (
    Column("matrix", "matrix"),
    Column("rows", "rows"),
    Column("nnz"),
    Column("nnz_per_row", "nnz/row", text="{:.1f}".format),
    Column("size", "size"),
    Column("untuned_mflops", "CSR", text=_mflops),
    Column("synthetic_mflops", "synthetic", text=_mflops),
    Column("tuned_mflops", "tuned", text=_mflops),
    Column("synthetic_tuned_mflops", "synthetic", text=_mflops),
    Column("block", "block"),
    Column("square", "by bytes"),
    Column("square_mflops", "its speed", text=_mflops),
    Column("symmetric_mflops", "symmetric", text=_mflops),
)

_REAL_SCORE: Columns = (
    Column("size", "size"),
    Column("matrices", "matrices"),
    Column("untuned_mflops", "median in CSR", text=_mflops),
    Column("untuned_error", "unblocked median, off by", text=percent),
    Column("synthetic_error", "synthetic matrices, off by", text=percent),
    Column("tuned_mflops", "median tuned", text=_mflops),
    Column("tuned_error", "blocked median, off by", text=percent),
    Column("synthetic_tuned_error", "synthetic matrices, off by", text=percent),
    Column("tuned_max_mflops", "maximum tuned", text=_mflops),
    Column(
        "max_ratio",
        "blocked maximum over it",
        text="{:.2f}".format,
        about="above 1 the blocked maximum is too high",
    ),
    Column(
        "square_share",
        "squares by bytes over best size",
        text=percent,
        about="speed of the squares chosen by bytes",
    ),
)

#: The documents of the command, by how it is called.
DOCUMENTS: dict[str, Columns] = {
    "bench": (
        Column("figures", value=lambda result: figures_of(result.ratings), about="of the first setting"),
        Column(
            "errors",
            value=lambda result: result.main.errors if result.main else dict.fromkeys(FIGURES),
            about="relative, of each figure",
        ),
        *keys("budget_s", "used_s"),
        Column("noise", value="main.noise"),
        Column("machine", value=lambda result: machine_document(result.machine)),
        Column("versions", value=lambda result: versions()),
        Column("phases_s", value="phases"),
        *keys("notes", "interrupted"),
        Column("settings", value="ratings", columns=_RATING),
    ),
    "bench --compare A.json B.json": (
        Column("machines"),
        Column("settings", value="targets"),
        Column("figures", columns=keys("first", "second", "ratio", "error", "is_different"), by="figure"),
        *keys("points", "points_ratio"),
    ),
    "bench --real FOLDER": (
        Column("figures", value="rating.figures", columns=keys(*FIGURES)),
        Column("dtype", value="rating.dtype"),
        Column("threads", value="rating.threads"),
        Column("rows", columns=_REAL_ROW),
        Column("scores", columns=_REAL_SCORE),
        *keys("refused", "missing", "interrupted"),
    ),
    "bench --twins FOLDER": (
        Column("rows", columns=_TWIN_ROW),
        Column("scores", columns=_TWIN_SCORE),
        *keys("refused", "interrupted"),
    ),
}
