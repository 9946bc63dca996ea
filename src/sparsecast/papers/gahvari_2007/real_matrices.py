"""Real matrices next to the figures of the benchmark (Gahvari et al. 2007, Figures 3 to 5 and 8 to 13).

Each matrix is measured in CSR, in BCSR of all block sizes, and where it is symmetric as one triangle. The
paper chooses the block size by OSKI's measured table; here every size is measured.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsecast.benchmark.journal import Measurements, journal, read_journal
from sparsecast.benchmark.measurement import measure_candidates
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines import storage
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import matrix_name
from sparsecast.measuring.timing import Effort
from sparsecast.papers.gahvari_2007.search_space import NNZ_PER_ROW, SIZES, UNBLOCKED, Series, size_class
from sparsecast.papers.gahvari_2007.summary import Rating, refilled
from sparsecast.papers.gahvari_2007.twin_comparison import square_block
from sparsecast.records import VALUE_BYTES, Candidate, Parameters, Record

#: Suite of the Records.
REAL_SUITE = "gahvari real"

#: What a Candidate takes: a matrix has 42 of them.
REAL_EFFORT = Effort(10, 0.0005, 0.05, 0.02)


@dataclass(frozen=True, slots=True)
class RealRow:
    """One real matrix, with speeds in MFLOP/s; None where there is none.

    Attributes
    ----------
    size : str or None
        One of SIZES.
    untuned_mflops, tuned_mflops : float
        In CSR, and in the fastest of CSR and all block sizes.
    block : str
        The fastest block size, ``"1x1"`` for CSR.
    square, square_mflops : str and float or None
        The block size that the bytes of squares choose, as a plan does without measuring, and its speed.
    symmetric_mflops : float or None
        As one triangle.
    synthetic_mflops, synthetic_tuned_mflops : float or None
        Of the synthetic matrices of the same block size, interpolated to its dimension, and at the nearest
        number of non-zeros a row.
    """

    matrix: str
    rows: int
    nnz: int
    size: str | None
    untuned_mflops: float
    tuned_mflops: float
    block: str
    square: str
    square_mflops: float | None
    symmetric_mflops: float | None
    synthetic_mflops: float | None
    synthetic_tuned_mflops: float | None

    @property
    def nnz_per_row(self) -> float:
        """Mean number of non-zeros a row."""
        return self.nnz / self.rows


@dataclass(frozen=True, slots=True)
class RealScore:
    """How the figures of the benchmark forecast the real matrices of one size, or of all.

    Attributes
    ----------
    untuned_mflops, tuned_mflops, tuned_max_mflops : float
        Medians, and the maximum, of the real matrices.
    untuned_error, tuned_error : float or None
        Median of abs(figure / speed - 1) for the unblocked and the blocked median.
    synthetic_error, synthetic_tuned_error : float or None
        The same of the synthetic matrices of each matrix's own dimension and density.
    max_ratio : float or None
        Blocked maximum over the fastest real matrix: above 1 the figure is too high.
    square_share : float or None
        Median share of the best block size's speed that squares by bytes reach.
    """

    size: str
    matrices: int
    untuned_mflops: float
    tuned_mflops: float
    tuned_max_mflops: float
    untuned_error: float | None
    tuned_error: float | None
    synthetic_error: float | None
    synthetic_tuned_error: float | None
    max_ratio: float | None
    square_share: float | None


@dataclass(frozen=True, slots=True)
class RealMatrices:
    """Real matrices, their scores, and the figures that they are compared with.

    `refused` says which were left out, and why; `missing` is the number of those that there was no time for.
    """

    rating: Rating
    rows: tuple[RealRow, ...]
    scores: tuple[RealScore, ...]
    refused: dict[str, str]
    missing: int
    interrupted: bool


def real_matrices(
    paths: Sequence[str | os.PathLike[str]],
    rating: Rating,
    kept: Path,
    is_over: Callable[[], bool] = lambda: False,
    on_matrix: Callable[[str], None] = lambda name: None,
    effort: Effort = REAL_EFFORT,
    sides: Sequence[int] = BLOCK_SIDES,
) -> RealMatrices:
    """Measure what is not measured yet of the matrices, each eighth by size in turn, and compare all.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files, gallery matrices or names of SuiteSparse.
    rating : Rating
        The figures; its device, type of values and threads are measured.
    kept : Path
        Journal of what was measured, which is taken over.
    is_over : callable
        Whether the time is over.
    on_matrix : callable
        Called with the name of each matrix before it is measured.
    effort : Effort
    sides : sequence of int
        Heights and widths of blocks.

    Raises
    ------
    WrongResultError
        If a kernel's result differs from the reference result by more than rounding.
    BusyError, StorageError, ProfileError
        If another run measures, nothing can be kept, or the journal is damaged.
    """
    refused: dict[str, str] = {}
    specifications: list[str] = []
    missing, interrupted = 0, False
    with storage.exclusive(kept.with_suffix(".lock")):
        measured = read_journal(kept)
        with journal(kept, measured.matrices) as add:
            try:
                for path in _spread(paths):
                    on_matrix(matrix_name(path))
                    try:
                        problem = Problem.named(os.fspath(path))
                        for records in _measured(problem, rating, measured.records, effort, sides, is_over):
                            add(problem, records)
                            measured.add(problem, records)
                        if _groups_done(problem.specification, rating, measured.records) < len(sides):
                            missing += 1
                        else:
                            specifications.append(problem.specification)
                    except InputError as error:
                        refused[matrix_name(path)] = str(error)
            except KeyboardInterrupt:
                interrupted = True
    rows = rows_of(measured, specifications, rating)
    return RealMatrices(rating, rows, scores_of(rows, rating), refused, missing, interrupted)


def rows_of(measured: Measurements, specifications: Iterable[str], rating: Rating) -> tuple[RealRow, ...]:
    """Return a row for each matrix that was measured, the fastest first."""
    filled = refilled(rating.speeds, rating.range_end)
    first = min(point.dimension for point in rating.speeds)
    rows = [
        _row(measured.matrices[name], _of_matrix(name, rating, measured.records), rating, filled, first)
        for name in specifications
    ]
    return tuple(sorted(rows, key=lambda row: -row.tuned_mflops))


def scores_of(rows: Sequence[RealRow], rating: Rating) -> tuple[RealScore, ...]:
    """Return the scores of all rows, and of each size of which there are some."""
    by_size = {"all": list(rows), **{size: [row for row in rows if row.size == size] for size in SIZES}}
    return tuple(_score(size, alike, rating) for size, alike in by_size.items() if alike)


def _spread(paths: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """Return the files in an order in which each beginning has small and large ones."""
    by_size = sorted(paths, key=lambda path: Path(path).stat().st_size if Path(path).exists() else 0)
    return [path for start in range(8) for path in by_size[start::8]]


def _candidates(
    problem: Problem, height: int, sides: Sequence[int], target: Target, rating: Rating
) -> list[Candidate]:
    """Return CSR and the blocks of one height; with those of height 1 also one triangle."""
    blocks = RowBlocks.of(problem.structure)
    plain, bcsr = (target.candidate(name, blocks, rating.machine) for name in ("csr", "bcsr"))
    widths = [width for width in sides if (height, width) != (1, 1)]
    candidates = [replace(bcsr, parameters=Parameters({"block": (height, width)})) for width in widths]
    if height == 1 and problem.structure.symmetry.triangle_nnz is not None:
        candidates.append(target.candidate("symmetric_csr", blocks, rating.machine))
    return [*candidates, plain]


def _measured(
    problem: Problem,
    rating: Rating,
    known: Sequence[Record],
    effort: Effort,
    sides: Sequence[int],
    is_over: Callable[[], bool],
) -> Iterator[list[Record]]:
    """Yield the Records of each height of blocks that is not measured yet; that of CSR is the last."""
    done = _groups_done(problem.specification, rating, known)
    if done == len(sides) or is_over():
        return
    if problem.matrix.nnz == 0:
        raise InputError(f"{problem.name} has no entries: expected some to multiply; leave it out")
    if problem.matrix.dtype.kind == "c":
        raise InputError(f"{problem.name} is complex: expected real values, as in the figures; leave it out")
    target = Target(rating.device, rating.dtype, 32, rating.threads)
    for height in sides[done:]:
        if is_over():
            return
        yield measure_candidates(
            problem, REAL_SUITE, _candidates(problem, height, sides, target, rating), effort
        )


def _of_matrix(specification: str, rating: Rating, records: Iterable[Record]) -> list[Record]:
    """Return the Records of a matrix for the target of the rating, by today's kernels."""
    kernels, target = DEVICES.get(rating.device).kernels, (rating.device, rating.dtype, rating.threads)
    return [
        record
        for record in records
        if (record.suite, record.matrix) == (REAL_SUITE, specification)
        and (record.candidate.device, record.candidate.dtype, record.candidate.threads) == target
        and record.kernel_version == kernels.get(record.candidate.format).version
    ]


