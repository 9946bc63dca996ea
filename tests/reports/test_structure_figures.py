"""The figures of a matrix and of a plan: every row and entry is counted, and what is missing is not drawn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.matrices.gallery import gallery
from sparsecast.reports import partition_figures
from sparsecast.reports.plan_figures import draw_plan, plan_picture
from sparsecast.reports.structure_figures import draw_structure, row_lengths, structure_picture
from sparsecast.results.plan import Plan, PlanCheck, PlannedBlock


@pytest.mark.parametrize(
    "lengths", [[], [0, 0], [3], [0, 1, 7, 7], [0, 1, 2, 5000], list(range(300)), [10**6, 10**6]]
)
def test_every_row_is_counted_once_in_bins_of_whole_numbers(lengths):
    found = row_lengths(np.array(lengths, dtype=np.int64))
    assert found.counts.sum() == len(lengths)
    assert (np.diff(found.edges) > 0).all() and len(found.counts) == len(found.edges) - 1


def test_diagonals_are_counted_one_by_one_or_some_together_and_piece_by_piece(monkeypatch):
    A = gallery("poisson2d", n=8)
    monkeypatch.setattr(partition_figures, "_PIECE", 20)
    found = structure_picture(A).offsets
    by_offset = dict(zip(found.edges[:-1].tolist(), found.counts.tolist(), strict=True))
    assert {offset: n for offset, n in by_offset.items() if n} == {-8: 56, -1: 56, 0: 64, 1: 56, 8: 56}
    wide = structure_picture(gallery("circuit", n=3000)).offsets
    assert wide.counts.sum() == gallery("circuit", n=3000).nnz and len(wide.counts) <= 121


@pytest.mark.parametrize(
    "A", [csr_array((0, 0)), csr_array((5, 0)), csr_array((1, 900)), gallery("circuit", n=900)]
)
def test_any_matrix_is_drawn(A, tmp_path):
    draw_structure(structure_picture(A), "some matrix", tmp_path / "s.svg")
    drawn = (tmp_path / "s.svg").read_text()
    for text in ("some matrix", "row lengths", "diagonals", "column minus row", "entries of a row"):
        assert f">{text}<" in drawn


@pytest.fixture
def made(recorded):
    csr = recorded.select(format="csr", threads=1, dtype="float64")[0].candidate
    ell = dataclasses.replace(csr, format="ell")
    blocks = (PlannedBlock(0, 39, ell, 1e-6, 1e-5), PlannedBlock(40, 63, csr, 1e-6, 0.0))
    baseline = PlannedBlock(0, 63, csr, 4e-6, 0.0)
    return Plan(blocks, 1000, 2e-6, None, 3e-6, 1e-5, baseline, 5)


def test_a_plan_beside_plain_csr_with_and_without_a_check(made, tmp_path):
    A = gallery("poisson2d", n=8)
    found = plan_picture(A, made)
    assert [(each.first_row, each.end_row, each.format) for each in found.blocks] == [
        (0, 40, "ell"),
        (40, 64, "csr"),
    ]
    plan, plain = found.lines
    assert plan.total_s(5) == pytest.approx(2e-5) == plain.total_s(5)
    assert found.break_even == 5 and plan.ends_s(10) == (None, pytest.approx(4e-5))
    assert plan.measured_total_s(10) is None and plain.measured_total_s(10) is None
    check = PlanCheck(3e-6, 5e-6, 9e-6, None, 2e-5, 0.0)
    plan, plain = plan_picture(A, made, check).lines
    assert (plan.measured_total_s(10), plain.measured_total_s(10)) == pytest.approx((5e-5, 5e-5))
    draw_plan(plan_picture(A, made, check), "a plan", tmp_path / "p.svg")
    drawn = (tmp_path / "p.svg").read_text()
    for text in ("2 row blocks", "ELL", "CSR", "plain CSR", "pays from 5 on", "measured", "a plan"):
        assert f">{text}<" in drawn


def test_plain_csr_itself_has_one_line_and_no_break_even(made):
    plain = dataclasses.replace(made, blocks=(made.baseline,), break_even_iterations=0, time_s=4e-6)
    found = plan_picture(gallery("poisson2d", n=8), plain)
    assert (len(found.lines), found.break_even) == (1, None)
