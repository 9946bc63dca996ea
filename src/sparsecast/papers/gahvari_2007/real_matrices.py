"""Real matrices next to the figures of the benchmark and to twins (Gahvari et al. 2007, Figures 3 to 15).

Each matrix is measured in CSR, in BCSR of all block sizes, and where it is symmetric as one triangle; then
its twins. The paper chooses the block size by OSKI's measured table; here every size is measured.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from sparsecast.api.matrices import left_out
from sparsecast.benchmark.journal import Measurements, journal, read_journal
from sparsecast.benchmark.measurement import measure_candidates
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats.bcsr import BCSR, BLOCK_SIDES, best_block
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.problem import TWIN_PREFIX, Problem
from sparsecast.matrices.reading import matrix_name
from sparsecast.measuring.timing import Effort
from sparsecast.papers.gahvari_2007.search_space import NNZ_PER_ROW, SIZES, UNBLOCKED, Series
from sparsecast.papers.gahvari_2007.summary import Rating
from sparsecast.records import Parameters, Record
from sparsecast.system.tabular import grouped

#: Suite of the Records.
REAL_SUITE = "gahvari real"

#: Kinds of twins, as in matrices/problem.py: the paper's, and ours.
TWINS = ("banded", "ours")

_INDEX_BYTES = 4

#: What a Candidate takes: a matrix has 42 of them.
REAL_EFFORT = Effort(10, 0.0005, 0.05, 0.02)


#: One matrix, real or generated, with speeds in MFLOP/s, None where there is none. The columns of
#: `bench_reports.REAL_ROW` say what each is.
RealRow = dict[str, Any]


def is_generated(row: RealRow) -> bool:
    return str(row["matrix"]).startswith(("atlas?", "gallery:"))


@dataclass(frozen=True, slots=True)
class RealMatrices:
    """Real matrices, and the figures that they are compared with.

    `refused` says which were left out, and why; `missing` is the number of those that there was no time for.
    """

    rating: Rating
    rows: tuple[RealRow, ...]
    refused: dict[str, str]
    missing: int
    interrupted: bool

    @property
    def scores(self) -> list[dict[str, Any]]:
        """How the figures forecast all rows, and those of blocks and of each size of which there are some.

        Those of blocks are what the blocked figures are of: square blocks of them stream less than CSR.
        """
        kinds = {"all": self.rows, "of blocks": [row for row in self.rows if row["square"] != "1x1"]}
        kinds |= {size: [row for row in self.rows if row["size"] == size] for size in SIZES}
        return [_score(kind, rows, self.rating) for kind, rows in kinds.items() if rows]

    @property
    def twins(self) -> list[dict[str, Any]]:
        """How near each kind of twin is in each format, by abs(twin's time / time - 1), but of twins.

        The twin ``"again"`` is the matrix itself, measured last: the noise.
        """
        # Those of the atlas are themselves made as our twins are: one is no news.
        others = [row for row in self.rows if not row["matrix"].startswith("atlas?")]
        scores = []
        for format, kind, real, twin in (
            ("csr", "again", "untuned_mflops", "again_mflops"),
            *(("csr", kind, "again_mflops", f"{kind}_mflops") for kind in TWINS),
            *(("bcsr", kind, "square_mflops", f"{kind}_square_mflops") for kind in TWINS),
        ):
            rows = self.rows if kind == "again" else others
            errors = [abs(row[real] / row[twin] - 1) for row in rows if row[real] and row[twin]]
            if errors:
                median, p90 = np.quantile(errors, (0.5, 0.9)).tolist()
                counted = {"format": format, "twin": kind, "matrices": len(errors)}
                scores.append({**counted, "median_error": median, "p90_error": p90})
        return scores


def real_journal(machine: Machine) -> Path:
    return storage.home() / "measurements" / f"{machine.name}.gahvari.jsonl"


def real_matrices(
    paths: Sequence[str | os.PathLike[str]],
    rating: Rating,
    budget_s: float = 300.0,
    on_progress: Progress = no_progress,
    effort: Effort = REAL_EFFORT,
    sides: Sequence[int] = BLOCK_SIDES,
) -> RealMatrices:
    """Measure real matrices and their twins as the figures of this machine were, and compare all.

    What was measured before is taken over. Each eighth by size has its turn. After the budget no further
    height of blocks, of `sides`, and no twin is measured.
    """
    if not 0 < budget_s < float("inf"):
        raise InputError(f"budget {budget_s:g}: expected seconds above 0; name some")
    start, kept = perf_counter(), real_journal(rating.machine)
    # In an order in which each beginning has small and large ones.
    by_size = sorted(paths, key=lambda path: Path(path).stat().st_size if Path(path).exists() else 0)
    spread = [path for first in range(8) for path in by_size[first::8]]
    refused: dict[str, str] = {}
    whole: dict[str, None] = {}
    missing, interrupted = 0, False
    with storage.exclusive(kept.with_suffix(".lock")):
        measured = read_journal(kept)
        with journal(kept, measured.matrices) as add:
            try:
                for groups, path in product((len(sides), len(sides) + 1 + len(TWINS)), spread):
                    on_progress(perf_counter() - start, budget_s, matrix_name(path))
                    with left_out(matrix_name(path), refused):
                        problem = Problem.named(os.fspath(path))
                        done = groups_done(problem.specification, rating, measured.records)
                        while done < groups and perf_counter() - start <= budget_s:
                            part, records = _measured(problem, rating, effort, sides, done)
                            add(part, records)
                            measured.add(part, records)
                            done += 1
                        if done >= len(sides):
                            whole[problem.specification] = None
                        missing += len(sides) < groups and done < groups
            except KeyboardInterrupt:
                interrupted = True
    rows = rows_of(measured, whole, rating)
    if refused and not (rows or missing or interrupted):
        raise InputError(next(iter(refused.values())))
    return RealMatrices(rating, rows, refused, missing, interrupted)


def rows_of(measured: Measurements, specifications: Iterable[str], rating: Rating) -> tuple[RealRow, ...]:
    """Return a row for each matrix that was measured, the fastest first."""
    by_matrix = _by_matrix(measured.records, rating)
    rows = [_row(measured.matrices[name], by_matrix, rating) for name in specifications if name in by_matrix]
    return tuple(sorted(rows, key=lambda row: -row["tuned_mflops"]))


def _measured(
    problem: Problem, rating: Rating, effort: Effort, sides: Sequence[int], place: int
) -> tuple[Problem, list[Record]]:
    """Return the Records of a height of blocks, CSR last; behind the heights those of CSR, and of a twin.

    Those of height 1 have one triangle as well.
    """
    if problem.matrix.nnz == 0:
        raise InputError(f"{problem.name} has no entries: expected some to multiply; leave it out")
    if problem.matrix.dtype.kind == "c":
        raise InputError(f"{problem.name} is complex: expected real values, as in the figures; leave it out")
    target = Target(rating.device, rating.dtype, 32, rating.threads)
    side = square_block(problem.structure, rating.value_bytes)
    height, widths = (sides[place], sides) if place < len(sides) else (side, [side])
    # Just before its twins the matrix itself is measured again.
    part = problem if place <= len(sides) else problem.twin(TWINS[place - len(sides) - 1], side)
    blocks = RowBlocks.of(part.structure)
    bcsr = target.candidate("bcsr", blocks, rating.machine)
    sizes = [(height, width) for width in widths if (height, width) != (1, 1)]
    candidates = [replace(bcsr, parameters=Parameters({"block": size})) for size in sizes]
    if height == 1 and part.structure.symmetry.triangle_nnz is not None:
        candidates.append(target.candidate("symmetric_csr", blocks, rating.machine))
    candidates.append(target.candidate("csr", blocks, rating.machine))
    return part, measure_candidates(part, REAL_SUITE, candidates, effort)


def square_block(structure: Structure, value_bytes: int) -> int:
    """Return the side of the best square blocks, 1 where they would stream as much as CSR."""
    try:
        BCSR.refuse_unsuited(RowBlocks.of(structure), value_bytes, _INDEX_BYTES)
    except PaddingError:
        return 1
    return best_block(structure.blocks.fill)


def _by_matrix(records: Iterable[Record], rating: Rating) -> dict[str, list[Record]]:
    """Return the Records for the target of the rating, by today's kernels, of each matrix and twin."""
    kernels, target = DEVICES.get(rating.device).kernels, (rating.device, rating.dtype, rating.threads)
    of_target = (
        record
        for record in records
        if record.suite == REAL_SUITE
        and (record.candidate.device, record.candidate.dtype, record.candidate.threads) == target
        and record.kernel_version == kernels.get(record.candidate.format).version
    )
    return grouped(of_target, lambda record: record.matrix)


def groups_done(specification: str, rating: Rating, records: Iterable[Record]) -> int:
    """Return the heights of blocks and the twins that are measured: each ends with a Record of CSR."""
    of_matrix = [record for record in records if record.matrix.endswith(specification)]
    by_matrix = _by_matrix(of_matrix, rating).values()
    return sum(len(_mflops(of_one, "csr")) for of_one in by_matrix)


def _row(entry: MatrixEntry, by_matrix: Mapping[str, Sequence[Record]], rating: Rating) -> RealRow:
    structure, records = entry.structure, by_matrix[entry.specification]
    csr = _mflops(records, "csr")
    speeds = {(1, 1): statistics.median(csr)}
    for size in product(BLOCK_SIDES, BLOCK_SIDES):
        of_size = [r for r in records if r.candidate.parameters == Series(size).parameters]
        if size != (1, 1) and of_size:
            speeds[size] = 1e3 * of_size[-1].gflops
    best = max(speeds, key=lambda block: speeds[block])
    side = square_block(structure, rating.value_bytes)
    nnz_per_row = structure.nnz / structure.rows
    banded, ours = (
        by_matrix.get(f"{TWIN_PREFIX}{kind}?block={side}&of={entry.specification}", ()) for kind in TWINS
    )

    def synthetic(series: Series) -> float | None:
        if series not in rating.filled:
            return None
        nearest = int(np.argmin(np.abs(np.array(NNZ_PER_ROW) - nnz_per_row)))
        of_dimensions = rating.filled[series][:, nearest]
        doublings = np.log2(structure.rows / min(point.dimension for point in rating.speeds))
        return float(np.interp(doublings, np.arange(len(of_dimensions)), of_dimensions))

    return {
        "matrix": entry.name,
        "rows": structure.rows,
        "nnz": structure.nnz,
        "nnz_per_row": nnz_per_row,
        "size": rating.size(structure.rows, nnz_per_row),
        "untuned_mflops": speeds[1, 1],
        "synthetic_mflops": synthetic(UNBLOCKED),
        "tuned_mflops": speeds[best],
        "synthetic_tuned_mflops": synthetic(Series(best)),
        "block": Series(best).name,
        "square": Series((side, side)).name,
        "square_mflops": speeds.get((side, side)),
        "symmetric_mflops": _last(records, "symmetric_csr"),
        "again_mflops": csr[-1],
        "banded_mflops": _last(banded, "csr"),
        "ours_mflops": _last(ours, "csr"),
        "banded_square_mflops": _last(banded, "bcsr"),
        "ours_square_mflops": _last(ours, "bcsr"),
    }


def _mflops(records: Iterable[Record], format: str) -> list[float]:
    return [1e3 * record.gflops for record in records if record.candidate.format == format]


def _last(records: Iterable[Record], format: str) -> float | None:
    return next(reversed(_mflops(records, format)), None)


def _score(kind: str, rows: Sequence[RealRow], rating: Rating) -> dict[str, Any]:
    """Return how the figures, and the synthetic matrices, forecast real ones of a size, of blocks, or all."""
    figures, fastest = rating.figures, max(row["tuned_mflops"] for row in rows)
    medians = {"unblocked": figures.unblocked_median_mflops, "blocked": figures.blocked_median_mflops}

    def error(forecast: str, speed: str) -> float | None:
        pairs = ((row[forecast], row[speed]) for row in ({**row, **medians} for row in rows))
        return _median(abs(value / measured - 1) for value, measured in pairs if value is not None)

    return {
        "size": kind,
        "matrices": len(rows),
        "untuned_mflops": _median(row["untuned_mflops"] for row in rows),
        "tuned_mflops": _median(row["tuned_mflops"] for row in rows),
        "tuned_max_mflops": fastest,
        "untuned_error": error("unblocked", "untuned_mflops"),
        "tuned_error": error("blocked", "tuned_mflops"),
        "synthetic_error": error("synthetic_mflops", "untuned_mflops"),
        "synthetic_tuned_error": error("synthetic_tuned_mflops", "tuned_mflops"),
        "max_ratio": figures.blocked_max_mflops / fastest if figures.blocked_max_mflops else None,
        "square_share": _median(r["square_mflops"] / r["tuned_mflops"] for r in rows if r["square_mflops"]),
    }


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None
