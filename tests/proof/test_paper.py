"""A sixth paper as a distribution (toys/paper): a model, a command, an experiment and a function."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.errors import PluginError
from sparsecast.models import MODELS
from sparsecast.system.registry import Registry

PROFILE = Path(__file__).parents[1] / "data/recorded-profile.parquet"
PROJECT = """[project]
name = "doe"
version = "1.0"
[project.entry-points."sparsecast.papers"]
doe = "{}"
"""
ROW_COST = "import sparsecast as sc; print(sc.row_cost(sc.profile({!r})))"


def test_it_adds_a_model_a_command_a_function_and_an_experiment(install, sparsecast, data_folder, tmp_path):
    install("paper")
    shown, refused, *done = sparsecast(
        ("--help",),
        ("paper", "doe"),
        ("predict", "gallery:poisson2d?n=30", "--profile", PROFILE, "--model", "doe", "--json"),
        ("doe", PROFILE, "--json"),
        ("paper", "--json"),
        ("paper", "doe", "--from", PROFILE, "--figure", tmp_path, "--json"),
    )
    assert "Doe 2026" in shown.out
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    found, own, listed, report = (json.loads(outcome.out) for outcome in done)
    assert found["model"] == "doe" and all(item["time_s"] > 0 for item in found["forecasts"])
    assert {"doe", "hossain-saule"} <= {paper["name"] for paper in listed["papers"]}
    [[row]] = [table["rows"] for table in report["tables"]]
    assert row["paper_s"] == 2e-9 and row["ours_s"] == pytest.approx(own["row_s"])
    page = (tmp_path / "doe.md").read_text()
    assert "sparsecast paper doe --from" in page and "## Table 1" in page and "| Table 1 | done |" in page

    seconds = own["row_s"]
    python = [sys.executable, "-W", "error", "-c", ROW_COST.format(str(PROFILE))]
    asked = subprocess.run(python, capture_output=True, text=True, timeout=600, check=False)
    assert asked.returncode == 0, asked.stderr
    assert float(asked.stdout) == pytest.approx(seconds) and seconds > 0


@pytest.mark.parametrize(("value", "expected"), [("nowhere", "nowhere"), ("doe_2026", "'guo' of doe_2026")])
def test_a_paper_that_is_no_package_or_takes_a_name_is_named(install, monkeypatch, tmp_path, value, expected):
    (tmp_path / "doe_2026" / "models").mkdir(parents=True)
    for file in ("__init__.py", "models/__init__.py", "models/guo.py"):
        (tmp_path / "doe_2026" / file).write_text("")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(value))
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(PluginError, match=expected):
        Registry("model", "sparsecast.models", MODELS._helpers).names()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("doe", "model 'doe': expected doe_2026.lines to register that name, it did not"),
        ("guo", "model 'guo' of doe_2026.lines: expected a name that is not taken"),
    ],
)
def test_a_paper_names_members_in_its_file(install, sparsecast, tmp_path, model, expected):
    (tmp_path / "doe_2026").mkdir()
    for file in ("__init__.py", "lines.py"):
        (tmp_path / "doe_2026" / file).write_text("")
    (tmp_path / "doe_2026" / "paper.toml").write_text(f'[members]\nmodels = {{ {model} = "lines" }}\n')
    (tmp_path / "pyproject.toml").write_text(PROJECT.format("doe_2026"))
    install(tmp_path)
    [done] = sparsecast(("predict", "gallery:poisson2d?n=30", "--profile", PROFILE, "--model", model))
    assert done.status == 2 and done.err.count("\n") == 1
    assert expected in done.err
