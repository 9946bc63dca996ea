"""The five-minute benchmark of Gahvari et al. (2007): what is measured, what is cut, what it comes to.

Square matrices of dimensions 2**9 to 2**20, of 24 to 34 non-zeros a row, in 36 block sizes are multiplied in
CSR (1 x 1) or in BCSR of exactly their block size. Four figures summarise them: maximum and median speed of
the matrices without blocks, and of all the others (section IV). All of them take hours, so an estimator cuts
the search space until it fits a time limit, and the data points that are cut are refilled.

Nothing here reads a clock or runs a product: the search is told what time is left and what a trial took.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.machine import Machine
from sparsecast.records import Record, Stream

#: Suites of the Records: each point once, and some of them again at the end, for the noise.
SUITE, AGAIN = "synthetic", "synthetic again"

#: Section IV: 29 +- 5 non-zeros a row, the mean of the paper's matrices; dimensions that are powers of two.
NNZ_PER_ROW, MIDDLE = tuple(range(24, 35)), 29
FIRST_DIMENSION, LAST_DIMENSION = 1 << 9, 1 << 20

#: Seconds below which not every block size gets measured on a cold compilation cache.
LEAST_BUDGET_S = 60.0

#: Share of the time that is kept for measuring some points again.
AGAIN_SHARE = 0.04

#: Noise, as a share of the time, from which on something else is running on the machine.
DISTURBED = 0.05

SIZES = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Series:
    """The matrices that share a threshold dimension: those of one block size, or the symmetric ones.

    Attributes
    ----------
    block : (int, int)
        Rows and columns of the blocks.
    is_symmetric : bool
        Whether they are symmetric, and stored as one triangle.
    """

    block: tuple[int, int] = (1, 1)
    is_symmetric: bool = False

    @property
    def name(self) -> str:
        """Block size, or ``"symmetric"``."""
        return "symmetric" if self.is_symmetric else f"{self.block[0]}x{self.block[1]}"

    @property
    def format(self) -> str:
        """The format it is measured in."""
        if self.is_symmetric:
            return "symmetric_csr"
        return "csr" if self.block == (1, 1) else "bcsr"


UNBLOCKED, SYMMETRIC = Series(), Series(is_symmetric=True)


def all_series(blocks: Sequence[str] | None = None) -> tuple[Series, ...]:
    """Return the series of the block sizes, by default all 36, and the symmetric one.

    Sizes that differ most come first, so that whoever is cut short has seen something of each kind.

    Parameters
    ----------
    blocks : sequence of str, optional
        Block sizes such as ``"4x2"``.

    Raises
    ------
    InputError
        If one of them is none of the 36.
    """
    known = {Series(size).name: Series(size) for size in product(BLOCK_SIDES, BLOCK_SIDES)}
    for name in blocks or ():
        if name not in known:
            raise InputError(
                f"block size '{name}': expected RxC with R and C of {', '.join(map(str, BLOCK_SIDES))}; "
                f"name one such as 4x2"
            )
    chosen = [known[name] for name in dict.fromkeys(blocks)] if blocks else list(known.values())
    squares_first = sorted(chosen, key=lambda series: series.block[0] != series.block[1])
    return (*squares_first, SYMMETRIC)


@dataclass(frozen=True, slots=True)
class Point:
    """One matrix of the search space.

    Attributes
    ----------
    series : Series
    dimension : int
        Rows and columns.
    nnz_per_row : int
        Mean non-zeros a row that are asked for.
    """

    series: Series
    dimension: int
    nnz_per_row: int

    @property
    def name(self) -> str:
        """Name of the matrix in a Record."""
        return f"synthetic?rows={self.dimension}&nnz_per_row={self.nnz_per_row}&kind={self.series.name}"

    @property
    def entries(self) -> int:
        """About the non-zeros of the matrix."""
        return self.dimension * self.nnz_per_row

    @classmethod
    def named(cls, name: str) -> Point:
        """Return the point that has this name.

        Raises
        ------
        ValueError
            If no point has.
        """
        found = re.fullmatch(r"synthetic\?rows=(\d+)&nnz_per_row=(\d+)&kind=(symmetric|(\d)x(\d))", name)
        if found is None:
            raise ValueError(f"{name!r} is no matrix of the five-minute benchmark")
        rows, length, kind, r, c = found.groups()
        series = SYMMETRIC if kind == "symmetric" else Series((int(r), int(c)))
        return cls(series, int(rows), int(length))


def dimensions(cache_bytes: int, value_bytes: int, most_entries: float) -> tuple[int, ...]:
    """Return the dimensions of the search space, ascending.

    They end at 2**20, or at the first that no longer fits in the last cache, so that the benchmark keeps up
    with machines that grow; and before the memory ends.

    Parameters
    ----------
    cache_bytes : int
        Of the last cache; 0 where it is not known.
    value_bytes : int
        Size of a value.
    most_entries : float
        Non-zeros that there is memory for.
    """
    found, dimension, longest = [], FIRST_DIMENSION, NNZ_PER_ROW[-1]
    while dimension * longest <= most_entries:
        found.append(dimension)
        if dimension >= LAST_DIMENSION and problem_bytes(dimension, longest, value_bytes) > cache_bytes:
            break
        dimension *= 2
    return tuple(found)


def problem_bytes(dimension: int, nnz_per_row: float, value_bytes: int, index_bytes: int = 4) -> float:
    """Return the bytes of a matrix in CSR and of its two vectors."""
    entry, row = value_bytes + index_bytes, index_bytes + 2 * value_bytes
    return dimension * (nnz_per_row * entry + row)


def size_class(dimension: int, nnz_per_row: float, value_bytes: int, cache_bytes: int) -> str | None:
    """Return the size of a problem (section II); None where the cache is not known.

    Small: all of it fits in the last cache. Medium: the source vector does. Large: not even that.
    """
    if not cache_bytes:
        return None
    if problem_bytes(dimension, nnz_per_row, value_bytes) <= cache_bytes:
        return "small"
    return "medium" if dimension * value_bytes <= cache_bytes else "large"


def last_cache_bytes(machine: Machine, device: str, threads: int) -> int:
    """Return what the last caches hold that these threads use together; 0 where that is not known."""
    caches = machine.caches_of(device)
    return caches[-1].bytes * -(-threads // caches[-1].shared_by) if caches else 0


def chosen_values(count: int) -> tuple[int, ...]:
    """Return so many of NNZ_PER_ROW: the middle one, or several that are spread, both ends among them."""
    if count == 1:
        return (MIDDLE,)
    places = np.linspace(0, len(NNZ_PER_ROW) - 1, count).round().astype(int)
    return tuple(NNZ_PER_ROW[place] for place in places)


@dataclass(frozen=True, slots=True)
class Trial:
    """What measuring one matrix of a series took.

    Attributes
    ----------
    dimension : int
    seconds : float
    """

    dimension: int
    seconds: float

    def at(self, dimension: int) -> float:
        """Return the estimate for another dimension: twice the time for twice the dimension."""
        return self.seconds * dimension / self.dimension


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What the estimator leaves of the search space from the threshold dimensions on.

    Attributes
    ----------
    dimensions : tuple of int
        Those that are tested; empty where not even the first fits.
    values : tuple of int
        Non-zeros a row that are tested.
    """

    dimensions: tuple[int, ...]
    values: tuple[int, ...]


