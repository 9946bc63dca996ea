"""Reference products, on a clock that only moves when it is told to."""

import numpy as np
import pytest

from sparsecast.measuring.references import (
    EVERY_S,
    LAST_CACHE,
    Pooled,
    Reference,
    ReferenceMonitor,
    memory_read,
    reference_bytes,
    references,
    scale_since,
)
from sparsecast.measuring.timing import HostClock
from sparsecast.records import MEMORY

MIB = 1 << 20


class Clock:
    """Calls cost what `costs` says."""

    least_calls = 0

    def __init__(self):
        self.now = 0.0

    def clock_s(self):
        return self.now

    def seconds(self, call, times):
        start = self.now
        for _ in range(times):
            call()
        return self.now - start

    def reference(self, costs, calls=1, warm=0):
        def spend():
            self.now += next(costs)

        return Reference(spend, calls, warm)


@pytest.fixture
def clock():
    return Clock()


def monitor_of(clock, **costs):
    made = {level: clock.reference(iter(each)) for level, each in costs.items()}
    return ReferenceMonitor(made, clock, clock.clock_s)


@pytest.mark.parametrize(
    "l2, l3, levels",
    [
        (None, None, ["L2", LAST_CACHE, MEMORY]),
        (MIB, 0, ["L2", MEMORY]),
        (32 * MIB, 48 * MIB, ["L2", MEMORY]),
        (MIB, 4 * MIB, ["L2", LAST_CACHE, MEMORY]),
    ],
)
def test_levels_of_other_processors(l2, l3, levels):
    sizes = reference_bytes(l2, l3)
    assert list(sizes) == levels
    assert list(sizes.values()) == sorted(sizes.values())


def test_references_are_timed_now_and_then(clock):
    monitor = monitor_of(clock, **{"L2": [1.0] * 9, MEMORY: [2.0] * 9})
    assert monitor.maybe_time() and clock.now == 3.0
    clock.now += 2.9
    assert not monitor.maybe_time()
    clock.now += 0.1
    assert monitor.maybe_time()
    assert monitor.readings_s == {"L2": [1.0, 1.0], MEMORY: [2.0, 2.0]}
    assert EVERY_S > 1


def test_one_reading_is_the_low_quantile_of_calls_after_one_that_warms(clock):
    reference = clock.reference(iter([9e-3, 2e-3, 1e-3, 1e-3]), calls=3, warm=1)
    assert reference.seconds(clock) == pytest.approx(1e-3)


def test_a_reading_whose_calls_wait_for_cores_ends_early(clock):
    reference = clock.reference(iter([0.008] * 99), calls=30, warm=30)
    assert reference.seconds(clock) == pytest.approx(0.008)
    assert clock.now < 0.03


def test_readings_are_pooled_and_the_newest_is_known(clock):
    monitor = monitor_of(clock, L3=[4.0, 1.0, 3.0, 2.0])
    assert monitor.pooled() == monitor.newest_s == {}
    seen = []
    for _ in range(4):
        monitor.time()
        seen.append((monitor.newest_s["L3"], monitor.pooled()["L3"].time_s))
    assert seen == [(4.0, 4.0), (1.0, 2.5), (3.0, 3.0), (2.0, 2.5)]


def about(time_s, part=0.0):
    return Pooled(time_s, (time_s * (1 - part), time_s * (1 + part)))


def test_the_range_holds_nine_tenths_of_the_readings_and_one_has_none():
    pooled = Pooled.of([*np.linspace(1.0, 2.0, 101), 9.0, 0.1])
    assert pooled.time_s == pytest.approx(1.5)
    assert pooled.range_s == pytest.approx((1.05, 1.95), abs=0.02)
    assert Pooled.of([1.0]).range_s is None


@pytest.mark.parametrize(
    "then, now, scale",
    [
        (about(1.0, 0.01), about(2.5, 0.02), 2.5),
        (about(1.0, 0.01), about(0.4, 0.02), 0.4),
        (about(1.0, 0.01), about(3.9, 0.02), 3.9),
        (about(1.0, 0.01), about(120.0, 0.02), None),
        (about(120.0, 0.01), about(1.0, 0.02), None),
        (about(1.0, 0.01), about(1.9, 0.02), 1.0),
        (about(1.0, 0.6), about(2.5, 0.02), 1.0),
        (Pooled(78.8, (46.5, 101.0)), about(36.0, 0.03), 1.0),
        (about(1.0, 0.01), Pooled(2.5, None), 1.0),
        (Pooled(1.0, None), about(2.5, 0.01), 1.0),
    ],
    ids=[
        "slower",
        "faster",
        "much slower",
        "waits for cores",
        "waited for cores",
        "inside the noise",
        "noisy then",
        "two speeds then, one of them now",
        "one reading now",
        "one reading then",
    ],
)
def test_only_what_no_readings_share_has_changed(then, now, scale):
    assert scale_since({"L2": then}, {"L2": now}) == {"L2": scale}


