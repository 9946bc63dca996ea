"""Timing, on a clock that only moves when it is told to."""

from __future__ import annotations

import statistics
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.measuring import timing
from sparsecast.measuring.timing import MAX_RETAKES, Canary, Effort, HostClock, Timing, measure

CANARY_S = 1e-3


class Clock:
    """A clock that callables and canaries set forward; reading it costs what it is told."""

    def __init__(self, reading_s=0.0):
        self.now = 0.0
        self.reading_s = reading_s
        self.canary_s = CANARY_S
        self.slow_canaries = set()
        self.canaries = 0
        self.log = []

    def perf_counter(self):
        self.now += self.reading_s
        return self.now

    def call(self, name, seconds):
        def spend():
            self.log.append(name)
            self.now += seconds

        return spend

    def memory_read(self):
        slow = self.canaries in self.slow_canaries
        self.canaries += 1
        self.log.append("canary")
        self.now += 2 * self.canary_s if slow else self.canary_s


@pytest.fixture
def clock(monkeypatch):
    return install(Clock(), monkeypatch)


def install(clock, monkeypatch):
    stream = SimpleNamespace(sum=clock.memory_read)
    monkeypatch.setattr(timing, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(timing, "np", SimpleNamespace(ones=lambda size: stream, quantile=np.quantile))
    return clock


#: Readings before the first sample: the canary gets to know the machine.
FIRST = 15
EFFORT = Effort(samples=5, sample_s=0.01)


@pytest.mark.parametrize("call_s", (1e-6, 3e-4, 0.02, 1.0))
@pytest.mark.parametrize("reading_s", (0.0, 1e-4))
def test_what_a_run_of_calls_costs_once_cancels(monkeypatch, call_s, reading_s):
    clock = install(Clock(reading_s), monkeypatch)
    found = measure({"a": clock.call("a", call_s)}, EFFORT)["a"]
    assert found.time_s == pytest.approx(call_s, rel=1e-6)
    assert found.samples_s == pytest.approx([call_s] * 5, rel=1e-6)
    assert found.spread == pytest.approx(0, abs=1e-6) and found.noise == pytest.approx(0, abs=1e-6)
    assert found.retaken == 0


@pytest.mark.parametrize("call_s", (1e-6, 1e-5, 7e-4, 0.009, 0.2))
def test_a_sample_takes_about_as_long_as_asked(clock, call_s):
    alpha, beta = timing._repetitions(clock.call("a", call_s), 0.01, HostClock())
    assert 1 <= alpha < beta
    assert 0.01 <= (beta - alpha) * call_s * (1 + 1e-9) <= 0.01 + 2 * call_s
    assert alpha <= max(1, (beta - alpha) / 8)


def test_callables_are_sampled_in_turn_between_canaries(clock):
    calls = {name: clock.call(name, 0.02) for name in "abc"}
    kept = []
    found = measure(calls, Effort(samples=4, sample_s=0.01), on_sample=lambda: kept.append(len(clock.log)))
    assert list(found) == ["a", "b", "c"]
    assert clock.log[: FIRST + 6] == ["canary"] * FIRST + ["a", "a", "b", "b", "c", "c"]
    # Of each sample: an untimed call, two of the beta run, one of the alpha run.
    round_of_samples = [each for name in "abc" for each in ("canary", *[name] * 4, "canary")]
    assert clock.log[FIRST + 6 :] == round_of_samples * 4
    assert len(kept) == 12 and kept[-1] == len(clock.log)


@pytest.mark.parametrize("position", (0, 1))
def test_a_sample_beside_a_slow_canary_is_taken_again(clock, position):
    # Each sample that is kept reads the canary before and after; the third sample has a slow one.
    clock.slow_canaries = {FIRST + 2 * 2 + position}
    found = measure({"a": clock.call("a", 0.02)}, EFFORT)["a"]
    # A slow canary after the sample stands before the second try too, which is then taken once more.
    assert found.retaken == 1 + position
    assert len(found.samples_s) == 5


def test_what_was_measured_in_a_slow_moment_is_not_kept(clock):
    clock.slow_canaries = {FIRST + 2}
    costs = iter([0.02] * 6 + [0.5] * 4 + [0.02] * 100)

    def call():
        clock.now += next(costs)

    found = measure({"a": call}, EFFORT)["a"]
    assert found.retaken == 1
    assert found.samples_s == pytest.approx([0.02] * 5)


def test_a_machine_that_stays_slow_is_measured_all_the_same(clock):
    clock.slow_canaries = set(range(FIRST, FIRST + 14))
    found = measure({"a": clock.call("a", 0.02)}, Effort(samples=2, sample_s=0.01))["a"]
    assert found.retaken == 2 * MAX_RETAKES
    assert found.samples_s == pytest.approx([0.02] * 2)


def test_a_sample_that_is_not_positive_is_taken_again(clock):
    # A disturbed run of alpha calls can outlast the run of beta calls.
    costs = iter([0.02] * 6 + [0.02, 0.0, 0.0, 0.7] + [0.02] * 100)

    def call():
        clock.now += next(costs)

    found = measure({"a": call}, EFFORT)["a"]
    assert found.retaken == 1 and found.samples_s == pytest.approx([0.02] * 5)


def test_retakes_are_counted_for_the_callable_that_needed_them(clock):
    clock.slow_canaries = {FIRST + 2}
    found = measure({name: clock.call(name, 0.02) for name in "ab"}, EFFORT)
    assert (found["a"].retaken, found["b"].retaken) == (0, 1)


def test_the_usual_canary_follows_a_machine_that_changes_for_good(clock):
    canary = Canary()
    assert canary.usual_s == pytest.approx(CANARY_S)
    assert canary.is_slow(1.31 * CANARY_S) and not canary.is_slow(1.29 * CANARY_S)
    clock.canary_s = 5 * CANARY_S
    assert canary.is_slow(canary.read())
    for _ in range(100):
        canary.read()
    assert canary.usual_s == pytest.approx(5 * CANARY_S)
    assert not canary.is_slow(canary.read())


def test_the_canary_reads_a_real_stream_on_the_real_clock():
    canary = Canary()
    assert 0 < canary.usual_s < 1 and canary.read() > 0


def test_real_callables_are_told_apart():
    busy = np.ones(200_000)
    found = measure({"once": busy.sum, "ten times": lambda: [busy.sum() for _ in range(10)]}, Effort(5, 2e-3))
    assert 3 < found["ten times"].time_s / found["once"].time_s < 30


def test_nothing_to_measure_gives_nothing():
    assert measure({}, EFFORT) == {}


def test_summary_of_known_samples():
    found = Timing.of((4.0, 1.0, 2.0, 3.0, 10.0), retaken=7)
    assert found.time_s == 3.0
    assert found.spread == pytest.approx((4.0 - 2.0) / 3.0)
    assert found.noise == pytest.approx(abs(6.5 - 2.5) / 3.0)
    assert found.retaken == 7 and found.samples_s == (4.0, 1.0, 2.0, 3.0, 10.0)


@pytest.mark.parametrize(
    "samples, time_s, spread, noise",
    [
        ((2.0,), 2.0, 0.0, 0.0),
        ((2.0, 4.0), 3.0, 1 / 3, 2 / 3),
        ((1.0, 50.0, 1.0), 1.0, 24.5, 0.0),
        ((3.0,) * 8, 3.0, 0.0, 0.0),
        ((1.0, 1.0, 2.0, 2.0), 1.5, 2 / 3, 2 / 3),
    ],
)
def test_summary_of_few_samples(samples, time_s, spread, noise):
    found = Timing.of(samples)
    assert (found.time_s, found.spread, found.noise) == pytest.approx((time_s, spread, noise))
    assert found.retaken == 0


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=15), st.floats(1e-3, 1e3))
def test_summary_scales_with_the_samples(samples, factor):
    found = Timing.of(tuple(samples))
    scaled = Timing.of(tuple(sample * factor for sample in samples))
    assert min(samples) <= found.time_s <= max(samples)
    assert found.time_s == pytest.approx(statistics.median(samples))
    assert found.spread >= 0 and found.noise >= 0
    assert scaled.time_s == pytest.approx(found.time_s * factor)
    assert scaled.spread == pytest.approx(found.spread, rel=1e-9, abs=1e-9)
    assert scaled.noise == pytest.approx(found.noise, rel=1e-9, abs=1e-9)