def abbreviated(
    trials: Mapping[Series, Trial],
    thresholds: Mapping[Series, int],
    dimensions: Sequence[int],
    limit_s: float,
) -> SearchSpace:
    """Cut the search space to a time limit, by the three steps of section IV.

    One value of non-zeros a row less at a time; where one value is still too much, the largest dimension goes
    and all the values are back. So the largest dimension stays as large as possible.

    Parameters
    ----------
    trials : mapping of Series to Trial
        One of each, whose time is doubled for each following dimension.
    thresholds : mapping of Series to int
        Below its threshold dimension a series is tested with all the values; the time that takes is counted.
    dimensions : sequence of int
        Still to be tested, ascending.
    limit_s : float
        Seconds for all of them.
    """
    left = list(dimensions)
    while left:
        for count in range(len(NNZ_PER_ROW), 0, -1):
            if _estimate_s(trials, thresholds, left, count) <= limit_s:
                return SearchSpace(tuple(left), chosen_values(count))
        left.pop()
    return SearchSpace((), ())


def _estimate_s(
    trials: Mapping[Series, Trial], thresholds: Mapping[Series, int], dimensions: Sequence[int], count: int
) -> float:
    return sum(
        trial.at(dimension) * (len(NNZ_PER_ROW) if dimension < thresholds[series] else count)
        for series, trial in trials.items()
        for dimension in dimensions
    )


