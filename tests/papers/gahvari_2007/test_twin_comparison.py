"""Twins beside their matrices: what is measured, what is left out, and how the errors are summed up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array

from sparsecast.devices.product_timer import ProductTimer
from sparsecast.errors import InputError
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import block_matrix, varied_matrix
from sparsecast.measuring.timing import Effort, Timing
from sparsecast.papers.gahvari_2007 import twin_comparison
from sparsecast.papers.gahvari_2007.rating import twins
from sparsecast.papers.gahvari_2007.twin_comparison import twins_of

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
    with pytest.raises(InputError, match="float65"):
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


def test_ratios_and_scores_are_of_times_sampled_in_turn(folder, monkeypatch):
    times = {"real": 2.0, "bands": 3.0, "again": 2.1, "structure": 1.9}

    def measured(self, calls, effort):
        assert list(calls) == ["real", "bands", "again", "structure"]
        assert calls["real"] is calls["again"]
        return {name: Timing.of((times[name],) * 4) for name in calls}

    monkeypatch.setattr(ProductTimer, "time", measured)
    twins = twins_of([folder / "plain.mtx"], (1,), detect())
    (row,), (score,) = twins.rows, twins.scores
    assert (row.time_s, row.again, row.bands, row.structure) == pytest.approx((2.0, 1.05, 1.5, 0.95))
    # A twin that is faster is as far off as one that is slower.
    for errors, expected in ((score.again, 0.05), (score.bands, 0.5), (score.structure, 0.05)):
        assert (errors.median_error, errors.p90_error) == pytest.approx((expected, expected))
