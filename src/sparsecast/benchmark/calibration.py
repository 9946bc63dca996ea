"""Meeting a machine: the benchmark matrices, measured within a budget, kept as they come.

The benchmark matrices are those of Guo, Wang and Chen (2014), section 3.2, on strips of the processor's own
size; beside them matrices with rows of varied length, and some gallery matrices that no model is fitted to,
from which the models learn how far off they are on matrices of other kinds. They are measured in rounds,
the required ones first, so that a short budget gives a coarse profile and not half of a fine one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
from scipy.sparse import csr_array

from sparsecast.benchmark.bandwidths import array_sizes, measure_bandwidths
from sparsecast.benchmark.gahvari import search_space, summary
from sparsecast.benchmark.gahvari.search_space import Series
from sparsecast.benchmark.gahvari.suite import OutOfTime, SyntheticSuite
from sparsecast.benchmark.measurement import Bench, HostBench, Subject, measure_candidates
from sparsecast.errors import InputError, MatrixSizeError, ProfileError
from sparsecast.formats import FORMATS
from sparsecast.kernels import KERNELS
from sparsecast.kernels.compiling import compiled_in_turn
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, user_path
from sparsecast.matrices.analysis import structure
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.synthesis import (
    block_matrix,
    diagonal_matrix,
    mirrored,
    strip_matrix,
    varied_matrix,
)
from sparsecast.measuring.timing import Effort, HostClock
from sparsecast.models.guo import strip_rows
from sparsecast.planning.candidates import Target, whole_matrix
from sparsecast.records import SCHEMA_VERSION, Bandwidth, Candidate, Record, Structure

#: Seconds below which not even the required matrices get measured on a cold compilation cache.
LEAST_BUDGET_S = 10.0

#: Section 3.2.2: strips 1 to 10; non-zeros a row 4, 16 ... 1024 for CSR and ELL, 10, 20 ... 100 for COO.
STRIPS = tuple(range(1, 11))
NNZ_PER_ROW = (4, 16, 64, 256, 1024)
ENTRY_STRIPS = tuple(range(10, 101, 10))

_COARSE_STRIPS = (1, 5, 10)
_COARSE_NNZ_PER_ROW = (4, 16, 64)
_COARSE_ENTRY_STRIPS = (10, 50, 100)

#: Rows, mean row length, distribution of the row lengths and reach of the columns of matrices with rows of
#: varied length: small and large, short and long rows, near and far columns, each with each other at least
#: once. The first half is required.
VARIED = (
    (20_000, 4, "power", 0.01),
    (100_000, 6, "mixed", 0.001),
    (200_000, 3, "uniform", 0.001),
    (100_000, 10, "uniform", 1.0),
    (5_000, 40, "power", 1.0),
    (300_000, 4, "fixed", 1.0),
    (10_000, 30, "mixed", 0.1),
    (30_000, 20, "fixed", 0.1),
    (150_000, 12, "fixed", 0.001),
    (60_000, 50, "uniform", 0.02),
    (400_000, 3, "power", 0.2),
    (4_000, 8, "uniform", 0.1),
    (400_000, 8, "mixed", 0.3),
    (1_000_000, 3, "fixed", 0.0),
    (250_000, 20, "power", 0.05),
    (80_000, 30, "fixed", 1.0),
    (100_000, 60, "mixed", 0.0),
    (400_000, 12, "uniform", 0.0),
    (12_000, 100, "power", 0.1),
    (20_000, 6, "fixed", 1.0),
    (600_000, 6, "uniform", 0.3),
    (120_000, 60, "fixed", 0.01),
)

#: Block rows, blocks a row, block size and reach of matrices of dense blocks: from cache to memory, small and
#: large blocks. Only formats that could be chosen for them are measured on them.
BLOCKS = (
    (1_000, 10, 8, 0.5),
    (2_000, 9, 3, 1.0),
    (4_000, 20, 6, 0.1),
    (10_000, 12, 4, 0.05),
    (20_000, 8, 3, 0.01),
    (60_000, 6, 2, 0.001),
    (300, 8, 4, 0.3),
    (5_000, 30, 2, 0.02),
    (30_000, 14, 3, 0.0),
    (12_000, 16, 6, 0.01),
    (150_000, 7, 2, 0.1),
    (50_000, 10, 4, 0.002),
    (8_000, 6, 3, 0.5),
    (6_000, 12, 8, 0.0),
)
_BLOCK_FORMATS = ("bcsr", "csr", "sell")

#: As VARIED, for matrices that are mirrored at the diagonal.
SYMMETRIC = (
    (3_000, 20, "uniform", 0.3),
    (20_000, 5, "power", 0.01),
    (100_000, 6, "mixed", 0.001),
    (60_000, 10, "uniform", 1.0),
    (200_000, 4, "fixed", 1.0),
    (30_000, 20, "fixed", 0.1),
    (10_000, 60, "mixed", 0.1),
    (150_000, 12, "fixed", 0.001),
    (40_000, 50, "uniform", 0.02),
    (8_000, 130, "power", 1.0),
    (300_000, 7, "fixed", 0.0),
    (30_000, 80, "mixed", 0.0),
    (5_000, 8, "fixed", 1.0),
    (120_000, 25, "mixed", 0.3),
)
_SYMMETRIC_FORMATS = ("csr", "sell", "symmetric_csr")
#: Rows, diagonals and reach of matrices of full diagonals: from cache to memory, few and many diagonals, side
#: by side and far apart. The format for them is measured on them, beside CSR.
DIAGONALS = (
    (2_000, 5, 0.05),
    (20_000, 3, 0.0),
    (1_000, 101, 0.2),
    (100_000, 5, 0.01),
    (8_000, 27, 0.1),
    (40_000, 7, 0.3),
    (10_000, 60, 0.0),
    (400_000, 3, 0.2),
    (40_000, 27, 0.02),
    (150_000, 7, 0.005),
    (200_000, 5, 0.0),
    (60_000, 13, 0.1),
    (20_000, 41, 0.0),
    (800_000, 1, 0.0),
    (5_000, 15, 0.0),
)
_DIAGONAL_FORMATS = ("csr", "dia")

#: Kinds that differ in what the strip models do not see: row lengths, reach of the columns, size.
GALLERY = (
    "poisson2d?n=400",
    "rmat?scale=15&degree=12",
    "elasticity3d?n=18",
    "circuit?n=60000",
    "banded?n=40000&half_bandwidth=12",
    "poisson3d?n=40&points=27",
    "random?n=150000&nnz_per_row=6",
    "poisson3d?n=90&points=7",
)

#: So many of them are required: two for each format at least, or its forecasts have no interval.
_REQUIRED_GALLERY = 5

#: Share of the free memory that a benchmark matrix may take in all its formats together.
MEMORY_SHARE = 0.25

#: Values, and bytes beside them, that one entry takes while it is measured: the CSR arrays, the largest
#: format beside them, and the oracle's terms in extended precision.
_VALUES_AN_ENTRY, _BYTES_BESIDE = 3, 36

QUICK_EFFORT = Effort(samples=24, sample_s=0.001, most_s=0.15)
FULL_EFFORT = Effort(samples=60, sample_s=0.001, most_s=0.3)

#: Seconds that it takes to tell how many calls a sample has, and the calls a sample that are not timed.
_TRIALS_S, _UNTIMED = 0.003, 0.25

#: From this budget a target on, there is time for the full effort.
_FULL_EFFORT_BUDGET_S = 60.0

#: Share of the budget that the five-minute benchmark gets where its figures are what is wanted, and that
#: of what the required matrices leave where they are not; less than the seconds is not worth to begin.
_RATING_SHARE, _SHARE_BESIDE, _LEAST_BESIDE_S = 0.75, 0.5, 30.0

#: Seconds of a budget for each target that is rated; the last ones are left out where they do not suffice.
_SETTING_S = 75.0

#: Of the time of the five-minute benchmark, the share of a type of values, while others are to follow.
_TYPE_SHARE = 0.6

#: Seconds that measuring the bandwidth of a target may take.
_STREAMS_S = 5.0

#: Seconds of the budget for the figures that starting Python, before the run, and saving take.
_AROUND_S = 4.0

Progress = Callable[[float, float, str], None]


def no_progress(done_s: float, total_s: float, item: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class BenchmarkMatrix:
    """A matrix to be measured, not yet built.

    Attributes
    ----------
    name, suite : str
        As in a Record.
    entries : int
        Estimate of its non-zeros, for the time and memory it will take.
    formats : tuple of str
        Formats to measure on it.
    build : callable
        Makes the matrix.
    """

    name: str
    suite: str
    entries: int
    formats: tuple[str, ...]
    build: Callable[[], csr_array[Any]]


def benchmark_matrices(target: Target) -> tuple[list[BenchmarkMatrix], list[BenchmarkMatrix]]:
    """Return the required matrices for a processor's target, and those that make its profile optional."""
    rows = strip_rows(None, target.device, target.threads)
    grid = [(strips, length) for length in NNZ_PER_ROW for strips in STRIPS if length < strips * rows]

    def coarse(strips: int, length: int) -> bool:
        return strips in _COARSE_STRIPS and length in _COARSE_NNZ_PER_ROW

    # All formats on these: it gives the models that see more than strips a first look at each.
    needed = [strips_benchmark(rows, *point, tuple(FORMATS.names())) for point in grid if coarse(*point)]
    needed += [entry_strips_benchmark(rows, strips) for strips in _COARSE_ENTRY_STRIPS]
    optional = [
        entry_strips_benchmark(rows, strips) for strips in ENTRY_STRIPS if strips not in _COARSE_ENTRY_STRIPS
    ]
    required_suites, optional_suites = suites_beside_strips()
    # Long rows first: they carry the fixed-strips relationships furthest.
    rest = [point for point in grid if not coarse(*point)]
    optional_strips = [
        strips_benchmark(rows, *point) for point in sorted(rest, key=lambda p: p[0] not in _COARSE_STRIPS)
    ]
    return needed + required_suites, optional + optional_suites + optional_strips