@dataclass
class Search:
    """One walk through the search space, from the smallest dimension up, within a time limit.

    It begins with a trial of each series at the smallest dimension. The estimator is asked before every
    dimension, with the trials of the one before: so what a trial really takes corrects what was estimated,
    and neither is time left over nor is the limit passed.

    Attributes
    ----------
    series : sequence of Series
    dimensions : sequence of int
        Ascending, each twice the one before.
    limit_s : float
        Seconds for all of it.
    trials : dict of Series to Trial
        The latest dimension's.
    thresholds : dict of Series to int
        The first dimension of each series that is not free: below it all values of non-zeros a row together
        take less than two even shares of the time.
    missed : list of Point
        Points that were to be tested and for which the time did not suffice.

    Notes
    -----
    The paper asks the estimator once, with trials at threshold dimensions that it leaves open how to find.
    """

    series: Sequence[Series]
    dimensions: Sequence[int]
    limit_s: float
    trials: dict[Series, Trial] = field(default_factory=dict)
    thresholds: dict[Series, int] = field(default_factory=dict)
    missed: list[Point] = field(default_factory=list)

    def points(self, left_s: Callable[[], float]) -> Iterator[Point]:
        """Yield what to measure next; `took` must be told of each before the next is asked for.

        Parameters
        ----------
        left_s : callable
            The seconds that are left of the limit.
        """
        first = [
            Point(series, dimension, MIDDLE) for dimension in self.dimensions[:1] for series in self.series
        ]
        yield from self._in_time(first, left_s)
        for dimension in self.dimensions:
            values = self._values(dimension, left_s())
            # A value of every series before the next value of any, from the middle outwards.
            points = [
                Point(series, dimension, value)
                for value in sorted(NNZ_PER_ROW, key=lambda value: abs(value - MIDDLE))
                for series, own in values.items()
                if value in own
            ]
            yield from self._in_time((point for point in points if point not in first), left_s)

    def _in_time(self, points: Iterable[Point], left_s: Callable[[], float]) -> Iterator[Point]:
        for point in points:
            if self.expected_s(point) > left_s():
                self.missed.append(point)
            else:
                yield point

    def took(self, point: Point, seconds: float) -> None:
        """Take note of what measuring a point took."""
        known = self.trials.get(point.series)
        if known and known.dimension == point.dimension:  # the mean of those so far, weighted to the latest
            seconds = (known.seconds + seconds) / 2
        self.trials[point.series] = Trial(point.dimension, seconds)

    def expected_s(self, point: Point) -> float:
        """Return the seconds that measuring a point may take: 0 before the first one of its series."""
        trial = self.trials.get(point.series)
        return trial.at(point.dimension) if trial else 0.0

    def _values(self, dimension: int, left_s: float) -> dict[Series, tuple[int, ...]]:
        """Return the non-zeros a row to test of each series at a dimension."""
        known = dict(self.trials)
        free_s = 2 * self.limit_s / (len(self.series) * len(self.dimensions))
        for series, trial in known.items():
            if len(NNZ_PER_ROW) * trial.at(dimension) > free_s:
                self.thresholds.setdefault(series, dimension)
        # What is free here is taken to be so no longer.
        thresholds = {series: self.thresholds.get(series, 2 * dimension) for series in known}
        rest = [each for each in self.dimensions if each >= dimension]
        space = abbreviated(known, thresholds, rest, left_s)
        return {
            series: NNZ_PER_ROW if dimension < thresholds[series] else space.values
            for series in known
            if space.dimensions
        }


def points_again(measured: Mapping[Point, float], limit_s: float) -> list[Point]:
    """Return points to measure again: any of each dimension, as many of each, within a time limit.

    Parameters
    ----------
    measured : mapping of Point to float
        The seconds that measuring each took.
    limit_s : float
    """
    by_dimension: dict[int, list[Point]] = {}
    for point in measured:
        by_dimension.setdefault(point.dimension, []).append(point)
    chosen: dict[Point, None] = {}
    drawn = np.random.default_rng(0)
    for _ in range(_TURNS_AGAIN):
        # The largest first: they are the fewest that fit.
        for dimension in sorted(by_dimension, reverse=True):
            own = by_dimension[dimension]
            point = own[drawn.integers(len(own))]
            if point not in chosen and measured[point] <= limit_s:
                chosen[point] = None
                limit_s -= measured[point]
    return list(chosen)


