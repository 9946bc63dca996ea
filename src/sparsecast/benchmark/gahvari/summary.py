"""The figures of the five-minute benchmark of Gahvari et al. (2007), from the Records of its suite.

Four figures summarise a machine: maximum and median speed of the matrices without blocks, and of all the
others (section IV); the blocked median is the one number. Data points that were cut are refilled.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sparsecast.benchmark.gahvari.search_space import (
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
from sparsecast.machines.machine import Machine
from sparsecast.records import Bandwidth, Record

#: Suites of the Records: each point once, and some of them again at the end, for the noise.
SUITE, AGAIN = "synthetic", "synthetic again"

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

    Parameters
    ----------
    speeds : mapping of Point to float
    end : int
        The largest dimension of the range; by default the largest that was measured.

    Returns
    -------
    dict of Series to float array of shape (dimensions, len(NNZ_PER_ROW))
    """
    measured = {point.dimension for point in speeds}
    tested = [min(measured)] if measured else []
    while tested and 2 * tested[-1] <= max(end, *measured):
        tested.append(2 * tested[-1])
    by_series: dict[Series, dict[int, dict[int, float]]] = {}
    for point, speed in speeds.items():
        by_series.setdefault(point.series, {}).setdefault(point.dimension, {})[point.nnz_per_row] = speed
    growths = _growths(by_series, tested)
    return {series: _filled_rows(own, growths) for series, own in by_series.items()}


#: Speeds of a series by dimension and non-zeros a row.
_Rows = Mapping[int, Mapping[int, float]]


def _growths(by_series: Mapping[Series, _Rows], tested: Sequence[int]) -> dict[int, float]:
    """Return for each dimension how the speed changes from the one before to it, in the median."""
    growths = {}
    for dimension in tested:
        ratios = [
            float(_interpolated(own[dimension])[_AT_MIDDLE] / _interpolated(own[dimension // 2])[_AT_MIDDLE])
            for own in by_series.values()
            if dimension in own and dimension // 2 in own
        ]
        growths[dimension] = statistics.median(ratios) if ratios else 1.0
    return growths


def _filled_rows(own: _Rows, growths: Mapping[int, float]) -> NDArray[np.float64]:
    rows: list[NDArray[np.float64]] = []
    for dimension, growth in growths.items():
        if dimension in own:
            rows.append(_interpolated(own[dimension]))
        elif rows:
            rows.append(rows[-1] * growth)
    return np.array(rows)


def _interpolated(row: Mapping[int, float]) -> NDArray[np.float64]:
    known = sorted(row.items())
    return np.interp(NNZ_PER_ROW, [k for k, _ in known], [speed for _, speed in known])


def figures(speeds: Speeds, end: int = 0) -> Summary:
    """Return the figures: measured maxima, and medians after refilling up to dimension `end`."""
    filled = refilled(speeds, end)
    blocked = filled.keys() - {UNBLOCKED, SYMMETRIC}
    kinds = (filled.keys() & {UNBLOCKED}, blocked, filled.keys() & {SYMMETRIC})
    return Summary(*(summary for kind in kinds for summary in _summary(kind, speeds, filled)))


def _summary(
    kind: Set[Series], speeds: Speeds, filled: Mapping[Series, NDArray[np.float64]]
) -> tuple[float | None, float | None]:
    if not kind:
        return None, None
    # A maximum was reached: a refilled speed may be higher where speed grows with the dimension.
    highest = max(speed for point, speed in speeds.items() if point.series in kind)
    return highest, float(np.median(np.concatenate([filled[series].ravel() for series in kind])))


def noise_of(first: Speeds, again: Speeds) -> float | None:
    """Return the median relative difference of repeated measurements; None if nothing was repeated."""
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


def bandwidth_share(records: Iterable[Record], bandwidths: Iterable[Bandwidth]) -> float | None:
    """Return the median share of the read bandwidth that products reach, at the bytes that each streams.

    Parameters
    ----------
    records : iterable of Record
        Of one target.
    bandwidths : iterable of Bandwidth
        Of the machine; those of other devices, threads and kinds count for nothing.

    Returns
    -------
    float or None
        None without a stream. Above 1 where products find more in the caches than the stream reads did.
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
    device, dtype : str
    threads : int
    figures : Summary
    errors : dict of str to float or None
        Relative error of each figure, as `errors` estimates it.
    noise : float or None
        As `noise_of`; None where nothing was measured twice.
    bandwidth_share : float or None
        As `bandwidth_share`.
    records : tuple of Record
        What was measured of the suite, each point once.
    refilled : int
        Number of data points that were not measured but refilled.
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
    figures: Summary
    errors: dict[str, float | None]
    noise: float | None
    bandwidth_share: float | None
    records: tuple[Record, ...]
    refilled: int
    sizes: dict[str, int]
    cache_bytes: int
    largest_dimension: int
    range_end: int

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
    range_ends: Mapping[str, int] | None = None,
) -> list[Rating]:
    """Return a rating for each target among the Records, in their order.

    Parameters
    ----------
    records : iterable of Record
        Any; those of other suites count for nothing. Of two of the same thing the later counts.
    machine : Machine
        They were made on.
    bandwidths : iterable of Bandwidth
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
    ends, kept = range_ends or {}, tuple(bandwidths)
    return [_rating(own, machine, kept, ends) for own in found if speeds_of(own)]


def _rating(
    records: Sequence[Record],
    machine: Machine,
    bandwidths: Sequence[Bandwidth],
    range_ends: Mapping[str, int],
) -> Rating:
    candidate = records[0].candidate
    first = tuple(record for record in records if record.suite == SUITE)
    speeds = speeds_of(first)
    again = speeds_of(records, AGAIN)
    cache_bytes = last_cache_bytes(machine, candidate.threads)
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
        bandwidth_share(first, bandwidths),
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
        The most wanted target first; empty where nothing could be measured.
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
        said += _scouted(target, rating.records)
        if rating.largest_dimension < rating.range_end:
            said.append(
                f"{target}: dimensions above {rating.largest_dimension:,} cut from a range up to "
                f"{rating.range_end:,}"
            )
    return said


def _scouted(target: str, records: Sequence[Record]) -> list[str]:
    """Say which dimensions only some series were tested at."""
    series: dict[int, set[Series]] = {}
    for point in speeds_of(records):
        series.setdefault(point.dimension, set()).add(point.series)
    every = len(series[min(series)])
    few = [dimension for dimension in sorted(series) if 2 * len(series[dimension]) < every]
    if not few:
        return []
    return [
        f"{target}: from dimension {few[0]:,} on {len(series[few[0]])} of {every} series were measured; the "
        f"others are refilled by how the speed of those changes"
    ]