def _groups_done(specification: str, rating: Rating, records: Iterable[Record]) -> int:
    """Return the heights of blocks that are measured: each ends with a Record of CSR."""
    return sum(record.candidate.format == "csr" for record in _of_matrix(specification, rating, records))


def _row(
    entry: MatrixEntry,
    records: Sequence[Record],
    rating: Rating,
    filled: dict[Series, NDArray[np.float64]],
    first: int,
) -> RealRow:
    structure, value_bytes = entry.structure, VALUE_BYTES[rating.dtype]
    csr = 1e3 * statistics.median(record.gflops for record in records if record.candidate.format == "csr")
    by_parameters = {r.candidate.parameters: 1e3 * r.gflops for r in records if r.candidate.format == "bcsr"}
    sizes = [size for size in product(BLOCK_SIDES, BLOCK_SIDES) if Series(size).parameters in by_parameters]
    speeds = {
        (1, 1): csr,
        **{size: by_parameters[Series(size).parameters] for size in sizes if size != (1, 1)},
    }
    best = max(speeds, key=lambda block: speeds[block])
    side = square_block(structure, value_bytes)
    triangle = [1e3 * record.gflops for record in records if record.candidate.format == "symmetric_csr"]
    nnz_per_row = structure.nnz / structure.rows

    def synthetic(series: Series) -> float | None:
        if series not in filled:
            return None
        nearest = int(np.argmin(np.abs(np.array(NNZ_PER_ROW) - nnz_per_row)))
        of_dimensions = filled[series][:, nearest]
        doublings = np.log2(structure.rows / first)
        return float(np.interp(doublings, np.arange(len(of_dimensions)), of_dimensions))

    return RealRow(
        matrix=entry.name,
        rows=structure.rows,
        nnz=structure.nnz,
        size=size_class(structure.rows, nnz_per_row, value_bytes, rating.cache_bytes),
        untuned_mflops=csr,
        tuned_mflops=speeds[best],
        block=Series(best).name,
        square=Series((side, side)).name,
        square_mflops=speeds.get((side, side)),
        symmetric_mflops=triangle[-1] if triangle else None,
        synthetic_mflops=synthetic(UNBLOCKED),
        synthetic_tuned_mflops=synthetic(Series(best)),
    )


