"""The runner of the experiments: each is found, and what it prints are the rows that it measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "benchmarks" / "run.py"
RECORDED = str(ROOT / "tests" / "data" / "recorded-profile.parquet")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, str(RUNNER), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_names_every_experiment_of_every_file():
    files = [path for path in RUNNER.parent.glob("*.py") if not path.stem.startswith("gpu_")]
    names = [
        name
        for path in files
        for name in re.findall(r"^@experiment\(.*\)\ndef (\w+)", path.read_text(), re.M)
    ]
    listed = run("--help").stdout
    assert len(names) > 20
    assert not [name for name in names if f" {name.replace('_', '-')} " not in listed]


@pytest.mark.parametrize(
    ("arguments", "headings"),
    [
        (
            ["conversions", "gallery:nothing", "gallery:poisson2d?n=9", "--rounds", "1"],
            {"matrix", "conversion", "memory share"},
        ),
        (["session-time", "--matrices", "2", "--profile", RECORDED], {"sessions", "matrices", "forecast_s"}),
    ],
)
def test_an_experiment_prints_its_rows_as_one_document_and_says_what_is_left_out(arguments, headings):
    done = run(*arguments, "--json")
    rows = json.loads(done.stdout)["rows"]
    assert rows and all(headings <= row.keys() for row in rows)
    if "gallery:nothing" in arguments:
        assert "nothing" in done.stderr and {row["matrix"] for row in rows} == {"gallery:poisson2d?n=9"}


def test_no_column_of_a_table_is_cut_where_the_terminal_is_narrow(monkeypatch, capsys):
    monkeypatch.syspath_prepend(RUNNER.parent)
    from experiment import show

    names, numbers = [f"name {n}" for n in range(8)], [f"number {n}" for n in range(8)]
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show([dict.fromkeys(names, "SYMMETRIC_CSR (values one)") | dict.fromkeys(numbers, 1234567)], "t", False)
    printed = capsys.readouterr().out
    assert printed.count("SYMMETRIC_CSR (values one)") == 8 and printed.count("1,234,567") == 8
