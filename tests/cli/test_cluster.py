"""sparsecast cluster: the contract of its document, and each wrong input in one line."""

import json

import pytest

from .conftest import complains

PUBLISHED = ("--profile", "xeon-gold-6154-edr")
MESH = "counts:rows=1000000&cols=1000000&nnz=5000000"

JOULES = ("energy_j", "energy_low_j", "energy_high_j")


def test_the_document(run, data_folder, tmp_path):
    figure = tmp_path / "time.svg"
    asked = ("--ranks", "16,36,50,144", "--price", "2.5", "--figure", figure, "--json")
    done = run("cluster", MESH, *PUBLISHED, *asked)
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["matrix"] == {"name": MESH, "rows": 1_000_000, "cols": 1_000_000, "nnz": 5_000_000}
    assert (document["profile"], document["model"]) == ("xeon-gold-6154-edr", "sparsecast")
    times = [each["time_s"] for each in document["choices"]]
    assert times == sorted(times) and times[0] > 0
    for each in document["choices"]:
        assert all(each[key] is None for key in ("low_s", "high_s", *JOULES))
        assert each["nodes"] == -(-each["ranks"] // 36)
    ways = {(each["algorithm"], each["format"], each["ranks"]) for each in document["choices"]}
    of_rows = ("global-1d", "local-1d", "local-1d-overlap")
    every = {
        (name, kind, count) for name in of_rows for kind in ("csr", "coo") for count in (16, 36, 50, 144)
    }
    assert ways == every | {("2d", kind, count) for kind in ("csr", "coo") for count in (16, 36, 144)}
    assert document["refused"].keys() == {"uniform-2d on 50 ranks"}
    assert "expected a square, p x p blocks; take 49 or 64" in document["refused"]["uniform-2d on 50 ranks"]
    assert document["enough_ranks"] in (16, 36, 50, 144)
    said = " ".join(document["notes"])
    for part in ("published figures and data sheets", "Only rows, columns and non-zeros", "no interval"):
        assert part in said and part in " ".join(done.err.split())
    assert figure.read_text().startswith("<svg")


def test_rows_by_nonzeros_are_forecast_beside_metis(run, data_folder):
    pytest.importorskip("pymetis")
    done = run("cluster", "gallery:arrow?n=2000", *PUBLISHED, "--ranks", "4", "--json")
    found = {choice["partition"] for choice in json.loads(done.out)["choices"]}
    assert found == {"metis", "nonzeros", "uniform-2d"}


def test_joules_by_a_power_model(run, ask, data_folder, tmp_path):
    """Where idle power is all, a product costs its time on all nodes; more nodes are seldom worth it."""
    power = tmp_path / "power.json"
    power.write_text('{"joules": {"idle": 100}}')
    asked = ("--ranks", "36,72,144", "--power-model", power, "--objective", "energy")
    found = ask("cluster", MESH, *PUBLISHED, *asked)["choices"]
    joules = [each["energy_j"] for each in found]
    assert joules == sorted(joules)
    assert joules == pytest.approx([100 * each["nodes"] * each["time_s"] for each in found])
    assert found[0]["energy_low_j"] is None  # nobody told how sure 100 W are
    shown = run("cluster", MESH, *PUBLISHED, *asked)
    assert "Least energy: " in shown.out and "energy" in shown.out.splitlines()[2]


def test_more_ranks_than_rows_are_not_taken_for_faster(run, data_folder):
    """A mesh of 100 points on 102,400 ranks was forecast in 32 ns: without a message."""
    few = "counts:rows=100&cols=100&nnz=500"
    done = run("cluster", few, *PUBLISHED, "--ranks", "4,102400", "--json")
    document = json.loads(done.out)
    assert document["enough_ranks"] == 4
    assert all(each["communication_s"] > 1e-6 for each in document["choices"])
    assert "On 102,400 ranks some have no row, because there are 100" in document["notes"][1]
    page = run("cluster", few, *PUBLISHED, "--ranks", "4,102400")
    assert "More than 4 ranks do not pay" in page.out


def test_only_ranks_that_were_asked_about_are_said_not_to_pay(run, data_folder):
    """Where the largest number is the best, nobody knows of larger ones."""
    twice = ("--algorithms", "local-1d,local-1d", "--formats", "csr,csr", "--partitions", "metis,metis")
    done = run("cluster", MESH, *PUBLISHED, "--ranks", "36,72,72", *twice)
    assert done.status == 0 and "do not pay" not in done.out
    assert done.out.count("│ local-1d ") == 2


def test_a_profile_without_microbenchmarks_names_the_command(run, calibrated):
    pattern = "has no micro-benchmarks of ranks.*`mpirun -n N sparsecast calibrate --ranks`"
    complains(run("cluster", MESH, "--ranks", "4"), pattern)