def _score(size: str, rows: Sequence[RealRow], rating: Rating) -> RealScore:
    def error(figure: Callable[[RealRow], float | None], speed: str) -> float | None:
        errors = [abs(value / getattr(row, speed) - 1) for row in rows if (value := figure(row)) is not None]
        return statistics.median(errors) if errors else None

    figures, fastest = rating.figures, max(row.tuned_mflops for row in rows)
    shares = [row.square_mflops / row.tuned_mflops for row in rows if row.square_mflops is not None]
    return RealScore(
        size=size,
        matrices=len(rows),
        untuned_mflops=statistics.median(row.untuned_mflops for row in rows),
        tuned_mflops=statistics.median(row.tuned_mflops for row in rows),
        tuned_max_mflops=fastest,
        untuned_error=error(lambda row: figures.unblocked_median_mflops, "untuned_mflops"),
        tuned_error=error(lambda row: figures.blocked_median_mflops, "tuned_mflops"),
        synthetic_error=error(lambda row: row.synthetic_mflops, "untuned_mflops"),
        synthetic_tuned_error=error(lambda row: row.synthetic_tuned_mflops, "tuned_mflops"),
        max_ratio=figures.blocked_max_mflops / fastest if figures.blocked_max_mflops else None,
        square_share=statistics.median(shares) if shares else None,
    )
