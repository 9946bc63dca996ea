"""Results of the five-minute benchmark, two of them compared, and real matrices: their columns and tables."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import statistics
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices
from sparsecast.papers.gahvari_2007.search_space import SIZES, Point
from sparsecast.papers.gahvari_2007.summary import FIGURES, Rating
from sparsecast.results.columns import within
from sparsecast.results.machines import machine_document
from sparsecast.system.tabular import Column, Columns, Document, Table, keys, lines_of
from sparsecast.system.texts import counted, percent
from sparsecast.system.version import VERSION

_mflops = "{:,.0f}".format

#: The figures of a result that can be compared.
COMPARED = FIGURES[:4]


def rating_tables(title: str, ratings: Sequence[Rating], *below: str) -> list[Table]:
    """Return the figures of some targets, each with its error, and what they rest on."""
    return [Table(title, _FIGURES, ratings), Table("What was measured", _MEASURED, ratings, below)]


def sentence_of(ratings: Sequence[Rating]) -> str:
    """Return the one number of the benchmark in a sentence."""
    if not ratings or ratings[0].figures.blocked_median_mflops is None:
        return "No blocked median: too little was measured."
    rating = ratings[0]
    value = _with_error(rating, "blocked_median_mflops")
    return f"Blocked median, the one number: {value} MFLOP/s ({rating.setting})."


def figures_of(ratings: Sequence[Rating]) -> dict[str, float | None]:
    """Return the figures of the first target, None where nothing was measured."""
    return dataclasses.asdict(ratings[0].figures) if ratings else dict.fromkeys(FIGURES)


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Compare the first targets of two results, which are JSON documents of the benchmark.

    Returned are both ``machines`` and ``targets``; by figure what both have in MFLOP/s, ``first`` and
    ``second``, their ``ratio``, its relative ``error``, the root of the sum of the squares of both, and
    whether they differ by more than that, ``is_different``; and ``points``, the matrices that were measured
    in both in the same type of values, with ``points_ratio``, the median of the second speed over the first.
    """
    machines, targets, figures, errors, mflops = zip(*map(_read, (first, second)), strict=True)
    compared = {}
    for name in COMPARED:
        value, other = (of_result[name] for of_result in figures)
        known = [of_result[name] for of_result in errors if of_result[name] is not None]
        ratio = other / value if value and other else None
        error = math.hypot(*known) if len(known) == 2 else None
        compared[name] = {
            "first": value,
            "second": other,
            "ratio": ratio,
            "error": error,
            "is_different": None if ratio is None or error is None else abs(ratio - 1) > error,
        }
    ratios = [mflops[1][key] / mflops[0][key] for key in mflops[0] if key in mflops[1]]
    return {
        "machines": machines,
        "targets": targets,
        "figures": compared,
        "points": len(ratios),
        "points_ratio": statistics.median(ratios) if ratios else None,
    }