#: Times that `points_again` goes through the dimensions.
_TURNS_AGAIN = 8


@dataclass(frozen=True, slots=True)
class Figures:
    """What the benchmark comes to, in 1e6 flops a second; None where nothing was measured.

    Attributes
    ----------
    unblocked_max_mflops, unblocked_median_mflops : float or None
        Of the matrices without blocks, in CSR.
    blocked_max_mflops, blocked_median_mflops : float or None
        Of all other block sizes, in BCSR; the median is the one number of the benchmark.
    symmetric_max_mflops, symmetric_median_mflops : float or None
        Of symmetric matrices of which one triangle is stored, which the paper leaves open.
    """

    unblocked_max_mflops: float | None
    unblocked_median_mflops: float | None
    blocked_max_mflops: float | None
    blocked_median_mflops: float | None
    symmetric_max_mflops: float | None = None
    symmetric_median_mflops: float | None = None


FIGURES = tuple(each.name for each in fields(Figures))

#: Speed in MFLOP/s of each point that was measured.
Speeds = Mapping[Point, float]


def speeds_of(records: Iterable[Record], suite: str = SUITE) -> dict[Point, float]:
    """Return the speed of every point among the Records of one setting; of two Records the later counts."""
    return {Point.named(r.matrix): 1e3 * r.gflops for r in records if r.suite == suite}


def refilled(speeds: Speeds, end: int = 0) -> dict[Series, NDArray[np.float64]]:
    """Return the speeds of each series at all dimensions and all non-zeros a row.

    Values of non-zeros a row that were cut are refilled as in section IV: from one that was tested by
    duplication, from several by interpolation. A dimension that was cut, or that the time did not suffice
    for, is taken to be as fast as the one before: speed levels off, as the paper says. It leaves such
    dimensions out, but then the median leans towards small problems the more, the more dimensions are cut.

    Parameters
    ----------
    speeds : mapping of Point to float
    end : int
        The largest dimension of the range; by default the largest that was measured.

    Returns
    -------
    dict of Series to float array of shape (dimensions, len(NNZ_PER_ROW))
    """
    tested = sorted({point.dimension for point in speeds})
    while tested and 2 * tested[-1] <= end:
        tested.append(2 * tested[-1])
    by_series: dict[Series, dict[int, dict[int, float]]] = {}
    for point, speed in speeds.items():
        by_series.setdefault(point.series, {}).setdefault(point.dimension, {})[point.nnz_per_row] = speed
    return {series: _filled_rows(own, tested) for series, own in by_series.items()}


def _filled_rows(own: Mapping[int, Mapping[int, float]], tested: Sequence[int]) -> NDArray[np.float64]:
    rows: list[NDArray[np.float64]] = []
    for dimension in tested:
        if dimension in own:
            known = sorted(own[dimension].items())
            rows.append(np.interp(NNZ_PER_ROW, [k for k, _ in known], [speed for _, speed in known]))
        elif rows:
            rows.append(rows[-1])
    return np.array(rows)


def figures(speeds: Speeds, end: int = 0) -> Figures:
    """Return the figures of the measured points, after refilling them up to the dimension `end`."""
    filled = refilled(speeds, end)
    blocked = [values for series, values in filled.items() if series not in (UNBLOCKED, SYMMETRIC)]
    kinds = (
        [filled[UNBLOCKED]] if UNBLOCKED in filled else [],
        blocked,
        [filled[SYMMETRIC]] if SYMMETRIC in filled else [],
    )
    return Figures(*(summary for kind in kinds for summary in _summary(kind)))


def _summary(kind: Sequence[NDArray[np.float64]]) -> tuple[float | None, float | None]:
    if not kind:
        return None, None
    values = np.concatenate([each.ravel() for each in kind])
    return float(values.max()), float(np.median(values))


def noise_of(first: Speeds, again: Speeds) -> float | None:
    """Return how well measuring the same again agrees: the median relative difference, None without any."""
    differences = [abs(again[point] / first[point] - 1) for point in again if point in first]
    return statistics.median(differences) if differences else None


