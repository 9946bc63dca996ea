"""Meters of processors on folders that look like Linux's, and a command of the user."""

import platform
import sys
import time

import pytest

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import CommandMeter
from sparsecast.measuring.meters import processor_meter
from sparsecast.measuring.meters.hwmon import HwmonMeter
from sparsecast.measuring.meters.perf import SYSTEM_CALLS, PerfMeter
from sparsecast.measuring.meters.powercap import PowercapMeter

RANGE_UJ = 262_143_328_850


@pytest.fixture(autouse=True)
def no_counters(tmp_path, monkeypatch):
    """The machine of the test has no counters but those that the test makes."""
    for meter in (PowercapMeter, PerfMeter, HwmonMeter):
        monkeypatch.setattr(meter, "root", tmp_path / meter.__name__)


def add_zone(zone, name, energy_uj, range_uj=RANGE_UJ):
    folder = PowercapMeter.root / zone
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    set_zone(zone, energy_uj)


def set_zone(zone, energy_uj):
    (PowercapMeter.root / zone / "energy_uj").write_text(f"{energy_uj}\n")


@pytest.fixture
def zones():
    for socket in (0, 1):
        add_zone(f"intel-rapl:{socket}", f"package-{socket}", 1_000_000)
        add_zone(f"intel-rapl:{socket}:0", "core", 500_000)
        add_zone(f"intel-rapl:{socket}:1", "dram", 200_000)
    add_zone("intel-rapl:2", "psys", 9_000_000)


def test_packages_and_memory_of_all_sockets_count_once(zones):
    meter = PowercapMeter()
    assert meter.joules() == 0
    set_zone("intel-rapl:0", 3_000_000)  # 2 J more, in which those of its cores are
    set_zone("intel-rapl:0:0", 1_500_000)
    set_zone("intel-rapl:1:1", 700_000)
    set_zone("intel-rapl:2", 19_000_000)  # of the platform: counts the others again
    assert meter.joules() == pytest.approx(2.5)
    (PowercapMeter.root / "intel-rapl:0" / "energy_uj").unlink()
    assert meter.joules() is None


@pytest.mark.parametrize("content", ["", "many\n"])
def test_a_counter_that_is_no_number_is_refused_with_the_remedy(zones, content):
    (PowercapMeter.root / "intel-rapl:0" / "energy_uj").write_text(content)
    with pytest.raises(MeterError):
        processor_meter()


def test_a_machine_without_counters_has_no_meter():
    assert processor_meter() is None
    for meter in (PowercapMeter, HwmonMeter):
        meter.root.mkdir()  # as in virtual machines: there, and empty
    assert processor_meter() is None


@pytest.fixture
def events():
    """A unit of energy whose events are the system's clock: a joule is a second of it."""
    if sys.platform != "linux" or platform.machine() not in SYSTEM_CALLS:
        pytest.skip("performance events are Linux' on x86-64 and ARM")
    folder = PerfMeter.root / "events"
    folder.mkdir(parents=True)
    (PerfMeter.root / "type").write_text("1\n")
    (PerfMeter.root / "cpumask").write_text("0\n")
    (folder / "energy-pkg").write_text("event=0x00\n")
    (folder / "energy-pkg.scale").write_text("1e-9\n")


def open_events():
    try:
        return PerfMeter()
    except MeterError as error:
        if "Permission denied" in str(error):
            pytest.skip(str(error))
        raise


def test_performance_events_count_through_the_kernel(events):
    """The event that is opened is a real one; a virtual machine has none of energy."""
    meter = open_events()
    before = meter.joules()
    time.sleep(0.02)
    assert meter.joules() - before >= 0.02
    (PerfMeter.root / "cpumask").write_text("0,0-0\n")  # as two sockets
    both = open_events()
    before = both.joules()
    time.sleep(0.02)
    assert both.joules() - before > 1.5 * 0.02
    meter.close()
    assert meter.joules() is None


@pytest.mark.parametrize(
    ("name", "content"), [("type", "none"), ("type", "99999"), ("cpumask", "0-x"), ("cpumask", "9999")]
)
def test_events_that_cannot_be_opened_are_refused_with_the_remedy(events, name, content):
    (PerfMeter.root / name).write_text(content)
    with pytest.raises(MeterError):
        processor_meter()


def test_sockets_of_hwmon_count_and_cores_do_not():
    folder = HwmonMeter.root / "hwmon3"
    folder.mkdir(parents=True)
    counters = (("Ecore000", 7), ("Esocket0", 2_000_000), ("Esocket1", 500_000))
    for number, (label, energy_uj) in enumerate(counters):
        (folder / f"energy{number}_label").write_text(f"{label}\n")
        (folder / f"energy{number}_input").write_text(f"{energy_uj}\n")
    meter = processor_meter()
    assert meter.source == "hwmon" and meter.joules() == 2.5
    (folder / "energy2_input").unlink()
    assert meter.joules() is None
    with pytest.raises(MeterError):
        HwmonMeter()


def test_the_next_meter_serves_where_one_is_closed_and_the_first_is_named_where_all_are(events, zones):
    open_events().close()
    assert processor_meter().source == "rapl"
    (PowercapMeter.root / "intel-rapl:0" / "energy_uj").write_text("")
    assert processor_meter().source == "rapl by perf"
    (PerfMeter.root / "type").write_text("none")
    with pytest.raises(MeterError):
        processor_meter()


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
    with pytest.raises(MeterError):
        CommandMeter(command)
