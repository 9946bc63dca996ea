"""The command line under mpirun: one document from rank 0, records kept, faults in one line."""

from __future__ import annotations

import json
import os

import pytest

MESH = "gallery:poisson2d?n=30"
CODE = "from sparsecast.cli.main import main; main()"


@pytest.fixture
def run(mpirun):
    """Run a command on ranks; 0 is without mpirun."""
    return lambda ranks, *arguments: mpirun(ranks, "-c", CODE, *arguments)


def test_ranks_are_calibrated_and_products_measured_scored_and_forecast(run, data_folder):
    done = run(2, "calibrate", "--ranks", "--budget", "2", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ranks"] == 2 and document["microbenchmarks"] > 0
    for size in (20, 30):
        done = run(2, "measure", f"gallery:poisson2d?n={size}", "--format", "csr,coo", "--json")
        assert done.returncode == 0, done.stderr
        measured = json.loads(done.stdout)["measurements"]
    assert {each["algorithm"] for each in measured} == {"global-1d", "local-1d", "local-1d-overlap"}
    for each in measured:
        assert each["error"] <= 1e-15 and each["ranks"] == 2 and each["time_s"] > 0
        assert all(len(seconds) == 2 for seconds in each["parts_s"].values())
        assert each["forecast_s"] is None or each["forecast_s"] > 0
    kept = next(data_folder.glob("measurements/*.distributed.jsonl")).read_text().splitlines()
    assert len(kept) == 12


def test_one_rank_needs_no_mpirun(run, data_folder):
    done = run(0, "measure", MESH, "--algorithm", "local-1d", "--no-keep", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["measurements"]
    assert (found["ranks"], found["algorithm"], found["oversubscribed"]) == (1, "local-1d", False)
    assert not list(data_folder.glob("measurements/*.jsonl"))


def test_what_is_wrong_is_said_once(run, data_folder):
    done = run(3, "measure", MESH, "--algorithm", "2d")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("3 ranks for 2d: expected a square; start 1 or 4") == 1
    assert "Traceback" not in done.stderr


def test_four_ranks_are_right_and_marked(run, data_folder):
    done = run(4, "measure", MESH, "--algorithm", "2d,local-1d", "--no-keep", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measurements"]
    assert {each["algorithm"] for each in found} == {"2d", "local-1d"}
    assert all(each["error"] <= 1e-15 for each in found)
    assert {each["oversubscribed"] for each in found} == {(os.cpu_count() or 1) < 4}
