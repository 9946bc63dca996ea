"""What the machine does beside a measurement, from a /proc that the tests write."""

from types import SimpleNamespace

import pytest

from sparsecast.measuring.condition_monitor import EVERY_S, LEAST_WINDOW_S, ConditionMonitor
from sparsecast.records import Conditions


class Proc:
    """A fake /proc, with a clock of its own."""

    def __init__(self, folder):
        self.folder, self.now = folder, 100.0

    def watch(self, monitor=None):
        return ConditionMonitor(monitor, self.folder, lambda: self.now)

    def write(self, running=1, own=1, stolen=0, ticks=0, threads=3):
        idle = ticks - stolen
        self.stat(f"cpu  0 0 0 {idle} 0 0 0 {stolen} 7 7\ncpu0 1 2 3\nintr 1 2 3\nprocs_running {running}\n")
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
    assert proc.watch().conditions().other_processes == others


def test_others_are_a_mean_over_the_measurement(proc):
    proc.write(9)
    watch = proc.watch()
    for running in (9, 9, 1):
        proc.now += LEAST_WINDOW_S
        proc.write(running)
        watch.look()
    watch.begin()
    for running in (2, 2):
        proc.now += LEAST_WINDOW_S
        proc.write(running)
        watch.look()
    proc.now += EVERY_S / 2
    watch.look()  # too early to read
    # The reading before it began, two meanwhile, and the one at its end.
    assert watch.conditions().other_processes == pytest.approx((0 + 1 + 1 + 1) / 4)


def test_stolen_time_is_a_share_of_the_period_and_of_a_second_before_the_end_of_a_short_one(proc):
    proc.write(stolen=100, ticks=1000)
    watch = proc.watch()
    proc.now += LEAST_WINDOW_S / 1000
    assert watch.conditions().stolen_share is None, "the counters had no time to move"
    proc.now += 10.0
    proc.write(stolen=150, ticks=3000)
    assert watch.conditions().stolen_share == pytest.approx(50 / 2000)
    proc.now += LEAST_WINDOW_S
    proc.write(stolen=350, ticks=4000)
    watch.look()
    watch.begin()
    assert watch.conditions().stolen_share == pytest.approx(200 / 1000)


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
    assert watch.conditions() == Conditions(references_s={"L2": 1.0})
