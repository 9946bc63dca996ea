"""Twins beside their matrices: what is measured, what is left out, and how the errors are summed up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array

from sparsecast.devices import product_timer
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import InputError, WrongResultError
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import block_matrix, varied_matrix
from sparsecast.measuring.timing import Effort, Timing
from sparsecast.papers.gahvari_2007 import twin_comparison
from sparsecast.papers.gahvari_2007.rating import twins
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, twins_of
from sparsecast.records import Candidate

EFFORT = Effort(samples=2, sample_s=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus")
    mmwrite(path / "plain.mtx", varied_matrix(300, 4, "mixed", 0.5, seed=0))
    mmwrite(path / "blocks.mtx", block_matrix(60, 3, 2, 0.5, seed=0))
    mmwrite(path / "complex.mtx", csr_array(np.diag([1j, 2.0])))
    mmwrite(path / "empty.mtx", csr_array((3, 3)))
    (path / "broken.mtx").write_text("%%MatrixMarket nonsense\n")
    return path


def test_every_matrix_is_measured_beside_its_twins_or_named(folder):
    ticks = []
    found = twins_of(sorted(folder.iterdir()), (1, 2), detect(), None, lambda: ticks.append(1), EFFORT)
    assert len(ticks) == 5
    ways = [(row.matrix, row.candidate.format, row.candidate.threads, row.block) for row in found.rows]
    assert ways == [
        *(("blocks", name, threads, 2) for threads in (1, 2) for name in ("csr", "bcsr")),
        *(("complex", "csr", threads, 1) for threads in (1, 2)),
        *(("plain", "csr", threads, 1) for threads in (1, 2)),
    ]
    assert {row.matrix: row.candidate.dtype for row in found.rows}["complex"] == "complex128"
    for row in found.rows:
        assert min(row.time_s, row.again, row.bands, row.structure) > 0
    assert list(found.refused) == ["broken", "empty"]
    assert found.refused["empty"] == "empty has no entries: expected some to multiply; leave it out"
    assert [(score.format, score.threads, score.matrices) for score in found.scores] == [
        ("csr", 1, 3),
        ("bcsr", 1, 1),
        ("csr", 2, 3),
        ("bcsr", 2, 1),
    ]


def test_a_type_that_would_lose_imaginary_parts_is_refused(folder):
    found = twins_of([folder / "complex.mtx"], (1,), detect(), "float32", effort=EFFORT)
    assert found.rows == () and "complex" in found.refused["complex"]


def test_an_unknown_type_is_refused_once(folder):
    with pytest.raises(InputError, match="dtype 'float65' on cpu: expected one of float64, "):
        twins([folder / "plain.mtx"], dtype="float65")


def test_ctrl_c_keeps_the_matrices_before(folder, monkeypatch):
    inner = twin_comparison.Problem.named

    def named(name):
        if name.endswith("plain.mtx"):
            raise KeyboardInterrupt
        return inner(name)

    monkeypatch.setattr(twin_comparison.Problem, "named", named)
    found = twins_of([folder / "blocks.mtx", folder / "plain.mtx"], (1,), detect(), effort=EFFORT)
    assert found.interrupted
    assert {row.matrix for row in found.rows} == {"blocks"}
    assert [score.matrices for score in found.scores] == [1, 1]


def test_a_wrong_kernel_is_not_measured(folder, monkeypatch):
    monkeypatch.setattr(
        product_timer, "right_hand_side", lambda cols, dtype: np.full(cols, np.inf, dtype=dtype)
    )
    with pytest.raises(WrongResultError, match="csr"):
        monkeypatch.setattr(ReferenceProduct, "of", _of_ones)
        twins_of([folder / "plain.mtx"], (1,), detect(), effort=EFFORT)


def _of_ones(A, x, real=ReferenceProduct.of):
    return real(A, np.ones_like(x))


def test_ratios_and_scores_are_of_undisturbed_times(folder, monkeypatch):
    times = {"real": 2.0, "bands": 3.0, "again": 2.1, "structure": 1.9}

    def measured(calls, effort):
        assert list(calls) == ["real", "bands", "again", "structure"]
        assert calls["real"] is calls["again"]
        # One sample in three meets another program.
        return {name: Timing.of((times[name], times[name], 10 * times[name]) * 4) for name in calls}

    monkeypatch.setattr(twin_comparison, "measure", measured)
    found = twins_of([folder / "plain.mtx"], (1,), detect())
    (row,), (score,) = found.rows, found.scores
    assert (row.time_s, row.again, row.bands, row.structure) == pytest.approx((2.0, 1.05, 1.5, 0.95))
    assert score.again == pytest.approx((0.05, 0.05))
    assert score.bands == pytest.approx((0.5, 0.5)) and score.structure == pytest.approx((0.05, 0.05))


def test_errors_count_alike_in_both_directions():
    way = Candidate("csr", "unrolled", "cpu", "float64", 32, 1)
    row = TwinRow("a", 10, way, 1, 1e-6, again=1.0, bands=0.5, structure=1.1)
    rows = [row, dataclasses.replace(row, bands=1.2), dataclasses.replace(row, bands=0.9, structure=0.8)]
    (score,) = twin_comparison._scores(rows)
    assert score.bands == pytest.approx((0.2, 0.44)) and score.structure == pytest.approx((0.1, 0.18))
