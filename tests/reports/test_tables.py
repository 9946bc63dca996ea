"""Tables for people on fixed data, at a fixed width, against golden files."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from sparsecast.papers.gahvari_2007.bench_reports import twins_table
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, Twins, TwinScore
from sparsecast.records import Candidate

GOLDEN = Path(__file__).parents[1] / "data" / "tables"
#: Set to write the golden files anew instead of comparing with them.
WRITE_GOLDEN = "SPARSECAST_WRITE_GOLDEN"

WIDTH = 120


def candidate(format_name, kernel="rows"):
    return Candidate(format_name, kernel, "cpu", "float64", 32, 2)


@pytest.fixture
def matches():
    """Compare a rendered table with its golden file."""

    def compare(name, *shown):
        stream = io.StringIO()
        console = Console(file=stream, width=WIDTH, color_system=None, legacy_windows=False)
        for item in shown:
            console.print(item)
        found = "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
        path = GOLDEN / f"{name}.txt"
        if os.environ.get(WRITE_GOLDEN):
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        assert found == path.read_text(encoding="utf-8")

    return compare


TWINS = Twins(
    (
        TwinRow("crack", 60_760, candidate("csr"), 1, 5.7e-5, 0.995, 0.79, 1.034),
        TwinRow("nos3", 15_844, candidate("csr"), 2, 7e-6, 1.0, 0.987, 1.028),
        TwinRow("nos3", 15_844, candidate("bcsr", "blocks"), 2, 4.4e-6, 1.01, 0.947, 1.2),
    ),
    (
        TwinScore("csr", 2, 2, (0.003, 0.005), (0.11, 0.19), (0.031, 0.034)),
        TwinScore("bcsr", 2, 1, (0.01, 0.01), (0.053, 0.053), (0.2, 0.2)),
    ),
    {"empty": "empty has no entries: expected some to multiply; leave it out"},
)


def test_twins(matches):
    matches("twins", twins_table(TWINS))
