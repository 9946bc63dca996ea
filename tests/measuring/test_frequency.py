"""Frequencies on a folder that looks like Linux's."""

import pytest

from sparsecast.errors import DeviceError
from sparsecast.measuring.core_speed import Frequencies

NAMES = ("cpuinfo_min", "cpuinfo_max", "scaling_min", "scaling_max", "scaling_cur")


@pytest.fixture
def cores(tmp_path):
    for number, now in enumerate((1_500_000, 2_500_000)):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        for name, khz in zip(NAMES, (800_000, 3_000_000, 1_000_000, 2_800_000, now), strict=True):
            (folder / f"{name}_freq").write_text(f"{khz}\n")
    return tmp_path


def ranges(root):
    return [
        tuple(int((each / f"scaling_{end}_freq").read_text()) for end in ("min", "max"))
        for each in sorted(root.glob("cpu*/cpufreq"))
    ]


def test_the_mean_of_the_cores_is_read_and_none_where_nothing_tells(cores, tmp_path):
    assert Frequencies(cores).mean_hz() == 2e9
    (cores / "cpu1" / "cpufreq" / "scaling_cur_freq").write_text("<unknown>")
    assert Frequencies(cores).mean_hz() is None
    assert Frequencies(tmp_path / "absent").mean_hz() is None


@pytest.mark.parametrize("hz", [8e8, 2e9, 3e9])
def test_a_frequency_is_held_and_then_the_ranges_are_those_of_before(cores, hz):
    with pytest.raises(ZeroDivisionError), Frequencies(cores).at(hz):
        assert ranges(cores) == [(hz / 1e3, hz / 1e3)] * 2
        raise ZeroDivisionError
    assert ranges(cores) == [(1_000_000, 2_800_000)] * 2


@pytest.mark.parametrize(("most_khz", "expected"), [(3_000_000, "0.8 to 3 GHz"), (700_000, "there is none")])
def test_one_that_cores_cannot_have_changes_nothing(cores, most_khz, expected):
    (cores / "cpu1" / "cpufreq" / "cpuinfo_max_freq").write_text(f"{most_khz}\n")
    with pytest.raises(DeviceError, match=expected), Frequencies(cores).at(3.5e9):
        pass
    assert ranges(cores) == [(1_000_000, 2_800_000)] * 2


def test_without_permission_cores_that_were_set_go_back(cores, monkeypatch):
    write = type(cores).write_text

    def refused(self, text):
        if "cpu1" in self.parts:
            raise PermissionError(13, "Permission denied")
        return write(self, text)

    monkeypatch.setattr(type(cores), "write_text", refused)
    with pytest.raises(DeviceError), Frequencies(cores).at(2e9):
        pass
    assert ranges(cores) == [(1_000_000, 2_800_000)] * 2
