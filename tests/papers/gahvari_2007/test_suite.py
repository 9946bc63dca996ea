"""The synthetic suite: small real runs, and what happens when its time is over."""

import io
import json
import re
import time

import numpy as np
import pytest

from sparsecast.benchmark.run import Calibration
from sparsecast.devices import DEVICES, compiling
from sparsecast.devices.compiling import compile_as_told, compiled_beside
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.target import Target
from sparsecast.errors import MatrixSizeError
from sparsecast.machines.machine import detect
from sparsecast.matrices import problem as problem_module
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort
from sparsecast.papers.gahvari_2007 import suite as suite_module
from sparsecast.papers.gahvari_2007.search_space import NNZ_PER_ROW, SYMMETRIC, UNBLOCKED, Point, Series
from sparsecast.papers.gahvari_2007.suite import SyntheticSuite
from sparsecast.papers.gahvari_2007.summary import AGAIN, SUITE
from sparsecast.records import Candidate, Parameters

SETTING = Target("cpu", "float64", 32, 1)
HERE = detect()
SERIES = (UNBLOCKED, Series((2, 3)), SYMMETRIC)
QUICK = Effort(samples=2, sample_s=1e-4)


@pytest.fixture
def suite(monkeypatch):
    """Make a suite of a calibration that is not run, with samples of a moment."""
    monkeypatch.setattr(suite_module, "EFFORT", QUICK)
    monkeypatch.setattr(suite_module, "EFFORT_OF_FEW", QUICK)

    def make(series=SERIES, dimensions=(512, 1024), device=None):
        run = Calibration(HERE, [SETTING], 60.0, device=device or DEVICES.get("cpu"))
        return SyntheticSuite(run, [SETTING], series, dimensions)

    return make


def test_a_run_measures_every_point_and_some_again(suite):
    made = suite(dimensions=(512,))
    measured = list(made.measured(60.0))
    assert all(record.matrix == problem.specification for problem, own in measured for record in own)
    records = [record for _, own in measured for record in own]
    first, again = ([record for record in records if record.suite == name] for name in (SUITE, AGAIN))
    points = [Point.named(record.matrix) for record in first]
    assert len(points) == 33 and set(points) == {
        Point(series, 512, k) for series in SERIES for k in NNZ_PER_ROW
    }
    assert again and {record.matrix for record in again} <= {record.matrix for record in first}
    for record, point in zip(first, points, strict=True):
        assert record.candidate.format == point.series.format
        assert record.candidate.parameters == ({"block": (2, 3)} if point.series.format == "bcsr" else {})
        assert record.nnz == pytest.approx(point.dimension * point.nnz_per_row, rel=0.03)
        assert record.error <= 1e-14
    assert {"compiling", "making matrices", "measuring", "measuring again"} == set(made.run.phases)
    assert made.run.notes == []


