"""The estimator of the five-minute benchmark: which part of its search space is measured in a time limit.

All of the search space takes hours, so it is cut until it fits (Gahvari et al. 2007, section IV). Nothing
here reads a clock or runs a product: its caller passes what time is left and what a trial took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from sparsecast.papers.gahvari_2007.search_space import MIDDLE, NNZ_PER_ROW, UNBLOCKED, Point, Series
from sparsecast.system.tabular import grouped

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
            reserve_s = self._scouting_s() if dimension < self.dimensions[-1] else 0.0
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
        values = self._values(dimension, left_s)
        from_middle = sorted(NNZ_PER_ROW, key=lambda value: abs(value - MIDDLE))
        return [
            Point(series, dimension, value)
            for value in from_middle
            for series in values
            if value in values[series]
        ]

    def _scouting_s(self) -> float:
        """Return the seconds to keep for the scouts: for the largest dimensions, or a share of the limit."""
        trials = [self.trials[series] for series in SCOUTS if series in self.trials]
        largest_s = sum(trial.at(dimension) for trial in trials for dimension in self.dimensions[-2:])
        return min(SCOUTING_SHARE * self.limit_s, largest_s)

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

    def _values(self, dimension: int, left_s: float) -> dict[Series, tuple[int, ...]]:
        trials, whole = dict(self.trials), len(NNZ_PER_ROW)
        free_s = 2 * self.limit_s / (len(self.series) * len(self.dimensions))
        for series, trial in trials.items():
            if whole * trial.at(dimension) > free_s:
                self.thresholds.setdefault(series, dimension)
        # What is free here is taken to be so no longer.
        thresholds = {series: self.thresholds.get(series, 2 * dimension) for series in trials}
        following = [later for later in self.dimensions if later >= dimension]
        tested, values = abbreviated(trials, thresholds, following, left_s)
        if not tested:
            return {}
        return {series: NNZ_PER_ROW if dimension < thresholds[series] else values for series in trials}


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
