"""Every format and the plan against SciPy, MKL and torch, sampled in turn with the same threads.

    python benchmarks/peers.py [--threads N] [--json] [--figure FILE.png] MATRIX...

Peers come with the extra `peers`; one that is missing is a row that says so. A ratio is the best peer's time
over ours: above 1 we are faster. MKL is called through its inspector-executor interface, with the hint that
many products will follow; torch through its CSR tensors; SciPy, which knows one thread, as it is.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# One OpenMP for MKL and our own kernels: two would wait for each other's idle threads.
os.environ.setdefault("MKL_THREADING_LAYER", "GNU")

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast import api
from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import InputError, ProfileError
from sparsecast.measuring.timing import DEFAULT_EFFORT, measure

Call = Callable[[], Any]

#: Products that MKL is told to expect.
HINTED_PRODUCTS = 10_000


class MissingPeerError(Exception):
    """A peer is not installed, or does not take the matrix; the message says which."""


@dataclass(frozen=True)
class Row:
    """One way of multiplying one matrix."""

    matrix: str
    nnz: int
    way: str
    is_ours: bool
    time_s: float | None
    noise: float | None
    missing: str | None


def scipy_call(A: csr_array, x: np.ndarray, threads: int) -> tuple[Call, Call]:
    """Return the product and its result."""
    return (lambda: A @ x), (lambda: A @ x)


def torch_call(A: csr_array, x: np.ndarray, threads: int) -> tuple[Call, Call]:
    """Return the product of a CSR tensor and its result."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingPeerError("torch is not installed: pip install 'sparsecast[peers]'") from error
    torch.set_num_threads(threads)
    # torch says at the first CSR tensor of a process that they are in beta state.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
    parts = (torch.from_numpy(part) for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=False)
    vector = torch.from_numpy(x)
    return (lambda: matrix @ vector), (lambda: (matrix @ vector).numpy())


class Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


NON_TRANSPOSE, GENERAL = 10, 20


