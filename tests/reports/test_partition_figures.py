"""The figure of partitions: each entry is counted in its point, and is seen as what it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.reports import partition_figures
from sparsecast.reports.partition_figures import draw_patterns, pattern

REMOTE = 3


def test_a_small_matrix_has_a_point_for_each_entry():
    A = gallery("poisson2d", n=4)
    made = partition(A, 4, "rows")
    found = pattern(A, made)
    assert (found.entries == (A.toarray() != 0)).all()
    row, col = found.entries.nonzero()
    is_local = row // 4 == col // 4
    assert (found.kinds[row, col] == np.where(is_local, row // 4 % 3, REMOTE)).all()


def test_a_renumbered_matrix_is_drawn_in_its_new_order():
    A = gallery("circuit", n=60)
    made = partition(A, 9, "uniform-2d")
    found = pattern(A, made)
    assert (found.entries == (made.renumbered(A).toarray() != 0)).all()
    row, col = found.entries.nonzero()
    assert (found.kinds[row, col] == (row // 20 + col // 20) % 3).all()


def test_a_large_matrix_is_drawn_in_points_piece_by_piece(monkeypatch):
    A = gallery("poisson2d", n=30)
    made = partition(A, 7, "nonzeros")
    whole = pattern(A, made)
    monkeypatch.setattr(partition_figures, "_POINTS", 10)
    monkeypatch.setattr(partition_figures, "_PIECE", 100)
    found = pattern(A, made)
    assert found.entries.shape == (10, 10)
    assert found.entries.sum() == whole.entries.sum() == A.nnz
    blocks = A.toarray().reshape(10, 90, 10, 90) != 0
    assert (found.entries == blocks.sum(axis=(1, 3))).all()


@pytest.mark.parametrize("shape", ((0, 0), (5, 0), (1, 900)))
def test_empty_and_long_matrices_are_drawn(tmp_path, shape):
    A = csr_array(shape)
    draw_patterns([pattern(A, partition(A, 3, "rows"))], "empty", tmp_path / "empty.png")
    assert (tmp_path / "empty.png").stat().st_size > 1000


def test_each_partition_has_its_panel_and_the_colours_are_explained(tmp_path):
    import matplotlib

    A = gallery("poisson2d", n=9)
    patterns = [pattern(A, partition(A, 4, method)) for method in ("rows", "nonzeros", "uniform-2d")]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_patterns(patterns, "mesh on 4 ranks", tmp_path / "patterns.svg")
    drawn = (tmp_path / "patterns.svg").read_text()
    for text in ("rows, 4 ranks", "nonzeros, 4 ranks", "uniform-2d, 4 ranks", "mesh on 4 ranks"):
        assert f">{text}<" in drawn
    assert "entries that need x of another rank" in drawn


def test_a_figure_that_cannot_be_written_is_said(tmp_path):
    A = gallery("poisson2d", n=4)
    with pytest.raises(InputError, match=r"a\.png cannot be written"):
        draw_patterns([pattern(A, partition(A, 2, "rows"))], "", tmp_path / "absent" / "a.png")