def suites_beside_strips() -> tuple[list[BenchmarkMatrix], list[BenchmarkMatrix]]:
    """Return the required matrices and the others of the suites that need no strip of a device."""
    half = len(VARIED) // 2
    suites = (
        [varied_benchmark(*shape) for shape in VARIED[:half]],
        [blocks_benchmark(*shape) for shape in BLOCKS],
        [symmetric_benchmark(*shape) for shape in SYMMETRIC],
        [diagonals_benchmark(*shape) for shape in DIAGONALS],
        [gallery_benchmark(specification) for specification in GALLERY[:_REQUIRED_GALLERY]],
    )
    # In turn, so that a budget that ends early has left out some of each and none whole.
    needed = [matrix for turn in zip_longest(*suites) for matrix in turn if matrix]
    optional = [gallery_benchmark(specification) for specification in GALLERY[_REQUIRED_GALLERY:]]
    optional += [varied_benchmark(*shape) for shape in VARIED[half:]]
    return needed, optional


def strips_benchmark(
    strip: int, strips: int, nnz_per_row: int, formats: tuple[str, ...] = ("csr", "ell")
) -> BenchmarkMatrix:
    """Return the matrix of so many strips of `strip` rows of one length."""
    rows = strips * strip
    return BenchmarkMatrix(
        f"strips?rows={rows}&nnz_per_row={nnz_per_row}",
        "strips",
        rows * nnz_per_row,
        formats,
        lambda: strip_matrix(rows, nnz_per_row, seed=0),
    )


