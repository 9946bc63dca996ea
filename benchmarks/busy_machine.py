"""Which statistic of a product's times survives a busy machine: what `measuring/timing.py` rests on.

    python benchmarks/busy_machine.py [statistics] [measure] [--hungry]

Each product is timed call by call: while the machine is quiet, beside one busy process, and beside two, all
within a second, so that the drift of the machine cancels. This script starts the busy processes;
they stand still (SIGSTOP) until they are wanted. From the times of single calls any way of sampling
is computed afterwards: samples of so many calls, a quantile of so many samples. A ratio is that statistic
beside the busy processes over the same while quiet.

``measure`` takes the same products with `sparsecast.measuring` as it is: ratios of its times, what the
conditions say, how the references moved, and how long a product took to measure.
"""

from __future__ import annotations

import argparse
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sparsecast.api import read_matrix
from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.target import Target
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import detect
from sparsecast.measuring.references import ReferenceMonitor, reference_bytes, references
from sparsecast.measuring.surroundings import Surroundings
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.records import Conditions

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

#: What a calibration gives to a point.
EFFORT = Effort(samples=40, sample_s=0.0005, most_s=0.15)

RUNNING = (0, 1, 2)

CONDITIONS = ("other_processes", "stolen_share", "pressure_share")
Key = tuple[str, str, int]

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


def trace(call: Call, seconds: float) -> tuple[NDArray[np.float64], float]:
    """Return the seconds of each call, one after the other, and how many other processes ran meanwhile."""
    for _ in range(3):
        call()
    watch, times, begin = Surroundings(), [], perf_counter()
    last = begin
    while last < begin + seconds:
        start = perf_counter()
        call()
        last = perf_counter()
        times.append(last - start)
        watch.look()
    return np.array(times), watch.since(begin).other_processes or 0.0


def call_of(A: Any, format_name: str, threads: int) -> Call:
    """Return the product of a format with the kernel that the rules choose."""
    candidate = Target("cpu", "float64", 32, threads).candidate(
        format_name, RowBlocks.of(structure(A)), detect()
    )
    product = bind(prepared(A, "float64", 32), candidate).product
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
            cells.append(quantiles(ratios) if ratios else "-")
        table.add_row(f"{length_s * 1e3:g} ms" if length_s else "one call", *cells)
    return table


def compare_statistics(
    calls: dict[Key, Call], let_run: Callable[[int], None], options: Any
) -> Iterator[Table]:
    """Yield the tables of what any way of sampling would have found."""
    traces: dict[tuple[str, str, int, int], list[NDArray[np.float64]]] = {}
    for _ in range(options.rounds):
        for key, call in calls.items():
            taken = []
            for running in RUNNING:
                let_run(running)
                times, others = trace(call, options.seconds)
                if others <= running + options.foreign:
                    taken.append(times)
            if len(taken) == len(RUNNING):
                for running, times in zip(RUNNING, taken, strict=True):
                    traces.setdefault((*key, running), []).append(times)
    for threads in (1, 2):
        for running in RUNNING[1:]:
            title = (
                f"{threads} thread(s) beside {running} busy: median (90th percentile) of {len(calls) // 2}"
            )
            yield table_of(title, traces, threads, running)
    if options.save:
        named = {"|".join(map(str, (*key, i))): t for key, kept in traces.items() for i, t in enumerate(kept)}
        np.savez(options.save, **named)


@dataclass(frozen=True)
class Taken:
    """What `measure` and the rest of the room found of some products beside so many busy processes."""

    times_s: NDArray[np.float64]
    took_s: float
    conditions: Conditions
    levels: dict[str, float]


def take(calls: dict[str, Call], monitor: ReferenceMonitor) -> Taken:
    """Measure some products, and the references after them."""
    watch, start = Surroundings(), perf_counter()
    found = measure(calls, EFFORT, watch.look)
    took_s, conditions = perf_counter() - start, watch.since(start)
    monitor.time()
    levels = {level: readings[-1][1] for level, readings in monitor.readings.items()}
    return Taken(np.array([each.time_s for each in found.values()]), took_s / len(calls), conditions, levels)


def compare_measurements(calls: dict[Key, Call], let_run: Callable[[int], None], options: Any) -> Table:
    """Return what `measure` finds beside so many busy processes."""
    sizes = reference_bytes(2 << 20, 105 << 20)
    monitors = {threads: ReferenceMonitor(references(sizes, threads)) for threads in (1, 2)}
    kept: dict[int, list[list[Taken]]] = {1: [], 2: []}
    for _ in range(options.rounds):
        for name in MATRICES:
            for threads, monitor in monitors.items():
                own = {key[1]: call for key, call in calls.items() if (key[0], key[2]) == (name, threads)}
                turn = []
                for running in RUNNING:
                    let_run(running)
                    turn.append(take(own, monitor))
                if all(
                    (t.conditions.other_processes or 0) <= n + options.foreign for n, t in enumerate(turn)
                ):
                    kept[threads].append(turn)
    table = Table(title="`measure` beside busy processes: ratio to quiet, median (90th percentile)")
    for column in ("threads", "busy", "turns", "ratio", "others", "stolen", "pressure", *sizes, "a point"):
        table.add_column(column, justify="right")
    for threads, turns in kept.items():
        for running in RUNNING if turns else ():
            here = [turn[running] for turn in turns]
            ratios = np.concatenate([turn[running].times_s / turn[0].times_s for turn in turns])
            moved = [
                [turn[running].levels[level] / turn[0].levels[level] for turn in turns] for level in sizes
            ]
            table.add_row(
                str(threads),
                str(running),
                str(len(turns)),
                quantiles(ratios),
                *(shown(getattr(each.conditions, name) for each in here) for name in CONDITIONS),
                *map(quantiles, moved),
                f"{1e3 * np.mean([each.took_s for each in here]):.0f} ms",
            )
    return table


def quantiles(values: Any) -> str:
    """Return the median and the 90th percentile."""
    return f"{np.median(values):.2f} ({np.quantile(values, 0.9):.2f})"


def shown(values: Iterable[float | None]) -> str:
    """Return the median and the range of what was told."""
    told = [value for value in values if value is not None]
    return f"{np.median(told):.2f} ({min(told):.2f}-{max(told):.2f})" if told else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="statistics, measure; both by default")
    parser.add_argument("--seconds", type=float, default=0.15, help="of each trace")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--foreign", type=float, default=0.25, help="leave out a comparison beside more processes of others"
    )
    parser.add_argument("--hungry", action="store_true", help="busy processes that stream memory")
    parser.add_argument("--save", type=Path, help="keep the times of all calls in this .npz")
    options = parser.parse_args(arguments)
    console = Console(width=130)
    calls = {
        (name, format_name, threads): call_of(A, format_name, threads)
        for name in MATRICES
        for A in (read_matrix(name).matrix,)
        for format_name in FORMATS
        for threads in (1, 2)
    }
    with busy_processes(2, options.hungry) as let_run:
        if "statistics" in options.what or not options.what:
            for table in compare_statistics(calls, let_run, options):
                console.print(table)
        if "measure" in options.what or not options.what:
            console.print(compare_measurements(calls, let_run, options))


if __name__ == "__main__":
    main()
