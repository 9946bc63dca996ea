"""Kernels and the rules that choose among them: row loops, chunks, windows, blocks, gathers, alignment."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import (
    Matrices,
    Rows,
    Threads,
    checked_call,
    checked_product,
    chosen_variant,
    experiment,
    in_words,
    most_threads,
    named,
    uniform_vector,
)
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, prepared
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.formats.csr import CSR
from sparsecast.formats.dia import CHUNKS, DIA
from sparsecast.formats.sell import SELL
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import mirrored, varied_matrix
from sparsecast.measuring.references import memory_read
from sparsecast.measuring.timing import Call, Effort, Timing, measure

PANEL = "Kernels"
EFFORT = Effort(samples=9, sample_s=0.004)

Dtype = Annotated[str, typer.Option(help="float64 or float32.")]
Lengths = NDArray[np.int64]


def noise_of(timings: dict[str, Timing]) -> float:
    """Return the worst noise of some timings."""
    return max(timing.noise or 0.0 for timing in timings.values())


def star(seconds: dict[str, float], chosen: str, margin: float) -> str:
    """Return the name of what a rule chose, with a star where another was faster by more than a margin."""
    return chosen + (" *" if seconds[chosen] > min(seconds.values()) * (1.0 + margin) else "")


def _mixed(share: float) -> Callable[[np.random.Generator, int, int], Lengths]:
    def draw(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
        return np.where(generator.random(rows) < share, generator.integers(0, 2 * mean + 1, rows), mean)

    return draw


#: Row lengths by kind: of a generator, a number of rows and their mean length.
LENGTHS: dict[str, Callable[[np.random.Generator, int, int], Lengths]] = {
    "constant": lambda generator, rows, mean: np.full(rows, mean),
    "alternating": lambda generator, rows, mean: mean + max(mean // 2, 1) * (2 * (np.arange(rows) % 2) - 1),
    **{f"mixed {share}": _mixed(share) for share in (0.1, 0.2, 0.35, 0.5)},
    "plus or minus 1": lambda generator, rows, mean: mean + generator.integers(-1, 2, rows),
    "uniform": lambda generator, rows, mean: generator.integers(0, 2 * mean + 1, rows),
    "geometric": lambda generator, rows, mean: np.minimum(
        generator.geometric(1.0 / (mean + 1), rows) - 1, 256
    ),
}


def rows_in_a_band(lengths: Lengths, dtype: str, band: int = 256) -> csr_array[Any]:
    """Return a matrix with these row lengths whose columns follow one another within a band."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    indices = (np.repeat(np.arange(len(lengths)) % band, lengths) + within).astype(np.int32)
    data = np.random.default_rng(1).uniform(-1.0, 1.0, indptr[-1]).astype(dtype)
    return csr_array((data, indices, indptr), shape=(len(lengths), 2 * band))


