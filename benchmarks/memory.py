"""What is beyond the caches: how fast it is read, what slows that down, and how much it changes by itself."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from pyarrow.parquet import read_table

from experiment import Matrices, Rows, checked_product, experiment, most_threads, named
from sparsecast.machines.machine import detect
from sparsecast.measuring.core_speed import reading
from sparsecast.measuring.references import memory_read, reference_bytes, references
from sparsecast.measuring.timing import Call, HostClock
from sparsecast.records import MEMORY

PANEL = "Machine"

#: Matrices of 100 to 170 MB in CSR: a stencil and a band, which stream, and columns at random, which gather.
STENCIL = "gallery:poisson3d?n=80&points=27"
BAND = "gallery:banded?n=500000&half_bandwidth=8"
RANDOM = "gallery:random?n=800000&nnz_per_row=10"
IN_CACHE = "gallery:banded?n=40000&half_bandwidth=12"

#: Other programs, by what they do: nothing, read and write memory, compute with what a core's cache holds.
OTHERS: Mapping[str, str | None] = {
    "nothing": None,
    "streams": "import numpy as np\na = np.ones(1 << 25)\nb = a.copy()\nwhile True: np.copyto(b, a)",
    "computes": "import numpy as np\na = np.ones(1 << 10)\nwhile True: np.multiply(a, 1.0, out=a)",
}

#: Sizes that are read, in MiB.
_SIZES_MIB = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@experiment(PANEL)
def bandwidth_by_size(rounds: int = 5, seconds: float = 0.1) -> Rows:
    """Read arrays in order, one size after the other, several times: where the last cache ends here."""
    speeds: dict[tuple[int, int], list[float]] = {}
    for threads in dict.fromkeys((1, most_threads())):
        for size in _SIZES_MIB * rounds:
            read = memory_read(size << 20, threads)
            speeds.setdefault((threads, size), []).append((size << 20) / _low_s(read, seconds) / 1e9)
    for (threads, size), found in speeds.items():
        yield {
            "threads": threads,
            "MiB": size,
            "GB/s": statistics.median(found),
            "least GB/s": min(found),
            "greatest GB/s": max(found),
        }


@experiment(PANEL)
def memory_references(matrices: Matrices = None, seconds: float = 0.5) -> Rows:
    """Time references and products in CSR and SELL alone, and beside a program that streams or computes.

    A column has how many times as long they take as alone; the references are named by their place.
    """
    problems = list(named(matrices, (STENCIL, BAND)))
    for threads in dict.fromkeys((1, max(1, most_threads() - 1))):
        calls = {
            level: reference.call
            for level, reference in references(
                reference_bytes(*detect().shared_cache_bytes(threads)), threads
            ).items()
        }
        calls |= {
            f"{problem.name} {name}": checked_product(problem.matrix, name, threads=threads)
            for problem in problems
            for name in ("csr", "sell")
        }
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for other in OTHERS:
            with _beside(other):
                for name, call in calls.items():
                    taken[name].append(_low_s(call, seconds))
        for name, (alone, *others) in taken.items():
            beside = {
                f"beside one that {other}": taken_s / alone
                for other, taken_s in zip(list(OTHERS)[1:], others, strict=True)
            }
            yield {"threads": threads, "read or product": name, "alone_s": alone, **beside}


@experiment(PANEL)
def memory_changes(
    matrices: Matrices = None,
    seconds: Annotated[float, typer.Option(min=1.0, help="For each number of threads.")] = 60.0,
) -> Rows:
    """Time a read of memory and products by turns: how much each differs by itself, and what a read tells.

    "spread" is the standard deviation of the logarithms of single times; "spread after a read" that of their
    ratios to a read so many seconds before. A read that tells of a product makes it less than the spread.
    """
    problems = list(named(matrices, (STENCIL, RANDOM)))
    for threads in dict.fromkeys((1, most_threads())):
        size = reference_bytes(*detect().shared_cache_bytes(threads))[MEMORY]
        calls: dict[str, Call] = {"read": memory_read(size, threads)}
        calls |= {p.name: checked_product(p.matrix, "csr", threads=threads) for p in problems}
        times, end = list[list[float]](), time.perf_counter() + seconds
        while time.perf_counter() < end:
            times.append([time.perf_counter(), *(_low_s(call, 0.0) for call in calls.values())])
        at_s, *times_s = np.array(times).T
        logs = np.log(times_s)
        step_s = float(np.median(np.diff(at_s)))
        for name, log in zip(calls, logs, strict=True):
            after = {}
            for lag_s in (0, 1, 3, 10):
                lag = round(lag_s / step_s)
                if name != "read" and lag < len(log) - 10:
                    after[f"spread, {lag_s} s after a read"] = float(
                        np.std(log[lag:] - logs[0][: len(log) - lag])
                    )
            median_s = float(np.exp(np.median(log)))
            yield {
                "threads": threads,
                "times": name,
                "median_s": median_s,
                "spread": float(np.std(log)),
                **after,
            }


#: A matrix of 30 to 50 MB, by format: beyond second caches, within a large last one.
BLOCKS = "gallery:elasticity3d?n=23"

#: Formats in turn, and passes that are shown.
_FORMATS, _PASSES = ("csr", "coo", "ell", "hyb", "sell", "jad"), (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)


@experiment(PANEL)
def passes_until_warm(matrices: Matrices = None, turns: int = 6) -> Rows:
    """Do products in several formats in turn, 30 of each in a row: how many until the cache has the matrix.

    A column has the time of a pass over the median of the last ten.
    """
    for problem in named(matrices, (BLOCKS,)):
        for threads in dict.fromkeys((1, most_threads())):
            calls = {name: checked_product(problem.matrix, name, threads=threads) for name in _FORMATS}
            taken: dict[str, list[list[float]]] = {name: [] for name in calls}
            for _ in range(turns):
                for name, call in calls.items():
                    taken[name].append([HostClock().seconds(call, 1) for _ in range(max(_PASSES))])
            for name, of_turns in taken.items():
                median_s = np.median(of_turns, axis=0)
                warm_s = float(np.median(median_s[-10:]))
                over = {f"pass {number}": float(median_s[number - 1]) / warm_s for number in _PASSES}
                yield {"matrix": problem.name, "threads": threads, "format": name, "warm_s": warm_s, **over}


@experiment(PANEL)
def clock_after_products(matrices: Matrices = None, products: int = 12) -> Rows:
    """Read the speed of cores right after a product: how many times as long it takes as the fastest reading.

    A core that waits for memory may lower its clock, and looks like one that another machine shares.
    """
    for threads in dict.fromkeys((1, most_threads())):
        read_s = reading(threads)
        fastest_s = min(read_s() for _ in range(400))
        for problem in named(matrices, (IN_CACHE, STENCIL, RANDOM)):
            call, after = checked_product(problem.matrix, "csr", threads=threads), list[list[float]]()
            for _ in range(products):
                product_s = HostClock().seconds(call, 1)
                after.append([read_s() / fastest_s for _ in range(40)])
            second, fortieth = np.median(np.array(after)[:, [1, 39]], axis=0).tolist()
            yield {
                "threads": threads,
                "after": problem.name,
                "product_s": product_s,
                "second reading": second,
                "fortieth": fortieth,
            }


@experiment(PANEL)
def hours_apart(
    first: Annotated[Path, typer.Argument(metavar="FIRST.parquet", exists=True, dir_okay=False)],
    second: Annotated[Path, typer.Argument(metavar="SECOND.parquet", exists=True, dir_okay=False)],
) -> Rows:
    """Compare what two evaluations measured of the same products, from the rows of `evaluate --rows`."""
    measured: list[dict[tuple[str, ...], float]] = []
    for path in (first, second):
        rows = read_table(
            path, columns=["matrix", "format", "threads", "parameters", "measured_s"]
        ).to_pylist()
        measured.append({tuple(map(str, list(row.values())[:-1])): row["measured_s"] for row in rows})
    ratios = [measured[1][key] / time_s for key, time_s in measured[0].items() if key in measured[1]]
    differences = np.exp(np.abs(np.log(ratios))) - 1
    yield {
        "products": len(ratios),
        "second over first": float(np.median(ratios)),
        "its 90th percentile": float(np.quantile(ratios, 0.9)),
        "median difference": float(np.median(differences)),
        "90th percentile difference": float(np.quantile(differences, 0.9)),
    }


@contextmanager
def _beside(other: str) -> Iterator[None]:
    program = OTHERS[other]
    if program is None:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        time.sleep(1.0)
        yield
    finally:
        process.kill()
        process.wait()


def _low_s(call: Any, seconds: float) -> float:
    """Return the low quantile of the times of a call within some seconds, of three at least."""
    clock, taken = HostClock(), []
    end = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        taken.append(clock.seconds(call, 1))
    return float(np.quantile(taken, 0.2))
