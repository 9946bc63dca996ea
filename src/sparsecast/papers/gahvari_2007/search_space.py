"""The search space of the five-minute benchmark, and which part of it is measured in a time limit.

Square matrices of dimensions 2**9 to 2**20, of 24 to 34 non-zeros a row, in 36 block sizes, are multiplied in
CSR (1 x 1) or in BCSR of exactly their block size (Gahvari et al. 2007, section IV). Symmetric ones,
of which one triangle is stored, are added: the paper leaves them to future work. All of it takes hours, so it
is cut until it fits: the estimator reads no clock, its caller passes what time is left and what a trial took.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.machine import Machine
from sparsecast.matrices.banded_synthesis import band_statistics, banded_matrix
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.records import NO_PARAMETERS, Parameters
from sparsecast.system.tabular import grouped

#: Section IV: 29 +- 5 non-zeros a row, the mean of the paper's matrices; dimensions that are powers of two.
NNZ_PER_ROW, MIDDLE = tuple(range(24, 35)), 29

FIRST_DIMENSION, LAST_DIMENSION = 1 << 9, 1 << 20

SIZES = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Series:
    """The matrices that share a threshold dimension: those of one block size, or the symmetric ones.

    Those are stored as one triangle.
    """

    block: tuple[int, int] = (1, 1)
    is_symmetric: bool = False

    @property
    def name(self) -> str:
        """Block size, or ``"symmetric"``."""
        return "symmetric" if self.is_symmetric else f"{self.block[0]}x{self.block[1]}"

    @property
    def format(self) -> str:
        plain = "symmetric_csr" if self.is_symmetric else "csr"
        return plain if self.block == (1, 1) else "bcsr"

    @property
    def is_blocked(self) -> bool:
        return self.format == "bcsr"

    @property
    def parameters(self) -> Parameters:
        return Parameters({"block": self.block}) if self.is_blocked else NO_PARAMETERS


UNBLOCKED, SYMMETRIC = Series(), Series(is_symmetric=True)


def all_series(blocks: Sequence[str] | None = None) -> tuple[Series, ...]:
    """Return the series of block sizes such as ``"4x2"``, by default all 36, and the symmetric one.

    Square sizes come first and symmetric matrices second, so that a run that is cut short has seen each kind.
    """
    by_name = {Series(size).name: Series(size) for size in product(BLOCK_SIDES, BLOCK_SIDES)}
    for name in blocks or ():
        if name not in by_name:
            raise InputError(
                f"block size '{name}': expected RxC with R and C of {', '.join(map(str, BLOCK_SIDES))}; "
                f"name one such as 4x2"
            )
    chosen = [by_name[name] for name in dict.fromkeys(blocks or by_name)]
    squares_first = sorted(chosen, key=lambda series: series.block[0] != series.block[1])
    return (squares_first[0], SYMMETRIC, *squares_first[1:])


@dataclass(frozen=True, slots=True)
class Point:
    """One square matrix of the search space, with about `nnz_per_row` non-zeros per row."""

    series: Series
    dimension: int
    nnz_per_row: int

    @property
    def name(self) -> str:
        return f"synthetic?rows={self.dimension}&nnz_per_row={self.nnz_per_row}&kind={self.series.name}"

    @classmethod
    def named(cls, name: str) -> Point:
        """Return the point of this name of a matrix in a Record; a ValueError if none has it."""
        parts = re.fullmatch(r"synthetic\?rows=(\d+)&nnz_per_row=(\d+)&kind=(symmetric|(\d)x(\d))", name)
        if parts is None:
            raise ValueError(f"{name!r} is no matrix of the five-minute benchmark")
        rows, length, kind, r, c = parts.groups()
        series = SYMMETRIC if kind == "symmetric" else Series((int(r), int(c)))
        return cls(series, int(rows), int(length))


def _synthetic(rows: int, nnz_per_row: int, kind: str) -> csr_array[Any]:
    block = (1, 1) if kind == "symmetric" else (int(kind[0]), int(kind[2]))
    return banded_matrix(
        rows,
        nnz_per_row,
        block=block,
        bands=band_statistics().bands(MIDDLE),  # section III: one distribution for all
        symmetric=kind == "symmetric",
        seed=rows + nnz_per_row,
    )


FAMILIES.register("synthetic")(Family(_synthetic, lambda rows, nnz_per_row, kind: rows * nnz_per_row))


def dimensions(cache_bytes: int, value_bytes: int, most_entries: float) -> tuple[int, ...]:
    """Return the dimensions of the search space, ascending.

    They end at 2**20, or at the first that no longer fits in the last cache of `cache_bytes`, so that the
    benchmark keeps up with machines that grow; and before the memory for `most_entries` non-zeros ends.
    """
    ascending, dimension, longest = [], FIRST_DIMENSION, NNZ_PER_ROW[-1]
    while dimension * longest <= most_entries:
        ascending.append(dimension)
        if dimension >= LAST_DIMENSION and problem_bytes(dimension, longest, value_bytes) > cache_bytes:
            break
        dimension *= 2
    return tuple(ascending)


def problem_bytes(dimension: int, nnz_per_row: float, value_bytes: int) -> float:
    """Return the bytes of a matrix in CSR, with indices of 4 bytes, and of its two vectors."""
    return dimension * (nnz_per_row * (value_bytes + 4) + (4 + 2 * value_bytes))


def size_class(dimension: int, nnz_per_row: float, value_bytes: int, cache_bytes: int) -> str | None:
    """Return the size of a problem (section II); None where the cache is not known.

    Small: all of it fits in the last cache. Medium: the source vector does. Large: not even that.
    """
    if not cache_bytes:
        return None
    if problem_bytes(dimension, nnz_per_row, value_bytes) <= cache_bytes:
        return "small"
    return "medium" if dimension * value_bytes <= cache_bytes else "large"


def last_cache_bytes(machine: Machine, threads: int) -> int:
    """Return what the last caches hold that these threads use together; 0 where that is not known."""
    caches = machine.product_caches
    return caches[-1].bytes * -(-threads // caches[-1].shared_by) if caches else 0


#: Series that go on where the time does not suffice for all, and the share of the time that they get at most.
SCOUTS = (UNBLOCKED, Series((2, 2)), Series((4, 4)))
SCOUTING_SHARE = 0.15

#: Times that `points_again` goes through the dimensions.
_TURNS_AGAIN = 8


def chosen_values(count: int) -> tuple[int, ...]:
    """Return `count` of NNZ_PER_ROW: the middle one, or several that are spread, both ends among them."""
    if count == 1:
        return (MIDDLE,)
    places = np.linspace(0, len(NNZ_PER_ROW) - 1, count).round().astype(int)
    return tuple(NNZ_PER_ROW[place] for place in places)


@dataclass(frozen=True, slots=True)
class Trial:
    """The seconds that measuring one matrix of a series took."""

    dimension: int
    seconds: float

    def at(self, dimension: int) -> float:
        """Return the estimate for another dimension: twice the time for twice the dimension."""
        return self.seconds * dimension / self.dimension


def abbreviated(
    trials: Mapping[Series, Trial],
    thresholds: Mapping[Series, int],
    dimensions: Sequence[int],
    limit_s: float,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions and the non-zeros a row that are tested, by the three steps of section IV.

    One value of non-zeros a row less at a time; where one value is still too much, the largest dimension goes
    and all the values are back. So the largest dimension stays as large as possible. Both are empty where not
    even the first dimension fits in the time limit.

    The time of a trial is doubled for each of the dimensions, ascending, that are still to be tested. Below
    its threshold dimension a series is tested with all the values; the time that takes is counted.
    """
    left = list(dimensions)

    def estimate_s(count: int) -> float:
        return sum(
            trial.at(dimension) * (len(NNZ_PER_ROW) if dimension < thresholds[series] else count)
            for series, trial in trials.items()
            for dimension in left
        )

    while left:
        for count in range(len(NNZ_PER_ROW), 0, -1):
            if estimate_s(count) <= limit_s:
                return tuple(left), chosen_values(count)
        left.pop()
    return (), ()


