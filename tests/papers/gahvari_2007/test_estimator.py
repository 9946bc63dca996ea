"""The five-minute benchmark's estimator, on times that are made up."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sparsecast.papers.gahvari_2007.search_space import (
    MIDDLE,
    NNZ_PER_ROW,
    SCOUTS,
    UNBLOCKED,
    Point,
    Search,
    Series,
    Trial,
    abbreviated,
    all_series,
    chosen_values,
    points_again,
)

TWO, FOUR = Series((2, 2)), Series((4, 1))
SERIES = (UNBLOCKED, TWO, FOUR)
WHOLE = tuple(2**exponent for exponent in range(9, 21))
SECONDS = st.floats(1e-4, 1.0)


@pytest.mark.parametrize("count", range(1, 12))
def test_several_values_keep_both_ends_and_one_is_the_middle(count):
    values = chosen_values(count)
    assert len(set(values)) == count
    assert set(values) <= set(NNZ_PER_ROW)
    assert list(values) == sorted(values)
    if count == 1:
        assert values == (MIDDLE,)
    else:
        assert (values[0], values[-1]) == (24, 34)


def cost(trials, thresholds, space, count):
    """The seconds of a space with so many values, the long way."""
    total = 0.0
    for series, trial in trials.items():
        for dimension in space:
            doublings = np.log2(dimension / trial.dimension)
            total += trial.seconds * 2**doublings * (11 if dimension < thresholds[series] else count)
    return total


@given(
    st.tuples(SECONDS, SECONDS), st.tuples(st.sampled_from(WHOLE), st.sampled_from(WHOLE)), st.floats(0, 1e5)
)
def test_the_estimator_takes_as_much_as_the_limit_admits_and_no_more(seconds, ends, limit_s):
    trials = {series: Trial(512, each) for series, each in zip(SERIES, seconds, strict=False)}
    thresholds = dict(zip(SERIES, ends, strict=False))
    dimensions, values = abbreviated(trials, thresholds, WHOLE, limit_s)
    assert dimensions == WHOLE[: len(dimensions)]
    if dimensions:
        count = len(values)
        assert cost(trials, thresholds, dimensions, count) <= limit_s * (1 + 1e-9)
        more = cost(trials, thresholds, dimensions, count + 1)
        assert count == 11 or more > limit_s * (1 - 1e-9) or more == pytest.approx(limit_s)
    longer = WHOLE[: len(dimensions) + 1]
    if len(longer) > len(dimensions):
        assert cost(trials, thresholds, longer, 1) > limit_s * (1 - 1e-9), "the largest dimension is kept"


class Machine:
    """Measures points in made-up time."""

    def __init__(self, seconds, limit_s, series=SERIES, space=WHOLE):
        self.search, self.now, self.limit_s = Search(series, space, limit_s), 0.0, limit_s
        self.took = {}
        for point in self.search.points(lambda: limit_s - self.now):
            self.took[point] = seconds(point)
            self.now += self.took[point]
            self.search.took(point, self.took[point])

    @property
    def largest(self):
        return max(point.dimension for point in self.took)


def test_scouts_go_on_where_the_time_does_not_suffice_for_all():
    machine = Machine(lambda point: 1e-7 * point.dimension * point.nnz_per_row, 60.0, series=all_series())
    series = {}
    for point in machine.took:
        series.setdefault(point.dimension, set()).add(point.series)
    reached = max(dimension for dimension, own in series.items() if len(own) == 37)
    beyond = {dimension: own for dimension, own in series.items() if dimension > reached}
    assert beyond and all(own == set(SCOUTS) for own in beyond.values())
    assert machine.now <= 60.0
    assert max(beyond) >= 4 * reached


@given(
    fixed_s=st.floats(0, 0.05),
    entry_s=st.floats(1e-9, 1e-6),
    power=st.floats(0.5, 1.0),
    limit_s=st.floats(1, 1000),
)
def test_the_limit_is_never_passed_where_doubling_is_enough(fixed_s, entry_s, power, limit_s):
    def seconds(point):
        return fixed_s + entry_s * (29 * point.dimension) ** power

    assume(len(SERIES) * seconds(Point(UNBLOCKED, 512, MIDDLE)) <= limit_s)
    machine = Machine(seconds, limit_s)
    assert machine.now <= limit_s * (1 + 1e-9)
    assert not machine.search.missed
    by_dimension = {}
    for point in machine.took:
        by_dimension.setdefault((point.series, point.dimension), set()).add(point.nnz_per_row)
    assert {dimension for _, dimension in by_dimension} == set(WHOLE[: WHOLE.index(machine.largest) + 1])
    for values in by_dimension.values():
        # The trial that the search begins with stands beside the ends.
        assert values - {MIDDLE} == set() or {24, 34} <= values


@given(st.lists(st.floats(0.01, 30), min_size=1, max_size=40), st.floats(5, 500))
def test_a_machine_of_any_mood_passes_the_limit_by_one_point_at_most(moods, limit_s):
    moments = iter(moods * 1000)
    machine = Machine(lambda point: next(moments) * point.dimension * point.nnz_per_row * 1e-6, limit_s)
    assert machine.now <= limit_s + max(machine.took.values())


def test_time_that_doubling_overestimates_is_used_further_up():
    # A trial is 10 ms whatever the dimension up to thousands: doubling it from 512 on would take minutes.
    machine = Machine(lambda point: 0.01 + 1e-8 * point.dimension * point.nnz_per_row, 20.0)
    assert machine.largest == WHOLE[-1]
    assert machine.now > 0.8 * machine.limit_s


def test_small_problems_are_free_where_there_is_time():
    machine = Machine(lambda point: 0.01 + 1e-7 * point.dimension * point.nnz_per_row, 100.0)
    free = [point for point in machine.took if point.dimension == 1024 and point.series == TWO]
    assert len(free) == 11
    assert machine.search.thresholds[TWO] > 1024
    assert machine.search.thresholds.keys() == set(SERIES)


def test_every_series_has_its_first_value_before_any_has_its_second():
    machine = Machine(lambda point: 1e-3, float("inf"), space=WHOLE[:2])
    order = [point for point in machine.took if point.dimension == WHOLE[1]]
    assert [point.nnz_per_row for point in order[:3]] == [MIDDLE] * 3
    assert {point.series for point in order[:3]} == set(SERIES)


def test_points_again_are_of_every_dimension_and_within_the_limit():
    measured = {Point(series, d, k): d * 1e-4 for series in SERIES for d in WHOLE for k in NNZ_PER_ROW}
    chosen = points_again(measured, 300.0)
    assert len(chosen) == len(set(chosen))
    assert {point.dimension for point in chosen} == set(WHOLE)
    assert len({point.series for point in chosen}) == 3
    assert sum(measured[point] for point in chosen) <= 300
    few = points_again(measured, 1.0)
    assert few
    assert sum(measured[point] for point in few) <= 1
    assert points_again(measured, 0.0) == points_again({}, 1.0) == []