def synthetic_rows(nnz: int, dtype: str) -> Iterator[tuple[str, csr_array[Any]]]:
    """Yield matrices of all LENGTHS and some mean lengths with about so many entries."""
    for mean in (2, 3, 8, 20, 40):
        for kind, draw in LENGTHS.items():
            yield kind, rows_in_a_band(draw(np.random.default_rng(0), max(nnz // mean, 1), mean), dtype)


@experiment(PANEL)
def csr_loops(
    matrices: Matrices = None, dtype: Dtype = "float64", nnz: int = 400_000, threads: Threads = 1
) -> Rows:
    """Time the row loops of CSR, by default on synthetic rows: what its rule and MISPREDICTED_SHARE rest on.

    Their columns lie in a band, so that x comes from the nearest cache. A ratio is the time over that of
    `unrolled`. A star stands where another loop was faster by more than the noise and a twentieth.
    """
    variants = DEVICES.get("cpu").kernels.get("csr").variants_of(dtype)
    real = ((problem.name, problem.matrix.astype(dtype)) for problem in named(matrices))
    for name, A in real if matrices else synthetic_rows(nnz, dtype):
        timings = measure({v: checked_product(A, "csr", v, threads) for v in variants}, EFFORT)
        seconds = {name: timing.time_s for name, timing in timings.items()}
        matrix_structure = structure(A)
        yield {
            "row lengths": name,
            "mean": A.nnz / A.shape[0],
            "mispredicted": matrix_structure.row_lengths.mispredicted / matrix_structure.rows,
            "unrolled, ns per entry": 1e9 * seconds["unrolled"] / A.nnz,
            **{name: seconds[name] / seconds["unrolled"] for name in variants if name != "unrolled"},
            "chosen": star(seconds, chosen_variant(A, "csr"), 0.05 + noise_of(timings)),
            "noise": noise_of(timings),
        }


@experiment(PANEL)
def symmetric_loops(nnz: int = 400_000) -> Rows:
    """Time the row loops of symmetric CSR against CSR on mirrored matrices: what SHORT_ROW rests on.

    One thread, float64. Ratios and stars as in `csr-loops`, the ratios over CSR.
    """
    variants = DEVICES.get("cpu").kernels.get("symmetric_csr").variants
    for mean in (3, 5, 7, 9, 12, 15, 20, 30, 60, 120):
        for kind, reach in (("fixed", 0.0), ("fixed", 1.0), ("mixed", 0.01), ("power", 0.1)):
            A = mirrored(varied_matrix(nnz // mean, mean, kind, reach, seed=0))
            calls = {name: checked_product(A, "symmetric_csr", name) for name in variants}
            timings = measure({"csr": checked_product(A, "csr"), **calls}, EFFORT)
            seconds = {name: timings[name].time_s for name in variants}
            csr_s = timings["csr"].time_s
            yield {
                "row lengths": kind,
                "reach": reach,
                "mean": A.nnz / A.shape[0],
                "CSR, ns per entry": 1e9 * csr_s / A.nnz,
                **{name: seconds[name] / csr_s for name in variants},
                "chosen": star(seconds, chosen_variant(A, "symmetric_csr"), 0.05 + noise_of(timings)),
                "noise": noise_of(timings),
            }


@experiment(PANEL)
def gathers() -> Rows:
    """Time vectors of x, gathered or read in turn, against single reads: as in devices/cpu/vector_code.py.

    One thread. A ratio is the time without vectors over that with them: above 1 vectors win. Where gathers
    win over vectors that are read in turn, the processor belongs to those that use them.
    """
    from sparsecast.devices.cpu.vector_code import gathers_win

    without = {"csr": "unrolled", "sell": "chunks"}
    variants = ("gathered", "vectors")
    shapes = (
        *((100_000, 4, 0.0), (50_000, 8, 0.0), (30_000, 14, 0.1), (20_000, 20, 1.0)),
        *((8_000, 50, 0.0), (2_000, 200, 1.0), (200_000, 20, 0.01), (300_000, 12, 1.0)),
    )
    for rows, mean, reach in shapes:
        row: dict[str, Any] = {"rows": rows, "mean": mean, "reach": reach}
        for dtype in ("float64", "float32"):
            A = varied_matrix(rows, mean, "mixed", reach, seed=0).astype(dtype)
            pairs = [(name, variant) for name, single in without.items() for variant in (single, *variants)]
            calls = {f"{name} {variant}": checked_product(A, name, variant) for name, variant in pairs}
            timings = measure(calls, Effort(samples=9, sample_s=0.005))
            seconds = {name: timing.time_s for name, timing in timings.items()}
            for name, single in without.items():
                for variant in variants:
                    ratio = seconds[f"{name} {single}"] / seconds[f"{name} {variant}"]
                    row[f"{name.upper()} {variant} {dtype}"] = ratio
            row[f"{dtype} noise"] = noise_of(timings)
        yield row
    yield f"Gathers are {'' if gathers_win(detect()) else 'not '}used on this processor."


@experiment(PANEL)
def dia_chunks(matrices: Matrices = None, dtype: Dtype = "float64", threads: Threads = 1) -> Rows:
    """Time DIA in chunks of every size against CSR: what CHUNK_BYTES rests on.

    A ratio is the time of CSR over that of DIA with chunks of as many rows; a star marks the chunk that the
    rule takes. "bytes" is what CSR streams over what DIA streams, which the ratio should follow beyond the
    caches. "stream" is the bytes that DIA streams a second, over those of a plain sum of as many numbers.
    Times depend on where an array lies in memory: each is measured in three copies, and the median counts.
    """
    defaults = (
        *("gallery:poisson2d?n=150", "gallery:poisson3d?n=24", "gallery:poisson3d?n=16&points=27"),
        *("gallery:banded?n=6000", "gallery:poisson2d?n=1000", "gallery:poisson3d?n=100"),
        *("gallery:poisson3d?n=64&points=27", "gallery:banded?n=400000"),
    )
    for problem in named(matrices, defaults):
        A = problem.matrix.astype(dtype)
        chosen, plain = DIA.from_csr(A), CSR.from_csr(A)
        calls: dict[str, Call] = {}
        for copy in range(3):
            again = dataclasses.replace(plain, data=plain.data.copy(), indices=plain.indices.copy())
            calls[f"csr {copy}"] = checked_call(A, again, threads=threads)
            for rows in CHUNKS:
                calls[f"{rows} {copy}"] = checked_call(A, DIA.from_csr(A, rows), threads=threads)
            calls[f"stream {copy}"] = memory_read(chosen.data.nbytes, threads)
        timings = measure(calls, Effort(samples=7, sample_s=0.006))
        copies: dict[str, list[float]] = {}
        for name, timing in timings.items():
            copies.setdefault(name.split()[0], []).append(timing.time_s)
        seconds = {name: statistics.median(values) for name, values in copies.items()}
        ratios = {f"{rows} rows": seconds["csr"] / seconds[str(rows)] for rows in CHUNKS}
        own_s = seconds[str(chosen.chunk_rows)]
        yield {
            "matrix": problem.name.removeprefix("gallery:"),
            "MB": chosen.data.nbytes / 1e6,
            "CSR, ns per entry": 1e9 * seconds["csr"] / A.nnz,
            **{
                name: f"{ratio:.2f}{' *' if name == f'{chosen.chunk_rows} rows' else ''}"
                for name, ratio in ratios.items()
            },
            "bytes": plain.traffic() / chosen.traffic(),
            "stream": (chosen.traffic() / own_s) / (chosen.data.nbytes / seconds["stream"]),
            "noise": statistics.median(timing.noise or 0.0 for timing in timings.values()),
        }


@experiment(PANEL)
def sell_windows(mean: int = 8, dtype: Dtype = "float64", rows: int = 60_000, threads: int = 1) -> Rows:
    """Time SELL with sorting windows of every width: what WINDOWS and PADDING_OF_WINDOWS rest on.

    A ratio is the time of CSR over that of SELL with this window, and in parentheses the entries
    stored for each non-zero. "reach" is the share of the columns around the diagonal that a row draws from. A
    star stands where another window was faster by more than the noise and a tenth.
    """
    everything = -(-rows // 8) * 8
    windows = (*(1, 256, 1024, 4096, 16384), everything)
    for kind in ("fixed", "mixed", "uniform", "power"):
        for reach in (0.0, 0.02, 1.0):
            A = varied_matrix(rows, mean, kind, reach, seed=1).astype(dtype)
            built = {str(window): SELL.from_csr(A, sigma=window) for window in windows}
            calls = {name: checked_call(A, matrix, threads=threads) for name, matrix in built.items()}
            beside = {name: checked_product(A, name, threads=threads) for name in ("csr", "jad")}
            timings = measure({**beside, **calls}, EFFORT)
            # Noise is one-sided: a low quantile of alternated samples is steadier than their median.
            seconds = {name: float(np.quantile(timing.samples_s, 0.2)) for name, timing in timings.items()}
            of_windows = {name: seconds[name] for name in built}
            rule = str(SELL.from_csr(A).sigma)
            yield {
                "row lengths": kind,
                "reach": reach,
                "CSR, ns per entry": 1e9 * seconds["csr"] / A.nnz,
                **{
                    f"{'all' if name == str(everything) else name} rows": (
                        f"{seconds['csr'] / seconds[name]:.2f} ({matrix.data.size / max(A.nnz, 1):.2f})"
                    )
                    for name, matrix in built.items()
                },
                "JAD": seconds["csr"] / seconds["jad"],
                "chosen": star(of_windows, rule, 0.1 + noise_of(timings)),
                "noise": noise_of(timings),
            }


def full_blocks(rows: int, r: int, c: int, dtype: str, entries_per_row: int = 24) -> csr_array[Any]:
    """Return a matrix of full r x c blocks in random places near its diagonal."""
    generator = np.random.default_rng(0)
    block_rows, block_cols, blocks = rows // r, rows // c, entries_per_row // c
    reach = min(block_cols, 64 * blocks)
    first = np.clip(np.arange(block_rows) * r // c - reach // 2, 0, block_cols - reach)
    share = reach // blocks  # one block of each equal share of the reach: distinct and ascending
    places = first[:, None] + np.arange(blocks) * share + generator.integers(0, share, (block_rows, blocks))
    columns = (places[:, :, None] * c + np.arange(c)).reshape(block_rows, -1)
    indices = np.repeat(columns, r, axis=0).astype(np.int32).ravel()
    indptr = np.arange(0, len(indices) + 1, blocks * c, dtype=np.int32)
    data = generator.uniform(-1.0, 1.0, len(indices)).astype(dtype)
    return csr_array((data, indices, indptr), shape=(block_rows * r, block_cols * c))


@experiment(PANEL)
def formats(matrices: Matrices = None) -> Rows:
    """Time every candidate with one thread and all, its share of the bandwidth, and eight vectors at once.

    A share is the bytes that a product streams a second over those of a plain read of as many bytes with as
    many threads. "over full" is the time of full storage over that of narrow storage, in alternation, with
    one thread and all. "8 vectors" is how many times faster they are than eight products, with one thread.
    """
    vectors, threads = 8, most_threads()
    defaults = (
        *("gallery:banded?n=500000&half_bandwidth=12", "gallery:poisson2d?n=1200"),
        *("gallery:poisson3d?n=100&points=27", "gallery:elasticity3d?n=44"),
    )
    for problem in named(matrices, defaults):
        A, full = problem.matrix, {}
        for candidate in sc.session(threads=threads).choice(A).candidates:
            ready = prepared(A, candidate.dtype, candidate.index_bits)
            try:
                bounds = {count: bind(ready, replace(candidate, threads=count)) for count in (1, threads)}
            except InputError as error:
                print(f"left out: {error}", file=sys.stderr)
                full = {}
                continue
            is_beside_full = bool(candidate.parameters and full)  # which is the candidate before
            built = {"": bounds, **({"full ": full} if is_beside_full else {})}
            full = bounds
            x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
            traffic, several = bounds[1].matrix.traffic(), bounds[1].multivector
            calls: dict[str, Call] = {
                "one read": memory_read(traffic, 1),
                "all read": memory_read(traffic, threads),
            }
            for storage, of_storage in built.items():
                for name, count in (("one", 1), ("all", threads)):
                    product = of_storage[count].product
                    calls[storage + name] = lambda product=product, x=x, out=out: product(x, out)
            if several is not None:
                X, Y = np.ones((A.shape[1], vectors), A.dtype), np.empty((A.shape[0], vectors), A.dtype)
                calls["several"] = lambda several=several, X=X, Y=Y: several(X, Y)
            timings = measure(calls, Effort(samples=9, sample_s=0.01))
            time_s = {name: timing.time_s for name, timing in timings.items()}
            yield {
                "matrix": problem.name,
                "candidate": in_words(candidate),
                "MB": traffic / 1e6,
                "1 thread_s": time_s["one"],
                f"{threads} threads_s": time_s["all"],
                "times as fast": time_s["one"] / time_s["all"],
                "1 thread share": time_s["one read"] / time_s["one"],
                f"{threads} threads share": time_s["all read"] / time_s["all"],
                "over full": time_s["full one"] / time_s["one"] if is_beside_full else None,
                "over full, all": time_s["full all"] / time_s["all"] if is_beside_full else None,
                "8 vectors": vectors * time_s["one"] / time_s["several"] if several is not None else None,
                "noise": noise_of(timings),
            }


@experiment(PANEL)
def alignment(matrices: Matrices = None) -> Rows:
    """Time all formats in processes with and without aligned code and arrays, in turn.

    One thread, float64. Each way has a cache of kernels of its own, and three processes: the first one
    compiles, the others load. "first": by how much the process that compiles and the next differ; "later":
    two that load.
    """
    runs: dict[str, list[dict[str, float]]] = {"plain": [], "aligned": []}
    with tempfile.TemporaryDirectory() as caches:
        for _ in range(3):
            for way, results in runs.items():
                environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(caches) / way)}
                command = [sys.executable, __file__, way, *(matrices or ())]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                results.append(json.loads(done.stdout.splitlines()[-1]))
    keys = runs["plain"][0]
    differences = {
        key: {
            "time": np.log(runs["aligned"][2][key] / runs["plain"][2][key]),
            **{f"first {way} difference": abs(np.log(r[0][key] / r[1][key])) for way, r in runs.items()},
            **{f"later {way} difference": abs(np.log(r[2][key] / r[1][key])) for way, r in runs.items()},
        }
        for key in keys
    }
    for name in sorted({key.partition(" ")[0] for key in keys}):
        of_format = [values for key, values in differences.items() if key.partition(" ")[0] == name]
        row = {
            heading: float(np.median([values[heading] for values in of_format])) for heading in of_format[0]
        }
        yield {"format": name, **row, "time": float(np.exp(row["time"]))}


def _measure_aligned(way: str, files: list[str]) -> None:
    """Print the seconds of each format of each matrix as JSON: what a process of `alignment` does."""
    from sparsecast.system import jit, memory

    if way == "plain":  # before anything that uses them is imported
        jit.ALIGNED = jit.USUAL
        memory.aligned_empty = np.empty
    import sparsecast as sc

    seconds = {}
    for problem in named(files):
        for record in sc.measure(problem, sc.session(threads=1).choice(problem).candidates, keeps=False):
            seconds[f"{record.candidate.format} {problem.name}"] = record.time_s
    print(json.dumps(seconds))


if __name__ == "__main__":
    _measure_aligned(sys.argv[1], sys.argv[2:])
