"""The five-minute benchmark's figures, on speeds that are made up."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.machines.machine import Cache
from sparsecast.papers.gahvari_2007.search_space import (
    NNZ_PER_ROW,
    SCOUTS,
    SYMMETRIC,
    UNBLOCKED,
    Point,
    Series,
    all_series,
    chosen_values,
)
from sparsecast.papers.gahvari_2007.summary import (
    AGAIN,
    FIGURES,
    SUITE,
    errors,
    figures,
    noise_of,
    notes,
    ratings,
    refilled,
)
from sparsecast.records import Bandwidth

TWO, FOUR = Series((2, 2)), Series((4, 1))
SERIES = (UNBLOCKED, TWO, FOUR)
WHOLE = tuple(2**exponent for exponent in range(9, 21))


def whole_speeds(speed, space=WHOLE[:4], series=(*SERIES, SYMMETRIC)):
    return {Point(s, d, k): speed(s, d, k) for s in series for d in space for k in NNZ_PER_ROW}


def at_29(**speeds):
    """Speeds at 29 non-zeros a row of each series, of dimensions from 512 on; None where not tested."""
    series = {"csr": UNBLOCKED, "two": TWO, "four": FOUR}
    points = {Point(series[k], 512 << n, 29): s for k, row in speeds.items() for n, s in enumerate(row)}
    return {point: speed for point, speed in points.items() if speed is not None}


def test_figures_of_a_whole_search_space():
    speeds = whole_speeds(lambda series, d, k: 1000.0 * series.block[0] + k)
    found = figures(speeds)
    assert (found.unblocked_max_mflops, found.unblocked_median_mflops) == (1034.0, 1029.0)
    assert (found.blocked_max_mflops, found.blocked_median_mflops) == (4034.0, (2034.0 + 4024.0) / 2)
    assert (found.symmetric_max_mflops, found.symmetric_median_mflops) == (1034.0, 1029.0)
    assert all(len(values.ravel()) == 44 for values in refilled(speeds).values())
    assert figures(speeds, as_printed=True) == found


def test_what_was_not_measured_has_no_figures():
    found = figures(at_29(two=[5.0]))
    assert (found.unblocked_max_mflops, found.symmetric_median_mflops) == (None, None)
    assert found.blocked_max_mflops == found.blocked_median_mflops == 5.0
    assert set(dataclasses.asdict(figures({})).values()) == {None}


def test_one_value_is_duplicated_and_several_are_interpolated():
    assert refilled(at_29(two=[7.0]))[TWO].tolist() == [[7.0] * 11]
    several = refilled({Point(TWO, 512, k): float(k) for k in (24, 29, 34)})[TWO]
    assert several == pytest.approx(np.array([NNZ_PER_ROW], dtype=float))


CUT = at_29(csr=[1.0, 2.0], two=[3.0], four=[5.0, 5.0])
SKIPPED = at_29(csr=[1.0, None, 4.0], two=[3.0], four=[1.0, 2.0])


@pytest.mark.parametrize(
    ("speeds", "end", "series", "filled"),
    [
        pytest.param(CUT, 0, TWO, [3.0, 4.5], id="1.5 times, the median of 2 and 1"),
        pytest.param(CUT, 2048, TWO, [3.0, 4.5, 4.5], id="where nothing was tested, as fast"),
        pytest.param(SKIPPED, 0, UNBLOCKED, [1.0, 2.0, 4.0], id="where it was not tested itself"),
        pytest.param(SKIPPED, 0, TWO, [3.0, 6.0, 6.0], id="where no other was tested at both"),
    ],
)
def test_a_dimension_out_of_time_is_as_much_faster_as_where_it_was_tested(speeds, end, series, filled):
    assert refilled(speeds, end)[series].tolist() == [[speed] * 11 for speed in filled]
    blocked = [speed for point, speed in speeds.items() if point.series.is_blocked]
    assert figures(speeds, end).blocked_max_mflops == max(blocked), "a maximum was reached"


def test_as_printed_a_dimension_that_was_not_tested_is_left_out():
    speeds = at_29(two=[4.0, 8.0], four=[3.0])
    printed, ours = figures(speeds, 4096, as_printed=True), figures(speeds, 4096)
    assert printed.blocked_median_mflops == 4.0, "the median of 3, 4 and 8"
    assert ours.blocked_median_mflops == 6.0, "the median of 4, 8, 8, 8 and 3, 6, 6, 6"
    assert printed.blocked_max_mflops == ours.blocked_max_mflops == 8.0


def test_what_only_some_series_were_tested_at_is_said(recorded, record_of):
    whole = [Point(series, 512, 29) for series in all_series()]
    records = [record_of(point, 10.0) for point in (*whole, *(Point(series, 1024, 29) for series in SCOUTS))]
    (rating,) = ratings(records, recorded.machine)
    assert any("from dimension 1,024 on 3 of 37 series were measured" in note for note in notes([rating]))
    (rating,) = ratings(records[:-3], recorded.machine)
    assert not any("series were measured" in note for note in notes([rating]))


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


def measured_again(speeds, *ratios):
    return {point: ratio * speeds[point] for point, ratio in zip(speeds, ratios, strict=False)}


def test_drift_is_what_noise_leaves():
    first = dict.fromkeys([Point(TWO, 512, k) for k in NNZ_PER_ROW], 100.0)
    again = measured_again(first, 0.9, 1.02, 1.1)
    assert noise_of(first, again) == (pytest.approx(0.1), pytest.approx(0.02))
    assert noise_of(first, {}) == (None, None)
    for speeds, repeated in ((first, {}), ({}, {})):  # nothing twice, and nothing at all
        assert set(errors(speeds, repeated, 1024).values()) == {None}


def test_the_error_of_a_whole_search_space_is_the_noise_or_the_drift():
    speeds = whole_speeds(lambda series, d, k: float(d + k))
    found = errors(speeds, measured_again(speeds, 0.9, 1.02, 1.1))
    assert found == pytest.approx({name: 0.1 if "max" in name else 0.02 for name in FIGURES})


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


@pytest.fixture
def record_of(recorded):
    template = recorded.select(format="csr", threads=1, dtype="float64")[0]

    def make(point, mflops, suite=SUITE, **candidate):
        return dataclasses.replace(
            template,
            candidate=dataclasses.replace(template.candidate, **candidate),
            matrix=point.name,
            suite=suite,
            noise=0.0,
            time_s=2e-6 * template.nnz / mflops,
        )

    return make


def test_of_two_records_of_a_point_the_later_counts(recorded, record_of):
    point = Point(TWO, 512, 29)
    records = [record_of(point, 10.0), record_of(point, 20.0), record_of(point, 30.0, AGAIN)]
    (rating,) = ratings(records, recorded.machine)
    assert rating.speeds == {point: pytest.approx(20.0)} and rating.noise == pytest.approx(0.5)


def test_each_setting_has_its_rating_in_the_order_of_the_records(recorded, record_of):
    points = [Point(series, d, k) for series in SERIES for d in (512, 1024) for k in (24, 34)]
    made = [record_of(point, 100.0, threads=2) for point in points]
    made += [record_of(point, 50.0, dtype="float32") for point in points[:3]]
    made += [record_of(points[0], 110.0, AGAIN, threads=2), *recorded.records[:20]]
    assert ratings(recorded.records, recorded.machine) == []
    machine = dataclasses.replace(recorded.machine, caches=(Cache(2, 400_000, 1),))
    first, second = ratings(made, machine, range_ends={"float64": 2048})
    assert (first.dtype, first.threads, second.dtype, second.threads) == ("float64", 2, "float32", 1)
    assert first.figures.blocked_median_mflops == pytest.approx(100)
    assert first.noise == pytest.approx(0.1)
    assert second.noise is None
    assert len(first.records) == 12
    assert first.refilled == 3 * 3 * 11 - 12
    # 800 kB for two threads: 512 x 24 of 12 bytes are 155 kB, and 1024 x 34 are 440 kB.
    assert first.sizes == {"small": 12, "medium": 0, "large": 0}
    assert (first.largest_dimension, first.range_end) == (1024, 2048)
    assert (second.largest_dimension, second.range_end) == (1024, 1024)
    of_first = notes([first])
    # Noise, no medium or large problem, and dimensions that were cut.
    assert len(of_first) == 3 and "10.0 %" in of_first[0] and "medium or large" in of_first[1]
    assert "2,048" in of_first[2]
    assert any("nothing was measured twice" in note for note in notes([second]))


def test_the_share_of_the_bandwidth_is_taken_at_the_bytes_of_each_product(recorded, record_of):
    def share(*streams):
        (rating,) = ratings([record], recorded.machine, streams)
        return rating.bandwidth_share

    def stream(size, bandwidth, kind="read", threads=1):
        return Bandwidth(kind, "cpu", threads, size, size / bandwidth, 0.0, "", "")

    record = record_of(Point(UNBLOCKED, 512, 29), 100.0, threads=1)
    size, bandwidth = record.traffic_bytes, record.traffic_bytes / record.time_s
    others = [stream(size, 1.0, "copy"), stream(size, 1.0, threads=2)]
    assert share(stream(size, 4 * bandwidth), *others) == pytest.approx(0.25)
    ends = [stream(size // 4, 8 * bandwidth), stream(4 * (size // 4) * 4, 4 * bandwidth)]
    assert 1 / 8 < share(*ends) < 1 / 4
    assert share(*others) is None


@pytest.mark.parametrize(("noise", "is_disturbed"), [(0.5, True), (0.01, False)])
def test_a_machine_too_busy_to_measure_twice_is_said_to_be(recorded, record_of, noise, is_disturbed):
    records = [record_of(Point(TWO, 512, k), 10.0) for k in NNZ_PER_ROW]
    (rating,) = ratings([dataclasses.replace(r, noise=noise) for r in records], recorded.machine)
    assert rating.noise is None
    assert any("repeated measurements differ by 50.0 %" in note for note in notes([rating])) == is_disturbed
