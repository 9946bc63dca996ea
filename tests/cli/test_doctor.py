"""sparsecast doctor, and sparsecast alone: what is here, and what to do next."""

import dataclasses
import importlib
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.system import jit

#: The module of what is checked.
checkup = importlib.import_module("sparsecast.api.doctor")


@pytest.fixture
def old(recorded, data_folder):
    """A profile of this machine, 200 days old."""
    day = (datetime.now(UTC) - timedelta(days=200)).isoformat(timespec="seconds")
    records = tuple(dataclasses.replace(record, measured_at=day) for record in recorded.records)
    Profile(detect(), records, recorded.matrices).save()


def findings(run):
    done = run("doctor", "--json")
    assert done.status == 0, done.err
    return {each["what"]: each for each in json.loads(done.out)["findings"]}


def test_a_machine_that_was_never_calibrated_is_told_how(run, data_folder):
    found = findings(run)
    here = {"processor", "threads", "memory", "data folder", "calibration", "GPU", "energy", "MPI"}
    assert here <= set(found)
    assert found["calibration"]["remedy"] == "sparsecast calibrate"
    assert found["processor"]["remedy"] is None
    assert str(data_folder) in found["data folder"]["state"]
    alone = run()
    assert alone.status == 0 and len(alone.out.splitlines()) <= 10
    assert "has not been calibrated yet" in alone.out and "sparsecast calibrate" in alone.out


def test_an_old_calibration_is_said_to_be_old(run, old):
    found = findings(run)["calibration"]
    assert "200 days old" in found["state"] and "it is old" in found["remedy"]
    assert "was calibrated 200 days ago: calibrate again" in run().out
    assert "sparsecast calibrate, it is old" in " ".join(run("doctor").out.split())


def test_a_slow_rule_of_frequency_and_a_busy_machine_have_a_remedy(monkeypatch, tmp_path):
    rule = tmp_path / "scaling_governor"
    monkeypatch.setattr(checkup, "GOVERNOR", rule)
    monkeypatch.setattr(checkup.os, "getloadavg", lambda: (2.4, 0.0, 0.0))
    for name, remedy in (("powersave", "cpupower frequency-set -g performance"), ("performance", "")):
        rule.write_text(f"{name}\n")
        found = {each.what: each for each in checkup.checkup()}
        assert found["frequency"].state == name and found["frequency"].remedy.startswith(remedy)
        assert (
            "2.4 threads" in found["other programs"].state and "end other" in found["other programs"].remedy
        )


def test_a_damaged_profile_and_a_folder_that_cannot_be_written_are_told(run, old, data_folder, monkeypatch):
    (path,) = (data_folder / "profiles").glob("*.parquet")
    path.write_bytes(b"nothing")
    found = findings(run)["calibration"]
    assert found["state"] == "cannot be used" and path.name in found["remedy"]
    assert path.name in run().out
    blocked = data_folder / "file"
    blocked.write_text("")
    monkeypatch.setenv("SPARSECAST_HOME", str(blocked / "home"))
    done = run("doctor")
    assert "Traceback" not in done.err


def test_whatever_is_not_there_has_a_remedy(run):
    for what, each in findings(run).items():
        if any(word in each["state"] for word in ("none", "nothing", "not ", "no ")):
            assert each["remedy"], what


def test_fewer_threads_and_kernels_that_are_lost_have_a_remedy(run, monkeypatch):
    monkeypatch.setattr(checkup.numba.config, "NUMBA_NUM_THREADS", 0)
    monkeypatch.setattr(jit, "_lost", ["cannot be kept in x: set NUMBA_CACHE_DIR"])
    found = findings(run)
    assert "0 at most, by NUMBA_NUM_THREADS: unset it" in found["threads"]["remedy"]
    assert found["compiled kernels"]["state"] == "each process compiles anew"
    assert "set NUMBA_CACHE_DIR" in found["compiled kernels"]["remedy"]


def test_programs_that_compute_now_are_named(monkeypatch):
    def programs(asked):
        for pid, percent in {7: 50.0, 8: 0.0, 9: 100.0, 10: None}.items():
            info = {"name": f"program-{pid}", "cpu_percent": percent}
            yield SimpleNamespace(pid=pid, info={name: info[name] for name in asked})

    monkeypatch.setattr(checkup.psutil, "process_iter", programs)
    monkeypatch.setattr(checkup.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    [found] = [finding for finding in checkup.checkup() if finding.what == "other programs"]
    assert "now program-9 (process 9) takes 1.0, program-7 (process 7) takes 0.5" in found.state
    assert "program-8" not in found.state and found.remedy.startswith("end other programs")
