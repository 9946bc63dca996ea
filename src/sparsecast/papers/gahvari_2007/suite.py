"""The suite of the five-minute benchmark: its matrices, made and measured within a time limit, and a rating.

`bench` is a calibration in which these matrices come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from time import perf_counter

from sparsecast.api.calibrating import calibration
from sparsecast.benchmark.measurement import Instruments, measure_candidates
from sparsecast.benchmark.run import (
    Calibration,
    Measured,
    OutOfTime,
    Progress,
    RatingResult,
    RatingSuite,
    most_entries_here,
    no_progress,
)
from sparsecast.devices.compiling import compiled_in_turn
from sparsecast.devices.target import Target
from sparsecast.errors import MatrixSizeError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.matrices.banded_synthesis import banded_matrix
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SUITES
from sparsecast.measuring.timing import Effort
from sparsecast.papers.gahvari_2007 import search_space, summary
from sparsecast.papers.gahvari_2007.search_space import (
    SYMMETRIC,
    UNBLOCKED,
    Point,
    Search,
    Series,
    points_again,
)
from sparsecast.papers.gahvari_2007.summary import AGAIN, AGAIN_SHARE, SUITE, BenchResult
from sparsecast.records import Candidate

#: Many matrices and few samples of each: medians are taken over the matrices. Of those without blocks and of
#: the symmetric ones, which have figures of their own, there are few.
EFFORT, EFFORT_OF_FEW = Effort(20, 0.0005, 0.05, 0.02), Effort(40, 0.0005, 0.1, 0.05)

#: Share of the time limit that compiling may take, beyond which the block sizes that are left are left out.
COMPILING_SHARE = 0.6

#: Of the time of the benchmark, the share of a type of values, while others are to follow.
_TYPE_SHARE = 0.6


def candidate_of(series: Series, structure: Structure, target: Target, machine: Machine) -> Candidate:
    """Return the one Candidate that a series is measured with: in BCSR, that of exactly its block size."""
    candidate = target.candidate(series.format, RowBlocks.of(structure), machine)
    return replace(candidate, parameters=series.parameters)


@dataclass
class SyntheticSuite:
    """The matrices of some series, measured for targets of one type of values and width of indices.

    All targets are measured on each matrix, in turn. Series that the device has no kernels for are left out.
    The calibration `run` is told what is done next, the seconds used for compiling, making matrices,
    measuring them, and measuring some again, and what there was no time or no memory for.
    """

    run: Calibration
    targets: Sequence[Target]
    series: Sequence[Series]
    dimensions: Sequence[int]

    def measured(self, limit_s: float) -> Iterator[Measured]:
        """Measure for `limit_s` seconds, and yield each matrix with its Records as they are made."""
        start = perf_counter()

        def left_s() -> float:
            return limit_s - (perf_counter() - start)

        search = Search(self._compiled(left_s, limit_s), self.dimensions, left_s())
        reserve_s, took, too_large = AGAIN_SHARE * search.limit_s, {}, 0
        try:
            for point in search.points(lambda: left_s() - reserve_s):
                begin = perf_counter()
                try:
                    yield self._measure(point, SUITE, left_s)
                except OutOfTime:
                    search.missed.append(point)
                except MatrixSizeError:  # a smaller one may fit
                    too_large += 1
                else:
                    took[point] = perf_counter() - begin
                search.took(point, perf_counter() - begin)
            for point in points_again(took, min(reserve_s, left_s())):
                if took[point] <= left_s():
                    with suppress(OutOfTime, MatrixSizeError):
                        yield self._measure(point, AGAIN, left_s)
        finally:
            for what, points in (("out of time", len(search.missed)), ("no memory", too_large)):
                if points:
                    self._note(f"{what} for {points:,} points, refilled like those cut")

    def _note(self, reason: str) -> None:
        self.run.notes.append(f"{self.targets[0].dtype}: {reason}")

    def _begin(self, name: str) -> float:
        """Say what is done next, and return when that begins."""
        self.run.on_progress(self.run.used_s, self.run.budget_s, name)
        return perf_counter()

    def _compiled(self, left_s: Callable[[], float], limit_s: float) -> list[Series]:
        """Compile the kernels of the series, and return the series for which the time sufficed."""
        begin, names = perf_counter(), self.run.device_measured.kernels.names()
        wanted = [series for series in self.series if series.format in names]
        # Symmetric ones have a kernel of their own, which the rules choose for symmetric matrices only.
        tiny = {kind: structure(banded_matrix(48, 24, symmetric=kind, seed=0)) for kind in (False, True)}
        in_turn = [
            candidate_of(series, tiny[series.is_symmetric], target, self.run.machine)
            for series in wanted
            for target in self.targets
        ]
        ready: list[Series] = []
        with closing(compiled_in_turn(in_turn, self.run.machine.threads)) as compiled:
            for number, series in enumerate(wanted):
                if ready and limit_s - left_s() > COMPILING_SHARE * limit_s:
                    left_out = ", ".join(each.name for each in wanted[number:])
                    self._note(f"no time to compile {left_out}")
                    break
                self._begin(f"compiling for {series.name}")
                for _ in self.targets:
                    next(compiled)
                # What makes its matrices is compiled too.
                banded_matrix(48, 24, block=series.block, symmetric=series.is_symmetric, seed=0)
                ready.append(series)
        self.run.phases["compiling"] += perf_counter() - begin
        return ready

    def _measure(self, point: Point, suite: str, left_s: Callable[[], float]) -> Measured:
        def watch() -> None:
            if left_s() < 0:
                raise OutOfTime

        run, begin = self.run, self._begin(point.name)
        problem = Problem.named(point.name)
        matrix = problem.structure
        run.phases["making matrices"] += perf_counter() - begin
        begin = perf_counter()
        candidates = [candidate_of(point.series, matrix, target, run.machine) for target in self.targets]
        effort = EFFORT_OF_FEW if point.series in (UNBLOCKED, SYMMETRIC) else EFFORT
        try:
            instruments = Instruments(run.device_measured)
            return problem, measure_candidates(problem, suite, candidates, effort, instruments, watch)
        finally:
            phase = "measuring" if suite == SUITE else "measuring again"
            run.phases[phase] += perf_counter() - begin


@SUITES.register("gahvari")
class Gahvari(RatingSuite):
    """The five-minute benchmark: some series of it, by default all 36 block sizes and the symmetric matrices.

    `range_ends` has for each type of values the largest dimension before any were cut.
    """

    name = "gahvari"
    least_budget_s = summary.LEAST_BUDGET_S

    def __init__(self, series: Sequence[Series] | None = None) -> None:
        self.series = search_space.all_series() if series is None else series
        self.range_ends: dict[str, int] = {}

    def measured(self, run: Calibration, limit_s: float) -> Iterator[Measured]:
        """Measure each type of values with all its thread counts at once."""
        end, threads = run.used_s + limit_s, max(target.threads for target in run.targets)
        cache_bytes = search_space.last_cache_bytes(run.machine, threads)
        most_on_device = run.device_measured.most_entries(run.machine)
        by_type = [list(targets) for _, targets in groupby(run.targets, lambda target: target.dtype)]
        for number, targets in enumerate(by_type if self.series else (), 1):
            left_s, target = end - run.used_s, targets[0]
            whole, dimensions = (
                search_space.dimensions(cache_bytes, target.value_bytes, entries)
                for entries in (inf, min(most_entries_here(target), most_on_device))
            )
            self.range_ends[target.dtype] = whole[-1]
            if len(dimensions) < len(whole):
                run.notes.append(
                    f"{target.dtype}: memory suffices for dimensions up to "
                    f"{dimensions[-1] if dimensions else 0:,} of {whole[-1]:,}"
                )
            if not dimensions:
                continue
            suite = SyntheticSuite(run, targets, self.series, dimensions)
            yield from suite.measured(left_s if number == len(by_type) else _TYPE_SHARE * left_s)

    def ratings(self, run: Calibration) -> list[summary.Rating]:
        return summary.ratings(run.records, run.machine, run.bandwidths, self.range_ends)

    def result(self, run: Calibration) -> RatingResult:
        from sparsecast.papers.gahvari_2007.bench_reports import figures_of, sentence_of

        ratings = self.ratings(run)
        sentences = (sentence_of(ratings),) if ratings else ()
        return RatingResult(figures_of(ratings), sentences, tuple(summary.notes(ratings)))


def bench(
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    blocks: Sequence[str] | None = None,
    on_progress: Progress = no_progress,
) -> BenchResult:
    """Rate this machine by the five-minute benchmark of Gahvari et al. (2007), and keep its profile.

    It is a calibration in which the benchmark's matrices come first; those that forecasts need follow.

    Parameters
    ----------
    budget_s : float
        At least 60.
    threads, dtype, device, on_progress
        As in `calibrate`, also in what is raised.
    blocks : sequence of str, optional
        Block sizes such as ``"4x2"``; by default all 36.
    """
    suite = Gahvari(search_space.all_series(blocks))
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device, rating=suite)
    run.on_progress = on_progress
    run.run()
    rated = suite.ratings(run)
    return BenchResult(
        machine=run.machine,
        budget_s=run.budget_s,
        used_s=run.used_s,
        ratings=tuple(rated),
        phases=run.phases,
        notes=(*run.notes, *summary.notes(rated)),
        interrupted=run.interrupted,
    )
