"""The device's clock: with events that are told the time, and in the simulator, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sparsecast.devices.gpu import clock as cuda_clock
from sparsecast.devices.gpu.clock import EventClock


class FakeCuda:
    """A device on which a call takes 2 ms and the host's work nothing."""

    def __init__(self):
        self.now_ms = 0.0
        self.log = []

    def event(self):
        event = SimpleNamespace(at=None)

        def record():
            self.log.append("record")
            event.at = self.now_ms

        event.record, event.synchronize = record, lambda: self.log.append("wait for event")
        event.elapsed_time = lambda end: end.at - event.at
        return event

    def synchronize(self):
        self.log.append("wait for device")

    def call(self):
        self.log.append("call")
        self.now_ms += 2


def test_calls_lie_between_two_events_after_earlier_work_and_milliseconds_become_seconds(monkeypatch):
    device = FakeCuda()
    monkeypatch.setattr(cuda_clock, "cuda", device)
    assert EventClock().seconds(device.call, 3) == pytest.approx(6e-3)
    assert device.log == ["wait for device", "record", "call", "call", "call", "record", "wait for event"]


SIMULATED = """

from sparsecast.devices.gpu.clock import (
    EventClock,
    device_copy,
    device_download,
    device_read,
    device_upload,
)
from sparsecast.measuring.timing import Effort, measure

clock = EventClock()
calls = []
assert clock.seconds(lambda: calls.append(1), 7) > 0 and len(calls) == 7
target = []
timing = measure({"copy": device_copy(800)}, Effort(2, 1e-4), clock=clock)["copy"]
assert len(timing.samples_s) == 2 and clock.least_calls == 1 and timing.time_s > 0
for size, words in ((1, 1), (8, 1), (9, 2), (8 * 700, 700)):
    assert device_read(size)().copy_to_host().sum() == words, size
    assert device_download(size)().tolist() == [1.0] * words, size
    assert device_upload(size)().copy_to_host().tolist() == [1.0] * words, size
"""


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is missing")
def test_clock_and_streams_in_the_simulator():
    done = subprocess.run(
        [sys.executable, "-c", SIMULATED],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
