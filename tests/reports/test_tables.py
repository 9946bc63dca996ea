"""Tables for people on fixed data, at a fixed width, against golden files."""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from sparsecast.features.analysis import structure
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.gallery import gallery
from sparsecast.papers.gahvari_2007.bench_reports import twins_table
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, Twins, TwinScore
from sparsecast.planning.partition_comparison import partitioned
from sparsecast.records import Bandwidth, Candidate
from sparsecast.reports import tables
from sparsecast.results.partitions import Partitions

GOLDEN = Path(__file__).parents[1] / "data" / "tables"
#: Set to write the golden files anew instead of comparing with them.
WRITE_GOLDEN = "SPARSECAST_WRITE_GOLDEN"

WIDTH = 120


def candidate(format_name, kernel="rows"):
    return Candidate(format_name, kernel, "cpu", "float64", 32, 2)


MACHINE = Machine(
    "Example Processor",
    "x86_64",
    4,
    8,
    (Cache(1, 32 << 10, 2), Cache(2, 1 << 20, 2)),
    ("avx2", "fma"),
    64 << 30,
    "Linux",
)


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


def test_structure(matches):
    matches("structure", tables.structure("arrow", structure(gallery("arrow", n=300, dense_rows=2))))


def test_partitions(matches):
    A = gallery("poisson2d", n=12)
    made = [partitioned(A, 4, method) for method in ("rows", "uniform-2d")]
    found = Partitions([dataclasses.replace(each, partition_s=0.01) for each in made], {"metis": "Why not."})
    matches("partitions", tables.partitions("mesh on 4 ranks", found, 8))


def test_machines(matches):
    contents = {MACHINE.name: "cpu float64 8 threads (205 records)", "other-2t-01234567": "no records"}
    matches("machines", tables.machines(MACHINE, contents), tables.machines(MACHINE, {}))


def test_machines_shows_the_bandwidth_over_most_bytes_of_each_kind():
    def stream(kind, device, threads, size, time_s):
        return Bandwidth(kind, device, threads, size, time_s, 0.0, "", "")

    bandwidths = [
        stream("read", "cpu", 2, 10**9, 0.1),
        stream("read", "cpu", 2, 10**6, 1e-5),
        stream("read", "cpu", 1, 10**6, 1e-3),
        stream("to device", "cuda", 1, 10**9, 0.05),
    ]
    text = "cpu 1 thread read 1 GB/s, cpu 2 threads read 10 GB/s, cuda to device 20 GB/s"
    assert tables.bandwidth_sentence(bandwidths) == text
    assert tables.bandwidth_sentence([]) == ""
    assert tables.bandwidth_sentence([stream("read", "gone", 1, 10**9, 0.1)]) == "gone read 10 GB/s"
    shown = tables.machines(MACHINE, {MACHINE.name: "records", "other": "records"}, {"other": bandwidths})
    assert list(shown.columns[1].cells) == ["records", "records", text]


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
