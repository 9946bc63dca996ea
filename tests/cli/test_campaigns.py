"""Collections on the command line: shards, dry runs, one line for what is wrong, and merged files."""

import dataclasses
import json

import pandas
import pytest

from sparsecast.formats.libraries import chosen_libraries

from .conftest import complains

MATRICES = ("gallery:banded?n=60", "gallery:banded?n=70", "gallery:poisson2d?n=9")


def test_shards_are_measured_merged_and_then_known(run, ask, exact, tmp_path):
    matrices = []
    for shard in ("1/2", "2/2"):
        found = exact(
            run("measure", *MATRICES, "--threads", "1", "--shard", shard, "--json"), "measure FOLDER"
        )
        matrices += dict.fromkeys(row["matrix"] for row in found["measurements"])
    assert sorted(matrices) == sorted(MATRICES)
    output = tmp_path / "records.parquet"
    merged = exact(run("merge", "-o", output, "--json"), "merge")
    assert merged["records"] == len(pandas.read_parquet(output)) > 9 and merged["notes"] == []
    refused = run("merge", "-o", output)
    assert refused.status == 2 and refused.out == ""
    content, address = output.read_bytes(), f"file://{output}"
    complains(run("merge", "-o", address))
    assert output.read_bytes() == content
    assert run("merge", output, "-o", address, "--force").status == 0
    assert run("merge", output, "-o", output, "--force").status == 0
    asked = ("measure", *MATRICES, "--threads", "1")
    pending = exact(run(*asked, "--dry-run", "--json"), "measure --dry-run")
    assert [row["matrix"] for row in pending["matrices"]] == list(MATRICES)
    assert sum(row["kept"] for row in pending["matrices"]) == merged["records"]
    again = ask(*asked, "--resume")
    assert again["taken_over"] == 3 and len(again["measurements"]) == merged["records"]


@pytest.mark.parametrize("command", ["measure", "evaluate", "label"])
def test_a_dry_run_measures_nothing(run, exact, command, data_folder):
    pending = exact(run(command, *MATRICES, "--dry-run", "--shard", "1/1", "--json"), "measure --dry-run")
    assert pending["shard"] == "1/1" and {row["kept"] for row in pending["matrices"]} == {0}
    assert not list(data_folder.glob("measurements/*/*"))


def test_a_shard_without_matrices_is_done(run):
    done = [run("measure", MATRICES[0], "--shard", shard, "--threads", "1").out for shard in ("1/2", "2/2")]
    assert sum("0 records" in out for out in done) == 1


def test_a_product_is_measured_by_scipy_whatever_other_library_is_asked_for(run):
    other = next((name for name in chosen_libraries("any") if name != "scipy"), "scipy")
    measured = run("measure", MATRICES[0], "--threads", "1", "--library", other, "--no-keep", "--json")
    formats = {row["format"] for row in json.loads(measured.out)["measurements"]}
    assert {"scipy", other} <= formats


def test_results_are_compared_and_a_slower_one_ends_with_status_1(
    run, ask, exact, recorded, recorded_path, tmp_path
):
    slower = [
        dataclasses.replace(
            record, time_s=factor * record.time_s, samples_s=tuple(factor * s for s in record.samples_s)
        )
        for record, factor in zip(recorded.records, [1.5] * 5 + [1.0] * len(recorded.records), strict=False)
    ]
    path = dataclasses.replace(recorded, records=tuple(slower)).save(tmp_path / "slower.parquet")
    asked = "compare-results", recorded_path, path
    document = exact(run(*asked, "--json"), "compare-results")
    assert [product["differs"] for product in document["products"][:6]] == [True] * 5 + [False]
    assert document["products"][0]["ratio"] == pytest.approx(1.5)
    failed = run(*asked, "--fail-above", "5%", "--csv", tmp_path / "table.csv")
    assert failed.status == 1 and "B / A" in failed.out and failed.err.count("\n") == 1
    assert len(pandas.read_csv(tmp_path / "table.csv")) == len(document["products"])
    assert json.loads(run(*asked, "--fail-above", "5%", "--json").out) == document
    assert run(*asked, "--fail-above", "60 %").status == 0
    alike = run("compare-results", recorded_path, recorded_path, "--csv", tmp_path / "alike.csv")
    assert alike.status == 0 and "interval" in failed.out and "interval" not in alike.out
    assert len(pandas.read_csv(tmp_path / "alike.csv")) == len(document["products"])
    assert run("compare-results", path, recorded_path, "--fail-above", "5%").status == 0
