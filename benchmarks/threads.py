"""Products on several threads: what a hand-off of parts costs, and what the pool costs its neighbours."""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import time
from typing import Annotated, Any

import numba
import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiment import Matrices, Rows, checked_product, experiment, most_threads, named, uniform_vector
from libraries import library_call
from sparsecast.measuring.timing import Call
from sparsecast.system.numba_pool import each_part, share

PANEL = "Threads"

#: The clock of `time.perf_counter` as compiled code reads it.
_clock: Any = ctypes.CDLL(None).clock_gettime
_clock.argtypes = (ctypes.c_int, ctypes.c_void_p)
_MONOTONIC = int(getattr(time, "CLOCK_MONOTONIC", 0))


def busy(seconds: float) -> None:
    """Keep this core busy, as a solver does between two products."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


#: What the caller does between two calls: its name, and what does it.
PAUSES: dict[str, Call] = {
    "none": lambda: None,
    **{f"busy {us} us": lambda us=us: busy(us * 1e-6) for us in (20, 50, 100, 200, 1000)},
    **{f"asleep {ms} ms": lambda ms=ms: time.sleep(ms * 1e-3) for ms in (1, 10)},
}


@numba.njit(nogil=True)
def _now(words):  # type: ignore[no-untyped-def]
    _clock(_MONOTONIC, words.ctypes)  # type: ignore[misc]
    return words[0] * 1_000_000_000 + words[1]


@numba.njit(nogil=True)
def _work(part, work_ns, stamps, starts):  # type: ignore[no-untyped-def]
    words = stamps[part, 2:4]
    entry_ns = _now(words)
    exit_ns = entry_ns
    while exit_ns - entry_ns < work_ns:
        exit_ns = _now(words)
    stamps[part, 0], stamps[part, 1] = entry_ns, exit_ns


@numba.njit(nogil=True)
def _works(work_ns, stamps, starts, pool):  # type: ignore[no-untyped-def]
    each_part(_work, (work_ns, stamps, starts), pool)


@experiment(PANEL)
def hand_off(
    threads: Annotated[int | None, typer.Option(min=1, help="All by default.")] = None,
    work_us: Annotated[float, typer.Option(help="What each part takes.")] = 60.0,
    calls: int = 400,
) -> Rows:
    """Time what passes between a call and the entry of each part, and between the last exit and the return.

    Each part reads the clock until its time is over. "over" is what the call takes beyond that time, in the
    median and at the ninth decile; "one after another" is the share of calls whose parts did not all overlap.
    The caller pauses between calls, busy or asleep, as long as the first column says.
    """
    for count in dict.fromkeys((1, most_threads() if threads is None else threads)):
        # A row is two lines of cache, so that no two parts write to one of them.
        stamps = np.zeros((count, 16), dtype=np.int64)
        work = share(_works, (round(1000 * work_us), stamps), np.arange(count + 1))
        work()
        for name, pause in PAUSES.items():
            taken = np.array([_one_hand_off(work, stamps, pause) for _ in range(calls)])
            first, last, back, over, _ = np.median(taken, axis=0)
            yield {
                "pause": name,
                "threads": count,
                "first entry_s": first,
                "last entry_s": last,
                "return_s": back,
                "over_s": over - 1e-6 * work_us,
                "over, ninth decile_s": float(np.quantile(taken[:, 3], 0.9)) - 1e-6 * work_us,
                "one after another share": float(taken[:, 4].mean()),
            }


def _one_hand_off(work: Call, stamps: NDArray[np.int64], pause: Call) -> list[float]:
    pause()
    start_ns = time.perf_counter_ns()
    work()
    end_ns = time.perf_counter_ns()
    entries, exits = np.sort(stamps[:, 0]), np.sort(stamps[:, 1])
    spans = entries[0] - start_ns, entries[-1] - start_ns, end_ns - exits[-1], end_ns - start_ns
    return [*(1e-9 * span for span in spans), float((entries[1:] >= exits[:-1]).any())]


@experiment(PANEL)
def vectors_between(matrices: Matrices = None, rounds: int = 400) -> Rows:
    """Time NumPy's operations on vectors at once after a product, and a millisecond later: the pool sleeps.

    "iteration" is a product, two dot products and three updates, as in conjugate gradients.
    """
    for problem in named(matrices, ("gallery:poisson2d?n=100", "gallery:poisson3d?n=32")):
        for threads in dict.fromkeys((1, most_threads())):
            yield {
                "matrix": problem.name,
                "threads": threads,
                **_vectors_between(problem.matrix, threads, rounds),
            }


def _vectors_between(A: csr_array[Any], threads: int, rounds: int) -> dict[str, float]:
    x, y = uniform_vector(A), np.empty(A.shape[0])
    product = checked_product(A, "csr", threads=threads)
    operations: dict[str, Call] = {"dot": lambda: x @ x, "update": lambda: np.multiply(x, 0.5, out=y)}

    def iteration() -> None:
        product()
        for name in ("dot", "dot", "update", "update", "update"):
            operations[name]()

    def product_and_pause() -> None:
        product()
        busy(1e-3)

    seconds = {}
    for name, operation in operations.items():
        seconds[f"{name} at once_s"] = _median_s(operation, rounds, product)
        seconds[f"{name} later_s"] = _median_s(operation, rounds, product_and_pause)
    return seconds | {"product_s": _median_s(product, rounds), "iteration_s": _median_s(iteration, rounds)}


@experiment(PANEL)
def small_products(matrices: Matrices = None, rounds: int = 60, blocks: int = 3) -> Rows:
    """Time products of small matrices in CSR and PyTorch's, in turn in blocks of rounds.

    "with vectors" are products that come after a dot product and an update, as in a solver; these are not
    counted: NumPy and the products have the same cores. A ratio is PyTorch's time over ours.
    """
    for problem in named(matrices, [f"gallery:poisson3d?n={n}" for n in (32, 42, 48, 54)]):
        A, threads = problem.matrix, most_threads()
        x, y = uniform_vector(A), np.empty(A.shape[0])
        products = {
            "ours": checked_product(A, "csr", threads=threads),
            "PyTorch": library_call("pytorch", A, x, np.empty_like(y), threads),
        }

        def vectors(x: NDArray[Any] = x, y: NDArray[Any] = y) -> None:
            np.multiply(x, x @ x, out=y)

        row: dict[str, Any] = {"matrix": problem.name, "threads": threads}
        for name, before in {"back to back": lambda: None, "with vectors": vectors}.items():
            seconds: dict[str, list[float]] = {library: [] for library in products}
            for _ in range(blocks):
                for library, product in products.items():
                    seconds[library].append(_median_s(product, rounds, before))
            middle = {library: statistics.median(each) for library, each in seconds.items()}
            row |= {f"{library}, {name}_s": value for library, value in middle.items()}
            row[f"{name} ratio"] = middle["PyTorch"] / middle["ours"]
        yield row


def _median_s(call: Call, rounds: int, before: Call = lambda: None) -> float:
    seconds = []
    for _ in range(rounds):
        before()
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


#: A program with one thread; it prints how many rounds a second it does, every fifth of a second.
_NEIGHBOUR = """
import time
while True:
    rounds, end = 0, time.perf_counter() + 0.2
    while time.perf_counter() < end:
        sum(range(1000))
        rounds += 1
    print(rounds / 0.2, flush=True)
