"""What the machine does beside a measurement, from a /proc that the tests write."""

from types import SimpleNamespace

import pytest

from sparsecast.measuring.condition_monitor import (
    LEAST_WINDOW_S,
    PRESSURE_WINDOW_S,
    ConditionMonitor,
)
from sparsecast.records import Conditions


class Proc:
    """A fake /proc, with a clock of its own."""

    def __init__(self, folder):
        self.folder, self.now = folder, 100.0
        self.reads = 0

    def clock_s(self):
        self.reads += 1
        return self.now

    def watch(self, monitor=None):
        return ConditionMonitor(monitor, self.folder, self.clock_s)

    def write(self, running=1, own=1, stolen=0, ticks=0, waited_us=0, threads=3):
        idle = ticks - stolen
        self.stat(f"cpu  0 0 0 {idle} 0 0 0 {stolen} 7 7\ncpu0 1 2 3\nintr 1 2 3\nprocs_running {running}\n")
        pressure = self.folder / "pressure"
        pressure.mkdir(exist_ok=True)
        (pressure / "cpu").write_text(
            f"some avg10=1.00 avg60=0.00 avg300=0.00 total={waited_us}\nfull avg10=0.00 total=99\n"
        )
        for number in range(threads):
            task = self.folder / "self" / "task" / str(number)
            task.mkdir(parents=True, exist_ok=True)
            # A name may hold anything, also what looks like a state.
            (task / "stat").write_text(f"{number} (a) S (b) {'R' if number < own else 'S'} 1 1 0\n")

    def stat(self, text):
        (self.folder / "stat").write_text(text)


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


@pytest.mark.parametrize(
    "running, own, others", [(1, 1, 0.0), (2, 1, 1.0), (2, 2, 0.0), (5, 2, 3.0), (2, 0, 1.0)]
)
def test_others_are_what_runs_and_is_not_ours(proc, running, own, others):
    proc.write(running, own)
    watch = proc.watch()
    assert watch.since(proc.now).other_processes == others


def test_others_are_a_mean_over_the_measurement(proc):
    watch = None
    for running in (9, 9, 1, 2, 2, 2):
        proc.write(running)
        watch = watch or proc.watch()
        proc.now += 1.0
        watch.read()
    # The last two seconds, with the reading before them and the one at their end.
    assert watch.since(proc.now - 2.0).other_processes == pytest.approx(1.0)
    assert watch.since(0.0).other_processes > 2


def test_stolen_time_and_pressure_are_shares_of_the_stretch(proc):
    proc.write(stolen=100, ticks=1000, waited_us=5_000_000)
    watch = proc.watch()
    proc.now += 10.0
    proc.write(stolen=150, ticks=3000, waited_us=7_000_000)
    found = watch.since(100.0)
    assert found.stolen_share == pytest.approx(50 / 2000)
    assert found.pressure_share == pytest.approx(0.2)


def test_a_stretch_too_short_for_the_counters_begins_earlier(proc):
    proc.write(ticks=1000)
    watch = proc.watch()
    for step in range(1, 11):
        proc.now += 1.0
        proc.write(stolen=10 * step, ticks=1000 + 200 * step, waited_us=500_000 * step)
        watch.read()
    found = watch.since(proc.now - 0.01)
    assert found.stolen_share == pytest.approx(0.05)
    assert found.pressure_share == pytest.approx(0.5)
    assert LEAST_WINDOW_S < PRESSURE_WINDOW_S


def test_counters_that_had_no_time_to_move_tell_nothing(proc):
    proc.write(stolen=1, ticks=1000)
    watch = proc.watch()
    proc.now += 0.001
    found = watch.since(100.0)
    assert found.stolen_share is None and found.pressure_share is None and found.other_processes == 0.0


@pytest.mark.parametrize(
    "stat",
    ["", "cpu  1 2 3\nprocs_running 0\n", "intr 1\n"],
    ids=["no file", "an old kernel that counts nothing", "other lines"],
)
def test_what_the_system_does_not_tell_is_none(proc, stat):
    if stat:
        proc.stat(stat)
    watch = proc.watch(SimpleNamespace(newest_s={"L2": 1.0}))
    proc.now += 10
    assert watch.since(100.0) == watch.conditions() == Conditions(None, None, None, {"L2": 1.0})
