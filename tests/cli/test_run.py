"""A program that is run keeps its output, its arguments, its status and its exceptions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.errors import InputError

PROGRAM = """
import json, sys
import numpy as np
from scipy.sparse import diags_array
print(json.dumps([sys.argv[1:], __name__, sys.path[0], __file__]))
A = diags_array([1.0, 2.0], offsets=[0, 1], shape=(50, 50)).tocsr()
for _ in range(20):
    y = A @ np.ones(50)
end = sys.argv[1] if len(sys.argv) > 1 else ""
if end == "fails":
    raise RuntimeError("a fault of the program")
if end == "stops":
    raise KeyboardInterrupt
if end.isdigit():
    sys.exit(int(end))
if end == "says":
    sys.exit("a last word")
if end == "leaves":
    import os
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
"""


@pytest.fixture
def program(tmp_path: Path, data_folder: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.mark.parametrize("end", ["says", "fails"])
def test_a_program_ends_as_it_does_in_python(process, program, end):
    line = [sys.executable, program, end]
    alone = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    seen = process("run", program, end)
    assert (seen.status, seen.out) == (alone.returncode, alone.stdout)
    assert seen.err.startswith(alone.stderr)
    assert "20 products" in seen.err and "program.py:8" in seen.err


def test_options_behind_the_program_are_its_own(run, exact, program):
    outcome = run("run", "--json", program, "0", "--json", "-o", "x")
    *printed, line = outcome.out.splitlines()
    assert json.loads(printed[0])[:2] == [["0", "--json", "-o", "x"], "__main__"]
    document = exact(outcome._replace(out=line), "run")
    [products] = document["products"]
    assert (products["products"], products["nnz"], products["vectors"]) == (20, 99, 1)
    assert document["saving_s"] is None and products["unplanned"] and not document["applied"]


def test_a_module_is_found_from_here_and_what_was_before_is_after(run, program, monkeypatch):
    monkeypatch.chdir(program.parent)
    path = sys.path[:]
    outcome = run("run", "-m", "program", "--force")
    arguments, name, folder, file = json.loads(outcome.out)
    assert (arguments, name, Path(folder), Path(file)) == (["--force"], "__main__", program.parent, program)
    assert sys.path == path


@pytest.mark.parametrize("missing", [("nowhere.py",), ("-m", "no_such_module"), ("-m", "no.such.module")])
def test_a_program_that_is_missing_is_one_line(run, missing):
    outcome = run("run", *missing)
    assert outcome.status == 2 and outcome.out == "" and len(outcome.err.splitlines()) == 1


def test_a_program_that_is_interrupted_ends_so(run, program):
    outcome = run("run", program, "stops")
    assert outcome.status == 130 and "KeyboardInterrupt" in outcome.err


def test_a_page_and_a_table_are_written(run, program, tmp_path, calibrated, monkeypatch):
    from sparsecast.api import watching

    monkeypatch.setattr(watching, "KEPT_S", 0.0)
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    outcome = run("run", "-o", page, "--csv", table, "--threads", "1", "--anyway", program)
    assert outcome.status == 0, outcome.err
    assert "program.py:8" in table.read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert "program.py:8" in text and "20 products" in text
    assert run("run", "-o", page, program).status == 2  # is there already


def test_files_are_written_where_they_were_asked_for(run, program, tmp_path, calibrated, monkeypatch):
    from sparsecast.api import watching
    from sparsecast.operators import scipy_products

    monkeypatch.setattr(watching, "KEPT_S", 0.0)
    monkeypatch.setattr(scipy_products, "KEPT_S", 0.0)
    monkeypatch.chdir(tmp_path)
    calibrated.save(tmp_path / "own.json")
    names = "page.html", "table.csv", "table.md"
    files = [part for pair in zip(("-o", "--csv", "--markdown"), names, strict=True) for part in pair]
    outcome = run("run", *files, "--profile", "own.json", "--threads", "1", "--anyway", program, "leaves")
    assert outcome.status == 0 and "own.json" not in outcome.err, outcome.err
    assert all((tmp_path / name).is_file() for name in names)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("applies", [False, True])
def test_a_program_that_failed_says_why_there_is_no_plan(run, program, tmp_path, calibrated, applies):
    how = ["--apply"] if applies else []
    page = tmp_path / "page.html"
    outcome = run("run", "--json", "-o", page, "--threads", "1", "--anyway", *how, program, "fails")
    document = json.loads(outcome.out.splitlines()[-1])
    assert outcome.status == 1 and len(document["notes"]) == (0 if applies else 1)
    assert all(note in page.read_text(encoding="utf-8") for note in document["notes"])
    assert all(row["unplanned"] for row in document["products"] if row["plan"] is None)


@pytest.mark.parametrize("error", [KeyError("x"), InputError("a reason")])
def test_a_fault_of_ours_is_seen_as_one(run, program, calibrated, monkeypatch, error):
    from sparsecast.api import watching
    from sparsecast.operators import scipy_products

    def planned(*_, **__):
        raise error

    monkeypatch.setattr(watching, "KEPT_S", 0.0)
    monkeypatch.setattr(scipy_products, "KEPT_S", 0.0)
    monkeypatch.setattr(watching.Watch, "planned", planned)
    outcome = run("run", "--json", "--threads", "1", "--anyway", program, "7")
    document = json.loads(outcome.out.splitlines()[-1])
    assert outcome.status == 7 and len(document["notes"]) == 1
    assert [bool(row["unplanned"]) for row in document["products"]] == [True]
    assert ("Traceback" in outcome.err) == isinstance(error, KeyError)


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("cg_with_scipy.py", ("6", "2")),
        ("pagerank_by_hand.py", ("300", "20")),
        ("multigrid_with_pyamg.py", ("25", "1")),
    ],
)
def test_products_of_the_examples_are_seen(run, data_folder, example, arguments):
    if "pyamg" in example:
        pytest.importorskip("pyamg")
    outcome = run("run", "--json", EXAMPLES / example, *arguments)
    assert outcome.status == 0, outcome.err
    document = json.loads(outcome.out.splitlines()[-1])
    assert sum(row["products"] for row in document["products"]) >= 20
    assert any(row["place"].startswith(example) for row in document["products"])
