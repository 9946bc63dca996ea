"""The device's clock, with events that are told the time."""

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
