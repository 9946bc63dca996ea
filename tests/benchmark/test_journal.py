"""Journals: nothing that was measured is lost with the process, and nothing damaged is taken for measured."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys

import pytest

import sparsecast as sc
from sparsecast.api import merge
from sparsecast.benchmark import journal as journals
from sparsecast.benchmark.journal import journal, keep, keep_distributed, kept, lines, read_journal
from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.machines.storage import home
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.models.linear import LinearModel
from sparsecast.records import Configuration, MicroBenchmark, Record

from ..conftest import distributed_record

NAMES = ("gallery:poisson2d?n=9", "gallery:arrow?n=40")


def measured(recorded, name):
    problem = Problem.named(name)
    records = [
        dataclasses.replace(record, matrix=problem.specification, nnz=problem.structure.nnz)
        for record in recorded.records[:3]
    ]
    return problem, records


@pytest.fixture
def written(recorded, tmp_path):
    """A journal of two matrices with three Records each."""
    path = tmp_path / "machine.journal"
    with journal(path) as add:
        for name in NAMES:
            add(*measured(recorded, name))
    return path


def test_what_was_written_is_read_with_each_matrix_once(recorded, written):
    found = read_journal(written)
    assert found.records == [record for name in NAMES for record in measured(recorded, name)[1]]
    assert set(found.matrices) == set(NAMES)
    for name in NAMES:
        assert found.matrices[name].structure == Problem.named(name).structure
    lines = [json.loads(line) for line in written.read_text().splitlines()]
    assert [line["matrix"]["specification"] for line in lines if "matrix" in line] == list(NAMES)


def test_a_journal_goes_on_where_it_was_left(recorded, written):
    before = read_journal(written)
    with journal(written, before.matrices) as add:
        add(*measured(recorded, NAMES[0]))
    found = read_journal(written)
    assert len(found.records) == 9 and found.matrices == before.matrices
    assert len(written.read_text().splitlines()) == 2 + 9


def test_measurements_go_into_a_profile_with_their_matrices(recorded, written):
    found = read_journal(written)
    profile = found.into(Profile(recorded.machine, ()))
    assert list(profile.records) == found.records and profile.matrices == found.matrices
    assert found.into(profile) == profile, "the same again replaces itself"


@pytest.mark.parametrize("left", [1, 2, 30, 0.5])
def test_a_last_line_that_was_cut_does_not_count_and_is_written_over(recorded, written, left):
    whole = written.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    kept = int(left * (len(whole) - last)) if left == 0.5 else left
    written.write_bytes(whole[: last + kept])
    found = read_journal(written)
    assert len(found.records) == 5
    with journal(written, found.matrices) as add:
        problem, records = measured(recorded, NAMES[1])
        add(problem, records[2:])
    assert written.read_bytes() == whole


@pytest.mark.parametrize("damage", ["", "{", "null", "[1]", "{}", '{"schema": 4, "record": {}}'])
def test_a_damaged_line_in_the_middle_is_refused_with_its_number(written, damage):
    lines = written.read_text().splitlines()
    lines[2] = damage
    written.write_text("\n".join(lines) + "\n")
    with pytest.raises(ProfileError):
        read_journal(written)


@pytest.mark.parametrize(
    ("name", "value"),
    [("time_s", math.nan), ("time_s", -1e-6), ("time_s", 0.0), ("energy_j", math.inf), ("convert_s", -1.0)],
)
@pytest.mark.parametrize("line", [1, -1])
def test_a_record_that_nobody_can_have_measured_is_refused_with_its_line(written, line, name, value):
    lines = [json.loads(each) for each in written.read_text().splitlines()]
    lines[line]["record"][name] = value
    written.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(ProfileError):
        read_journal(written)


def test_a_killed_writer_loses_at_most_the_line_it_was_at(recorded, written, tmp_path):
    source = tmp_path / "source.json"
    source.write_text(json.dumps([record.to_row() for record in measured(recorded, NAMES[0])[1]]))
    path = tmp_path / "killed.journal"
    code = f"""
