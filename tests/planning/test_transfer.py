"""Forecasts of copies between host and device, from bandwidths made by hand."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.errors import ProfileError
from sparsecast.planning.placement import transfer_s
from sparsecast.records import Bandwidth

TO = "to device"


def stream(kind, size_bytes, time_s):
    return Bandwidth(kind, "cuda", 1, size_bytes, time_s, 0.0, "2025-01-01T00:00:00+00:00", "1.0")


def on_a_line(kind, sizes, latency_s, bandwidth):
    return [stream(kind, size, latency_s + size / bandwidth) for size in sizes]


@given(
    latency_s=st.floats(1e-6, 1e-3),
    bandwidth=st.floats(1e8, 1e12),
    size_bytes=st.integers(0, 1 << 40),
)
def test_times_on_a_line_are_forecast_by_it(recorded, latency_s, bandwidth, size_bytes):
    profile = recorded.with_bandwidths(on_a_line(TO, (8, 1 << 20, 1 << 40), latency_s, bandwidth))
    assert transfer_s(profile, size_bytes, TO) == pytest.approx(latency_s + size_bytes / bandwidth, rel=1e-6)


def test_each_direction_has_its_own_and_other_streams_do_not_count(recorded):
    sizes = (1 << 12, 1 << 24)
    bandwidths = on_a_line(TO, sizes, 1e-5, 1e10) + on_a_line("from device", sizes, 1e-4, 1e9)
    profile = recorded.with_bandwidths([*bandwidths, *on_a_line("read", sizes, 1.0, 1.0)])
    assert transfer_s(profile, 1 << 20, TO) == pytest.approx(1e-5 + (1 << 20) / 1e10)
    assert transfer_s(profile, 1 << 20, "from device") == pytest.approx(1e-4 + (1 << 20) / 1e9)


def test_neither_latency_nor_bandwidth_goes_below_nothing(recorded):
    faster_when_large = recorded.with_bandwidths([stream(TO, 1 << 10, 1e-3), stream(TO, 1 << 20, 1e-4)])
    assert transfer_s(faster_when_large, 1 << 30, TO) >= transfer_s(faster_when_large, 0, TO) > 0
    steeper = recorded.with_bandwidths([stream(TO, 1 << 10, 1e-9), stream(TO, 1 << 20, 1.0)])
    assert transfer_s(steeper, 0, TO) >= 0


def test_a_small_copy_counts_as_much_as_a_large_one(recorded):
    # By absolute errors, the large copy alone would set the line and the small one be 10 ms off.
    profile = recorded.with_bandwidths(
        [*on_a_line(TO, (1 << 12, 1 << 16), 1e-5, 1e10), stream(TO, 1 << 30, 0.9 * (1 << 30) / 1e10)]
    )
    assert transfer_s(profile, 1 << 12, TO) == pytest.approx(1e-5, rel=0.1)


@pytest.mark.parametrize(
    "bandwidths",
    [[], [stream("read", 8, 1.0), stream("read", 16, 1.0)], [stream(TO, 8, 1.0)]],
    ids=["none", "of another kind", "of one size"],
)
def test_a_profile_without_transfers_is_refused_in_one_line(recorded, bandwidths):
    profile = dataclasses.replace(recorded, bandwidths=tuple(bandwidths))
    with pytest.raises(ProfileError, match="cannot forecast copies to device: expected") as refusal:
        transfer_s(profile, 1, TO)
    assert recorded.name in str(refusal.value) and "\n" not in str(refusal.value)
