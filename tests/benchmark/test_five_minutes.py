"""The five-minute benchmark's search space, estimator and figures, on times that are made up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sparsecast.benchmark.estimator import Search, Trial, abbreviated, chosen_values, points_again
from sparsecast.benchmark.five_minutes import (
    AGAIN,
    FIGURES,
    SUITE,
    drift_of,
    errors,
    figures,
    noise_of,
    notes,
    ratings,
    refilled,
    speeds_of,
    stream_share,
)
from sparsecast.benchmark.search_space import (
    MIDDLE,
    NNZ_PER_ROW,
    SYMMETRIC,
    UNBLOCKED,
    Point,
    Series,
    all_series,
    dimensions,
    last_cache_bytes,
    size_class,
)
from sparsecast.errors import InputError
from sparsecast.machines.machine import Cache
from sparsecast.records import Stream

TWO, FOUR = Series((2, 2)), Series((4, 1))
SERIES = (UNBLOCKED, TWO, FOUR)
WHOLE = tuple(2**exponent for exponent in range(9, 21))

SECONDS = st.floats(1e-4, 1.0)


def test_the_series_are_the_papers_36_block_sizes_and_the_symmetric_matrices():
    found = all_series()
    assert len(found) == len(set(found)) == 37
    assert {series.block for series in found} == {
        (r, c) for r in (1, 2, 3, 4, 6, 8) for c in (1, 2, 3, 4, 6, 8)
    }
    assert [series.format for series in found].count("bcsr") == 35
    assert found[0] == UNBLOCKED
    assert found[-1] == SYMMETRIC


def test_block_sizes_can_be_named():
    assert all_series(["1x1", "4x1", "1x1"]) == (UNBLOCKED, FOUR, SYMMETRIC)


@pytest.mark.parametrize("name", ["5x5", "4", "x", "4x", "", "4x4x4", "symmetric", "04x4", "-1x2"])
def test_an_unknown_block_size_is_refused(name):
    with pytest.raises(InputError, match=rf"^block size '{name}': expected RxC .*1, 2, 3, 4, 6, 8; name one"):
        all_series(["1x1", name])


@given(st.sampled_from(all_series()), st.sampled_from(WHOLE), st.sampled_from(NNZ_PER_ROW))
def test_a_point_is_found_by_its_name(series, dimension, nnz_per_row):
    point = Point(series, dimension, nnz_per_row)
    assert Point.named(point.name) == point


def test_other_names_are_no_points():
    for name in ("varied?rows=20000", "synthetic?rows=512&nnz_per_row=29&kind=2x2x2", ""):
        with pytest.raises(ValueError, match="is no matrix of the five-minute benchmark"):
            Point.named(name)


def test_the_range_ends_at_the_papers_dimension_where_that_is_out_of_cache():
    assert dimensions(0, 8, float("inf")) == WHOLE
    assert dimensions(32 << 20, 8, float("inf")) == WHOLE


@pytest.mark.parametrize("cache_bytes", [480 << 20, 2 << 30, 3 << 30])
def test_the_range_grows_until_a_problem_is_out_of_cache(cache_bytes):
    found = dimensions(cache_bytes, 8, float("inf"))
    assert found[: len(WHOLE)] == WHOLE
    assert size_class(found[-1], NNZ_PER_ROW[-1], 8, cache_bytes) == "medium"
    assert size_class(found[-2], NNZ_PER_ROW[-1], 8, cache_bytes) == "small"


def test_the_range_ends_where_memory_does():
    assert dimensions(1 << 30, 8, 34 * 4096) == (512, 1024, 2048, 4096)
    assert dimensions(1 << 30, 8, 34 * 4096 - 1) == (512, 1024, 2048)
    assert dimensions(1 << 30, 8, 100) == ()


def test_sizes_are_told_by_what_fits_in_the_cache():
    whole = 1000 * (30 * 12 + 4 + 16)
    assert size_class(1000, 30, 8, whole) == "small"
    assert size_class(1000, 30, 8, whole - 1) == size_class(1000, 30, 8, 8000) == "medium"
    assert size_class(1000, 30, 8, 7999) == "large"
    assert size_class(1000, 30, 8, 0) is None


def test_the_last_cache_is_what_the_threads_have_together(recorded):
    machine = dataclasses.replace(recorded.machine, caches=(Cache(1, 100, 1), Cache(2, 1000, 2)))
    assert [last_cache_bytes(machine, "cpu", threads) for threads in (1, 2, 3, 4)] == [1000, 1000, 2000, 2000]
    assert last_cache_bytes(dataclasses.replace(machine, caches=()), "cpu", 1) == 0


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
    space = abbreviated(trials, thresholds, WHOLE, limit_s)
    assert space.dimensions == WHOLE[: len(space.dimensions)]
    if space.dimensions:
        count = len(space.values)
        assert cost(trials, thresholds, space.dimensions, count) <= limit_s * (1 + 1e-9)
        more = cost(trials, thresholds, space.dimensions, count + 1)
        assert count == 11 or more > limit_s * (1 - 1e-9) or more == pytest.approx(limit_s)
    longer = WHOLE[: len(space.dimensions) + 1]
    if len(longer) > len(space.dimensions):
        assert cost(trials, thresholds, longer, 1) > limit_s * (1 - 1e-9), "the largest dimension is kept"


def test_the_papers_three_steps():
    # One trial of a second at 512: dimensions to 4096 take 15 s with one value, and 7 s without the last.
    trials, thresholds, space = {UNBLOCKED: Trial(512, 1.0)}, {UNBLOCKED: 512}, (512, 1024, 2048, 4096)
    for limit_s, largest, count in (
        (165, 4096, 11),
        (164, 4096, 10),
        (15, 4096, 1),
        (14, 2048, 2),
        (0.9, 0, 0),
    ):
        found = abbreviated(trials, thresholds, space, limit_s)
        assert (max(found.dimensions, default=0), len(found.values)) == (largest, count), limit_s


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


def test_without_a_limit_everything_is_measured_once():
    machine = Machine(lambda point: 1.0, float("inf"))
    assert len(machine.took) == len(SERIES) * len(WHOLE) * 11
    assert not machine.search.missed


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
    machine = Machine(lambda point: next(moments) * point.entries * 1e-6, limit_s)
    assert machine.now <= limit_s + max(machine.took.values())


def test_time_that_doubling_overestimates_is_used_further_up():
    # A trial is 10 ms whatever the dimension up to thousands: doubling it from 512 on would take minutes.
    machine = Machine(lambda point: 0.01 + 1e-8 * point.entries, 20.0)
    assert machine.largest == WHOLE[-1]
    assert machine.now > 0.8 * machine.limit_s


def test_small_problems_are_free_where_there_is_time():
    machine = Machine(lambda point: 0.01 + 1e-7 * point.entries, 100.0)
    free = [point for point in machine.took if point.dimension == 1024 and point.series == TWO]
    assert len(free) == 11
    assert machine.search.thresholds[TWO] > 1024
    assert machine.search.thresholds.keys() == set(SERIES)


def test_every_series_has_its_first_value_before_any_has_its_second():
    machine = Machine(lambda point: 1e-3, float("inf"), space=WHOLE[:2])
    order = [point for point in machine.took if point.dimension == WHOLE[1]]
    assert [point.nnz_per_row for point in order[:3]] == [MIDDLE] * 3
    assert {point.series for point in order[:3]} == set(SERIES)


def test_without_memory_there_is_nothing_to_search():
    assert Machine(lambda point: 1.0, 100.0, space=()).took == {}


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


def whole_speeds(speed, space=WHOLE[:4], series=(*SERIES, SYMMETRIC)):
    return {Point(s, d, k): speed(s, d, k) for s in series for d in space for k in NNZ_PER_ROW}


def test_figures_of_a_whole_search_space():
    speeds = whole_speeds(lambda series, d, k: 1000.0 * series.block[0] + k)
    found = figures(speeds)
    assert (found.unblocked_max_mflops, found.unblocked_median_mflops) == (1034.0, 1029.0)
    assert (found.blocked_max_mflops, found.blocked_median_mflops) == (4034.0, (2034.0 + 4024.0) / 2)
    assert (found.symmetric_max_mflops, found.symmetric_median_mflops) == (1034.0, 1029.0)
    assert all(len(values.ravel()) == 44 for values in refilled(speeds).values())


def test_what_was_not_measured_has_no_figures():
    found = figures({Point(TWO, 512, 29): 5.0})
    assert (found.unblocked_max_mflops, found.symmetric_median_mflops) == (None, None)
    assert found.blocked_max_mflops == found.blocked_median_mflops == 5.0
    assert set(dataclasses.asdict(figures({})).values()) == {None}


def test_one_value_is_duplicated_and_several_are_interpolated():
    one = refilled({Point(TWO, 512, 29): 7.0})[TWO]
    assert one.tolist() == [[7.0] * 11]
    several = refilled({Point(TWO, 512, k): float(k) for k in (24, 29, 34)})[TWO]
    assert several == pytest.approx(np.array([NNZ_PER_ROW], dtype=float))


def test_a_dimension_out_of_time_is_as_fast_as_the_one_before():
    speeds = {Point(UNBLOCKED, 512, 29): 1.0, Point(UNBLOCKED, 1024, 29): 2.0, Point(TWO, 512, 29): 3.0}
    assert refilled(speeds)[TWO][:, 0].tolist() == [3.0, 3.0]


def test_dimensions_that_were_cut_are_as_fast_as_the_last_one():
    speeds = whole_speeds(lambda series, d, k: 1e6 / d)
    found = refilled(speeds, WHOLE[6])[TWO]
    assert found.shape == (7, 11)
    assert (found[4:] == found[3]).all()
    assert figures(speeds, WHOLE[6]).blocked_median_mflops == 1e6 / WHOLE[3]
    assert figures(speeds, WHOLE[6]).blocked_max_mflops == figures(speeds).blocked_max_mflops


@given(st.integers(1, 11), st.integers(1, 4))
def test_refilling_smooth_speeds_restores_them(count, full):
    speeds = whole_speeds(lambda series, d, k: 100.0 * series.block[0] + 2.0 * k)
    kept = {
        point: speed
        for point, speed in speeds.items()
        if point.dimension < WHOLE[full] or point.nnz_per_row in chosen_values(count)
    }
    assert sum(values.size for values in refilled(kept).values()) == len(speeds)
    assert figures(kept).blocked_median_mflops == pytest.approx(
        figures(speeds).blocked_median_mflops, rel=0.1
    )
    if count > 1:
        assert dataclasses.astuple(figures(kept)) == pytest.approx(dataclasses.astuple(figures(speeds)))


def test_noise_is_how_well_the_same_agrees():
    points = [Point(TWO, 512, k) for k in NNZ_PER_ROW]
    first = dict.fromkeys(points, 100.0)
    again = dict(zip(points[:3], (101.0, 90.0, 104.0), strict=True))
    assert noise_of(first, again) == pytest.approx(0.04)
    assert noise_of(first, {}) is None


MAXIMA = [name for name in FIGURES if "max" in name]


def measured_again(speeds, *ratios):
    return {point: ratio * speeds[point] for point, ratio in zip(speeds, ratios, strict=False)}


def test_drift_is_what_noise_leaves():
    first = dict.fromkeys([Point(TWO, 512, k) for k in NNZ_PER_ROW], 100.0)
    again = measured_again(first, 0.9, 1.02, 1.1)
    assert noise_of(first, again) == pytest.approx(0.1)
    assert drift_of(first, again) == pytest.approx(0.02)
    assert drift_of(first, {}) is None


def test_the_error_of_a_whole_search_space_is_the_noise_or_the_drift():
    speeds = whole_speeds(lambda series, d, k: float(d + k))
    found = errors(speeds, measured_again(speeds, 0.9, 1.02, 1.1))
    assert found == pytest.approx({name: 0.1 if name in MAXIMA else 0.02 for name in FIGURES})


def test_the_error_grows_with_what_cutting_dimensions_changes():
    flat = whole_speeds(lambda series, d, k: 100.0)
    assert errors(flat, measured_again(flat, 1.01), WHOLE[6]) == pytest.approx(dict.fromkeys(FIGURES, 0.01))
    falling = whole_speeds(lambda series, d, k: 1e6 / d)
    found = errors(falling, measured_again(falling, 1.01), WHOLE[5])
    # Six dimensions, of which four or three were measured: medians (1/2048 + 1/4096) / 2, and 1/2048.
    assert found["blocked_median_mflops"] == pytest.approx(np.hypot(0.01, 2 / 1.5 - 1))
    assert found["blocked_max_mflops"] == pytest.approx(0.01)


def test_the_error_grows_with_what_cutting_values_changes():
    speeds = whole_speeds(lambda series, d, k: float(k))
    kept = {p: speed for p, speed in speeds.items() if p.dimension < 4096 or p.nnz_per_row == 29}
    found = errors(kept, measured_again(kept, 1.0))
    assert found["unblocked_max_mflops"] == pytest.approx(1 - 29 / 34)
    assert found["unblocked_median_mflops"] == pytest.approx(0)


def test_a_dimension_that_was_tested_with_other_values_stays_in_the_error():
    speeds = whole_speeds(lambda series, d, k: 1e6 / d)
    ends = {1024: (29,), 2048: (29,), 4096: (24, 34)}
    kept = {p: speed for p, speed in speeds.items() if p.nnz_per_row in ends.get(p.dimension, NNZ_PER_ROW)}
    assert errors(kept, measured_again(kept, 1.0)) == pytest.approx(dict.fromkeys(FIGURES, 0.0))


def test_where_nothing_was_measured_twice_no_error_is_known():
    speeds = whole_speeds(lambda series, d, k: 1.0)
    assert set(errors(speeds, {}).values()) == {None}


def test_no_figure_has_no_error():
    assert set(errors({}, {}, 1024).values()) == {None}


@pytest.fixture
def record_of(recorded):
    template = recorded.select(format="csr", threads=1, dtype="float64")[0]

    def make(point, mflops, suite=SUITE, **candidate):
        return dataclasses.replace(
            template,
            candidate=dataclasses.replace(template.candidate, **candidate),
            matrix=point.name,
            suite=suite,
            time_s=2e-6 * template.structure.nnz / mflops,
        )

    return make


def test_speeds_are_those_of_the_suite_and_the_latest_counts(record_of):
    point = Point(TWO, 512, 29)
    records = [record_of(point, 10.0), record_of(point, 20.0), record_of(point, 30.0, AGAIN)]
    assert speeds_of(records) == {point: pytest.approx(20.0)}
    assert speeds_of(records, AGAIN) == {point: pytest.approx(30.0)}


def test_each_setting_has_its_rating_in_the_order_of_the_records(recorded, record_of):
    points = [Point(series, d, k) for series in SERIES for d in (512, 1024) for k in (24, 34)]
    made = [record_of(point, 100.0, threads=2) for point in points]
    made += [record_of(point, 50.0, dtype="float32") for point in points[:3]]
    made += [record_of(points[0], 110.0, AGAIN, threads=2), *recorded.records[:20]]
    machine = dataclasses.replace(recorded.machine, caches=(Cache(2, 400_000, 1),))
    first, second = ratings(made, machine, range_ends={"float64": 2048})
    assert (first.dtype, first.threads, second.dtype, second.threads) == ("float64", 2, "float32", 1)
    assert first.figures.blocked_median_mflops == pytest.approx(100)
    assert first.noise == pytest.approx(0.1)
    assert first.is_disturbed
    assert second.noise is None
    assert not second.is_disturbed
    assert len(first.records) == 12
    assert first.refilled == 3 * 3 * 11 - 12
    # 800 kB for two threads: 512 x 24 of 12 bytes are 155 kB, and 1024 x 34 are 440 kB.
    assert first.sizes == {"small": 12, "medium": 0, "large": 0}
    assert (first.largest_dimension, first.range_end) == (1024, 2048)
    assert (second.largest_dimension, second.range_end) == (1024, 1024)
    said = "\n".join(notes([first, second]))
    assert "float64, 2 threads: repeated measurements differ by 10.0 %, more than 5 %: another" in said
    assert "float64, 2 threads: no medium or large problem up to dimension 1,024" in said
    assert "float64, 2 threads: dimensions above 1,024 cut from a range up to 2,048" in said
    assert "float32, 1 thread: nothing was measured twice" in said


def test_records_of_other_suites_have_no_rating(recorded):
    assert ratings(recorded.records, recorded.machine) == []


def test_the_share_of_the_bandwidth_is_taken_at_the_bytes_of_each_product(record_of):
    def stream(size, bandwidth, kind="read", threads=1):
        return Stream(kind, "cpu", threads, size, size / bandwidth, 0.0, "", "")

    record = record_of(Point(UNBLOCKED, 512, 29), 100.0, threads=1)
    size, bandwidth = record.traffic_bytes, record.traffic_bytes / record.time_s
    others = [stream(size, 1.0, "copy"), stream(size, 1.0, threads=2)]
    assert stream_share([record], [stream(size, 4 * bandwidth), *others]) == pytest.approx(0.25)
    ends = [stream(size // 4, 8 * bandwidth), stream(4 * (size // 4) * 4, 4 * bandwidth)]
    assert 1 / 8 < stream_share([record], ends) < 1 / 4
    assert stream_share([record], others) is None
    assert stream_share([], ends) is None


def test_unknown_caches_are_said(recorded, record_of):
    machine = dataclasses.replace(recorded.machine, caches=())
    found = ratings([record_of(Point(UNBLOCKED, 512, 29), 100.0)], machine)
    assert found[0].sizes == {}
    assert any("the caches are unknown" in note for note in notes(found))