def entry_strips_benchmark(strip: int, strips: int) -> BenchmarkMatrix:
    """Return the matrix of so many strips of `strip` non-zeros."""
    # One strip of rows and as many non-zeros a row as there shall be strips of non-zeros.
    return BenchmarkMatrix(
        f"strips?rows={strip}&nnz_per_row={strips}",
        "entry strips",
        strip * strips,
        ("coo",),
        lambda: strip_matrix(strip, strips, seed=0),
    )


def varied_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of VARIED."""
    return BenchmarkMatrix(
        f"varied?rows={rows}&mean_length={mean_length}&lengths={lengths}&reach={reach:g}",
        "varied",
        rows * mean_length,
        tuple(FORMATS.names()),
        lambda: varied_matrix(rows, mean_length, lengths, reach, seed=0),
    )


def blocks_benchmark(block_rows: int, blocks_per_row: int, block: int, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of BLOCKS."""
    return BenchmarkMatrix(
        f"blocks?block_rows={block_rows}&blocks_per_row={blocks_per_row}&block={block}&reach={reach:g}",
        "blocks",
        block_rows * blocks_per_row * block**2,
        _BLOCK_FORMATS,
        lambda: block_matrix(block_rows, blocks_per_row, block, reach, seed=0),
    )


def symmetric_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of SYMMETRIC."""
    return BenchmarkMatrix(
        f"symmetric?rows={rows}&mean_length={mean_length}&lengths={lengths}&reach={reach:g}",
        "symmetric",
        rows * mean_length,
        _SYMMETRIC_FORMATS,
        lambda: mirrored(varied_matrix(rows, mean_length, lengths, reach, seed=0)),
    )


def diagonals_benchmark(rows: int, diagonals: int, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of DIAGONALS."""
    return BenchmarkMatrix(
        f"diagonals?rows={rows}&diagonals={diagonals}&reach={reach:g}",
        "diagonals",
        rows * diagonals,
        _DIAGONAL_FORMATS,
        lambda: diagonal_matrix(rows, diagonals, reach, seed=0),
    )