def mkl_library() -> ctypes.CDLL:
    """Load MKL from where pip puts it, or from the system."""
    candidates = [*sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")), Path("libmkl_rt.so")]
    for path in candidates:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise MissingPeerError("MKL is not installed: pip install 'sparsecast[peers]'")


def mkl_call(A: csr_array, x: np.ndarray, threads: int) -> tuple[Call, Call]:
    """Return the inspector-executor product, hinted and optimised, and its result."""
    if A.dtype != np.float64 or A.indices.dtype != np.int32:
        raise MissingPeerError("MKL is called for float64 values and 32-bit indices")
    mkl = mkl_library()
    mkl.MKL_Set_Num_Threads(threads)
    handle, description = ctypes.c_void_p(), Description(GENERAL, 0, 0)
    pointer = ctypes.c_void_p
    ends = A.indptr[1:].ctypes.data_as(pointer)
    arrays = (part.ctypes.data_as(pointer) for part in (A.indices, A.data))
    starts = A.indptr.ctypes.data_as(pointer)
    status = mkl.mkl_sparse_d_create_csr(ctypes.byref(handle), 0, *A.shape, starts, ends, *arrays)
    status |= mkl.mkl_sparse_set_mv_hint(handle, NON_TRANSPOSE, description, HINTED_PRODUCTS)
    status |= mkl.mkl_sparse_optimize(handle)
    if status:
        raise MissingPeerError(f"MKL refused the matrix with status {status}")
    y = np.empty(A.shape[0])
    one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
    in_out = x.ctypes.data_as(pointer), y.ctypes.data_as(pointer)

    def product() -> None:
        mkl.mkl_sparse_d_mv(NON_TRANSPOSE, one, handle, description, in_out[0], zero, in_out[1])

    def result() -> np.ndarray:
        product()
        return y

    return product, result


PEERS = {"SciPy": scipy_call, "MKL": mkl_call, "torch": torch_call}


def our_calls(A: csr_array, x: np.ndarray, out: np.ndarray, threads: int) -> dict[str, Call]:
    """Return the product in every format that suits, and the planned one if this machine is calibrated."""
    calls: dict[str, Call] = {}
    for candidate in api.choice(A, threads=threads).candidates:
        try:
            product = bind(prepared(A, candidate.dtype, candidate.index_bits), candidate).product
        except InputError:
            continue
        calls[candidate.format] = lambda product=product: product(x, out)
    try:
        operator = api.compile(A, api.plan(A, api.profile(), iterations=HINTED_PRODUCTS, threads=threads))
    except ProfileError as error:
        print(f"no plan: {error}", file=sys.stderr)
    else:
        calls["plan"] = lambda: operator.matvec(x, out)
    return calls


def rows_of(specification: str, threads: int) -> list[Row]:
    """Measure every way of multiplying one matrix, each checked against the oracle first."""
    found = api.read_matrix(specification)
    A, name = found.matrix, found.name
    x, out = right_hand_side(A.shape[1], A.dtype.name), np.empty(A.shape[0], dtype=A.dtype)
    reference = ReferenceProduct.of(A, x)
    ours = our_calls(A, x, out, threads)
    for way, call in ours.items():
        out.fill(np.nan)
        call()
        reference.check(out, way)
    peers, missing = {}, {}
    for peer, make in PEERS.items():
        try:
            peers[peer], result = make(A, x, threads)
        except MissingPeerError as error:
            missing[peer] = str(error)
        else:
            reference.check(np.asarray(result()), peer)
    timings = measure({**ours, **peers}, DEFAULT_EFFORT)
    rows = [Row(name, A.nnz, way, way in ours, t.time_s, t.noise, None) for way, t in timings.items()]
    return rows + [Row(name, A.nnz, peer, False, None, None, why) for peer, why in missing.items()]


def best(rows: list[Row], ours: bool) -> Row | None:
    """Return the fastest of our ways, the plan aside, or of the peers."""
    timed = [row for row in rows if row.is_ours == ours and row.time_s is not None and row.way != "plan"]
    return min(timed, key=lambda row: row.time_s or 0.0, default=None)


def ratio(slow: Row | None, fast: Row | None) -> float | None:
    """Return the time of one row over another's, None where one is missing."""
    return slow.time_s / fast.time_s if slow and fast and slow.time_s and fast.time_s else None


def named(rows: list[Row], way: str) -> Row | None:
    """Return the row of one way."""
    return next((row for row in rows if row.way == way), None)


def table_of(collection: list[list[Row]]) -> Table:
    """Return the ratios of every matrix, the worst first, and their geometric means."""
    table = Table(title="Best peer's time over ours, each product sampled in turn")
    for heading in (
        "matrix",
        "non-zeros",
        "ours",
        "time",
        "best peer",
        "time",
        "ratio",
        "plan",
        "CSR/MKL",
        "noise",
    ):
        table.add_column(heading, justify="left" if heading in ("matrix", "ours", "best peer") else "right")
    columns: list[tuple[float | None, ...]] = []
    for rows in sorted(collection, key=lambda rows: ratio(best(rows, False), best(rows, True)) or 0.0):
        ours, peer = best(rows, True), best(rows, False)
        columns.append(
            (
                ratio(peer, ours),
                ratio(peer, named(rows, "plan")),
                ratio(named(rows, "MKL"), named(rows, "csr")),
            )
        )
        if ours is None or peer is None:
            continue
        noise = max(ours.noise or 0.0, peer.noise or 0.0)
        times = (f"{1e3 * (row.time_s or 0.0):.3f} ms" for row in (ours, peer))
        cells = (ours.way, next(times), peer.way, next(times), *map(_shown, columns[-1]))
        table.add_row(ours.matrix, f"{ours.nnz:,}", *cells, f"{100 * noise:.1f} %")
    means = [_shown(_geometric_mean([row[i] for row in columns])) for i in range(3)]
    table.add_row("geometric mean", "", "", "", "", "", *means, "", style="bold")
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _geometric_mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.exp(np.mean(np.log(known)))) if known else None


def draw(collection: list[list[Row]], path: Path) -> None:
    """Draw the ratio of every matrix over its non-zeros."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="non-zeros", ylabel="best peer's time over ours")
    points = [
        (rows[0].nnz, ratio(best(rows, False), best(rows, True)), best(rows, True)) for rows in collection
    ]
    for way in sorted({ours.way for _, _, ours in points if ours}):
        chosen = [(nnz, value) for nnz, value, ours in points if ours and ours.way == way and value]
        axes.scatter(*zip(*chosen, strict=True), label=way.upper(), s=18)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_ylim(bottom=0.0)
    axes.legend(title="our fastest", frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure every matrix and show what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("matrices", nargs="+", metavar="MATRIX")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figure", type=Path, default=None)
    arguments = parser.parse_args()
    machine, _ = api.machines()
    threads = machine.checked_threads(arguments.threads)
    collection = []
    for specification in arguments.matrices:
        print(f"measuring {specification}", file=sys.stderr)
        try:
            collection.append(rows_of(specification, threads))
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"threads": threads, "rows": [asdict(row) for rows in collection for row in rows]}))
    else:
        Console(width=130).print(table_of(collection))
        for why in sorted({row.missing for rows in collection for row in rows if row.missing}):
            print(why)
    if arguments.figure:
        draw(collection, arguments.figure)


if __name__ == "__main__":
    main()
