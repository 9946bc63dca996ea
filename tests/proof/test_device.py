"""A device from elsewhere (toys/few): every command takes its name, and its clock says what is measured."""

import json
import os
from pathlib import Path

import pytest

from sparsecast.machines.profile import Profile

MATRIX, ROWS, ENTRIES = "gallery:poisson2d?n=60", 3600, 17_760
ASKED = ("--device", "few")


def time_s(entry_bytes):
    """By the clock of the device, of a product that reads so many bytes for an entry."""
    streamed = entry_bytes * ENTRIES + 4 * (ROWS + 1) + 16 * ROWS
    return (1 + ENTRIES % 7 / 50) * streamed / 1e10


def test_every_command_works_on_it(install, check_keys, sparsecast, monkeypatch):
    install("few"), install("short_csr")
    refused, *done = sparsecast(
        ("evaluate", "--replay", *ASKED),
        ("calibrate", "--budget", "25", "--dtype", "float64", "--json", *ASKED),
        ("predict", MATRIX, "--json", *ASKED),
        ("measure", MATRIX, "--json", *ASKED),
        ("plan", MATRIX, "--check", "--products", "1000000", "--json", *ASKED),
        ("machines", "--json"),
    )
    assert refused.status == 2 and "calibrate --device few" in refused.err
    met, found, measured, planned, machines = (json.loads(outcome.out) for outcome in done)
    check_keys(met, "calibrate")
    assert met["machine"]["device"] == "few"
    kept = Profile.load(Path(met["path"]))
    assert len(kept.records) == met["records"] >= 40  # 18 matrices and 2 held out, in both formats
    assert {r.candidate.device for r in kept.records} == {"few"}
    for record in kept.records:
        assert record.time_s == pytest.approx((1 + record.nnz % 7 / 50) * record.traffic_bytes / 1e10)

    assert found["profile"] == met["profile"]
    assert {item["format"] for item in found["forecasts"]} == {"csr", "short_csr"}

    rows = {item["format"]: item for item in measured["measurements"] if not item["parameters"]}
    for name, entry_bytes in (("csr", 12), ("short_csr", 10)):
        assert rows[name]["time_s"] == pytest.approx(time_s(entry_bytes))
        assert rows[name]["error"] < 1e-14 and rows[name]["noise"] < 1e-9 and rows[name]["forecast_s"]

    plan = planned["plan"]
    [block] = plan["blocks"]
    [of_block] = [
        item
        for item in measured["measurements"]
        if (item["format"], item["parameters"]) == (block["format"], block["parameters"])
    ]
    assert plan["check"]["time_s"] == pytest.approx(of_block["time_s"])
    assert plan["check"]["baseline_s"] == pytest.approx(time_s(12))
    assert plan["check"]["error"] < 1e-14

    listed = machines["profiles"]
    assert listed[met["profile"]].startswith("few float64")
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"].split(os.pathsep)[0])  # the plug-ins are gone
    machines, refused = sparsecast(("machines", "--json"), ("predict", MATRIX, "--profile", met["profile"]))
    assert json.loads(machines.out)["profiles"] == listed and "device 'few'" in refused.err