import json
from pathlib import Path
from sparsecast.benchmark.journal import journal
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.problem import Problem
from sparsecast.records import SCHEMA_VERSION, Record
records = [Record.from_row(row) for row in json.loads(Path({str(source)!r}).read_text())]
with journal(Path({str(path)!r})) as add:
    while True:
        add(Problem.named({NAMES[0]!r}), records)
        print("written", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        said = [child.stdout.readline() for _ in range(3)]
        os.kill(child.pid, signal.SIGKILL)
    assert said == ["written\n"] * 3
    found = read_journal(path)
    assert len(found.records) >= 9 and all(isinstance(record, Record) for record in found.records)
    assert set(found.matrices) == {NAMES[0]}


def test_each_process_writes_a_journal_of_its_own_and_readers_merge_them(recorded, data_folder, monkeypatch):
    (first, one), (second, two) = (measured(recorded, name) for name in NAMES)
    later = [dataclasses.replace(record, measured_at="2099-01-01T00:00:00+00:00") for record in one]
    keep(recorded.machine, first, later)
    keep(recorded.machine, first, later[:1])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    keep(recorded.machine, second, two)
    paths = list((home() / "measurements" / recorded.name).iterdir())
    assert len(paths) == 2 and {path.suffix for path in paths} == {".jsonl"}
    found = kept(recorded.machine)
    assert found.records == [*two, *later, later[0]], "in the order measured, whatever the files"
    assert set(found.matrices) == set(NAMES)
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    assert len([line for line in lines if "matrix" in line]) == 2, "a matrix once for each process"
    assert {read_journal(path).machine for path in paths} == {recorded.machine}


def test_shards_of_eight_processes_give_the_answers_of_one(recorded, data_folder, tmp_path, monkeypatch):
    problems = [Problem.named(f"gallery:banded?n={n}") for n in range(50, 80)]
    poisson = sc.gallery("poisson2d", n=9)
    monkeypatch.setattr(LinearModel, "learns_from", classmethod(lambda cls, suite: True))
    found, alone = [], list(sc.predict(poisson, recorded, threads=1, model="linear"))
    for count in (1, 8):
        monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path / str(count)))
        for number in range(count, 0, -1):
            monkeypatch.setattr(os, "getpid", lambda number=number: -number)
            for problem in filter(Shard(number, count).has, problems):
                records = measured(recorded, problem.name)[1]
                keep(recorded.machine, problem, [dataclasses.replace(each, suite="user") for each in records])
        assert len(list((home() / "measurements" / recorded.name).iterdir())) == count
        forecasts = list(sc.predict(poisson, recorded, threads=1, model="linear"))
        found.append((kept(recorded.machine).records, forecasts, merge([], tmp_path / "a.parquet").records))
    assert found[0] == found[1] and len(found[0][0]) == 90 and found[0][1] != alone


def test_a_journal_is_read_again_only_where_it_has_changed(recorded, data_folder, monkeypatch):
    problem, records = measured(recorded, NAMES[0])
    keep(recorded.machine, problem, records)
    opened = []
    monkeypatch.setattr(journals, "read_journal", lambda path: opened.append(path) or read_journal(path))
    for _ in range(3):
        assert kept(recorded.machine).records == records
    assert len(opened) == 1
    keep(recorded.machine, problem, records[:1])
    assert len(kept(recorded.machine).records) == len(records) + 1 and len(opened) == 2


def test_a_journal_of_another_machine_is_refused(recorded, data_folder):
    other = dataclasses.replace(recorded.machine, processor="another")
    keep(other, *measured(recorded, NAMES[0]))
    folder = home() / "measurements"
    (folder / other.name).rename(folder / recorded.name)
    with pytest.raises(ProfileError):
        kept(recorded.machine)


RECORD = distributed_record(
    *(Configuration("local-1d", "csr", "coo", "metis", 4, 1), "gallery:poisson2d?n=30", 4380),
    *(estimated_distribution(900, 900, 4380, 4, "metis", 2).to_dict(), 1.25e-5),
    **{"samples_s": (1.5e-5, 1.25e-5), "spread": 0.1, "is_oversubscribed": True},
    parts_s={"local": [1e-5] * 4},
)
POINT = MicroBenchmark("fma", 1, 1, 0, None, 1e-9, None, False, "", "0.1")


def test_products_on_ranks_come_back(data_folder, recorded):
    other = dataclasses.replace(RECORD, time_s=1e-5, parts_s={})
    assert kept(recorded.machine).distributed == []
    keep_distributed(recorded.machine, [RECORD])
    keep_distributed(recorded.machine, [other])
    assert kept(recorded.machine).distributed == [RECORD, other]


@pytest.mark.parametrize(("kind", "measured"), (("distributed", RECORD), ("microbenchmark", POINT)))
@pytest.mark.parametrize("time_s", (0.0, -1e-6, float("nan"), float("inf")))
def test_a_time_that_nobody_measured_is_refused(tmp_path, kind, measured, time_s):
    path = tmp_path / "ranks.journal"
    with lines(path) as append:
        append(kind, dataclasses.asdict(measured))
        append(kind, dataclasses.asdict(dataclasses.replace(measured, time_s=time_s)))
    with pytest.raises(ProfileError):
        read_journal(path)