def drift_of(first: Speeds, again: Speeds) -> float | None:
    """Return by how much the machine changed: the median ratio of speeds less 1, None without any."""
    ratios = [again[point] / first[point] for point in again if point in first]
    return abs(statistics.median(ratios) - 1) if ratios else None


def errors(speeds: Speeds, again: Speeds, end: int = 0) -> dict[str, float | None]:
    """Return an estimate of each figure's relative error against that of the whole search space.

    The root of the sum of three squares: the noise of a point for a maximum, which is one point, and the
    drift of the machine for a median, in which noise averages out; where dimensions were cut, what the figure
    changes by when the largest that was tested is left out too; and what it changes by when the dimensions
    that were tested with all values of non-zeros a row are reduced to the values of the others, which says
    nothing where none was tested with all.

    Parameters
    ----------
    speeds : mapping of Point to float
    again : mapping of Point to float
        Speeds of points that were measured again; without any, no error is known.
    end : int
        The largest dimension before any were cut; by default the largest that was measured.
    """
    whole, tested = figures(speeds, end), sorted({point.dimension for point in speeds})
    others = []
    if len(tested) > 1 and tested[-1] < end:
        others.append(figures({p: s for p, s in speeds.items() if p.dimension < tested[-1]}, end))
    kept = {point.nnz_per_row for point in speeds if point.dimension == tested[-1]} if tested else set()
    if len(kept) < len(NNZ_PER_ROW):
        counts = Counter((point.series, point.dimension) for point in speeds)
        whole_rows = {row for row, count in counts.items() if count == len(NNZ_PER_ROW)}
        reduced = {
            point: speed
            for point, speed in speeds.items()
            if point.nnz_per_row in kept or (point.series, point.dimension) not in whole_rows
        }
        others.append(figures(reduced, end))

    def error(name: str) -> float | None:
        value = getattr(whole, name)
        repeated = (noise_of if "max" in name else drift_of)(speeds, again)
        if value is None or repeated is None:
            return None
        found = [getattr(other, name) for other in others]
        changes = [other / value - 1 for other in found if other is not None]
        return math.hypot(repeated, *changes)

    return {name: error(name) for name in FIGURES}


def stream_share(records: Iterable[Record], streams: Iterable[Stream]) -> float | None:
    """Return the median share of the read bandwidth that products reach, at the bytes that each streams.

    Parameters
    ----------
    records : iterable of Record
        Of one setting.
    streams : iterable of Stream
        Of the machine; those of other devices, threads and kinds count for nothing.

    Returns
    -------
    float or None
        None without a stream. Above 1 where products find more in the caches than the streams did.
    """
    found = list(records)
    if not found:
        return None
    first = found[0].candidate
    reads = sorted(
        (stream.bytes, stream.bandwidth_bytes_per_s)
        for stream in streams
        if (stream.kind, stream.device, stream.threads) == ("read", first.device, first.threads)
    )
    if not reads:
        return None
    sizes, bandwidths = np.log([size for size, _ in reads]), [bandwidth for _, bandwidth in reads]
    limits = np.interp(np.log([record.traffic_bytes for record in found]), sizes, bandwidths)
    reached = np.array([record.traffic_bytes / record.time_s for record in found])
    return float(np.median(reached / limits))


@dataclass(frozen=True)
class Rating:
    """The figures of one setting: device, type of the values and threads.

    Attributes
    ----------
    device, dtype : str
    threads : int
    figures : Figures
    errors : dict of str to float or None
        Relative error of each figure, as `errors` estimates it.
    noise : float or None
        As `noise_of`; None where nothing was measured twice.
    stream_share : float or None
        As `stream_share`.
    records : tuple of Record
        What was measured of the suite, each point once.
    refilled : int
        Data points beside them that were refilled.
    sizes : dict of str to int
        Points measured of each size in SIZES; empty where the cache is not known.
    cache_bytes : int
        Of the last caches of these threads; 0 where they are not known.
    largest_dimension, range_end : int
        The largest dimension that was measured, and that before any were cut.
    """

    device: str
    dtype: str
    threads: int
    figures: Figures
    errors: dict[str, float | None]
    noise: float | None
    stream_share: float | None
    records: tuple[Record, ...]
    refilled: int
    sizes: dict[str, int]
    cache_bytes: int
    largest_dimension: int
    range_end: int

    @property
    def is_disturbed(self) -> bool:
        """Whether repeated measurements differ as they do beside another heavy program."""
        return self.noise is not None and self.noise > DISTURBED


