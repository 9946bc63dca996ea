"""The picture of the gallery."""

from __future__ import annotations

from sparsecast.matrices.gallery import gallery_names
from sparsecast.reports.gallery_figure import draw_gallery, drawn_matrices


def test_every_matrix_is_drawn_small_with_its_default_parameters(tmp_path):
    shown = drawn_matrices()
    assert sorted(shown) == gallery_names()
    assert all(0 < matrix.shape[0] <= 400 and matrix.nnz for _, matrix in shown.values())
    assert shown["poisson3d"][0] == "n=100, points=7"
    draw_gallery(tmp_path / "gallery.svg")
    text = (tmp_path / "gallery.svg").read_text()
    assert text.count("<image") == len(shown)  # entries are pictures: small files
