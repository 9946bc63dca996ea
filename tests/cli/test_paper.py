"""sparsecast paper: the list, an experiment on stored numbers, and what is refused."""

from types import SimpleNamespace

import pytest

from sparsecast.api import trials

from .conftest import complains

CLUSTER = "hossain-saule", "--from", "xeon-gold-6154-edr"


@pytest.fixture
def stored(recorded, tmp_path):
    """The file of the recorded profile, as if by the kernels of today."""
    return recorded.save(tmp_path / "stored.parquet")


def test_the_list_says_of_each_paper_what_it_forecasts_and_what_never_ran(run, exact, data_folder):
    listed = exact(run("paper", "--json"), "paper")["papers"]
    assert len(listed) == 5
    for paper in listed:
        assert paper["forecasts"] and paper["headline"] and paper["never_run"] and paper["ours"] == {}


def test_the_list_has_our_last_result_of_each_machine(run, exact, data_folder, stored):
    reports = [
        exact(run("paper", "guo-2014", *line, "--json"), "paper NAME")
        for line in (("--from", stored, "--dtype", "float64"), ("--from", "nvidia-k20xm"))
    ]
    [ours] = [p["ours"] for p in exact(run("paper", "--json"), "paper")["papers"] if p["name"] == "guo-2014"]
    assert ours == {report["machine"]: report["ours"] for report in reports} and len(ours) == 2
    (data_folder / "papers" / "guo-2014.json").write_text("[1")
    outcome = run("paper")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1) and "guo-2014.json" in outcome.err


@pytest.mark.parametrize("name", ["guo-2014", "wang-2017"])
def test_the_shipped_gpu_has_errors_on_what_the_fits_have_not_seen(run, exact, data_folder, name):
    report = exact(run("paper", name, "--from", "nvidia-h100", "--json"), "paper NAME")
    [left_out] = [table["rows"] for table in report["tables"] if "left out" in table["title"]]
    assert {row["kernel"].partition(" ")[0] for row in left_out} >= {"CSR"}
    for row in left_out:
        for what in ("row lengths", "rows"):
            if row[f"{what} ours"] is not None:
                assert row[f"{what} records"] >= row[f"{what} groups"] > 0 and row[f"{what} ours"] > 0
    assert "median errors" in report["ours"]


def test_forecasts_stand_beside_those_of_the_paper(run, exact, data_folder, tmp_path):
    outcome = run("paper", *CLUSTER, "--figure", tmp_path, "--json")
    report = exact(outcome, "paper NAME")
    assert all(table["rows"] for table in report["tables"])
    assert {item["state"] for item in report["items"]} == {"done", "differs", "cannot be had here"}
    page = (tmp_path / "hossain-saule.md").read_text(encoding="utf-8")
    assert all(f"## {table['title']}\n" in page for table in report["tables"])
    assert (tmp_path / "hossain-saule.svg").exists()


def test_ranks_start_no_ranks(run, data_folder, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    complains(run("paper", "hossain-saule"), "mpirun")


def test_guo_on_records_is_the_errors_of_its_own_times(run, exact, data_folder, stored):
    outcome = run("paper", "guo-2014", "--from", stored, "--dtype", "float64", "--json")
    report = exact(outcome, "paper NAME")
    means, small, solutions, optima, split, times, left_out = (table["rows"] for table in report["tables"])
    assert all(row["rows groups"] > 1 and 0 < row["rows median"] < 1 for row in left_out)
    assert any(row["row lengths ours"] for row in left_out)
    assert [row["paper"] for row in means] == [0.063, 0.044, 0.022, 0.047]
    for row in means:
        errors = [
            abs(time["ours_s"] - time["measured_s"]) / time["measured_s"]
            for time in times
            if time["format"] == row["format"]
        ]
        assert len(errors) == row["matrices"] and row["ours"] == pytest.approx(sum(errors) / len(errors))
    assert any(row["ours"] != row["printed"] for row in means), "fits as printed are others"
    assert all(row["sparsecast"] is None or row["sparsecast"] > 0.01 for row in means), "it has not seen them"
    assert small[0]["of"] == len(times) and small[2] == {"whose": "the paper", "below": 77, "of": 82}
    for row in solutions:
        own = {time["format"]: time["measured_s"] for time in times if time["matrix"] == row["matrix"]}
        assert row["fastest"] == min(own, key=own.get)
        whole = {o["whose"]: o for o in optima if o["matrix"] == row["matrix"]}
        assert (row["ours"], row["printed"]) == (whole["our fits"]["blocks"], whole["as printed"]["blocks"])
        for solution in whole.values():
            names = [block.partition("]")[2].strip().lower() for block in solution["blocks"].split(", [")]
            is_measured = solution["measured_s"] is not None
            assert not is_measured or solution["measured_s"] == own[names[0].partition("/")[0]]
            # A split solution is measured by a run alone, and so is a kernel that has no Records.
            if is_measured:
                assert len(names) == 1
                expected = 1 - solution["measured_s"] / own["csr"]
                assert solution["gain_csr"] == pytest.approx(expected)
    assert {row["paper"] for row in split} == {0.051, 0.411, 0.498, 0.379}
    assert all(row["matrices"] == 0 and row["ours"] is None for row in split)
    assert any("refuses ELL on 2 of the 8" in note for note in report["notes"])


def test_a_calibration_that_is_stopped_ends_the_experiment(run, data_folder, monkeypatch):
    stopped = SimpleNamespace(interrupted=True, compile_kernels=lambda: None, run=lambda: None)
    monkeypatch.setattr(trials, "calibration", lambda *arguments, **options: stopped)
    outcome = run("paper", "guo-2014")
    assert (outcome.status, outcome.out) == (130, "")
