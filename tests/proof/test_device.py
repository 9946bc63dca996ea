"""A device from elsewhere (toys/replayed): it replays stored Records, and every command takes its name."""

import json
import os
from pathlib import Path

import pytest

from sparsecast.machines.profile import Profile

MATRIX = "gallery:circuit?n=60000"
FORMATS = ("coo", "csr", "ell", "sell")
ASKED = ("--device", "replayed")


@pytest.fixture
def stored(install, monkeypatch, recorded, recorded_path):
    """The stored times of the matrix, by format, as the device replays them."""
    install("replayed")
    monkeypatch.setenv("REPLAYED_PROFILE", str(recorded_path))
    return {
        r.candidate.format: r.time_s
        for r in recorded.select(dtype="float64")
        if r.matrix == MATRIX and r.candidate.format in FORMATS
    }


def test_every_command_works_on_it(stored, recorded, check_keys, sparsecast, monkeypatch):
    refused, *done = sparsecast(
        ("evaluate", "--replay", *ASKED),
        ("calibrate", "--budget", "25", "--dtype", "float64", "--json", *ASKED),
        ("predict", MATRIX, "--json", *ASKED),
        ("measure", MATRIX, "--json", *ASKED),
        ("plan", MATRIX, "--check", "--json", *ASKED),
        ("machines", "--json"),
    )
    assert refused.status == 2 and "calibrate --device replayed" in refused.err
    met, found, measured, planned, machines = (json.loads(outcome.out) for outcome in done)
    check_keys(met, "calibrate")
    assert met["machine"]["device"] == "replayed" and met["machine"]["processor"] == "recorded test machine"
    kept = Profile.load(Path(met["path"]))
    replayed = {(r.candidate.format, r.matrix, r.suite): r.time_s for r in kept.records}
    assert len(replayed) == met["records"] > 40
    assert {r.candidate.device for r in kept.records} == {"replayed"}
    for record in recorded.select(dtype="float64"):
        key = record.candidate.format, record.matrix, record.suite
        assert replayed.pop(key, record.time_s) == pytest.approx(record.time_s)
    assert not replayed

    assert found["profile"] == met["profile"]
    assert {"csr", "sell"} <= {item["format"] for item in found["forecasts"]}

    rows = measured["measurements"]
    assert {item["format"]: item["time_s"] for item in rows} == pytest.approx(stored)
    assert all(item["error"] < 1e-14 and item["noise"] < 1e-9 and item["forecast_s"] for item in rows)

    plan = planned["plan"]
    [block] = plan["blocks"]
    assert plan["check"]["time_s"] == pytest.approx(stored[block["format"]])
    assert plan["check"]["baseline_s"] == pytest.approx(stored["csr"])
    assert plan["check"]["error"] < 1e-14

    listed = machines["profiles"]
    assert listed[met["profile"]] == f"replayed float64 ({met['records']} records)"
    paths = os.environ["PYTHONPATH"].split(os.pathsep)[:-2]  # the plug-in is gone, the profile stays
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    machines, refused = sparsecast(("machines", "--json"), ("predict", MATRIX, "--profile", met["profile"]))
    assert json.loads(machines.out)["profiles"] == listed and "device 'replayed'" in refused.err
