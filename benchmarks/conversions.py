"""What each format costs to build from CSR, and CSR from it: time in products of CSR, and extra memory.

    python benchmarks/conversions.py [--dtype float32] [--rounds 5] [--json] [MATRIX...]

Without a matrix, large ones of the gallery. Conversions and the product of CSR take turns; their medians
are compared, once with one thread for both and once with all. The memory is the highest beyond what was
there before, less the arrays that stay, over the bytes of both formats: the goal is a tenth. It counts
NumPy's arrays; those that compiled functions make for themselves are not seen. A format that does not suit
is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast import api
from sparsecast.devices import DEVICES
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import detect

MATRICES = (
    "gallery:poisson3d?n=90",
    "gallery:elasticity3d?n=26",
    "gallery:banded?n=200000",
    "gallery:random?n=400000&nnz_per_row=6",
    "gallery:rmat?scale=16&degree=24",
    "gallery:circuit?n=400000",
)
DIRECTIONS = ("from CSR", "to CSR")

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """The two conversions of one format on one matrix; products and shares of memory by direction."""

    matrix: str
    nnz: int
    format: str
    stored_per_entry: float
    products_one_thread: dict[str, float]
    products_all_threads: dict[str, float]
    extra_memory: dict[str, float]


def product_of(A: csr_array[Any], threads: int) -> Call:
    """Return the product with CSR, in the variant of its rule."""
    kernels, blocks = DEVICES.get("cpu").kernels.get("csr"), RowBlocks.of(structure(A))
    variant = kernels.variants[int(kernels.choose(blocks, detect(), A.dtype.name)[0])]
    product = kernels.bind(FORMATS.get("csr").from_csr(A), variant, threads)
    x, out = np.ones(A.shape[1], dtype=A.dtype), np.empty(A.shape[0], dtype=A.dtype)
    return lambda: product(x, out)


def suiting(A: csr_array[Any]) -> dict[str, StorageFormat]:
    """Return the matrix in every format but CSR that takes it."""
    found = {}
    for name in sorted(set(FORMATS.names()) - {"csr"}):
        try:
            found[name] = FORMATS.get(name).from_csr(A)
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return found


def conversions(A: csr_array[Any], built: dict[str, StorageFormat]) -> dict[tuple[str, str], Call]:
    """Return the conversions of every format by its name and the direction."""
    calls: dict[tuple[str, str], Call] = {}
    for name, matrix in built.items():
        calls[name, DIRECTIONS[0]] = lambda name=name: FORMATS.get(name).from_csr(A)
        calls[name, DIRECTIONS[1]] = matrix.to_csr
    return calls


def medians(calls: dict[Any, Call], rounds: int) -> dict[Any, float]:
    """Return the median seconds of calls that take turns, after a first turn that is not timed."""
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = perf_counter()
            call()
            if turn:
                seconds[name].append(perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def in_products(
    A: csr_array[Any], calls: dict[tuple[str, str], Call], threads: int, rounds: int
) -> dict[Any, float]:
    """Return the time of each call over that of a product of CSR with the same threads."""
    numba.set_num_threads(threads)
    found = medians({"product": product_of(A, threads), **calls}, rounds)
    return {name: found[name] / found["product"] for name in calls}


def arrays_of(matrix: StorageFormat | csr_array[Any]) -> list[NDArray[Any]]:
    """Return the arrays of a matrix."""
    if isinstance(matrix, StorageFormat):
        return list(matrix.arrays.values())
    return [matrix.indptr, matrix.indices, matrix.data]


def bytes_of(arrays: Iterable[NDArray[Any]]) -> int:
    """Return the bytes of arrays."""
    return sum(array.nbytes for array in arrays)


def extra_memory(call: Call, source: StorageFormat | csr_array[Any]) -> float:
    """Return the peak of a conversion beside its source and its target, over the bytes of both."""
    tracemalloc.start()
    try:
        target = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    own, made = arrays_of(source), arrays_of(target)
    new = [array for array in made if not any(np.shares_memory(array, other) for other in own)]
    return (peak - bytes_of(new)) / (bytes_of(own) + bytes_of(made))


def rows_of(specification: str, dtype: str, rounds: int) -> list[Row]:
    """Measure every format on one matrix."""
    found = api.read_matrix(specification)
    A = found.matrix.astype(dtype)
    built = suiting(A)
    calls = conversions(A, built)
    everything = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    one, all_threads = (in_products(A, calls, threads, rounds) for threads in (1, everything))
    memory = {
        (name, direction): extra_memory(calls[name, direction], source)
        for name, matrix in built.items()
        for direction, source in zip(DIRECTIONS, (A, matrix), strict=True)
    }

    def by_direction(values: dict[tuple[str, str], float], name: str) -> dict[str, float]:
        return {direction: values[name, direction] for direction in DIRECTIONS}

    return [
        Row(
            found.name,
            A.nnz,
            name,
            sum(array.size for array in matrix.arrays.values() if array.dtype == A.dtype) / max(A.nnz, 1),
            *(by_direction(values, name) for values in (one, all_threads, memory)),
        )
        for name, matrix in built.items()
    ]


def table_of(collection: list[list[Row]]) -> Table:
    """Return the cost of every conversion."""
    table = Table(caption="time in products of CSR with as many threads; memory over that of both formats")
    for heading in (
        "matrix",
        "format",
        "stored",
        *(f"{direction},\n{what}" for direction in DIRECTIONS for what in ("1 thread", "all", "memory")),
    ):
        justify = "left" if heading in ("matrix", "format") else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    for rows in collection:
        for place, row in enumerate(rows):
            cells = [
                cell
                for direction in DIRECTIONS
                for cell in (
                    f"{row.products_one_thread[direction]:.1f}",
                    f"{row.products_all_threads[direction]:.1f}",
                    f"{row.extra_memory[direction]:.1%}",
                )
            ]
            name = {0: row.matrix.removeprefix("gallery:"), 1: f"{row.nnz:,} non-zeros"}.get(place, "")
            is_last = place == len(rows) - 1
            table.add_row(
                name, row.format.upper(), f"{row.stored_per_entry:.2f}", *cells, end_section=is_last
            )
    return table


def main() -> None:
    """Measure every matrix and show what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", default=MATRICES, metavar="MATRIX")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--rounds", type=int, default=5, help="timed turns of each conversion")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    collection = []
    for specification in arguments.matrices:
        print(f"measuring {specification}", file=sys.stderr)
        try:
            collection.append(rows_of(specification, arguments.dtype, arguments.rounds))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for rows in collection for row in rows]}))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(table_of(collection))


if __name__ == "__main__":
    main()
