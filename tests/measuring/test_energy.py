"""Energy: what is read from a meter, and what is not measured when it stands still or falls silent."""

import sys
from types import SimpleNamespace

import pytest

from sparsecast.devices.cuda import NvmlMeter
from sparsecast.errors import DeviceError
from sparsecast.measuring import energy
from sparsecast.measuring.energy import IDLE_S, energy_of, idle_power_w

RUN_S = 2.0


class ReplayMeter:
    """A meter that returns recorded readings."""

    source, run_s, step_s = "replay", RUN_S, 0.1

    def __init__(self, *readings):
        self._readings = iter(readings)

    def joules(self):
        return next(self._readings)


class FixedClock:
    """A clock on which a call takes as long as it is told."""

    def __init__(self, call_s):
        self.call_s = call_s
        self.calls = 0

    def seconds(self, call, times):
        self.calls += times
        return times * self.call_s


@pytest.mark.parametrize("call_s, calls", [(1e-5, 200_000), (0.5, 4), (3.0, 1), (0.0, round(RUN_S / 1e-9))])
def test_a_run_is_long_enough_for_the_meter(call_s, calls):
    clock = FixedClock(call_s)
    energy_of_nothing = energy_of(lambda: None, ReplayMeter(1.0, 1.0), clock)
    assert clock.calls == 16 + calls and energy_of_nothing is None


def test_the_joules_of_a_call_are_those_of_the_run_over_its_calls():
    found = energy_of(lambda: None, ReplayMeter(100.0, 700.0), FixedClock(1e-3))
    assert found == pytest.approx(600 / 2000)


@pytest.mark.parametrize("readings", [(5.0, 5.0), (5.0, 4.0), (None, 5.0), (5.0, None), (None, None)])
def test_a_meter_that_stands_still_goes_back_or_is_silent_measures_nothing(readings):
    assert energy_of(lambda: None, ReplayMeter(*readings), FixedClock(1e-3)) is None
    assert idle_power_w(ReplayMeter(*readings), pause=lambda seconds: None) is None


def test_idle_power_is_read_over_a_pause(monkeypatch):
    now = [10.0]
    monkeypatch.setattr(energy, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def pause(seconds):
        now[0] += seconds

    assert idle_power_w(ReplayMeter(50.0, 50.0 + 70 * IDLE_S), pause) == pytest.approx(70)


UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"


class NvmlError(Exception):
    """As NVML raises it."""


def nvml(millijoules):
    """A module whose counter gives these readings; an exception is raised."""
    readings = iter(millijoules)

    def consumption(device):
        assert device == UUID
        reading = next(readings)
        if isinstance(reading, Exception):
            raise reading
        return reading

    def handle(uuid):
        if uuid != UUID:
            raise NvmlError("Not Found")
        return uuid

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetTotalEnergyConsumption=consumption,
    )


def test_nvml_counts_millijoules_and_a_lost_device_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml([0, 2500, NvmlError("GPU is lost")]))
    meter = NvmlMeter(UUID)
    assert meter.joules() == 2.5 and meter.joules() is None


def test_a_device_without_a_counter_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml([NvmlError("Not Supported")]))
    with pytest.raises(DeviceError):
        NvmlMeter(UUID)


def test_nvml_finds_a_device_by_what_names_it():
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is missing")
    assert callable(pynvml.nvmlDeviceGetHandleByUUID)


def test_without_nvml_one_line_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError):
        NvmlMeter()
