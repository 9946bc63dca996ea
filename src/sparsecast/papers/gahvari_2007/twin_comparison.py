"""Comparison of real matrices with their synthetic twins: products with both, sampled in turn.

Gahvari et al. 2007 show both as dots joined by lines (summary 8 to 13); here each is a ratio of times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats.bcsr import BCSR, best_block
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import matrix_name
from sparsecast.measuring.timing import Effort
from sparsecast.records import Candidate, Parameters
from sparsecast.system.integers import index_dtype

#: What a matrix and its twins take.
TWIN_EFFORT = Effort(samples=80, sample_s=0.0005)

_INDEX_BYTES = 4

#: What is compared with a matrix: itself, measured a second time, and its twins.
TWINS = ("again", "bands", "structure")


@dataclass(frozen=True, slots=True)
class TwinRow:
    """One way of doing the product, on a matrix and on its twins.

    Attributes
    ----------
    nnz : int
        Of the matrix and of each twin.
    candidate : Candidate
        The same for all.
    block : int
        Side of the twins' blocks, and of BCSR's; 1 where the matrix has none worth storing.
    time_s : float
        Seconds a product with the real matrix.
    again, bands, structure : float
        Such a time over that of the real matrix: of the real matrix measured a second time in the same turn,
        of the paper's twin, and of ours.
    """

    matrix: str
    nnz: int
    candidate: Candidate
    block: int
    time_s: float
    again: float
    bands: float
    structure: float


@dataclass(frozen=True, slots=True)
class TwinErrors:
    """Median and 90th percentile of abs(ratio - 1)."""

    median_error: float
    p90_error: float


@dataclass(frozen=True, slots=True)
class TwinScore:
    """How near the twins of a collection are in one format, with one number of threads.

    Attributes
    ----------
    matrices : int
    again, bands, structure : TwinErrors
        Of what TwinRow names so: the first is the noise floor.
    """

    format: str
    threads: int
    matrices: int
    again: TwinErrors
    bands: TwinErrors
    structure: TwinErrors


@dataclass(frozen=True, slots=True)
class Twins:
    """Twins of a collection, matrix by matrix; `refused` says which were left out, and why."""

    rows: tuple[TwinRow, ...]
    scores: tuple[TwinScore, ...]
    refused: dict[str, str]
    interrupted: bool = False


def twins_of(
    paths: Sequence[str | os.PathLike[str]],
    threads: Sequence[int],
    machine: Machine,
    dtype: str | None = None,
    on_matrix: Callable[[], None] = lambda: None,
    effort: Effort = TWIN_EFFORT,
) -> Twins:
    """Measure matrices and their twins, in CSR and, where it suits the matrix, in BCSR.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files.
    threads : sequence of int
        Each is measured.
    machine : Machine
    dtype : str, optional
        One of DTYPES; by default each matrix's own.
    on_matrix : callable
        Called after each matrix.
    effort : Effort

    Raises
    ------
    InputError
        If `dtype` is unknown.
    WrongResultError
        If a kernel's result differs from the reference result by more than rounding.
    """
    if dtype is not None:
        Target(machine.device, dtype, 32, threads[0])  # an unknown type is refused once
    rows: list[TwinRow] = []
    refused: dict[str, str] = {}
    interrupted = False
    for path in paths:
        try:
            rows += _rows(Problem.named(os.fspath(path)), threads, machine, dtype, effort)
        except InputError as error:
            refused[matrix_name(path)] = str(error)
        except KeyboardInterrupt:
            interrupted = True
            break
        on_matrix()
    return Twins(tuple(rows), _scores(rows), refused, interrupted)


def _rows(
    problem: Problem, threads: Sequence[int], machine: Machine, dtype: str | None, effort: Effort
) -> list[TwinRow]:
    """Measure a matrix, its banded twin and ours."""
    A = problem.matrix
    dtype = A.dtype.name if dtype is None else dtype
    if A.nnz == 0:
        raise InputError(f"{problem.name} has no entries: expected some to multiply; leave it out")
    block = square_block(problem.structure, np.dtype(dtype).itemsize)
    matrices = A, problem.twin("banded", block).matrix, problem.twin("ours", block).matrix
    index_bits, blocks = 8 * index_dtype(*A.shape, A.nnz).itemsize, RowBlocks.of(problem.structure)
    rows = []
    for count, format_name in product(threads, ("csr", "bcsr") if block > 1 else ("csr",)):
        candidate = Target(machine.device, dtype, index_bits, count).candidate(format_name, blocks, machine)
        if format_name == "bcsr":
            candidate = replace(candidate, parameters=Parameters({"block": (block, block)}))
        timers = [ProductTimer(matrix, candidate, DEVICES.get(machine.device)) for matrix in matrices]
        real, bands, ours = (timer.call(timer.build(candidate)) for timer in timers)
        # The real matrix not twice in a row: the second time would find warmer caches than the twins do.
        calls = {"real": real, "bands": bands, "again": real, "structure": ours}
        times = {kind: timing.time_s for kind, timing in timers[0].time(calls, effort).items()}
        time_s = times.pop("real")
        ratios = {kind: seconds / time_s for kind, seconds in times.items()}
        rows.append(TwinRow(problem.name, int(A.nnz), candidate, block, time_s, **ratios))
    return rows


def square_block(structure: Structure, value_bytes: int) -> int:
    """Return the side of the best square blocks, 1 where they would stream as much as CSR."""
    try:
        BCSR.refuse_unsuited(RowBlocks.of(structure), value_bytes, _INDEX_BYTES)
    except PaddingError:
        return 1
    return best_block(structure.blocks.fill)


def _scores(rows: Sequence[TwinRow]) -> tuple[TwinScore, ...]:
    by_way: dict[tuple[str, int], list[TwinRow]] = {}
    for row in rows:
        by_way.setdefault((row.candidate.format, row.candidate.threads), []).append(row)
    scores = []
    for way, alike in by_way.items():
        errors = np.abs(np.array([[getattr(row, kind) for kind in TWINS] for row in alike]) - 1)
        ends = np.quantile(errors, (0.5, 0.9), axis=0).T.tolist()
        scores.append(TwinScore(*way, len(alike), *(TwinErrors(*pair) for pair in ends)))
    return tuple(scores)