def gallery_benchmark(specification: str) -> BenchmarkMatrix:
    """Return the matrix of a gallery specification, held out of the fit."""
    return BenchmarkMatrix(
        f"gallery:{specification}",
        "gallery",
        1_000_000,
        tuple(FORMATS.names()),
        lambda: gallery_from_specification(specification),
    )


def candidates_of(found: Structure, target: Target) -> list[Candidate]:
    """Return the Candidates of every format that suits a matrix, with the kernels that the rules choose."""
    return list(whole_matrix(found, target).candidates)


def host_bandwidths(machine: Machine, threads: int) -> list[Bandwidth]:
    """Measure how fast so many threads of the processor read."""
    return measure_bandwidths(HostClock(), "cpu", threads, array_sizes(machine, threads))


@dataclass(frozen=True)
class Place:
    """Where a calibration measures, and what: by default the processor.

    Attributes
    ----------
    matrices : callable
        Target to the required matrices, and those that make its profile optional.
    candidates : callable
        (Structure, Target) to the Candidates that suit a matrix.
    bandwidths : callable
        (Machine, threads) to the measured bandwidths.
    bench : Bench
    """

    matrices: Callable[[Target], tuple[list[BenchmarkMatrix], list[BenchmarkMatrix]]] = benchmark_matrices
    candidates: Callable[[Structure, Target], list[Candidate]] = candidates_of
    bandwidths: Callable[[Machine, int], list[Bandwidth]] = host_bandwidths
    bench: Bench = field(default_factory=HostBench)


