"""Charts of matrices: each entry is counted in its point, each row and diagonal in its bar."""

import base64
import zlib

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from sparsecast.matrices.gallery import gallery, gallery_names
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.reports.charts import patterns
from sparsecast.reports.charts.patterns import (
    diagonals,
    gallery_patterns,
    partitions,
    pattern_of,
    row_lengths,
    structure,
)

REMOTE = 3


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 5000), (5000, 3), (700, 900)])
def test_a_pattern_counts_each_entry_once(shape):
    A = csr_array(random_array(shape, density=min(1.0, 200 / max(1, shape[0] * shape[1])), rng=0))
    shown = pattern_of(A)[..., 0]
    assert shown.sum() == A.nnz and max(shown.shape) <= 480
    if A.nnz:
        rows, cols = A.nonzero()
        marked = np.zeros_like(shown)
        np.add.at(marked, (rows * shown.shape[0] // shape[0], cols * shown.shape[1] // shape[1]), 1)
        assert (marked == shown).all()


def test_a_large_matrix_is_counted_piece_by_piece(monkeypatch, rows_of):
    A = gallery("poisson2d", n=30)
    made = partition(A, 7, "nonzeros")
    whole, bars = pattern_of(A, made), rows_of(diagonals(A))
    monkeypatch.setattr(patterns, "_PIECE", 100)
    assert (pattern_of(A, made) == whole).all() and rows_of(diagonals(A)) == bars


@pytest.mark.parametrize(("method", "ranks"), [("rows", 4), ("uniform-2d", 4)])
def test_entries_of_ranks_are_local_or_remote_in_the_new_order(method, ranks):
    A = gallery("poisson2d", n=4)
    made = partition(A, ranks, method)
    shown = pattern_of(A, made)
    assert (shown.sum(axis=2) == (made.renumbered(A).toarray() != 0)).all()
    row, col = shown.sum(axis=2).nonzero()
    kind = shown.argmax(axis=2)[row, col]
    if method == "rows":
        assert (kind == np.where(row // 4 == col // 4, row // 4 % 3, REMOTE)).all()
    else:
        assert (kind == (row // 8 + col // 8) % 3).all()


def test_an_image_has_a_colour_for_each_kind_and_none_where_there_is_no_entry():
    A = csr_array(np.diag([1.0, 1.0]))
    counts = pattern_of(A, partition(A, 2, "rows"))
    url = patterns.image(counts, ["#ff0000", "#00ff00", "#0000ff", "#000000"])
    png = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
    begin = png.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(png[begin : png.rindex(b"IEND") - 8]), np.uint8)
    pixels = lines.reshape(height, 1 + 4 * width)[:, 1:].reshape(height, width, 4)
    assert pixels[0, 0].tolist() == [255, 0, 0, 255] and pixels[-1, -1].tolist() == [0, 255, 0, 255]
    assert pixels[0, -1, 3] == pixels[-1, 0, 3] == 0


@pytest.mark.parametrize(
    "lengths", [[], [0, 0], [3], [0, 1, 7, 7], [0, 1, 2, 5000], list(range(300)), [10**6, 10**6]]
)
def test_every_row_is_counted_once_in_bars_of_whole_numbers(lengths, rows_of):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    A = csr_array((np.ones(indptr[-1]), np.zeros(indptr[-1], np.int32), indptr), shape=(len(lengths), 1))
    bars = rows_of(row_lengths(A))
    assert sum(bar["count"] for bar in bars) == len(lengths)
    for bar in bars:
        held = [length for length in lengths if bar["first"] <= length <= bar["last"]]
        assert len(held) == bar["count"]


def test_diagonals_are_counted_one_by_one_or_some_together(rows_of):
    bars = rows_of(diagonals(gallery("poisson2d", n=8)))
    assert {bar["first"]: bar["count"] for bar in bars} == {-8: 56, -1: 56, 0: 64, 1: 56, 8: 56}
    many = gallery("circuit", n=3000)
    bars = rows_of(diagonals(many))
    assert sum(bar["count"] for bar in bars) == many.nnz and len(bars) <= 121


@pytest.mark.parametrize(
    "A", [csr_array((0, 0)), csr_array((5, 0)), csr_array((1, 900)), gallery("circuit", n=900)]
)
def test_any_matrix_is_drawn(A, drawn):
    svg = drawn(structure(A))
    for text in ("column", "row", "entries of a row", "column minus row"):
        assert f">{text}<" in svg
    assert svg.count("<image") == 1
    assert drawn(partitions(A, [partition(A, 3, "rows")])).count("<image") == 1


def test_every_matrix_of_the_gallery_is_drawn_small(drawn):
    chart = gallery_patterns()
    titles = [" ".join(panel["title"]) for panel in chart.spec["concat"]]
    assert [title.partition(",")[0] for title in titles] == gallery_names()
    assert drawn(chart).count("<image") == len(titles)
