"""The figures of the five-minute benchmark of Gahvari et al. (2007), from the Records of its suite.

Four figures summarise a machine: maximum and median speed of the matrices without blocks, and of all the
others (section IV); the blocked median is the one number. Data points that were cut are refilled.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.papers.gahvari_2007.search_space import (
    MIDDLE,
    NNZ_PER_ROW,
    SIZES,
    SYMMETRIC,
    UNBLOCKED,
    Point,
    Series,
    last_cache_bytes,
    size_class,
)
from sparsecast.records import RATING_SUITES, VALUE_BYTES, Bandwidth, Record, reads_of
from sparsecast.system.tabular import grouped

#: Suites of the Records: each point once, and some of them again at the end, for the noise.
SUITE, AGAIN = RATING_SUITES

#: Seconds below which not every block size gets measured on a cold compilation cache.
LEAST_BUDGET_S = 60.0

#: Share of the time that is kept for measuring some points again.
AGAIN_SHARE = 0.04

#: Noise, as a share of the time, from which on something else is running on the machine.
DISTURBED = 0.05


@dataclass(frozen=True, slots=True)
class Summary:
    """What the benchmark comes to, in 1e6 flops a second; None where nothing was measured.

    Unblocked are matrices without blocks, in CSR, and blocked all other block sizes, in BCSR: their median is
    the one number of the benchmark. Of symmetric matrices, which the paper leaves open, one triangle is
    stored.
    """

    unblocked_max_mflops: float | None
    unblocked_median_mflops: float | None
    blocked_max_mflops: float | None
    blocked_median_mflops: float | None
    symmetric_max_mflops: float | None
    symmetric_median_mflops: float | None


FIGURES = tuple(figure.name for figure in fields(Summary))

#: Speed in MFLOP/s of each point that was measured.
Speeds = Mapping[Point, float]


def speeds_of(records: Iterable[Record]) -> dict[Point, float]:
    """Return the speed of every point among the Records of one suite and target."""
    return {Point.named(record.matrix): 1e3 * record.gflops for record in records}


def refilled(speeds: Speeds, end: int = 0, *, as_printed: bool = False) -> dict[Series, NDArray[np.float64]]:
    """Return the speeds of each series, of shape (dimensions, values of non-zeros a row).

    Values of non-zeros a row that were cut are refilled as in section IV: from one that was tested by
    duplication, from several by interpolation. A dimension that a series was not tested at is taken to be as
    much faster or slower than the one before as it is in the median for the series that were tested at both,
    and as fast where there are none: speed levels off, as the paper says. It leaves such dimensions out, but
    then the median leans towards small problems the more, the more dimensions are cut.

    `end` is the largest dimension of the range, by default the largest that was measured. With `as_printed`,
    dimensions that were not tested stay NaN.
    """
    if not speeds:
        return {}
    tested = [point.dimension for point in speeds]
    doublings = (max(end, *tested) // min(tested)).bit_length()
    dimensions = [min(tested) << doubling for doubling in range(doublings)]
    series = list(dict.fromkeys(point.series for point in speeds))
    grid = np.full((len(series), len(dimensions), len(NNZ_PER_ROW)), np.nan)
    for point, speed in speeds.items():
        row = series.index(point.series), dimensions.index(point.dimension)
        grid[(*row, NNZ_PER_ROW.index(point.nnz_per_row))] = speed
    for values in grid.reshape(-1, len(NNZ_PER_ROW)):
        known = np.isfinite(values)
        if known.any():
            values[:] = np.interp(NNZ_PER_ROW, np.array(NNZ_PER_ROW)[known], values[known])
    if as_printed:
        return dict(zip(series, grid, strict=True))
    middle = grid[:, :, NNZ_PER_ROW.index(MIDDLE)]
    growths = middle[:, 1:] / middle[:, :-1]
    for place, of_series in enumerate(growths.T, 1):
        known = np.isfinite(of_series)
        growth = np.median(of_series[known]) if known.any() else 1.0
        missing = np.isnan(middle[:, place])
        grid[missing, place] = growth * grid[missing, place - 1]
    return {name: values[np.isfinite(values[:, 0])] for name, values in zip(series, grid, strict=True)}


def figures(speeds: Speeds, end: int = 0, *, as_printed: bool = False) -> Summary:
    """Return the figures: measured maxima, and medians after refilling up to dimension `end`.

    With `as_printed`, medians leave out the dimensions that were not tested, as section IV does.
    """
    filled = refilled(speeds, end, as_printed=as_printed)
    kinds = {
        "unblocked": {UNBLOCKED},
        "symmetric": {SYMMETRIC},
        "blocked": {series for series in filled if series.is_blocked},
    }
    values: dict[str, float | None] = dict.fromkeys(FIGURES)
    for kind, wanted in kinds.items():
        of_kind = [rows.ravel() for series, rows in filled.items() if series in wanted]
        if of_kind:
            # A maximum was reached: a refilled speed may be higher where speed grows with the dimension.
            values[f"{kind}_max_mflops"] = max(speeds[point] for point in speeds if point.series in wanted)
            values[f"{kind}_median_mflops"] = float(np.nanmedian(np.concatenate(of_kind)))
    return Summary(**values)


def noise_of(first: Speeds, again: Speeds) -> tuple[float, float] | tuple[None, None]:
    """Return the median relative difference of repeated measurements, and by how much the machine changed.

    The latter is the median ratio of speeds less 1. Both are None if nothing was repeated.
    """
    ratios = [again[point] / first[point] for point in again if point in first]
    if not ratios:
        return None, None
    return statistics.median(abs(ratio - 1) for ratio in ratios), abs(statistics.median(ratios) - 1)


def errors(speeds: Speeds, again: Speeds, end: int = 0) -> dict[str, float | None]:
    """Return an estimate of each figure's relative error against that of the whole search space.

    It is the root of the sum of three squares. The first is the noise of a point for a maximum, which is one
    point, and the drift of the machine for a median, in which noise averages out. The second, where
    dimensions were cut, is what the figure changes by when the largest that was tested is left out too. The
    third is what it changes by when the dimensions that were tested with all values of non-zeros a row are
    reduced to the values of the others; it says nothing where none was tested with all.

    Where `again`, the speeds of points that were measured again, is empty, no error is known.
    """
    whole, others = figures(speeds, end), []
    largest = max((point.dimension for point in speeds), default=0)
    smaller = {point: speed for point, speed in speeds.items() if point.dimension < largest}
    if smaller and largest < end:
        others.append(figures(smaller, end))
    kept = {point.nnz_per_row for point in speeds if point.dimension == largest}
    if speeds and len(kept) < len(NNZ_PER_ROW):
        counts = Counter((point.series, point.dimension) for point in speeds)
        reduced = {
            point: speed
            for point, speed in speeds.items()
            if point.nnz_per_row in kept or counts[point.series, point.dimension] < len(NNZ_PER_ROW)
        }
        others.append(figures(reduced, end))
    noise, drift = noise_of(speeds, again)
    relative: dict[str, float | None] = dict.fromkeys(FIGURES)
    for name in FIGURES:
        value, repeat = getattr(whole, name), noise if "max" in name else drift
        if value is not None and repeat is not None:
            changed = [getattr(other, name) for other in others]
            changes = [figure / value - 1 for figure in changed if figure is not None]
            relative[name] = math.hypot(repeat, *changes)
    return relative


@dataclass(frozen=True)
class Rating:
    """The figures of one target: device, type of the values and threads.

    `records` are of each point, `again` of those that were measured again. `cut_end` is the largest dimension
    before any were cut; 0 if that is not known.
    """

    device: str
    dtype: str
    threads: int
    records: tuple[Record, ...]
    again: tuple[Record, ...]
    machine: Machine
    bandwidths: tuple[Bandwidth, ...]
    cut_end: int

    @property
    def setting(self) -> str:
        return f"{self.dtype}, {self.threads} thread{'s' if self.threads > 1 else ''}"

    @cached_property
    def speeds(self) -> dict[Point, float]:
        return speeds_of(self.records)

    @cached_property
    def figures(self) -> Summary:
        return figures(self.speeds, self.range_end)

    @cached_property
    def figures_as_printed(self) -> Summary:
        """Maxima and medians without refilled dimensions, as the paper computes them."""
        return figures(self.speeds, as_printed=True)

    @cached_property
    def errors(self) -> dict[str, float | None]:
        return errors(self.speeds, speeds_of(self.again), self.range_end)

    @cached_property
    def noise(self) -> float | None:
        """Median relative difference of repeated measurements; None where nothing was measured twice."""
        return noise_of(self.speeds, speeds_of(self.again))[0]

    @property
    def bandwidth_share(self) -> float | None:
        """Median share of the read bandwidth that products reach, at the bytes of each.

        Above 1 where products find more in the caches than the reads did; None without a read by as many
        threads.
        """
        reads = reads_of(self.bandwidths, self.device, self.threads)
        if not reads:
            return None
        sizes, speeds = np.array([(read.bytes, read.bandwidth_bytes_per_s) for read in reads]).T
        traffic, time_s = np.array([(record.traffic_bytes, record.time_s) for record in self.records]).T
        return float(np.median(traffic / time_s / np.interp(np.log(traffic), np.log(sizes), speeds)))

    @cached_property
    def filled(self) -> dict[Series, NDArray[np.float64]]:
        return refilled(self.speeds, self.range_end)

    @property
    def refilled(self) -> int:
        """Number of data points that were not measured but refilled."""
        return sum(values.size for values in self.filled.values()) - len(self.speeds)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the last caches of these threads; 0 where they are not known."""
        return last_cache_bytes(self.machine, self.threads)

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    def size(self, rows: int, nnz_per_row: float) -> str | None:
        """Return which of SIZES a problem has; None where the cache is not known."""
        return size_class(rows, nnz_per_row, self.value_bytes, self.cache_bytes)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Points measured of each size in SIZES; empty where the cache is not known."""
        counts = Counter(self.size(point.dimension, point.nnz_per_row) for point in self.speeds)
        return {size: counts[size] for size in SIZES} if self.cache_bytes else {}

    @property
    def largest_dimension(self) -> int:
        return max(point.dimension for point in self.speeds)

    @property
    def range_end(self) -> int:
        """The largest dimension before any were cut."""
        return max(self.largest_dimension, self.cut_end)


def ratings(
    records: Iterable[Record],
    machine: Machine,
    bandwidths: Iterable[Bandwidth] = (),
    range_ends: Mapping[str, int] = MappingProxyType({}),
) -> list[Rating]:
    """Return a rating for each target among the Records, in their order.

    Records of other suites count for nothing, and of two of the same thing the later counts. `range_ends`
    are, for types of values, the largest dimensions before any were cut.
    """
    targets = grouped(
        (record for record in records if record.suite in (SUITE, AGAIN)),
        lambda record: (record.candidate.device, record.candidate.dtype, record.candidate.threads),
    )
    found = []
    for target, own in targets.items():
        once, again = ({r.matrix: r for r in own if r.suite == suite}.values() for suite in (SUITE, AGAIN))
        if once:
            cut_end = range_ends.get(target[1], 0)
            found.append(Rating(*target, tuple(once), tuple(again), machine, tuple(bandwidths), cut_end))
    return found


def rated(profile: Profile, dtype: str | None = None, threads: int | None = None) -> Rating:
    """Return the figures of a type of values and a number of threads, by default the first of a profile."""
    for rating in ratings(profile.records, profile.machine, profile.bandwidths):
        if dtype in (None, rating.dtype) and threads in (None, rating.threads):
            return rating
    wanted = ", ".join([dtype or "any type", f"{threads} threads" if threads else "any threads"])
    raise InputError(f"no figures of {profile.name} with {wanted}: expected some; sparsecast bench first")


@dataclass(frozen=True)
class BenchResult:
    """What a run of the benchmark found.

    `ratings` begin with the most wanted target, and are empty where nothing could be measured. `phases` are
    seconds of each part of the run; `notes` what a reader of the figures must know.
    """

    machine: Machine
    budget_s: float
    used_s: float
    ratings: tuple[Rating, ...]
    phases: dict[str, float]
    notes: tuple[str, ...]
    interrupted: bool

    @property
    def main(self) -> Rating | None:
        return self.ratings[0] if self.ratings else None


def notes(ratings: Iterable[Rating]) -> list[str]:
    return [f"{rating.setting}: {note}" for rating in ratings for note in _notes(rating)]


def _notes(rating: Rating) -> Iterator[str]:
    largest, noise = rating.largest_dimension, rating.noise
    if noise is None:  # the busier the machine, the less time is left to measure anything twice
        within = [record.noise for record in rating.records if record.noise is not None]
        noise = statistics.median(within) if within else 0.0
    if noise > DISTURBED:
        yield (
            f"repeated measurements differ by {100 * noise:.1f} %, more than "
            f"{100 * DISTURBED:.0f} %: another program, or another virtual machine, seems to be at work; "
            f"measure again without it"
        )
    if rating.noise is None:
        yield "nothing was measured twice, so noise and errors are unknown"
    if not rating.cache_bytes:
        yield "the caches are unknown, so small and large are not told apart"
    if missing := [size for size, count in rating.sizes.items() if not count]:
        yield (
            f"no {' or '.join(missing)} problem up to dimension {largest:,}, for the last cache holds "
            f"{rating.cache_bytes / 1e6:,.0f} MB"
        )
    counts = Counter(dimension for dimension, _ in {(p.dimension, p.series) for p in rating.speeds})
    whole = counts[min(counts)]
    if few := [dimension for dimension in sorted(counts) if 2 * counts[dimension] < whole]:
        yield (
            f"from dimension {few[0]:,} on {counts[few[0]]} of {whole} series were measured; the others are "
            f"refilled by how the speed of those changes"
        )
    if largest < rating.range_end:
        yield f"dimensions above {largest:,} cut from a range up to {rating.range_end:,}"