"""


@experiment(PANEL)
def neighbour(matrices: Matrices = None, seconds: float = 1.5) -> Rows:
    """Time products beside a program with one thread, and that program beside products.

    "speed" is the neighbour's, over its speed with five products a second. With one product a millisecond the
    threads have nothing to do most of the time.
    """
    for problem in named(matrices, ("gallery:poisson3d?n=32",)):
        for threads in dict.fromkeys((1, most_threads())):
            product = checked_product(problem.matrix, "csr", threads=threads)
            alone_s = _median_s(product, 1000)
            command = [sys.executable, "-c", _NEIGHBOUR]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
                lines: Any = program.stdout
                lines.readline()
                beside = {pause_s: _beside(product, pause_s, lines, seconds) for pause_s in (0.2, 1e-3, 0.0)}
                program.kill()
            speeds = {pause_s: speed for pause_s, (_, speed) in beside.items()}
            times_s = beside[0.0][0]
            yield {
                "matrix": problem.name,
                "threads": threads,
                "product_s": alone_s,
                "beside the neighbour_s": statistics.median(times_s),
                "mean_s": statistics.fmean(times_s),
                "ninth decile_s": float(np.quantile(times_s, 0.9)),
                "speed, a product a ms": speeds[1e-3] / speeds[0.2],
                "speed, back to back": speeds[0.0] / speeds[0.2],
            }


def _beside(product: Call, pause_s: float, lines: Any, seconds: float) -> tuple[list[float], float]:
    """Return the times of products with a pause after each, and the neighbour's median speed meanwhile."""
    times_s, speeds = [], []
    for _ in range(max(2, round(seconds / 0.2))):
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            times_s.append(_median_s(product, 1))
            if pause_s:
                time.sleep(pause_s)
        speeds.append(float(lines.readline()))
    return times_s, statistics.median(speeds)