@dataclass
class Calibration:
    """One run of the benchmark on this machine.

    Attributes
    ----------
    machine : Machine
    targets : sequence of Target
        What to measure, the most wanted first.
    budget_s : float
        Seconds that the whole run may take.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is being measured.
    place : Place
        Where is measured, and what.
    series : sequence of Series
        What is measured of the five-minute benchmark.
    rates : bool
        Whether its figures are what is wanted, and come first; else the models' matrices do.
    records : list of Record
        What this run has measured so far; what it took over from a killed one is in the profile only.
    bandwidths : list of Bandwidth
        The bandwidths measured so far; quickly measured again, so the journal does without them.
    interrupted : bool
        Whether the user stopped it.
    phases : dict of str to float
        Seconds used by each part of the run so far.
    notes : list of str
        What was left out and why.
    range_ends : dict of str to int
        For each type of values, the largest dimension of the five-minute benchmark before any were cut.
    """

    machine: Machine
    targets: Sequence[Target]
    budget_s: float
    on_progress: Progress = no_progress
    place: Place = field(default_factory=Place)
    series: Sequence[Series] = ()
    rates: bool = False
    records: list[Record] = field(default_factory=list)
    bandwidths: list[Bandwidth] = field(default_factory=list)
    interrupted: bool = False
    phases: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    range_ends: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least = summary.LEAST_BUDGET_S if self.rates else LEAST_BUDGET_S
        if not self.budget_s >= least:
            raise InputError(
                f"budget {self.budget_s:g} s: expected at least {least:g} s, "
                f"what the required matrices take; raise the budget"
            )
        affordable = max(1, int(min(len(self.targets), self.budget_s / _SETTING_S)))
        if self.rates and affordable < len(self.targets):
            self.notes.append(
                f"time for {affordable} of {len(self.targets)} combinations of type and threads"
            )
            self.targets = self.targets[:affordable]
        share = self.budget_s / len(self.targets)
        self._effort = FULL_EFFORT if share >= _FULL_EFFORT_BUDGET_S else QUICK_EFFORT
        self._pace = 1.0
        self._ready: set[Target] = set()
        self._taken_over: list[Record] = []
        self._end_s = self.budget_s - (_AROUND_S if self.rates else 0.0)

    def run(self) -> Profile:
        """Measure until all is measured, the budget is spent or the user interrupts; save the profile.

        What an earlier run that was killed left in the journal is taken over first.

        Raises
        ------
        BusyError
            If another process calibrates this machine.
        StorageError
            If the data folder cannot be written; found out before measuring.
        """
        self._start = perf_counter()
        path = user_path(self.machine.name)
        storage.ensure_writable(path.parent)
        journal_path = path.with_suffix(".journal")
        with storage.exclusive(path.with_suffix(".lock")):
            before = _existing(path, self.machine)
            self._taken_over = read_journal(journal_path)
            try:
                with storage.journal(journal_path) as append:
                    for record in self._measure_all():
                        append(json.dumps({"schema": SCHEMA_VERSION, **record.to_row()}))
                        self.records.append(record)
            except KeyboardInterrupt:
                self.interrupted = True
            profile = before.with_records((*self._taken_over, *self.records)).with_bandwidths(self.bandwidths)
            if not profile.records and not self.interrupted:
                raise InputError(
                    f"budget {self.budget_s:g} s: expected time and free memory for one matrix, beside "
                    f"compiling the kernels; that is done now, so calibrate again, or with more of both"
                )
            profile.save(path)
            journal_path.unlink(missing_ok=True)
        return profile

    @property
    def used_s(self) -> float:
        """Seconds since the run began."""
        return perf_counter() - self._start

    def _measure_all(self) -> Iterator[Record]:
        needed, optional = self._rounds()
        # The figures and the way to a device are told from them; forecasts on a processor are not.
        if self.rates or self.machine.device:
            self._measure_bandwidths()
        if self.rates:
            # A budget that is just enough is enough for the figures only.
            end = max(_RATING_SHARE * self.budget_s, min(summary.LEAST_BUDGET_S, self.budget_s))
            yield from self._measure_synthetic(min(end, self._end_s) - self.used_s)
            yield from self._measure_rounds(needed + optional)
        else:
            yield from self._measure_rounds(needed)
            if not self.bandwidths and self.used_s + _STREAMS_S * len(self.targets) <= self.budget_s:
                self._measure_bandwidths()
            limit = _SHARE_BESIDE * (self.budget_s - self.used_s)
            if limit >= _LEAST_BESIDE_S:
                yield from self._measure_synthetic(limit)
            yield from self._measure_rounds(optional)

    def _measure_bandwidths(self) -> None:
        with self._phase("bandwidth"):
            for threads in dict.fromkeys(target.threads for target in self.targets):
                self.on_progress(self.used_s, self.budget_s, "bandwidth")
                self.bandwidths += self.place.bandwidths(self.machine, threads)

    def _measure_synthetic(self, limit_s: float) -> Iterator[Record]:
        """Measure the five-minute benchmark, each type of values with all its thread counts at once."""
        end = self.used_s + limit_s
        by_type = [list(own) for _, own in groupby(self.targets, lambda target: target.dtype)]
        for number, targets in enumerate(by_type if self.series else (), 1):
            left = end - self.used_s
            suite = SyntheticSuite(
                targets,
                self.series,
                self._dimensions(targets[0]),
                self.place.bench,
                lambda name: self.on_progress(self.used_s, self.budget_s, name),
                processes=self.machine.threads,
                phases=self.phases,
            )
            try:
                yield from suite.run(left if number == len(by_type) else _TYPE_SHARE * left)
            finally:
                self.notes += suite.notes()

    def _dimensions(self, target: Target) -> tuple[int, ...]:
        threads = max(each.threads for each in self.targets)
        cache_bytes = search_space.last_cache_bytes(self.machine, target.device, threads)
        whole, fitting = (
            search_space.dimensions(cache_bytes, target.value_bytes, entries)
            for entries in (float("inf"), self._most_entries(target))
        )
        self.range_ends[target.dtype] = whole[-1]
        if len(fitting) < len(whole):
            self.notes.append(
                f"{target.dtype}: memory suffices for dimensions up to {fitting[-1] if fitting else 0:,} of "
                f"{whole[-1]:,}"
            )
        return fitting

    def _measure_rounds(self, rounds: Sequence[tuple[Target, BenchmarkMatrix]]) -> Iterator[Record]:
        """Measure the models' matrices in this order, as far as time and memory suffice."""
        expected = self.used_s + sum(self._estimate_s(matrix) for _, matrix in rounds)
        for target, matrix in rounds:
            total = min(self.budget_s, max(self.used_s, expected))
            self.on_progress(min(self.used_s, total), total, matrix.name)
            estimate = self._estimate_s(matrix)
            if self._is_due(target, matrix, estimate):  # else compiling would be for nothing
                with self._phase("compiling"):
                    self._compile(target)
            if not self._is_due(target, matrix, estimate):
                expected -= estimate
                continue
            begin = self.used_s
            with self._phase("the models' matrices"), suppress(OutOfTime):
                yield from self._measure(target, matrix)
            took = self.used_s - begin
            expected += took - estimate
            # Never optimistic: the pace follows slow matrices at once and fast ones slowly.
            self._pace = max(self._pace * took / estimate, 0.9 * self._pace)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begin = self.used_s
        yield
        self.phases[name] = self.phases.get(name, 0.0) + self.used_s - begin

    def _compile(self, target: Target) -> None:
        """Have every kernel compiled, so that its compilation does not pass for its matrix' time."""
        if target in self._ready:
            return
        self._ready.add(target)
        self.on_progress(
            self.used_s, self.budget_s, f"compiling for {target.dtype}, {target.threads} threads"
        )
        wanted = [
            Candidate(name, variant, target.device, target.dtype, target.index_bits, target.threads)
            for name in KERNELS[target.device].names()
            for variant in KERNELS[target.device].get(name).variants
        ]
        for _ in compiled_in_turn(wanted, self.machine.threads):
            if self.used_s > self._end_s:
                return  # nothing will be measured with it
        structure(varied_matrix(1000, 4, "uniform", 1.0, seed=0))

    def _rounds(self) -> tuple[list[tuple[Target, BenchmarkMatrix]], list[tuple[Target, BenchmarkMatrix]]]:
        suites = [(target, *self.place.matrices(target)) for target in self.targets]
        needed = [(target, matrix) for target, first, _ in suites for matrix in first]
        optional = [(target, matrix) for target, _, second in suites for matrix in second]
        return needed, optional

    def _estimate_s(self, matrix: BenchmarkMatrix) -> float:
        calls = len(matrix.formats)
        product_s = 1e-9 * matrix.entries
        samples_s = self._effort.samples * max(self._effort.sample_s, (1 + _UNTIMED) * product_s)
        timing_s = _TRIALS_S + min(samples_s, self._effort.most_s + 4 * product_s)
        # Building, converting and checking take about 200 ns an entry.
        return self._pace * (calls * timing_s + 200e-9 * matrix.entries)

    def _is_due(self, target: Target, matrix: BenchmarkMatrix, estimate_s: float) -> bool:
        in_time = self.used_s + estimate_s <= self._end_s
        fits = in_time and matrix.entries <= self._most_entries(target)
        return fits and not self._is_done(target, matrix)

    def _most_entries(self, target: Target) -> float:
        """Return the entries of the largest matrix that there is memory for."""
        free: int = psutil.virtual_memory().available
        return MEMORY_SHARE * free / (_VALUES_AN_ENTRY * target.value_bytes + _BYTES_BESIDE)

    def _is_done(self, target: Target, matrix: BenchmarkMatrix) -> bool:
        return any(
            record.matrix == matrix.name
            and record.suite == matrix.suite
            and record.candidate.threads == target.threads
            and record.candidate.dtype == target.dtype
            for record in (*self._taken_over, *self.records)
        )

    def _measure(self, target: Target, matrix: BenchmarkMatrix) -> list[Record]:
        A = matrix.build()
        subject = Subject(A, structure(A), matrix.name, matrix.suite)
        offered = self.place.candidates(subject.structure, target)
        wanted = [candidate for candidate in offered if candidate.format in matrix.formats]
        try:
            return measure_candidates(
                subject, wanted, self._effort, on_sample=self._watch, bench=self.place.bench
            )
        except MatrixSizeError as error:  # another one may fit
            self.notes.append(f"{matrix.name}: {error}")
            return []

    def _watch(self) -> None:
        """Give up a measurement that takes so much longer than expected that the budget is over."""
        if self.used_s > self._end_s:
            raise OutOfTime


def _existing(path: Path, machine: Machine) -> Profile:
    """Return the profile at `path`, or an empty one; refuse to write over one that is not understood."""
    if not path.exists():
        return Profile(machine, ())
    profile = Profile.load(path)
    if profile.name != machine.name:
        raise ProfileError(
            f"{path} describes another machine ({profile.name}): expected {machine.name}; remove the file"
        )
    return profile


def read_journal(path: Path) -> list[Record]:
    """Return what a killed run had measured; a last line that was cut short counts for nothing."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    records = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            schema = row["schema"]
            record = Record.from_row(row) if schema == SCHEMA_VERSION else None
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                break
            raise ProfileError(
                f"{path} line {number} is damaged: expected a record; remove the file"
            ) from error
        if record is None:
            raise ProfileError(f"{path} has schema {schema}: expected {SCHEMA_VERSION}; remove the file")
        records.append(record)
    return records
