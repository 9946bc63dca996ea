"""Which statistic of a product's times survives a busy machine: what `measuring/timing.py` rests on.

    python benchmarks/busy_machine.py [--seconds 0.15] [--hungry] [--save FILE]

Each product is timed call by call: while the machine is quiet, beside one busy process, and beside two, all
within a second, so that the drift of the machine cancels. This script starts the busy processes;
they stand still (SIGSTOP) until they are wanted. From the times of single calls any way of sampling
is computed afterwards: samples of so many calls, a quantile of so many samples. A ratio is that statistic
beside the busy processes over the same while quiet.
"""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sparsecast.api.inputs import read_matrix
from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices.binding import bind, prepared
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.planning.candidates import Target

#: Products of 5 us to 10 ms with one thread here.
MATRICES = (
    "gallery:poisson2d?n=30",
    "gallery:poisson2d?n=120",
    "gallery:poisson2d?n=400",
    "gallery:random?n=150000&nnz_per_row=6",
    "gallery:poisson3d?n=40&points=27",
    "gallery:poisson3d?n=90&points=7",
)
FORMATS = ("csr", "sell", "coo")
#: Seconds of calls in one sample; 0 is a single call.
LENGTHS_S = (0.0, 0.0005, 0.002, 0.008)
STATISTICS = {"median": 0.5, "25 %": 0.25, "10 %": 0.1, "5 %": 0.05, "minimum": 0.0}

BUSY = "while True: pass"
HUNGRY = "import numpy as np; a = np.ones(1 << 23)\nwhile True: a.sum()"


@contextmanager
def busy_processes(count: int, hungry: bool) -> Iterator[Callable[[int], None]]:
    """Yield what lets so many of `count` busy processes run and stops the others."""
    code = HUNGRY if hungry else BUSY
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]

    def let_run(running: int) -> None:
        for number, process in enumerate(processes):
            process.send_signal(signal.SIGCONT if number < running else signal.SIGSTOP)
        sleep(0.02)

    try:
        sleep(0.5)
        let_run(0)
        yield let_run
    finally:
        for process in processes:
            process.kill()
            process.wait()


def trace(call: Callable[[], object], seconds: float) -> NDArray[np.float64]:
    """Return the seconds of each call, one after the other."""
    for _ in range(3):
        call()
    times, end = [], perf_counter() + seconds
    last = perf_counter()
    while last < end:
        start = perf_counter()
        call()
        last = perf_counter()
        times.append(last - start)
    return np.array(times)


def call_of(A: Any, format_name: str, threads: int) -> Callable[[], object]:
    """Return the product of a format with the kernel that the rules choose."""
    candidate = Target("cpu", "float64", 32, threads).candidate(format_name, RowBlocks.of(structure(A)))
    ready = prepared(A, "float64", 32)
    product = bind(ready, candidate).product
    x, out = right_hand_side(A.shape[1], "float64"), np.empty(A.shape[0])
    product(x, out)
    return lambda: product(x, out)


def statistic(times: NDArray[np.float64], length_s: float, share: float) -> float:
    """Return a quantile of samples of consecutive calls that take about `length_s` undisturbed."""
    calls = max(1, min(math.ceil(length_s / np.quantile(times, 0.1)), len(times)))
    whole = len(times) // calls * calls
    samples = times[:whole].reshape(-1, calls).mean(axis=1)
    return float(np.quantile(samples, share, method="lower"))


def table_of(
    title: str, traces: dict[tuple[str, str, int, int], list[NDArray[np.float64]]], threads: int, running: int
) -> Table:
    """Return the ratios to the quiet machine, for each statistic and length of a sample."""
    table = Table(title=title)
    for column in ("sample", *STATISTICS):
        table.add_column(column, justify="right")
    for length_s in LENGTHS_S:
        cells = []
        for share in STATISTICS.values():
            ratios = [
                statistic(busy, length_s, share) / statistic(quiet, length_s, share)
                for key, busy_traces in traces.items()
                if key[2] == threads and key[3] == running
                for busy, quiet in zip(busy_traces, traces[(*key[:3], 0)], strict=True)
            ]
            cells.append(f"{np.median(ratios):.2f} ({np.quantile(ratios, 0.9):.2f})")
        table.add_row(f"{length_s * 1e3:g} ms" if length_s else "one call", *cells)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.15, help="of each trace")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--hungry", action="store_true", help="busy processes that stream memory")
    parser.add_argument("--save", type=Path, help="keep all times in this .npz")
    options = parser.parse_args(arguments)
    calls = {
        (name, format_name, threads): call_of(A, format_name, threads)
        for name in MATRICES
        for A in (read_matrix(name).matrix,)
        for format_name in FORMATS
        for threads in (1, 2)
    }
    traces: dict[tuple[str, str, int, int], list[NDArray[np.float64]]] = {}
    with busy_processes(2, options.hungry) as let_run:
        for _ in range(options.rounds):
            for key, call in calls.items():
                for running in (0, 1, 2):
                    let_run(running)
                    traces.setdefault((*key, running), []).append(trace(call, options.seconds))
    console = Console(width=110)
    for threads in (1, 2):
        for running in (1, 2):
            title = (
                f"{threads} thread(s) beside {running} busy: median (90th percentile) of {len(calls) // 2}"
            )
            console.print(table_of(title, traces, threads, running))
    if options.save:
        np.savez(
            options.save,
            **{"|".join(map(str, k)) + f"|{i}": t for k, v in traces.items() for i, t in enumerate(v)},
        )


if __name__ == "__main__":
    main()
