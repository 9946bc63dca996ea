"""Timing, on a clock that only moves when it is told to."""

from types import SimpleNamespace

import numpy as np
import pytest

from sparsecast.measuring import timing
from sparsecast.measuring.timing import Effort, HostClock, Lingering, Speedup, Timing, measure


class Clock:
    """A clock that callables set forward; reading it costs what it is told."""

    def __init__(self, reading_s=0.0):
        self.now = 0.0
        self.reading_s = reading_s
        self.log = []

    def perf_counter(self):
        self.now += self.reading_s
        return self.now

    def call(self, name, seconds, disturbance_s=lambda now: 0.0):
        def spend():
            self.log.append(name)
            self.now += seconds + disturbance_s(self.now)

        return spend


@pytest.fixture
def clock(monkeypatch):
    return install(Clock(), monkeypatch)


def install(clock, monkeypatch):
    monkeypatch.setattr(timing, "perf_counter", clock.perf_counter)
    return clock


EFFORT = Effort(samples=12, sample_s=0.01, most_s=1e9)


@pytest.mark.parametrize("call_s", (1e-6, 1e-5, 7e-4, 0.009, 0.2))
def test_a_sample_takes_about_as_long_as_asked(clock, call_s):
    timed = []
    effort = Effort(samples=3, sample_s=0.01, most_s=1e9)
    host = HostClock()
    recording = SimpleNamespace(
        least_calls=0, seconds=lambda call, times: (timed.append(times), host.seconds(call, times))[1]
    )
    measure({"a": clock.call("a", call_s)}, effort, clock=recording)
    assert 0.01 <= timed[-1] * call_s * (1 + 1e-9) <= 0.01 + 2 * call_s


def test_callables_are_sampled_in_turn(clock):
    calls = {name: clock.call(name, 0.02) for name in "abc"}
    kept = []
    found = measure(calls, Effort(samples=10, sample_s=0.01), on_sample=lambda: kept.append(len(clock.log)))
    assert list(found) == ["a", "b", "c"]
    assert all(len(each.samples_s) == 10 for each in found.values())
    # First an untimed call and three runs, which tell how many calls a sample has; an untimed call a turn.
    told = [name for name in "abc" for _ in range(4)]
    turn, rest = ([name for name in "abc" for _ in range(1 + samples)] for samples in (8, 2))
    assert clock.log == told + turn + rest
    assert len(kept) == 30 and kept[-1] == len(clock.log)


def test_the_time_is_that_of_the_undisturbed_samples(clock):
    """Another program takes the core for 4 ms of every 7, the times an operating system gives."""

    def turn(now):
        return 0.004 if now % 0.007 < 0.00002 else 0.0

    found = measure({"a": clock.call("a", 1e-5, turn)}, Effort(samples=40, sample_s=0.001))["a"]
    assert found.time_s == pytest.approx(1e-5, rel=0.02)
    assert found.spread > 0.1 and np.mean(found.samples_s) > 1.2e-5


def test_a_callable_gets_no_more_samples_than_its_seconds_allow(clock):
    steps = []
    calls = {"short": clock.call("short", 0.001), "long": clock.call("long", 0.4)}
    effort = Effort(samples=40, sample_s=0.001, most_s=1.0)
    found = measure(calls, effort, on_sample=lambda: steps.append(None))
    assert len(found["short"].samples_s) == 40
    assert len(found["long"].samples_s) == 3
    assert clock.now < 0.4 * 8 + 0.1  # trials, one untimed call and the samples
    assert len(steps) == 80  # progress ends where it is expected to


def test_a_product_that_waits_for_cores_does_not_take_longer(clock):
    """Undisturbed 1 ms, in fact 50 ms a call: forty samples would take two seconds."""
    disturbed = iter([0.0] * 4 + [0.049] * 10**6)
    found = measure({"a": clock.call("a", 0.001, lambda now: next(disturbed))}, Effort(40, 0.001, 0.2))["a"]
    assert 3 <= len(found.samples_s) <= 5 and clock.now < 0.3


@pytest.mark.parametrize(
    "samples, time_s, spread, noise",
    [
        ((2.0, 4.0), 2.2, 1 / 2.2, 2 / 2.2),
        ((1.0, 50.0, 1.0), 1.0, 24.5, 0.0),
        ((3.0,) * 8, 3.0, 0.0, 0.0),
        ((4.0, 1.0, 2.0, 3.0, 10.0), 1.4, 2 / 1.4, (3.7 - 1.3) / 1.4),
    ],
)
def test_summary_of_few_samples(samples, time_s, spread, noise):
    found = Timing.of(samples)
    assert (found.time_s, found.spread, found.noise) == pytest.approx((time_s, spread, noise))
    assert found.samples_s == samples


def test_a_single_sample_tells_nothing_of_its_noise():
    found = Timing.of((2.0,))
    assert found.time_s == 2.0 and found.spread is None and found.noise is None