def test_the_matrices_are_as_asked_for():
    subject = Problem.named(Point(Series((4, 2)), 512, 29).name)
    blocks = subject.matrix.toarray().reshape(128, 4, 256, 2).any(axis=(1, 3))
    assert 8 * blocks.sum() == subject.matrix.nnz, "its blocks are full"
    mirrored, again = (Problem.named(Point(SYMMETRIC, 512, 29).name) for _ in range(2))
    assert mirrored.structure.symmetry.triangle_nnz is not None
    assert np.array_equal(mirrored.matrix.data, again.matrix.data)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that only what the tests say moves."""
    now = [0.0]
    monkeypatch.setattr(suite_module, "perf_counter", lambda: now[0])
    return now


def test_a_measurement_is_given_up_when_the_time_is_over(suite, clock, monkeypatch):
    def measure(problem, suite, candidates, effort, instruments, on_sample):
        for _ in range(1 if clock[0] < 3 else 100):
            clock[0] += 1.0
            on_sample()
        return []

    monkeypatch.setattr(suite_module, "measure_candidates", measure)
    made = suite()
    assert [record for _, own in made.measured(24.0) for record in own] == []
    assert clock[0] == 25.0, "one sample beyond the limit"
    (note,) = made.run.notes
    assert re.fullmatch(r"float64: out of time for [1-9]\d* points, refilled like those cut", note)


def test_a_matrix_that_there_is_no_memory_for_does_not_end_the_run(suite, monkeypatch):
    inner = problem_module.built

    def short_of_memory(family, parameters):
        if parameters["rows"] == 1024:
            raise MatrixSizeError("a synthetic matrix would take too much")
        return inner(family, parameters)

    monkeypatch.setattr(problem_module, "built", short_of_memory)
    made = suite(series=(UNBLOCKED,))
    assert {Point.named(problem.name).dimension for problem, own in made.measured(60.0) if own} == {512}
    assert made.run.notes == ["float64: no memory for 11 points, refilled like those cut"]


def test_what_is_compiled_is_what_is_measured(suite, monkeypatch):
    compiled = []
    inner = compiling.warm_up

    def warm_up(candidate):
        compiled.append(candidate)
        inner(candidate)

    monkeypatch.setattr(compiling, "warm_up", warm_up)
    records = [record for _, own in suite(dimensions=(4096,)).measured(10.0) for record in own]
    assert {record.candidate for record in records} == set(compiled)


def test_sizes_that_there_is_no_time_to_compile_are_left_out(suite, clock, monkeypatch):
    def slow(candidate):
        clock[0] += 4.0

    helped = []

    def beside(rest, processes):
        helped.extend(rest)
        return compiled_beside((), 0)

    monkeypatch.setattr(compiling, "warm_up", slow)
    monkeypatch.setattr(suite_module, "measure_candidates", lambda *arguments: [])
    monkeypatch.setattr(compiling, "compiled_beside", beside)
    monkeypatch.setattr(compiling, "perf_counter", lambda: clock[0])
    wanted = [UNBLOCKED, *(Series((2, c)) for c in (2, 3, 4, 6, 8))]
    made = suite(series=wanted)
    list(made.measured(20.0))
    assert made.run.notes[0] == "float64: no time to compile 2x6, 2x8"
    assert [candidate.parameters for candidate in helped] == [series.parameters for series in wanted[1:]]


def test_a_series_without_a_kernel_on_the_device_is_none_of_the_suite(suite, monkeypatch):
    class OnlyCSR(Processor):
        kernels = type("None but CSR", (), {"names": lambda self: ["csr"]})()

    measured = []
    monkeypatch.setattr(compiling, "warm_up", lambda candidate: None)
    monkeypatch.setattr(
        suite_module, "candidate_of", lambda *arguments: Candidate("csr", "", "cpu", "", 32, 1)
    )
    monkeypatch.setattr(
        suite_module, "measure_candidates", lambda problem, *rest: measured.append(problem.name)
    )
    list(suite(device=OnlyCSR(), dimensions=(512,)).measured(10.0))
    assert {Point.named(name).series for name in measured} == {UNBLOCKED}


BLOCKS = ((2, 2), (6, 1), None)
CANDIDATES = [
    Candidate("bcsr", "vectors", "cpu", "float64", 32, 1, Parameters({"block": block} if block else {}))
    for block in BLOCKS
]


def test_a_process_compiles_what_it_is_told(monkeypatch):
    compiled = []
    monkeypatch.setattr(Processor, "warm_up", lambda self, candidate: compiled.append(candidate))
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([each.to_dict() for each in CANDIDATES])))
    compile_as_told()
    assert compiled == CANDIDATES


def wait_for(found):
    """Return what a function finds, once it finds something."""
    deadline = time.monotonic() + 300
    while not (result := found()):
        assert time.monotonic() < deadline, "waited for five minutes"
        time.sleep(0.01)
    return result


def test_processes_share_the_work_from_the_end_on(monkeypatch, tmp_path):
    note = f"import sys, os; open(r'{tmp_path}' + f'/{{os.getpid()}}', 'w').write(sys.stdin.read())"
    monkeypatch.setattr(compiling, "_COMPILE", note)

    def both():
        texts = [text for path in tmp_path.iterdir() if (text := path.read_text())]
        return texts if len(texts) == 2 else []

    with compiled_beside(CANDIDATES, 2):
        texts = wait_for(both)
    blocks = sorted(
        ([each["parameters"].get("block") for each in json.loads(text)] for text in texts), key=len
    )
    assert blocks == [[[6, 1]], [None, [2, 2]]]


def test_processes_find_our_modules_and_not_those_of_the_working_directory(monkeypatch, tmp_path):
    ours, working, found = (tmp_path / name for name in ("ours", "working", "found"))
    for folder in (ours, working):
        folder.mkdir()
        (folder / "only_here.py").write_text(f"open({str(found)!r}, 'w').write({folder.name!r})\n")
    monkeypatch.chdir(working)
    monkeypatch.syspath_prepend(ours)
    monkeypatch.setattr(compiling, "_COMPILE", "import only_here")
    with compiled_beside(CANDIDATES, 1):
        assert wait_for(lambda: found.exists() and found.read_text()) == "ours"