def ratings(
    records: Iterable[Record],
    machine: Machine,
    streams: Iterable[Stream] = (),
    range_ends: Mapping[str, int] | None = None,
) -> list[Rating]:
    """Return a rating for each setting among the Records, in their order.

    Parameters
    ----------
    records : iterable of Record
        Any; those of other suites count for nothing. Of two of the same thing the later counts.
    machine : Machine
        They were made on.
    streams : iterable of Stream
        Measured on it.
    range_ends : mapping of str to int, optional
        For a type of values, the largest dimension before any were cut: that which was measured if missing.
    """
    by_setting: dict[tuple[str, str, int], dict[tuple[str, str], Record]] = {}
    for record in records:
        if record.suite in (SUITE, AGAIN):
            candidate = record.candidate
            key = candidate.device, candidate.dtype, candidate.threads
            by_setting.setdefault(key, {})[record.suite, record.matrix] = record
    found = [list(own.values()) for own in by_setting.values()]
    ends, kept = range_ends or {}, tuple(streams)
    return [_rating(own, machine, kept, ends) for own in found if speeds_of(own)]


def _rating(
    records: Sequence[Record], machine: Machine, streams: Sequence[Stream], range_ends: Mapping[str, int]
) -> Rating:
    candidate = records[0].candidate
    first = tuple(record for record in records if record.suite == SUITE)
    speeds = speeds_of(first)
    again = speeds_of(records, AGAIN)
    cache_bytes = last_cache_bytes(machine, candidate.device, candidate.threads)
    value_bytes = np.dtype(candidate.dtype).itemsize
    largest = max(point.dimension for point in speeds)
    end = max(largest, range_ends.get(candidate.dtype, 0))
    sizes = dict.fromkeys(SIZES, 0) if cache_bytes else {}
    for point in speeds:
        size = size_class(point.dimension, point.nnz_per_row, value_bytes, cache_bytes)
        if size:
            sizes[size] += 1
    return Rating(
        candidate.device,
        candidate.dtype,
        candidate.threads,
        figures(speeds, end),
        errors(speeds, again, end),
        noise_of(speeds, again),
        stream_share(first, streams),
        first,
        sum(values.size for values in refilled(speeds, end).values()) - len(speeds),
        sizes,
        cache_bytes,
        largest,
        end,
    )


@dataclass(frozen=True)
class BenchResult:
    """What a run of the benchmark found.

    Attributes
    ----------
    machine : Machine
    budget_s, used_s : float
        Seconds it was given, and took.
    ratings : tuple of Rating
        The most wanted setting first; empty where nothing could be measured.
    phases : dict of str to float
        Seconds used by each part of the run.
    notes : tuple of str
        What a reader of the figures must know.
    interrupted : bool
        Whether the user stopped it.
    """

    machine: Machine
    budget_s: float
    used_s: float
    ratings: tuple[Rating, ...]
    phases: dict[str, float]
    notes: tuple[str, ...]
    interrupted: bool


def notes(found: Iterable[Rating]) -> list[str]:
    """Return what a reader of the figures must know, in sentences."""
    said: list[str] = []
    for rating in found:
        setting = f"{rating.dtype}, {rating.threads} thread{'s' if rating.threads > 1 else ''}"
        if rating.is_disturbed:
            said.append(
                f"{setting}: repeated measurements differ by {100 * (rating.noise or 0):.1f} %, more than "
                f"{100 * DISTURBED:.0f} %: another program seems to be running; measure again without it"
            )
        if rating.noise is None:
            said.append(f"{setting}: nothing was measured twice, so noise and errors are not known")
        if not rating.cache_bytes:
            said.append(f"{setting}: the caches are unknown, so small and large are not told apart")
        missing = [size for size, count in rating.sizes.items() if not count]
        if missing:
            said.append(
                f"{setting}: no {' or '.join(missing)} problem up to dimension "
                f"{rating.largest_dimension:,}, for the last cache holds {rating.cache_bytes / 1e6:,.0f} MB"
            )
        if rating.largest_dimension < rating.range_end:
            said.append(
                f"{setting}: dimensions above {rating.largest_dimension:,} cut from a range up to "
                f"{rating.range_end:,}"
            )
    return said