class Cores:
    """Cores at full speed but for a stretch of the clock; a wait lasts as long as it may."""

    patience = 1.0

    def __init__(self, clock, slow, waited=lambda: False):
        self.clock, self.slow, self.waited = clock, slow, waited

    def is_full(self):
        return not self.is_slow()

    def is_slow(self):
        return self.slow[0] <= self.clock.now < self.slow[1]

    def watch(self, run):
        return run(), not self.waited()

    def wait(self, most_s):
        waited_s = 0.0 if self.is_full() else min(max(most_s, 0.0), self.slow[1] - self.clock.now)
        self.clock.now += waited_s
        return self.is_full(), waited_s


def test_samples_at_full_speed_count_alone(clock):
    # From the second sample on: the low quantile of all samples would be a slow one.
    cores = Cores(clock, (0.08, 0.4))
    found = measure(
        {"a": clock.call("a", 0.01, lambda now: 0.005 * (not cores.is_full()))}, EFFORT, cores=cores
    )
    timing = found["a"]
    assert timing.time_s == pytest.approx(0.01)
    assert 0.0 < timing.slow_share < 1.0
    assert len(timing.samples_s) >= EFFORT.samples


def test_where_the_cores_stay_slow_all_samples_count_and_waiting_ends(clock):
    cores = Cores(clock, (0.0, 1e9))
    found = measure({"a": clock.call("a", 0.015), "b": clock.call("b", 0.03)}, EFFORT, cores=cores)
    assert found["a"].time_s == pytest.approx(0.015) and found["b"].time_s == pytest.approx(0.03)
    assert found["a"].slow_share == 1.0
    sampled_s = sum(sum(each.samples_s) for each in found.values())
    assert clock.now < 2 * sampled_s + 2 * EFFORT.wait_s


@pytest.mark.parametrize("patience", (1.0, 0.125))
def test_without_hope_a_measurement_neither_waits_nor_takes_more_samples(clock, patience):
    cores = Cores(clock, (0.0, 1e9))
    cores.patience = patience
    effort = Effort(samples=80, sample_s=0.01)
    timing = measure({"a": clock.call("a", 0.1)}, effort, cores=cores)["a"]
    assert timing.slow_share == 1.0
    assert sum(timing.samples_s) == pytest.approx((1 + patience) * effort.most_s, rel=0.5)
    assert clock.now < (1 + patience) * effort.most_s + patience * effort.wait_s + 1.0


def test_samples_whose_threads_waited_for_a_core_do_not_count(clock):
    """Another program has a core for two samples of three, which then take twice as long."""
    turns = iter(range(10**6))
    state = {"waits": False}

    def beside(now):
        state["waits"] = next(turns) % 3 > 0
        return 0.01 * state["waits"]

    cores = Cores(clock, (1e9, 1e9), lambda: state["waits"])
    timing = measure({"a": clock.call("a", 0.01, beside)}, EFFORT, cores=cores)["a"]
    assert timing.time_s == pytest.approx(0.01) and timing.spread == pytest.approx(0.0)
    assert timing.slow_share == pytest.approx(2 / 3, abs=0.2)


@pytest.mark.parametrize("waits, most_s", ((False, 1.0), (True, 2.0)))
def test_a_long_product_is_sampled_twice_as_long_where_it_always_waits(clock, waits, most_s):
    cores = Cores(clock, (1e9, 1e9), lambda: waits)
    timing = measure({"a": clock.call("a", 0.1)}, Effort(samples=80, sample_s=0.01), cores=cores)["a"]
    assert sum(timing.samples_s) == pytest.approx(most_s * Effort().most_s, rel=0.5)
    assert timing.slow_share == float(waits)


def test_the_deviation_of_a_speedup_is_that_of_experiments_done_again():
    """Each turn of four has a speed of its own, which both share; samples vary by themselves as well."""
    random = np.random.default_rng(1)

    def experiment():
        of_turns = np.repeat(random.gamma(2.0, 0.1, 16), 4)
        return Speedup.of(
            *(
                Timing.of(tuple(time_s * (1 + of_turns + random.gamma(2.0, 0.05, 64))))
                for time_s in (1.0, 1.5)
            )
        )

    done = [experiment() for _ in range(100)]
    factors, told = np.array([speedup.factor for speedup in done]), [speedup.deviation for speedup in done]
    assert np.mean(factors) == pytest.approx(1.5, rel=0.01)
    assert np.median(told) == pytest.approx(np.std(factors), rel=0.35)


def test_few_samples_tell_no_deviation_of_a_speedup():
    few = Timing.of((2.0,) * 11)
    assert Speedup.of(few, Timing.of((3.0,) * 64)) == Speedup(1.5, None)


def test_calls_after_one_whose_threads_stay_awake_are_not_timed_until_these_sleep(clock):
    awake = Lingering(clock.call("awake", 1e-3), 0.02)
    timings = measure({"awake": awake, "next": clock.call("next", 2e-3)}, EFFORT)
    assert [timings[name].time_s for name in ("awake", "next")] == pytest.approx([1e-3, 2e-3])
    plain = Clock()
    with pytest.MonkeyPatch.context() as patch:
        install(plain, patch)
        measure({"awake": plain.call("awake", 1e-3), "next": plain.call("next", 2e-3)}, EFFORT)
    more = {name: clock.log.count(name) - plain.log.count(name) for name in ("awake", "next")}
    assert more == {"awake": 0, "next": 2 * 10}  # 0.02 s in each of two turns
