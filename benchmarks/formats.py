"""What every format makes of the machine: threads, bandwidth, several vectors.

    python benchmarks/formats.py [--json] [MATRIX ...]

For each format that suits a matrix, sampled in turn:

- the time of one product with one thread and with all threads, and how many times faster all are;
- the share of the stream-read bandwidth: the bytes that a product streams a second (`traffic`, padding
  counted) over those of a plain read of an array of as many bytes with as many threads;
- how many times faster eight vectors at once are than eight single products, with one thread.

MATRIX is a file or a gallery specification; without one, banded and block matrices of the gallery.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace

import numba
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast import api
from sparsecast.devices.binding import Bound, bind, prepared
from sparsecast.errors import InputError
from sparsecast.measuring.memory_read import memory_read
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.records import Candidate

VECTORS = 8
EFFORT = Effort(samples=9, sample_s=0.03)
DEFAULT_MATRICES = (
    "gallery:banded?n=500000&half_bandwidth=12",
    "gallery:poisson2d?n=1200",
    "gallery:poisson3d?n=100&points=27",
    "gallery:elasticity3d?n=44",
)


@dataclass(frozen=True)
class Row:
    """What was measured of one format on one matrix; `several` where it has a kernel for several vectors."""

    matrix: str
    nnz: int
    format: str
    traffic_bytes: int
    one_s: float
    all_s: float
    scaling: float
    one_share: float
    all_share: float
    several: float | None
    noise: float


def calls_of(A: csr_array, bounds: dict[int, Bound], threads: int) -> dict[str, Call]:
    """Return what is timed for one format."""
    x, out = np.ones(A.shape[1], dtype=A.dtype), np.empty(A.shape[0], dtype=A.dtype)
    traffic = bounds[1].matrix.traffic()
    calls: dict[str, Call] = {
        "one": lambda: bounds[1].product(x, out),
        "all": lambda: bounds[threads].product(x, out),
        "one read": memory_read(traffic, 1),
        "all read": memory_read(traffic, threads),
    }
    several = bounds[1].multivector
    if several is not None:
        X = np.ones((A.shape[1], VECTORS), dtype=A.dtype)
        Y = np.empty((A.shape[0], VECTORS), dtype=A.dtype)
        calls["several"] = lambda: several(X, Y)
    return calls


def row_of(name: str, A: csr_array, candidate: Candidate, threads: int) -> Row:
    """Measure one format, everything in turn."""
    ready = prepared(A, candidate.dtype, candidate.index_bits)
    bounds = {count: bind(ready, replace(candidate, threads=count)) for count in (1, threads)}
    found = measure(calls_of(A, bounds, threads), EFFORT)
    time_s = {what: timing.time_s for what, timing in found.items()}
    return Row(
        matrix=name,
        nnz=A.nnz,
        format=candidate.format,
        traffic_bytes=bounds[1].matrix.traffic(),
        one_s=time_s["one"],
        all_s=time_s["all"],
        scaling=time_s["one"] / time_s["all"],
        one_share=time_s["one read"] / time_s["one"],
        all_share=time_s["all read"] / time_s["all"],
        several=VECTORS * time_s["one"] / time_s["several"] if "several" in time_s else None,
        noise=max(timing.noise for timing in found.values()),
    )


def rows_of(specification: str, threads: int) -> list[Row]:
    """Measure every format that suits one matrix, the fastest first."""
    found, rows = api.read_matrix(specification), []
    for candidate in api.choice(found.matrix, threads=threads).candidates:
        try:
            rows.append(row_of(found.name, found.matrix, candidate, threads))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return sorted(rows, key=lambda row: row.all_s)


def table_of(rows: list[Row], threads: int) -> Table:
    """Return the rows as a table."""
    table = Table(caption="share: bytes streamed a second over those of a plain read of as many bytes")
    table.add_column("matrix")
    table.add_column("format")
    for heading in (
        "MB",
        "1 thread",
        f"{threads} threads",
        "faster",
        "share, 1",
        f"share, {threads}",
        f"{VECTORS} vectors",
        "noise",
    ):
        table.add_column(heading, justify="right")
    before = None
    for row in rows:
        table.add_row(
            row.matrix if row.matrix != before else "",
            row.format.upper(),
            f"{row.traffic_bytes / 1e6:.0f}",
            f"{1e3 * row.one_s:.3f} ms",
            f"{1e3 * row.all_s:.3f} ms",
            f"{row.scaling:.2f}x",
            f"{100 * row.one_share:.0f} %",
            f"{100 * row.all_share:.0f} %",
            "-" if row.multivector is None else f"{row.multivector:.1f}x",
            f"{100 * row.noise:.1f} %",
        )
        before = row.matrix
    return table


def main() -> None:
    """Measure every matrix and show what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments = parser.parse_args()
    threads = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    rows = []
    for specification in arguments.matrices or DEFAULT_MATRICES:
        print(f"measuring {specification}", file=sys.stderr)
        rows += rows_of(specification, threads)
    if arguments.json:
        print(json.dumps({"threads": threads, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else 150).print(table_of(rows, threads))


if __name__ == "__main__":
    main()