def _read(path: Path) -> tuple[str, str, dict[str, Any], dict[str, Any], dict[tuple[str, str], float]]:
    """Return machine and target, figures and errors, and the speed by type of values and matrix."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        main = document["settings"][0]
        mflops = {(main["dtype"], point["matrix"]): float(point["mflops"]) for point in main["points"]}
        if min(mflops.values(), default=1.0) <= 0:
            raise ValueError("a speed that is not above 0")
        figures, errors = (
            {name: None if values[name] is None else float(values[name]) for name in COMPARED}
            for values in (document["figures"], main["errors"])
        )
        target = f"{main['device']} {main['dtype']} {main['threads']} threads"
        return document["machine"]["name"], target, figures, errors, mflops
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): expected a result of sparsecast bench; check the path"
        ) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(
            f"{path} is no result of the benchmark: expected what sparsecast bench --output wrote; "
            f"name another file"
        ) from error


def comparison_table(compared: dict[str, Any]) -> Table:
    """Return what `compare` returned as a table."""
    pairs = zip(("first", "second"), compared["machines"], compared["targets"], strict=True)
    below = [f"{which}: {machine}, {target}" for which, machine, target in pairs]
    if compared["points_ratio"] is not None:
        ratio = f"median ratio of their speeds {compared['points_ratio']:.3f}"
        below.append(f"same matrices: {compared['points']:,}, {ratio}")
    rows = [{"figure": _figure(name), **figure} for name, figure in compared["figures"].items()]
    return Table("MFLOP/s", _COMPARED, rows, tuple(below))


def real_tables(real: RealMatrices) -> list[Table]:
    """Return how the figures forecast matrices of each size, how near twins are, and all matrices."""
    figures = dataclasses.asdict(real.rating.figures).items()
    shown = (f"{_figure(name)} {value:,.0f}" for name, value in figures if value is not None)
    below = [f"figures: {', '.join(shown)}"]
    if sizes := [size for size in SIZES if size not in {row["size"] for row in real.rows}]:
        cache = f"the last cache holds {real.rating.cache_bytes / 1e6:,.0f} MB"
        below.append(f"no {' or '.join(sizes)} one among the {len(real.rows)} matrices measured: {cache}")
    if real.missing:
        below.append(f"no time for {counted(real.missing, 'matrix')}: run again to go on")
    matrices = "MFLOP/s of matrices (Figures 3 to 5, 8 to 15)"
    title = f"The figures against matrices, {real.rating.setting}, MFLOP/s (Figures 11 to 13)"
    return [
        Table(title, _REAL_SCORE, real.scores, tuple(below)),
        Table("Differences of synthetic twins in time (Figures 8 to 10)", _TWIN_SCORE, real.twins),
        Table(matrices, REAL_ROW, real.rows, lines_of(real.refused), most=15),
    ]


def versions() -> dict[str, str]:
    """Return the versions of what a measurement depends on: ourselves, Python, packages, the compiler."""
    from llvmlite.binding import llvm_version_info

    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "numba", "llvmlite")}
    compiler = f"LLVM {'.'.join(map(str, llvm_version_info))}"
    return {"sparsecast": VERSION, "python": platform.python_version(), **packages, "compiler": compiler}


def _figure(name: str) -> str:
    return name.removesuffix("_mflops").replace("_", " ")


def _with_error(rating: Rating, name: str) -> str | None:
    """Return a figure with its relative error, where that is known."""
    value, error = getattr(rating.figures, name), rating.errors[name]
    if value is None:
        return None
    return _mflops(value) if error is None else f"{_mflops(value)} ± {percent(error)}"


def _of_size(rating: Rating, size: str) -> int | None:
    return rating.sizes.get(size)


def _points(rating: Rating) -> list[Document]:
    return [
        {
            "matrix": record.matrix,
            "kind": point.series.name,
            "dimension": point.dimension,
            "nnz_per_row": point.nnz_per_row,
            "size": rating.size(point.dimension, point.nnz_per_row),
            "format": record.candidate.format,
            "kernel": record.candidate.kernel,
            "nnz": record.nnz,
            "bytes": record.traffic_bytes,
            "mflops": 1e3 * record.gflops,
            "time_s": record.time_s,
            "noise": record.noise,
            "samples_s": list(record.samples_s),
        }
        for record, point in ((record, Point.named(record.matrix)) for record in rating.records)
    ]


_FIGURES: Columns = (
    Column("target", "target", "setting"),
    *within("figures", keys(*FIGURES)),
    *keys("errors"),
    *(Column("", _figure(name), partial(_with_error, name=name)) for name in FIGURES),
)

_MEASURED: Columns = (
    Column("target", "target", "setting"),
    *(
        Column(f"{name}_as_printed", f"{_figure(name)}, as printed", f"figures_as_printed.{name}", _mflops)
        for name in FIGURES
        if "median" in name
    ),
    Column("noise", "noise", text=percent),
    Column("bandwidth_share", "share of the bandwidth", text=percent),
    Column("largest_dimension", "largest dimension"),
    *(Column(size, size, partial(_of_size, size=size)) for size in SIZES),
    Column("refilled", "refilled"),
)

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

_COMPARED: Columns = (
    Column("figure", "figure"),
    Column("first", "first", text=_mflops),
    Column("second", "second", text=_mflops),
    Column("ratio", "ratio", text="{:.3f}".format),
    Column("error", "error", text=percent),
    Column("is_different", "differ"),
)

#: Of a real matrix: speeds in CSR, and in the fastest of CSR and all block sizes, each beside that of the
#: benchmark's matrices of that block size, interpolated to its dimension, at the nearest number of non-zeros
#: a row; in the square blocks that bytes choose, as a plan does without measuring; as one triangle; in CSR
#: just before the twins; of the paper's twin and of ours, in CSR and in those square blocks.
REAL_ROW: Columns = (
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
    *keys("again_mflops", "banded_mflops", "ours_mflops", "banded_square_mflops", "ours_square_mflops"),
)

_TWINS = {"again": "measured again", "banded": "paper's twin", "ours": "our twin"}

_TWIN_SCORE: Columns = (
    Column("format", "format", text=str.upper),
    Column("twin", "twin", text=_TWINS.__getitem__),
    Column("matrices", "matrices"),
    Column("median_error", "median", text=percent),
    Column("p90_error", "90th percentile", text=percent),
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
        Column("figures", columns=_COMPARED[1:], by="figure"),
        *keys("points", "points_ratio"),
    ),
    "bench --real FOLDER": (
        Column("figures", value="rating.figures", columns=keys(*FIGURES)),
        Column("dtype", value="rating.dtype"),
        Column("threads", value="rating.threads"),
        Column("rows", columns=REAL_ROW),
        Column("scores", columns=_REAL_SCORE),
        Column("twins", columns=_TWIN_SCORE),
        *keys("refused", "missing", "interrupted"),
    ),
}
