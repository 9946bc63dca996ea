"""The figures of the five-minute benchmark of Gahvari et al. (2007), from the Records of its suite.

Four figures summarise a machine: maximum and median speed of the matrices without blocks, and of all the
others (section IV); the blocked median is the one number. Data points that were cut are refilled.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sparsecast.machines.machine import Machine
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
from sparsecast.records import RATING_SUITES, VALUE_BYTES, Bandwidth, Record

#: Suites of the Records: each point once, and some of them again at the end, for the noise.
SUITE, AGAIN = RATING_SUITES

#: Seconds below which not every block size gets measured on a cold compilation cache.
LEAST_BUDGET_S = 60.0

#: Share of the time that is kept for measuring some points again.
AGAIN_SHARE = 0.04

_AT_MIDDLE = NNZ_PER_ROW.index(MIDDLE)

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


FIGURES = tuple(each.name for each in fields(Summary))

#: Speed in MFLOP/s of each point that was measured.
Speeds = Mapping[Point, float]


def speeds_of(records: Iterable[Record], suite: str = SUITE) -> dict[Point, float]:
    """Return the speed of every point among the Records of one target; of two Records the later counts."""
    return {Point.named(r.matrix): 1e3 * r.gflops for r in records if r.suite == suite}


def refilled(speeds: Speeds, end: int = 0) -> dict[Series, NDArray[np.float64]]:
    """Return the speeds of each series at all dimensions and all non-zeros a row.

    Values of non-zeros a row that were cut are refilled as in section IV: from one that was tested by
    duplication, from several by interpolation. A dimension that a series was not tested at is taken to be as
    much faster or slower than the one before as it is in the median for the series that were tested at both,
    and as fast where there are none: speed levels off, as the paper says. It leaves such dimensions out, but
    then the median leans towards small problems the more, the more dimensions are cut.

    `end` is the largest dimension of the range, by default the largest that was measured.

    Returns
    -------
    dict of Series to float array of shape (dimensions, len(NNZ_PER_ROW))
    """
    measured = {point.dimension for point in speeds}
    tested = [min(measured)] if measured else []
    while tested and 2 * tested[-1] <= max(end, *measured):
        tested.append(2 * tested[-1])
    measured_rows: dict[Series, dict[int, dict[int, float]]] = {}
    for point, speed in speeds.items():
        measured_rows.setdefault(point.series, {}).setdefault(point.dimension, {})[point.nnz_per_row] = speed
    by_series = {
        series: {dimension: _interpolated(row) for dimension, row in rows.items()}
        for series, rows in measured_rows.items()
    }
    growths = {dimension: _growth(list(by_series.values()), dimension) for dimension in tested}
    return {series: _filled_rows(own, growths) for series, own in by_series.items()}


def _interpolated(row: Mapping[int, float]) -> NDArray[np.float64]:
    known = sorted(row)
    return np.interp(NNZ_PER_ROW, known, [row[length] for length in known])


#: Speeds of a series at each dimension, for all NNZ_PER_ROW.
_Rows = Mapping[int, NDArray[np.float64]]


def _growth(series: Iterable[_Rows], dimension: int) -> float:
    """Return how the speed changes from the dimension before to this one, in the median."""
    before = dimension // 2
    ratios = [
        float(own[dimension][_AT_MIDDLE] / own[before][_AT_MIDDLE])
        for own in series
        if dimension in own and before in own
    ]
    return statistics.median(ratios) if ratios else 1.0


def _filled_rows(own: _Rows, growths: Mapping[int, float]) -> NDArray[np.float64]:
    rows: list[NDArray[np.float64]] = []
    for dimension, growth in growths.items():
        if dimension in own:
            rows.append(own[dimension])
        elif rows:
            rows.append(rows[-1] * growth)
    return np.array(rows)


def figures(speeds: Speeds, end: int = 0) -> Summary:
    """Return the figures: measured maxima, and medians after refilling up to dimension `end`."""
    filled = refilled(speeds, end)
    kinds = {
        "unblocked": {UNBLOCKED},
        "symmetric": {SYMMETRIC},
        "blocked": filled.keys() - {UNBLOCKED, SYMMETRIC},
    }
    found: dict[str, float | None] = dict.fromkeys(FIGURES)
    for kind, series in kinds.items():
        own = [filled[each].ravel() for each in filled if each in series]
        if own:
            # A maximum was reached: a refilled speed may be higher where speed grows with the dimension.
            found[f"{kind}_max_mflops"] = max(speeds[point] for point in speeds if point.series in series)
            found[f"{kind}_median_mflops"] = float(np.median(np.concatenate(own)))
    return Summary(**found)


def noise_of(first: Speeds, again: Speeds) -> float | None:
    """Return the median relative difference of repeated measurements; None if nothing was repeated."""
    ratios = _ratios(first, again)
    return statistics.median(abs(ratio - 1) for ratio in ratios) if ratios else None


def drift_of(first: Speeds, again: Speeds) -> float | None:
    """Return by how much the machine changed: the median ratio of speeds less 1, None without any."""
    ratios = _ratios(first, again)
    return abs(statistics.median(ratios) - 1) if ratios else None


def _ratios(first: Speeds, again: Speeds) -> list[float]:
    return [again[point] / first[point] for point in again if point in first]


def errors(speeds: Speeds, again: Speeds, end: int = 0) -> dict[str, float | None]:
    """Return an estimate of each figure's relative error against that of the whole search space.

    It is the root of the sum of three squares. The first is the noise of a point for a maximum, which is one
    point, and the drift of the machine for a median, in which noise averages out. The second, where
    dimensions were cut, is what the figure changes by when the largest that was tested is left out too. The
    third is what it changes by when the dimensions that were tested with all values of non-zeros a row are
    reduced to the values of the others; it says nothing where none was tested with all.

    Where `again`, the speeds of points that were measured again, is empty, no error is known.
    """
    whole, tested = figures(speeds, end), sorted({point.dimension for point in speeds})
    others = []
    if len(tested) > 1 and tested[-1] < end:
        others.append(figures({p: s for p, s in speeds.items() if p.dimension < tested[-1]}, end))
    kept = {point.nnz_per_row for point in speeds if point.dimension == tested[-1]}
    if len(kept) < len(NNZ_PER_ROW):
        counts = Counter((point.series, point.dimension) for point in speeds)
        reduced = {
            point: speed
            for point, speed in speeds.items()
            if point.nnz_per_row in kept or counts[point.series, point.dimension] < len(NNZ_PER_ROW)
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


def bandwidth_share(records: Iterable[Record], bandwidths: Iterable[Bandwidth]) -> float | None:
    """Return the median share of the read bandwidth that products of a target reach, at the bytes of each.

    Above 1 where products find more in the caches than the reads did; None without a read of that device by
    as many threads.
    """
    found = list(records)
    if not found:
        return None
    first = found[0].candidate
    reads = sorted(
        (stream.bytes, stream.bandwidth_bytes_per_s)
        for stream in bandwidths
        if (stream.kind, stream.device, stream.threads) == ("read", first.device, first.threads)
    )
    if not reads:
        return None
    sizes, speeds = np.log([size for size, _ in reads]), [speed for _, speed in reads]
    limits = np.interp(np.log([record.traffic_bytes for record in found]), sizes, speeds)
    reached = np.array([record.traffic_bytes / record.time_s for record in found])
    return float(np.median(reached / limits))


@dataclass(frozen=True)
class Rating:
    """The figures of one target: device, type of the values and threads.

    Attributes
    ----------
    records, again : tuple of Record
        Of each point that was measured, and of those that were measured again.
    bandwidths : tuple of Bandwidth
        Of the machine.
    cut_end : int
        The largest dimension before any were cut; 0 if that is not known.
    """

    device: str
    dtype: str
    threads: int
    records: tuple[Record, ...]
    again: tuple[Record, ...]
    machine: Machine
    bandwidths: tuple[Bandwidth, ...]
    cut_end: int

    @cached_property
    def speeds(self) -> dict[Point, float]:
        """As of `speeds_of`."""
        return speeds_of(self.records)

    @cached_property
    def figures(self) -> Summary:
        """As of `figures`."""
        return figures(self.speeds, self.range_end)

    @cached_property
    def errors(self) -> dict[str, float | None]:
        """Relative error of each figure, as `errors` estimates it."""
        return errors(self.speeds, speeds_of(self.again, AGAIN), self.range_end)

    @cached_property
    def noise(self) -> float | None:
        """As of `noise_of`; None where nothing was measured twice."""
        return noise_of(self.speeds, speeds_of(self.again, AGAIN))

    @property
    def bandwidth_share(self) -> float | None:
        """As of `bandwidth_share`."""
        return bandwidth_share(self.records, self.bandwidths)

    @property
    def refilled(self) -> int:
        """Number of data points that were not measured but refilled."""
        found = refilled(self.speeds, self.range_end)
        return sum(values.size for values in found.values()) - len(self.speeds)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the last caches of these threads; 0 where they are not known."""
        return last_cache_bytes(self.machine, self.threads)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Points measured of each size in SIZES; empty where the cache is not known."""
        if not self.cache_bytes:
            return {}
        value_bytes = VALUE_BYTES[self.dtype]
        found = Counter(
            size_class(p.dimension, p.nnz_per_row, value_bytes, self.cache_bytes) for p in self.speeds
        )
        return {size: found[size] for size in SIZES}

    @property
    def largest_dimension(self) -> int:
        """The largest dimension that was measured."""
        return max(point.dimension for point in self.speeds)

    @property
    def range_end(self) -> int:
        """The largest dimension before any were cut."""
        return max(self.largest_dimension, self.cut_end)

    @property
    def disturbance(self) -> float | None:
        """The noise. If nothing was measured twice, the median of the noise within the samples.

        The busier the machine, the less time is left to measure anything twice.
        """
        if self.noise is not None:
            return self.noise
        within = [record.noise for record in self.records if record.noise is not None]
        return statistics.median(within) if within else None

    @property
    def is_disturbed(self) -> bool:
        """Whether repeated measurements differ as much as they do while another heavy program runs."""
        return (self.disturbance or 0.0) > DISTURBED


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
    suites: dict[tuple[str, str, int], dict[str, dict[str, Record]]] = {}
    for record in records:
        if record.suite in (SUITE, AGAIN):
            key = record.candidate.device, record.candidate.dtype, record.candidate.threads
            own = suites.setdefault(key, {SUITE: {}, AGAIN: {}})
            own[record.suite][record.matrix] = record
    known = tuple(bandwidths)
    return [
        Rating(
            *key,
            records=tuple(own[SUITE].values()),
            again=tuple(own[AGAIN].values()),
            machine=machine,
            bandwidths=known,
            cut_end=range_ends.get(key[1], 0),
        )
        for key, own in suites.items()
        if own[SUITE]
    ]


@dataclass(frozen=True)
class BenchResult:
    """What a run of the benchmark found.

    Attributes
    ----------
    ratings : tuple of Rating
        The most wanted target first; empty where nothing could be measured.
    phases : dict of str to float
        Seconds used by each part of the run.
    notes : tuple of str
        What a reader of the figures must know.
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
        target = f"{rating.dtype}, {rating.threads} thread{'s' if rating.threads > 1 else ''}"
        if rating.is_disturbed:
            said.append(
                f"{target}: repeated measurements differ by {100 * (rating.disturbance or 0):.1f} %, "
                f"more than {100 * DISTURBED:.0f} %: another program, or another virtual machine, seems to "
                f"be at work; measure again without it"
            )
        if rating.noise is None:
            said.append(f"{target}: nothing was measured twice, so noise and errors are not known")
        if not rating.cache_bytes:
            said.append(f"{target}: the caches are unknown, so small and large are not told apart")
        missing = [size for size, count in rating.sizes.items() if not count]
        if missing:
            said.append(
                f"{target}: no {' or '.join(missing)} problem up to dimension "
                f"{rating.largest_dimension:,}, for the last cache holds {rating.cache_bytes / 1e6:,.0f} MB"
            )
        series: dict[int, set[Series]] = {}
        for point in rating.speeds:
            series.setdefault(point.dimension, set()).add(point.series)
        every = len(series[min(series)])
        few = [dimension for dimension in sorted(series) if 2 * len(series[dimension]) < every]
        if few:
            said.append(
                f"{target}: from dimension {few[0]:,} on {len(series[few[0]])} of {every} series were "
                f"measured; the others are refilled by how the speed of those changes"
            )
        if rating.largest_dimension < rating.range_end:
            said.append(
                f"{target}: dimensions above {rating.largest_dimension:,} cut from a range up to "
                f"{rating.range_end:,}"
            )
    return said
