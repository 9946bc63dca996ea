"""sparsecast cluster: the contract of its document, and each wrong input in one line."""

from __future__ import annotations

import json

import pytest

PUBLISHED = ("--profile", "xeon-gold-6154-edr")
MESH = "counts:rows=1000000&cols=1000000&nnz=5000000"

CHOICE = {
    "algorithm": str,
    "format": str,
    "remote_format": str,
    "partition": str,
    "ranks": int,
    "nodes": int,
    "dtype": str,
    "time_s": float,
    "computation_s": float,
    "communication_s": float,
    "memory_bytes": int,
    "efficiency": float,
    "cost": float,
    "why": dict,
}


def test_the_document(process, data_folder, tmp_path):
    figure = tmp_path / "time.svg"
    asked = ("--ranks", "16,36,50,144", "--price", "2.5", "--figure", figure, "--json")
    done = process("cluster", MESH, *PUBLISHED, *asked)
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert set(document) == {*("matrix", "profile", "model", "choices", "enough_ranks", "refused", "notes")}
    assert document["matrix"] == {"name": MESH, "rows": 1_000_000, "cols": 1_000_000, "nnz": 5_000_000}
    assert (document["profile"], document["model"]) == ("xeon-gold-6154-edr", "sparsecast")
    times = [each["time_s"] for each in document["choices"]]
    assert times == sorted(times) and times[0] > 0
    for each in document["choices"]:
        assert set(each) == {*CHOICE, "low_s", "high_s", "energy_j"}
        assert all(isinstance(each[key], kind) for key, kind in CHOICE.items())
        assert (each["low_s"], each["high_s"], each["energy_j"]) == (None, None, None)
        assert each["nodes"] == -(-each["ranks"] // 36)
    ways = {(each["algorithm"], each["format"], each["ranks"]) for each in document["choices"]}
    of_rows = ("global-1d", "local-1d", "local-1d-overlap")
    every = {
        (name, kind, count) for name in of_rows for kind in ("csr", "coo") for count in (16, 36, 50, 144)
    }
    assert ways == every | {("2d", kind, count) for kind in ("csr", "coo") for count in (16, 36, 144)}
    assert document["refused"] == {"2d on 50 ranks": "50 ranks for 2d: expected a square; name 49 or 64"}
    assert document["enough_ranks"] in (16, 36, 50, 144)
    said = " ".join(document["notes"])
    for part in ("published figures and data sheets", "Only rows, columns and non-zeros", "no interval"):
        assert part in said and part in " ".join(done.err.split())
    assert figure.read_text().startswith("<?xml")


def test_a_matrix_at_hand_in_words(run, data_folder):
    done = run("cluster", "gallery:poisson2d?n=40", *PUBLISHED, "--ranks", "4", "--partitions", "nonzeros")
    assert done.status == 0
    assert "Fastest: local-1d" in done.out and "nonzeros" in done.out
    assert "2d" not in done.out.split("Fastest")[0].replace("poisson2d", "")
    assert "Only rows" not in done.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    (
        (("--ranks", "0"), "ranks 0: expected 1 to "),
        (("--ranks", "-4"), "ranks -4: expected 1 to "),
        (("--ranks", "99999999999"), "ranks 99999999999: expected 1 to "),
        (("--ranks", "4,,9"), "--ranks 4,,9: expected numbers with commas"),
        (("--ranks", "many"), "--ranks many: expected numbers with commas"),
        (("--ranks", "4", "--price", "-1"), "price -1: expected a finite number"),
        (("--ranks", "4", "--ranks-per-node", "37"), "ranks a node 37: expected 1 to 36"),
        (("--ranks", "4", "--algorithms", "3d"), "algorithm '3d' is unknown: known are global-1d"),
        (("--ranks", "4", "--formats", "csr,best"), "format 'best' is unknown: known are bcsr"),
        (("--ranks", "4", "--partitions", "luck"), "partition 'luck' is unknown: known are metis"),
        (("--ranks", "4", "--model", "luck"), "cluster model 'luck' is unknown: known are hossain-linear"),
        (
            ("--ranks", "4", "--model", "hossain-micro", "--algorithms", "global-1d"),
            "expected micro-benchmarks of allgatherv",
        ),
        (("--ranks", "5", "--algorithms", "2d"), "5 ranks for 2d: expected a square; name 4 or 9"),
        (("--ranks", "4", "--formats", "dia"), "format dia has no forecast for a rank's part"),
        (("--ranks", "4", "--model", "hossain-svr"), "measure more by `mpirun -n N sparsecast measure"),
        (("--ranks", "4", "--figure", "time.txt"), "expected a name that ends in .png, .svg, .pdf"),
    ),
)
def test_wrong_input_is_one_line(run, data_folder, arguments, complaint):
    done = run("cluster", MESH, *PUBLISHED, *arguments)
    assert (done.status, done.out) == (2, "")
    assert complaint in done.err and done.err.count("\n") == 1


def test_what_no_node_can_hold_is_refused(run, data_folder):
    huge = "counts:rows=1000000000&cols=1000000000&nnz=100000000000"
    done = run("cluster", huge, *PUBLISHED, "--ranks", "1")
    assert done.status == 2 and done.err.count("\n") == 1
    assert "1 ranks of a node take 1.62e+03 GB: expected at most 388 GB" in done.err


def test_a_profile_without_microbenchmarks_names_the_command(run, calibrated):
    done = run("cluster", MESH, "--ranks", "4")
    assert done.status == 2 and done.err.count("\n") == 1
    assert "has no micro-benchmarks of ranks" in done.err
    assert "`mpirun -n N sparsecast calibrate --ranks`" in done.err
