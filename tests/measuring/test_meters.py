"""Meters of processors on folders that look like Linux's, and a command of the user's own."""

from __future__ import annotations

import os
import platform
import sys
import time

import pytest

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import energy_of
from sparsecast.measuring.meters import finding, hwmon, perf, powercap
from sparsecast.measuring.meters.command import CommandMeter
from sparsecast.measuring.meters.hwmon import HwmonMeter
from sparsecast.measuring.meters.perf import PerfMeter
from sparsecast.measuring.meters.powercap import PowercapMeter

RANGE_UJ = 262_143_328_850


class Zones:
    """A folder of zones whose counters a test moves."""

    def __init__(self, root):
        self.root = root
        root.mkdir()

    def add(self, place, name, energy_uj=0, range_uj=RANGE_UJ):
        zone = self.root / place
        zone.mkdir()
        (zone / "name").write_text(f"{name}\n")
        (zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
        self.set(place, energy_uj)

    def set(self, place, energy_uj):
        (self.root / place / "energy_uj").write_text(f"{energy_uj}\n")


@pytest.fixture
def zones(tmp_path):
    found = Zones(tmp_path / "powercap")
    for socket in (0, 1):
        found.add(f"intel-rapl:{socket}", f"package-{socket}", 1_000_000)
        found.add(f"intel-rapl:{socket}:0", "core", 500_000)
        found.add(f"intel-rapl:{socket}:1", "dram", 200_000)
    found.add("intel-rapl:2", "psys", 9_000_000)
    return found


def test_packages_and_memory_of_all_sockets_count_once(zones):
    meter = PowercapMeter(zones.root)
    assert meter.joules() == 0
    zones.set("intel-rapl:0", 3_000_000)  # 2 J more, in which those of its cores are
    zones.set("intel-rapl:0:0", 1_500_000)
    zones.set("intel-rapl:1:1", 700_000)
    zones.set("intel-rapl:2", 19_000_000)  # of the platform: counts the others again
    assert meter.domains() == pytest.approx({"package": 2, "core": 1, "dram": 0.5, "psys": 10})
    assert meter.joules() == pytest.approx(2.5)


def test_a_counter_that_begins_again_goes_on(zones):
    zones.set("intel-rapl:0", RANGE_UJ - 500_000)
    meter = PowercapMeter(zones.root)
    for gone, counter in ((0.25, RANGE_UJ - 250_000), (1.0, 500_000), (1.5, 1_000_000)):
        zones.set("intel-rapl:0", counter)
        assert meter.joules() == pytest.approx(gone, abs=1e-6)


def test_a_processor_without_counters_of_memory_counts_its_package(tmp_path):
    found = Zones(tmp_path / "powercap")
    found.add("intel-rapl:0", "package-0")
    meter = PowercapMeter(found.root)
    found.set("intel-rapl:0", 4_000_000)
    assert meter.domains() == {"package": 4.0} and meter.joules() == 4.0


class Clock:
    def seconds(self, call, times):
        for _ in range(min(times, 3)):
            call()
        return times * 1e-3


def test_the_joules_of_a_product_and_none_of_a_counter_that_stands_still(zones):
    meter, spent = PowercapMeter(zones.root), [1_000_000]

    def product():
        spent[0] += 1_000
        zones.set("intel-rapl:0", spent[0])

    assert energy_of(lambda: None, meter, Clock()) is None
    assert energy_of(product, meter, Clock()) == pytest.approx(3e-3 / (meter.run_s / 1e-3))
    assert meter.run_s >= 0.05 and meter.step_s <= 0.01 * meter.run_s


def test_a_counter_that_vanishes_measures_nothing(zones):
    meter = PowercapMeter(zones.root)
    (zones.root / "intel-rapl:0" / "energy_uj").unlink()
    assert meter.joules() is None and energy_of(lambda: None, meter, Clock()) is None


@pytest.mark.parametrize("content", ["", "many\n"])
def test_a_counter_that_is_no_number_is_refused(zones, content):
    (zones.root / "intel-rapl:0" / "energy_uj").write_text(content)
    with pytest.raises(MeterError, match=r"energy_uj cannot be read .*: expected a number"):
        PowercapMeter(zones.root)


def test_without_permission_a_line_says_what_to_do(zones, monkeypatch):
    read = powercap.Path.read_text

    def refused(self, *arguments, **options):
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read(self, *arguments, **options)

    monkeypatch.setattr(finding.powercap, "ROOT", zones.root)
    assert finding.refusal() == ""
    if os.geteuid():
        (zones.root / "intel-rapl:0" / "energy_uj").chmod(0)
    else:  # nothing is refused to root
        monkeypatch.setattr(powercap.Path, "read_text", refused)
    said = finding.refusal()
    assert "permission denied" in said and f"chmod a+r {zones.root}/*/energy_uj" in said
    assert "\n" not in said


def test_folders_without_a_counter_are_refused(tmp_path, monkeypatch):
    for meter, root in ((PowercapMeter, tmp_path), (HwmonMeter, tmp_path)):
        with pytest.raises(MeterError, match="measure time only"):
            meter(root)
    monkeypatch.setattr(finding.powercap, "ROOT", tmp_path / "absent")
    monkeypatch.setattr(finding.hwmon, "ROOT", tmp_path / "absent")
    monkeypatch.setattr(finding.perf, "ROOT", tmp_path / "absent")
    assert finding.refusal() == ""
    with pytest.raises(MeterError, match="virtual machines lack; name a command by --meter-command"):
        finding.processor_meter()


@pytest.fixture
def events(tmp_path):
    """A unit of energy whose events are the system's clock: a joule is a second of it."""
    if sys.platform != "linux" or platform.machine() not in perf._CALLS:
        pytest.skip("performance events are Linux' on x86-64 and ARM")
    root = tmp_path / "power"
    (root / "events").mkdir(parents=True)
    (root / "type").write_text("1\n")
    (root / "cpumask").write_text("0\n")
    (root / "events" / "energy-pkg").write_text("event=0x00\n")
    (root / "events" / "energy-pkg.scale").write_text("1e-9\n")
    return root


def opened(root):
    try:
        return PerfMeter(root)
    except MeterError as error:
        if "Permission denied" in str(error):
            pytest.skip(str(error))
        raise


def test_performance_events_count_through_the_kernel(events):
    """The event that is opened is a real one; a virtual machine has none of energy."""
    meter = opened(events)
    before = meter.joules()
    time.sleep(0.02)
    assert meter.joules() - before >= 0.02
    (events / "cpumask").write_text("0,0\n")  # as two sockets
    both = opened(events)
    before, once_before = both.joules(), meter.joules()
    time.sleep(0.02)
    assert both.joules() - before > 1.5 * 0.02 and meter.joules() > once_before
    meter.close()
    assert meter.joules() is None
    assert perf._processors("0-1,36\n") == [0, 1, 36]


def test_events_serve_where_the_files_of_rapl_are_closed(zones, events, monkeypatch):
    opened(events).close()
    (zones.root / "intel-rapl:0" / "energy_uj").write_text("")
    monkeypatch.setattr(finding.powercap, "ROOT", zones.root)
    monkeypatch.setattr(finding.perf, "ROOT", events)
    assert finding.processor_meter().source == "rapl by perf" and finding.refusal() == ""


@pytest.mark.parametrize(
    ("name", "content"), [("type", "none"), ("type", "99999"), ("cpumask", "0-x"), ("cpumask", "9999")]
)
def test_events_that_cannot_be_opened_say_what_to_do(events, name, content):
    (events / name).write_text(content)
    with pytest.raises(MeterError, match=r"cannot be counted \(.*sysctl kernel.perf_event_paranoid=0"):
        PerfMeter(events)


def test_sockets_of_hwmon_count_and_cores_do_not(tmp_path, monkeypatch):
    folder = tmp_path / "hwmon3"
    folder.mkdir()
    for number, (label, energy_uj) in enumerate(
        (("Ecore000", 7), ("Esocket0", 2_000_000), ("Esocket1", 500_000))
    ):
        (folder / f"energy{number}_label").write_text(f"{label}\n")
        (folder / f"energy{number}_input").write_text(f"{energy_uj}\n")
    (tmp_path / "powercap").mkdir()  # and nothing in it
    monkeypatch.setattr(finding.powercap, "ROOT", tmp_path / "powercap")
    monkeypatch.setattr(hwmon, "ROOT", tmp_path)
    assert finding.refusal() == ""
    meter = finding.processor_meter()
    assert meter.source == "hwmon" and meter.joules() == 2.5
    damaged = Zones(tmp_path / "damaged")
    damaged.add("intel-rapl:0", "package-0", "none")
    monkeypatch.setattr(finding.powercap, "ROOT", damaged.root)
    assert finding.processor_meter().source == "hwmon", "RAPL that cannot be read does not hide it"
    (folder / "energy2_input").unlink()
    assert meter.joules() is None
    with pytest.raises(MeterError, match=r"cannot be read .*intel-rapl|intel-rapl.* cannot be read"):
        finding.processor_meter()
    with pytest.raises(MeterError, match=r"energy2_input.*chmod a\+r"):
        HwmonMeter(tmp_path)


def test_a_command_prints_the_joules_so_far(tmp_path):
    counter = tmp_path / "joules"
    counter.write_text("12.5\n")
    meter = CommandMeter(f"{sys.executable} -c \"print(open('{counter}').read())\"")
    assert meter.joules() == 12.5
    counter.write_text("nothing")
    assert meter.joules() is None


@pytest.mark.parametrize(
    "command", ["", "no-such-meter", f"{sys.executable} -c pass", f"{sys.executable} -c 1/0", "echo nan"]
)
def test_a_command_that_is_no_meter_is_refused(command):
    with pytest.raises(MeterError, match=r"meter command '.*expected .*joules so far; correct it"):
        CommandMeter(command)