def test_levels_change_apart_and_unknown_ones_stay():
    then = {"L2": about(1.0), MEMORY: about(1.0)}
    now = {"L2": about(1.0), LAST_CACHE: about(3.0), MEMORY: about(2.0)}
    scales = scale_since(then, now)
    assert (scales["L2"], scales[LAST_CACHE]) == (1.0, 1.0) and 1.9 < scales[MEMORY] <= 2.0


def test_a_change_of_memory_is_followed_as_far_as_it_is_certain():
    then, scales = Pooled(1.0, (0.9, 1.1)), []
    for now in (1.0, 1.05, 1.1, 1.2, 1.5, 3.0):
        scales.append(scale_since({MEMORY: then}, {MEMORY: Pooled(now, (0.99 * now, 1.01 * now))})[MEMORY])
    assert scales[:2] == [1.0, 1.0]  # within what readings differ by
    assert 1.0 < scales[2] < 1.08 and 1.15 < scales[3] < 1.2
    assert scales[4:] == pytest.approx([1.5, 3.0], rel=0.02)
    assert scale_since({MEMORY: then}, {MEMORY: Pooled(2.0, None)}) == {MEMORY: 1.0}


@pytest.mark.parametrize("threads", (1, 2))
def test_real_references_read_all_their_words(threads):
    sizes = {"L2": 1 << 19, LAST_CACHE: 40 << 20, MEMORY: 48 << 20}
    made = references(sizes, threads)
    # Every word that is summed is 1, so a sum counts the words that were read.
    assert int(np.sum(made["L2"].call())) == sizes["L2"] // 8
    assert int(np.sum(made[LAST_CACHE].call())) == threads * MIB // 8
    assert int(np.sum(made[MEMORY].call())) == sizes[MEMORY] // 8
    for size, words in ((0, 1), (1, 1), (8, 1), (9, 2), (80_000, 10_000)):
        assert np.sum(memory_read(size, threads)()) == words


def test_a_reference_goes_on_to_the_next_bytes():
    read = references({LAST_CACHE: 5 * MIB // 2}, 1)[LAST_CACHE].call
    seen = [int(np.sum(read())) for _ in range(5)]
    assert seen == [MIB // 8] * 5  # the last part, which is too short, is left out


@pytest.mark.parametrize("threads", (1, 2))
def test_a_reading_of_the_last_cache_reads_all_data_once_and_fetches_them_before(threads):
    made = references({"L2": MIB // 2, LAST_CACHE: 40 * MIB, MEMORY: 64 * MIB}, threads)
    assert (made[LAST_CACHE].warm, made[LAST_CACHE].calls) == (40 // threads, 40 // threads)
    assert made["L2"].warm == 1 and made[MEMORY].warm == 0
    # Next to other programs a low quantile needs some calls that meet none of them.
    assert all(reference.calls >= 8 for reference in made.values())


def test_real_references_are_ordered_by_level():
    made = references({"L2": 1 << 18, MEMORY: 128 << 20}, 1)
    times = {level: reference.seconds(HostClock()) for level, reference in made.items()}
    assert 0 < times["L2"] < times[MEMORY]


@pytest.mark.parametrize("is_full", [True, False])
def test_a_reading_of_slow_cores_does_not_count(is_full):
    class Cores:
        def wait(self, most_s):
            return is_full, 0.0

        def is_full(self):
            return is_full

    reference = Reference(lambda: None, calls=1, warm=0)
    monitor = ReferenceMonitor({"L2": reference}, cores=Cores())
    monitor.time()
    assert set(monitor.pooled()) == ({"L2"} if is_full else set())


@pytest.mark.parametrize("had_cores", [True, False])
def test_a_reading_of_memory_counts_at_slow_cores_but_not_without_them(had_cores):
    class Cores:
        def watch(self, run):
            return run(), had_cores

    monitor = ReferenceMonitor({MEMORY: Reference(lambda: None, calls=1, warm=0)}, cores=Cores())
    monitor.time()
    assert set(monitor.pooled()) == set(monitor.newest_s) == ({MEMORY} if had_cores else set())