@dataclass
class Search:
    """One walk through the search space, from the smallest dimension up, within a time limit.

    It begins with a trial of each series at the smallest dimension. The estimator is asked before every
    dimension, with the trials of the one before: so what a trial really takes corrects what was estimated,
    and neither is time left over nor is the limit passed. At last a few series, the scouts, go on to the
    dimensions that were cut: how their speed changes there is what the others are refilled by.

    `dimensions` ascend, each twice the one before. `thresholds` are the first dimension of each series that
    is not free: below it all values of non-zeros a row together take less than two even shares of the time.
    `missed` are points that were to be tested and for which the time did not suffice.
    """

    series: Sequence[Series]
    dimensions: Sequence[int]
    limit_s: float
    trials: dict[Series, Trial] = field(default_factory=dict)
    thresholds: dict[Series, int] = field(default_factory=dict)
    missed: list[Point] = field(default_factory=list)

    def points(self, left_s: Callable[[], float]) -> Iterator[Point]:
        """Yield what to measure next; `took` is called with each before the next is asked for.

        `left_s` returns the seconds that are left of the limit.
        """
        trials = [Point(series, d, MIDDLE) for d in self.dimensions[:1] for series in self.series]
        yield from self._in_time(trials, left_s)
        cut = list(self.dimensions)
        for dimension in self.dimensions:
            reserve_s = 0.0
            if dimension < self.dimensions[-1]:  # for the scouts: their largest dimensions, or a share
                scouts = [self.trials[series] for series in SCOUTS if series in self.trials]
                largest_s = sum(trial.at(largest) for trial in scouts for largest in self.dimensions[-2:])
                reserve_s = min(SCOUTING_SHARE * self.limit_s, largest_s)
            points = self._points_at(dimension, left_s() - reserve_s)
            if not points:
                break
            cut.remove(dimension)
            yield from self._in_time([point for point in points if point not in trials], left_s, reserve_s)
        for dimension, series in product(cut, SCOUTS):
            point = Point(series, dimension, MIDDLE)
            if series in self.trials and self.expected_s(point) <= left_s():
                yield point

    def _points_at(self, dimension: int, left_s: float) -> list[Point]:
        """Return a value of every series before the next value of any, from the middle outwards."""
        trials, whole = self.trials, len(NNZ_PER_ROW)
        free_s = 2 * self.limit_s / (len(self.series) * len(self.dimensions))
        for series, trial in trials.items():
            if whole * trial.at(dimension) > free_s:
                self.thresholds.setdefault(series, dimension)
        # What is free here is taken to be so no longer.
        thresholds = {series: self.thresholds.get(series, 2 * dimension) for series in trials}
        following = [later for later in self.dimensions if later >= dimension]
        tested, values = abbreviated(trials, thresholds, following, left_s)
        if not tested:
            return []
        from_middle = sorted(NNZ_PER_ROW, key=lambda value: abs(value - MIDDLE))
        return [
            Point(series, dimension, value)
            for value in from_middle
            for series in trials
            if dimension < thresholds[series] or value in values
        ]

    def _in_time(
        self, points: Iterable[Point], left_s: Callable[[], float], reserve_s: float = 0.0
    ) -> Iterator[Point]:
        for point in points:
            if self.expected_s(point) > left_s() - reserve_s:
                self.missed.append(point)
            else:
                yield point

    def took(self, point: Point, seconds: float) -> None:
        """Take note of what measuring a point took."""
        trial = self.trials.get(point.series)
        if trial and trial.dimension == point.dimension:  # the mean of those so far, weighted to the latest
            seconds = (trial.seconds + seconds) / 2
        self.trials[point.series] = Trial(point.dimension, seconds)

    def expected_s(self, point: Point) -> float:
        """Return the seconds that measuring a point may take: 0 before the first one of its series."""
        trial = self.trials.get(point.series)
        return trial.at(point.dimension) if trial else 0.0


def points_again(measured: Mapping[Point, float], limit_s: float) -> list[Point]:
    """Return points to measure again: any of each dimension, as many of each, within a time limit.

    `measured` has the seconds that each point took.
    """
    by_dimension = grouped(measured, lambda point: point.dimension)
    chosen: dict[Point, None] = {}
    random = np.random.default_rng(0)
    # The largest first: they are the fewest that fit.
    for dimension in sorted(by_dimension, reverse=True) * _TURNS_AGAIN:
        points = by_dimension[dimension]
        point = points[random.integers(len(points))]
        if point not in chosen and measured[point] <= limit_s:
            chosen[point] = None
            limit_s -= measured[point]
    return list(chosen)
