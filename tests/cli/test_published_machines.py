"""Machines that nobody here has, through the command line: import, forecasts without the matrix, replay."""

import json
import shutil

import numpy as np
import pytest

from sparsecast.models import DEFAULT_MODEL

HEADER = (
    "machine,executor,group,matrix,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_variance,"
    "format,time_s,completed"
)
FORMATS = ("csr", "csri", "cuspcsr", "sellp", "hybrid", "coo")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A table of 36 matrices in 9 groups on a machine, whose times follow their entries and rows."""
    draw = np.random.default_rng(1)
    lines = [HEADER]
    for number in range(36):
        rows, length = int(draw.integers(1000, 100000)), int(draw.integers(2, 60))
        matrix = f"G{number % 9},m{number},{rows},{rows},{rows * length}" + f",{length}" * 5 + ",0"
        for place, name in enumerate(FORMATS):
            time = (5e-6 + 1e-10 * rows + 2e-11 * rows * length * (1 + place)) * draw.uniform(0.9, 1.1)
            lines.append(f"Elbrus,e2k,{matrix},{name},{time},True")
    path = tmp_path_factory.mktemp("published") / "published.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def imported(published, run, tmp_path_factory):
    """A data folder into which the table was imported."""
    folder = tmp_path_factory.mktemp("imported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSECAST_HOME", str(folder))
        done = run("machines", "import", published, "--name", "elbrus", "--json")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert (document["profile"], document["records"], document["matrices"]) == ("elbrus", 216, 36)
    assert document["left_out"] == {}
    return folder


@pytest.fixture
def there(imported, data_folder):
    shutil.copytree(imported, data_folder)
    return "--profile", "elbrus", "--json"


def test_a_machine_is_listed_and_forecast_in_all_that_was_published(there, run, ask, tmp_path):
    listed = ask("machines")["profiles"]
    assert listed["elbrus"] == "e2k float64 (216 records)"
    done = run("predict", "gallery:poisson2d?n=100", *there)
    assert done.status == 0 and "published results do not have them" in done.err
    found = json.loads(done.out)
    assert (found["profile"], len(found["forecasts"])) == ("elbrus", len(FORMATS))
    assert {(f["format"], f["kernel"]) for f in found["forecasts"]} == {
        ("csr", "csr"),
        ("csr", "csri"),
        ("csr", "cuspcsr"),
        ("sell", "sellp"),
        ("hyb", "hybrid"),
        ("coo", "coo"),
    }
    assert all(f["low_s"] < f["time_s"] < f["high_s"] for f in found["forecasts"])

    shared = tmp_path / "S.json"  # the matrix stays at home
    shared.write_text(run("structure", "gallery:poisson2d?n=100", "--json").out)
    again = ask("predict", shared, *there)
    assert again["matrix"] == found["matrix"]
    assert [f["time_s"] for f in again["forecasts"]] == [f["time_s"] for f in found["forecasts"]]

    counts = run("predict", "counts:rows=10000&cols=10000&nnz=49600", *there)
    assert "all rows taken for equally long" in counts.err
    assert len(json.loads(counts.out)["forecasts"]) == len(FORMATS)


def test_a_table_is_forecast_with_what_is_known_of_each_matrix(there, ask, tmp_path):
    table = tmp_path / "wanted.csv"
    table.write_text(
        "group,matrix,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_variance\n"
        "A,even,1000,1000,5000,5,5,5,5,5,0\n"
        "A,bare,1000,1000,5000,,,,,,\n"
        "A,odd,1000,1000,5000,6,6,6,6,6,0\n"
    )
    found = ask("predict", table, *there)
    assert (found["profile"], found["model"]) == ("elbrus", DEFAULT_MODEL)
    assert [row["matrix"] for row in found["rows"]] == ["A/even"] * len(FORMATS) + ["A/bare"] * len(FORMATS)
    assert set(found["rows"][0]) == {"matrix", "format", "kernel", "time_s", "low_s", "high_s"}
    assert (
        list(found["refused"]) == ["A/odd"]
        and "no 1,000 rows with 5,000 entries" in found["refused"]["A/odd"]
    )
    assert any("row lengths" in note for note in found["notes"])


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """Tables of 40 artificial matrices, one for each implementation, whose times follow their neighbours."""
    draw = np.random.default_rng(2)
    header = (
        "matrix_name,nr_rows,nr_cols,nr_nzeros,std_nnz_per_row,avg_bw,std_bw,avg_sc,skew,avg_num_neighbours,"
        "cross_row_similarity,implementation,gflops"
    )
    folder, lines = tmp_path_factory.mktemp("moments"), {"CSR5": [header], "MERGE": [header]}
    for number in range(40):
        rows, length = 1000 * (2 + number % 8), int(draw.integers(3, 40))
        near, similar, width = draw.uniform(0, 2), draw.uniform(0, 1), draw.uniform(50, 900)
        matrix = (
            f"synthetic,{rows},{rows},{rows * length},0.5,{width},1,{length / width},0.5,{near},{similar}"
        )
        for name, own in lines.items():
            own.append(f"{matrix},{name},{(8 + 4 * near) * (2 if name == 'MERGE' else 1)}")
    for name, own in lines.items():
        (folder / f"{name}.csv").write_text("\n".join(own) + "\n")
    return folder


def test_published_neighbours_are_looked_for_in_the_matrix_of_a_question(
    moments, data_folder, run, ask, tmp_path
):
    files = sorted(moments.glob("*.csv"))
    done = run("machines", "import", *files, "--name", "epyc", "--machine", "Epyc1", "--json")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["records"] == 80
    there = "--profile", "epyc", "--json"
    band = ask("predict", "gallery:banded?n=5000&half_bandwidth=9", *there)["forecasts"]
    random = ask("predict", "gallery:random?n=5000&nnz_per_row=19", *there)["forecasts"]
    times = [{each["kernel"]: each["time_s"] for each in found} for found in (band, random)]
    assert all(set(own) == {"csr5", "merge"} and own["merge"] < own["csr5"] for own in times)
    assert times[0]["csr5"] < 0.9 * times[1]["csr5"]

    shared = tmp_path / "S.json"
    shared.write_text(run("structure", "gallery:random?n=5000&nnz_per_row=19", "--json").out)
    again = ask("predict", shared, *there)["forecasts"]
    assert [each["time_s"] for each in again] == [each["time_s"] for each in random]

    known = json.loads(shared.read_text())
    del known["structure"]["neighbourhood"]  # from before it was known
    shared.write_text(json.dumps(known))
    without = run("predict", shared, *there)
    assert without.status == 0 and "without neighbourhood" in without.err

    rows = ask("predict", files[0], *there)["rows"]
    assert len(rows) == 80 and rows[0]["matrix"].startswith("synthetic-")


def test_replay_scores_the_models_by_groups(there, ask):
    found = ask("evaluate", "--replay", "--models", "linear", *there)
    assert found["profile"] == "elbrus" and set(found["models"]) == {"linear"}
    assert len(found["rows"]) == 216
    # The times are laws with a tenth of noise: of matrices that it has not seen, the model knows them.
    score = found["models"]["linear"]
    assert score["median_error"] < 0.1 and score["unforecast"] == 0
    assert 0.8 < score["coverage"] <= 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("machines", "import", "absent.csv", "--name", "x"), "absent.csv"),
        (("machines", "import", "{table}", "--name", "a/b"), "name 'a/b': expected letters"),
        (("machines", "import", "{table}", "--name", "x", "--machine", "V100"), "machine 'V100' is not in"),
        (("predict", "counts:rows=1", "--profile", "elbrus"), "expected counts:rows=R&cols=C&nnz=N"),
        (("predict", "absent.json", "--profile", "elbrus"), "absent.json cannot be read"),
        (("predict", "absent.csv", "--profile", "elbrus"), "absent.csv cannot be read"),
        (("predict", "gallery:poisson2d?n=9", "--profile", "elbrus", "--dtype", "float32"), "e2k float32"),
        (("predict", "gallery:poisson2d?n=9", "--profile", "elbrus", "--threads", "4"), "threads 4 of"),
        (("plan", "gallery:poisson2d?n=9", "--profile", "elbrus"), "a plan for the published results"),
        (("measure", "gallery:poisson2d?n=9", "--profile", "elbrus"), "expected this machine"),
    ],
)
def test_what_cannot_be_is_one_line(there, run, published, arguments, told):
    done = run(*(each.format(table=published) for each in arguments))
    assert done.status == 2 and done.err.count("\n") == 1 and told in done.err
