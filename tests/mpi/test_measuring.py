"""The command line under mpirun: one document from rank 0, records kept, faults in one line."""

import json
import os

import pytest

from sparsecast.machines.machine import detect

MESH = "gallery:poisson2d?n=30"
CODE = "from sparsecast.cli.main import main; main()"


@pytest.fixture
def run(mpirun):
    """Run a command on ranks; 0 is without mpirun."""
    return lambda ranks, *arguments: mpirun(ranks, "-c", CODE, *arguments)


def kept_products(data_folder):
    """Return the products of ranks in all journals, in the order of their processes."""
    journals = sorted(data_folder.glob("measurements/*/*.jsonl"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    return [line["distributed"] for line in lines if "distributed" in line]


def test_ranks_are_calibrated_and_products_measured_scored_and_forecast(run, check_keys, data_folder):
    done = run(2, "calibrate", "--ranks", "--budget", "2", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check_keys(document, "calibrate --ranks")
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
    assert len(kept_products(data_folder)) == 12


def test_a_paper_starts_its_ranks_and_goes_on_with_what_they_measured(run, check_keys, data_folder):
    done = run(detect().cores, "calibrate", "--ranks", "--suites", "hossain", "--budget", "4", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["products"] >= 1 and document["products"] + document["products_left"] <= 48
    first = kept_products(data_folder)
    assert {record["configuration"]["format"] for record in first} == {"csr", "coo"}
    done = run(0, "paper", "hossain-saule", MESH, "--budget", "10", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    check_keys(report, "paper NAME")
    records = kept_products(data_folder)
    assert records[: len(first)] == first
    assert [path.name for path in data_folder.glob("measurements/*")] == [report["machine"]]
    ways = {(record["suite"], record["configuration"]["format"]) for record in records}
    assert ways == {(suite, name) for suite in ("hossain", "user") for name in ("csr", "coo")}
    random = [record for record in records if record["suite"] == "hossain"]
    assert all(record["deviation"] == 0 for record in random)  # rows of one length
    measured = {(record["matrix"], *record["configuration"].values()) for record in records}
    assert len(measured) == len(records) and len(random) > len(first)
    again = run(0, "paper", "hossain-saule", "--profile", report["machine"], "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["tables"] == report["tables"]
    assert kept_products(data_folder) == records


def test_one_rank_needs_no_mpirun(run, data_folder):
    done = run(0, "measure", MESH, "--algorithm", "local-1d", "--no-keep", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["measurements"]
    assert (found["ranks"], found["algorithm"], found["oversubscribed"]) == (1, "local-1d", False)
    assert not list(data_folder.glob("measurements/*/*.jsonl"))


@pytest.mark.parametrize(
    ("ranks", "arguments", "said"),
    (
        (2, ("calibrate", "--ranks", "--suites", "hosain"), "hosain"),
        (
            3,
            ("measure", MESH, "--algorithm", "2d"),
            "'uniform-2d': expected a square, p x p blocks; take 1 or 4",
        ),
    ),
)
def test_what_is_wrong_is_said_once_before_anything_is_measured(run, data_folder, ranks, arguments, said):
    done = run(ranks, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count(said) == 1 and "Traceback" not in done.stderr


def test_four_ranks_are_right_and_marked(run, data_folder):
    done = run(4, "measure", MESH, "--algorithm", "2d,local-1d", "--no-keep", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["measurements"]
    assert {each["algorithm"] for each in found} == {"2d", "local-1d"}
    assert all(each["error"] <= 1e-15 for each in found)
    assert {each["oversubscribed"] for each in found} == {(os.cpu_count() or 1) < 4}
