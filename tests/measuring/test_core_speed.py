"""Whether the cores run at full speed, on a machine whose speed is told to it."""

import math
from pathlib import Path

import pytest

from sparsecast.measuring import core_speed
from sparsecast.measuring.core_speed import CoreSpeed, waits


class Machine:
    """Work of 10 us at full speed; `slowness` tells how many times longer it takes at some moment."""

    def __init__(self, slowness=lambda now: 1.0):
        self.now, self.slowness = 0.0, slowness

    def read_s(self):
        seconds = 1e-5 * self.slowness(self.now)
        self.now += seconds
        return seconds

    def pause(self, seconds):
        self.now += seconds

    def cores(self):
        return CoreSpeed(self.read_s, self.pause, lambda: self.now)


def test_a_slow_phase_is_told_from_full_speed():
    machine = Machine()
    cores = machine.cores()
    assert cores.is_full()
    machine.slowness = lambda now: 1.5
    assert not cores.is_full()
    machine.slowness = lambda now: 1.2  # as after a product that waited for memory
    assert cores.is_full()


def test_full_speed_is_found_though_the_first_moments_are_slow():
    cores = Machine(lambda now: 1.5 if now < 0.02 else 1.0).cores()
    assert cores.is_full()
    assert not Machine(lambda now: 1.0 if 0.01 < now < 0.02 else 1.5).cores().is_full()


def test_a_wait_ends_with_the_slow_phase_or_when_it_must():
    machine = Machine(lambda now: 1.5 if 0.1 < now < 0.2 else 1.0)
    cores = machine.cores()
    assert cores.wait(1.0) == (True, pytest.approx(2e-5))  # no longer than the look itself
    machine.now = 0.15
    is_full, waited_s = cores.wait(1.0)
    assert is_full and waited_s == pytest.approx(0.05, abs=2e-3)
    machine.now = 0.15
    is_full, waited_s = cores.wait(0.01)
    assert not is_full and waited_s == pytest.approx(0.01, abs=2e-3)
    machine.now = 0.15
    assert cores.wait(-1.0) == (False, pytest.approx(3e-5))


def test_patience_ends_where_hardly_a_wait_reaches_full_speed_and_comes_back():
    machine = Machine()
    cores = machine.cores()
    machine.slowness = lambda now: 1.0 if int(now / 1e-3) % 4 == 0 else 1.5
    for _ in range(400):
        cores.wait(0.0)
    assert cores.patience == 1.0  # a quarter of the waits suffices
    machine.slowness = lambda now: 1.5
    for _ in range(1000):
        cores.wait(0.0)
    assert cores.patience == 1 / 8
    machine.slowness = lambda now: 1.0
    for _ in range(100):
        cores.wait(0.0)
    assert cores.patience == 1.0


def test_a_thread_without_a_core_is_neither_full_nor_slow():
    machine = Machine()
    cores = machine.cores()
    for slowness, is_full, is_slow in ((1.0, True, False), (1.5, False, True), (math.inf, False, False)):
        machine.slowness = lambda now, slowness=slowness: slowness
        machine.now = 0.0
        assert (cores.is_full(), cores.is_slow()) == (is_full, is_slow)


@pytest.mark.parametrize(
    "told, had_cores",
    [
        (((0.0, 5.0), (0.0, 5.0)), True),
        (((0.0, 5.0), (0.001, 5.001)), True),
        (((0.0, 5.0), (0.0, 5.004)), False),
        (((), ()), True),
        (((0.0, 5.0), ()), True),
    ],
    ids=["none", "a wake-up", "one of two", "untold", "no longer told"],
)
def test_a_run_whose_threads_wait_for_a_core_is_told(told, had_cores):
    machine, waited_s = Machine(), iter(told)
    cores = CoreSpeed(machine.read_s, machine.pause, lambda: machine.now, lambda: next(waited_s))
    assert cores.watch(lambda: 0.1) == (0.1, had_cores)


def test_cores_that_were_never_read_are_not_at_full_speed():
    assert not CoreSpeed(lambda: math.inf, pause=lambda seconds: None).is_full()


def test_waits_grow_or_are_not_told(monkeypatch):
    waits_s = waits(threads=2)
    first, second = waits_s(), waits_s()
    assert len(first) == len(second) and all(a <= b for a, b in zip(first, second, strict=True))
    assert first or not Path("/proc/self/schedstat").exists()
    monkeypatch.setattr(core_speed.os, "pread", lambda file, size, offset: b"0 0")
    assert not first or waits_s() == []
    monkeypatch.setattr(core_speed.os, "open", lambda path, flags: (_ for _ in ()).throw(FileNotFoundError))
    assert waits(threads=1)() == []
