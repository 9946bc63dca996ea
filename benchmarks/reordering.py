"""What reverse Cuthill-McKee gains: products in CSR and in the best format, before and after it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import (
    Folder,
    Kept,
    KeptLines,
    Matrices,
    Row,
    Rows,
    Threads,
    experiment,
    geometric_mean,
    in_folder,
    named,
    timed,
    uniform_vector,
)
from sparsecast.devices.binding import bind, in_first_order, prepared
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reordering import cuthill_mckee_order, reordered
from sparsecast.measuring.timing import Call, Effort, measure

#: Products that a solver may do with one matrix.
_PRODUCTS = 10_000


def checked_candidates(A: csr_array[Any], threads: int, order: NDArray[Any] | None = None) -> dict[str, Call]:
    """Return the checked product of each candidate of a matrix by its name; with `order`, with copies too."""
    calls: dict[str, Call] = {}
    x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
    reference = ReferenceProduct.of(A, x)
    for each in sc.session(threads=threads).choice(Problem.of(A)).candidates:
        name = " ".join([each.format, *map(str, each.parameters.values()), each.kernel])
        try:
            bound = bind(prepared(A, each.dtype, each.index_bits), each)
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        bound.product(x, out)
        reference.check(out, name)
        calls[name] = partial(bound.product, x, out)
        if order is not None:
            copied = in_first_order(bound, order, each).product
            copied(x, out)
            calls[f"copied {name}"] = partial(copied, x, out)
    return calls


def _in_other_order(A: csr_array[Any]) -> tuple[NDArray[Any], csr_array[Any]]:
    order = cuthill_mckee_order(A)
    return order, reordered(A, order)


def half_bandwidth(A: csr_array[Any]) -> int:
    """Return the greatest distance of an entry from the diagonal."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return int(np.abs(rows - A.indices).max(initial=0))


def compared(A: csr_array[Any], threads: int) -> dict[str, Any]:
    """Return the times of CSR and of the best candidate, before and after, and what the order costs."""
    (order, B), reorder_s = timed(lambda: _in_other_order(A))
    orders = {"before": checked_candidates(A, threads), "after": checked_candidates(B, threads, order)}
    calls = {f"{when} {name}": call for when, those in orders.items() for name, call in those.items()}
    timings = measure(calls, Effort(samples=40, most_s=0.1))
    row: dict[str, Any] = {}
    for when, M in (("before", A), ("after", B)):
        seconds = {n.partition(" ")[2]: t.time_s for n, t in timings.items() if n.startswith(when)}
        copied_s = [seconds.pop(name) for name in list(seconds) if name.startswith("copied")]
        best = min(seconds, key=seconds.__getitem__)
        csr_s = min(s for name, s in seconds.items() if name.startswith("csr "))
        row |= {f"half-bandwidth {when}": half_bandwidth(M), f"CSR {when}_s": csr_s}
        row |= {f"best {when}": best, f"best {when}_s": seconds[best]}
    saved_s = row["best before_s"] - min(copied_s)
    return row | {
        "gain of CSR": row["CSR before_s"] / row["CSR after_s"],
        "gain of best": row["best before_s"] / row["best after_s"],
        "gain with copies": row["best before_s"] / min(copied_s),
        "products of CSR": reorder_s / row["CSR before_s"],
        "pays from": int(np.ceil(reorder_s / saved_s)) if saved_s > 0 else None,
        "noise": max(timing.noise or 0.0 for timing in timings.values()),
    }


def verdicts(rows: Sequence[Row]) -> Rows:
    """Yield what the gains come to."""
    for name in ("gain of CSR", "gain of best", "gain with copies"):
        gains = [row[name] for row in rows]
        yield (
            f"{name}: geometric mean {geometric_mean(gains):.3f}, best {max(gains):.2f}, worst "
            f"{min(gains):.2f}; above 1.05 on {sum(gain > 1.05 for gain in gains)} of {len(gains)} matrices."
        )
    paying = [row for row in rows if row["pays from"] is not None and row["pays from"] <= _PRODUCTS]
    costs = [row["products of CSR"] for row in rows]
    yield (
        f"The order costs {np.median(costs):,.0f} products of CSR in the median, {max(costs):,.0f} at most; "
        f"it pays within {_PRODUCTS:,} products on {len(paying)} of {len(rows)} matrices."
    )


@experiment("Kernels")
def reordering(
    matrices: Matrices = None,
    folder: Folder = None,
    threads: Threads = 1,
    least: Annotated[int, typer.Option(help="Non-zeros of the smallest matrix.")] = 300_000,
    lines: KeptLines = None,
) -> Rows:
    """Time CSR and the best format before and after reverse Cuthill-McKee, x and y in its order.

    All are sampled in turn. Gains are the times before over those after: with x and y in the other order, and
    with copies of them there and back. What the order costs is the time of SciPy's function and of permuting
    the matrix; it is paid by products with copies.
    """
    kept = Kept(lines)
    for problem in named([*(matrices or ()), *in_folder(folder)], ("gallery:random?n=200000",)):
        A = problem.matrix
        if A.shape[0] == A.shape[1] and A.nnz >= least:
            key = {"matrix": problem.name, "threads": threads}
            kept.add(key, partial(lambda A, key: key | {"entries": A.nnz} | compared(A, threads), A, key))
    yield from kept.rows
    if kept.rows:
        yield from verdicts(kept.rows)
