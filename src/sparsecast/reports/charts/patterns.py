"""Charts of a matrix: its entries, in row blocks or parts of ranks, its row lengths and its diagonals.

The entries are an image of some hundred points, whatever the size of the matrix.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.matrices.gallery import gallery, gallery_names, gallery_parameters
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.reports.charts.chart import (
    COLOURS,
    GREY,
    Chart,
    axis,
    beside,
    format_look,
    layer,
    log_from_0,
    panels,
    tooltip,
)
from sparsecast.results.plan import PlannedBlock

#: Points along the longer side, and the least along the shorter one.
_POINTS, _LEAST_POINTS = 480, 16

#: Pixels of the longer side of a chart of entries, the least of the shorter one, and the height of a
#: distribution.
_PIXELS, _LEAST_PIXELS, _LOW = 380, 60, 140

#: Entries per piece, so that a large matrix needs little additional memory.
_PIECE = 1 << 21

#: Opacity of the faintest point with an entry, of 255, and the colour of entries, unlike those of formats.
_FAINTEST, _DARK = 130, "#141414"

#: Colours of the parts of ranks in turn, and of entries that need x of another rank: darker than all.
_PARTS, _REMOTE = (COLOURS[0], COLOURS[5], COLOURS[2]), "#000000"

#: Bars of a distribution; twice as many if each is a single number.
_BARS = 60

#: Greatest number of rows of a drawn gallery matrix, so that single entries are visible.
_GALLERY_ROWS = 400

_COLUMNS = 3


def image(counts: NDArray[np.int64], colours: Sequence[str]) -> str:
    """Return the counts of `pattern_of` as a PNG in a data URL, transparent where there is no entry.

    A point has the colour of the most frequent kind of its entries, darker for more entries.
    """
    entries = counts.sum(axis=2)
    shade = np.log1p(entries) / np.log1p(max(1, int(entries.max(initial=0))))
    rgb = np.array([list(bytes.fromhex(colour[1:])) for colour in colours], dtype=np.uint8)
    pixels = np.empty((*entries.shape, 4), dtype=np.uint8)
    pixels[..., :3] = rgb[counts.argmax(axis=2)]
    pixels[..., 3] = np.where(entries > 0, _FAINTEST + (255 - _FAINTEST) * shade, 0)
    larger = math.ceil(_PIXELS / max(entries.shape))  # drawn in their own size, points would be blurred
    png = _png(pixels.repeat(larger, 0).repeat(larger, 1))
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Return red, green, blue and opacity as a PNG (ISO/IEC 15948), each line without a filter."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 4 * width), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, 4 * width)
    header = struct.pack(">2I5B", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def pattern_of(A: csr_array[Any], partition: Partition | None = None) -> NDArray[np.int64]:
    """Return the entries of each kind in each point, of shape (height, width, kinds): one pass, in pieces.

    With a partition they are in its order. Their kind is the rank that has entry and x, in turn of the
    colours, or, last, entries whose x is on another rank.
    """
    rows, cols = A.shape
    longer = max(rows, cols, 1)
    height, width = (min(max(n, 1), max(_LEAST_POINTS, round(_POINTS * n / longer))) for n in (rows, cols))
    place_of_row, place_of_col = np.arange(rows), np.arange(cols)
    if partition is not None:
        if partition.order is not None:  # of a square matrix
            place_of_row[partition.order] = np.arange(rows)
            place_of_col = place_of_row
        of_rows, of_cols = partition.row_bounds, partition.column_bounds
        row_part = np.repeat(np.arange(len(of_rows) - 1), np.diff(of_rows))[place_of_row]
        col_part = np.repeat(np.arange(len(of_cols) - 1), np.diff(of_cols))[place_of_col]
    point_of_row = place_of_row * height // max(rows, 1) * width
    point_of_col = place_of_col * width // max(cols, 1)
    kinds = 1 if partition is None else len(_PARTS) + 1
    counts = np.zeros(height * width * kinds, dtype=np.int64)
    for row, col in _pieces(A):
        kind: Any = 0
        if partition is not None and partition.is_2d:
            kind = (row_part[row] + col_part[col]) % len(_PARTS)
        elif partition is not None:
            kind = np.where(row_part[row] == col_part[col], row_part[row] % len(_PARTS), len(_PARTS))
        point = point_of_row[row] + point_of_col[col]
        counts += np.bincount(point * kinds + kind, minlength=len(counts))
    return counts.reshape(height, width, kinds)


def _pieces(A: csr_array[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Yield the rows and columns of the entries, piece by piece."""
    indptr, rows = A.indptr, A.shape[0]
    inner = np.unique(np.searchsorted(indptr, np.arange(_PIECE, int(indptr[-1]), _PIECE))).tolist()
    for first, last in pairwise((0, *(row for row in inner if 0 < row < rows), rows)):
        row = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1]))
        if len(row):
            yield row, A.indices[indptr[first] : indptr[last]]


def pattern(
    A: csr_array[Any], blocks: Sequence[PlannedBlock] = (), partition: Partition | None = None
) -> Chart:
    """Return the entries of a matrix, on the row blocks of a plan in the colours of formats.

    With a partition they are renumbered, in the colours of ranks.
    """
    rows, cols = (max(1, count) for count in A.shape)
    counts = pattern_of(A, partition)
    colours = (_DARK,) if partition is None else (*_PARTS, _REMOTE)
    scale = _PIXELS / max(rows, cols)
    width, height = (max(_LEAST_PIXELS, round(scale * count)) for count in (cols, rows))
    x = {**axis("cols", "column"), "scale": {"domain": [0, cols], "nice": False}}
    y = {**axis("rows", "row"), "scale": {"domain": [0, rows], "nice": False, "reverse": True}}
    for encoding in (x, y):
        encoding["axis"] = {**encoding["axis"], "grid": False, "tickCount": 5, "tickMinStep": 1}
    entries = layer(
        {"type": "image", "width": width, "height": height, "aspect": False},
        {"x": x, "y": y, "url": {"field": "url", "type": "nominal"}},
        [{"cols": cols / 2, "rows": rows / 2, "url": image(counts, colours)}],
    )
    bands: list[dict[str, Any]] = [
        {
            "first_row": block.first_row,
            "last_row": block.last_row,
            "end_row": block.last_row + 1,
            "format": block.candidate.format.upper(),
            "kernel": block.candidate.kernel,
        }
        for block in blocks
    ]
    texts = {"format": "format", "kernel": "kernel", "first_row": "first row", "last_row": "last row"}
    of_band = {
        "y": {**y, "field": "first_row"},
        "y2": {"field": "end_row"},
        "color": format_look(band["format"] for band in bands)["color"],
        "tooltip": tooltip(texts),
    }
    behind = layer({"type": "rect", "opacity": 0.35}, of_band, bands)
    caption = f"{int(counts.sum()):,} entries in {A.shape[0]:,} rows and {A.shape[1]:,} columns"
    if bands:
        caption += f", in {len(bands):,} row block{'s' * (len(bands) != 1)}"
    spec = {"layer": [*([behind] if bands else []), entries], "width": width, "height": height}
    return Chart("pattern", f"{caption}.", {**spec, "view": {"stroke": GREY}})


def partitions(A: csr_array[Any], several: Sequence[Partition]) -> Chart:
    """Return the renumbered entries by rank, a panel for each partition."""
    charts = []
    for partition in several:
        chart = pattern(A, partition=partition)
        charts.append(replace(chart, caption=f"{partition.method}, {partition.ranks:,} ranks"))
    caption = (
        "Rows and columns renumbered. Colours: ranks, in turn. Black: entries that need x of another rank."
    )
    return panels("partitions", caption, charts, 2)


def structure(A: csr_array[Any]) -> Chart:
    """Return the entries of a matrix, its row lengths and its diagonals side by side."""
    return beside("structure", [pattern(A)], [row_lengths(A), diagonals(A)])


def row_lengths(A: csr_array[Any]) -> Chart:
    """Return the number of rows of each length: one bar per length if these are few, else growing bars."""
    lengths = np.diff(A.indptr).astype(np.int64)
    longest, shortest = int(lengths.max(initial=0)), int(lengths.min(initial=0))
    edges = np.arange(shortest, longest + 2)
    if len(edges) > 2 * _BARS:
        grown = np.geomspace(1, longest + 1, _BARS).round().astype(np.int64)
        edges = np.unique([0, *grown.tolist()])
    counts = np.histogram(lengths, edges)[0]
    return _distribution(
        "row-lengths", "Rows by their number of entries.", "entries of a row", "rows", edges, counts
    )


def diagonals(A: csr_array[Any]) -> Chart:
    """Return the number of entries on each diagonal, or on several together if they are many."""
    first, last = 0, 0
    for row, col in _pieces(A):
        offsets = col.astype(np.int64) - row
        first, last = min(first, int(offsets.min())), max(last, int(offsets.max()))
    width = max(1, math.ceil((last - first + 1) / (2 * _BARS)))
    edges = np.arange(first, last + 1 + width, width)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for row, col in _pieces(A):
        counts += np.bincount((col - row - first) // width, minlength=len(counts))
    return _distribution("diagonals", "Entries by diagonal.", "column minus row", "entries", edges, counts)


def _distribution(
    name: str, caption: str, x_title: str, y_title: str, edges: NDArray[np.int64], counts: NDArray[np.int64]
) -> Chart:
    """Return counts of integers from `edges[i]` to below `edges[i + 1]` as bars."""
    is_single = bool((np.diff(edges) == 1).all())
    is_growing = len(set(np.diff(edges).tolist())) > 1
    shift = 0.5 if is_single else 0.0
    rows = [
        {"first": first, "last": end - 1, "from": first - shift, "to": end - shift, "count": count}
        for (first, end), count in zip(pairwise(edges.tolist()), counts.tolist(), strict=True)
        if count
    ]
    x = log_from_0("from", x_title, int(edges[-1])) if is_growing else axis("from", x_title)
    if not is_growing:
        x["scale"] = {"zero": False, "nice": False, "padding": 4}
        x["axis"] = {**x["axis"], "tickMinStep": 1, "tickCount": 6}
    spec = {
        "data": {"values": rows},
        "mark": {"type": "bar", "color": COLOURS[0], "binSpacing": 0 if is_growing else 1},
        "encoding": {
            "x": {**x, "bin": {"binned": True}} if not is_growing else x,
            "x2": {"field": "to"},
            "y": log_from_0("count", y_title, max((row["count"] for row in rows), default=1)),
            "tooltip": tooltip({"first": "from", "last": "to", "count": y_title}),
        },
        "width": _PIXELS,
        "height": _LOW,
    }
    return Chart(name, caption, spec)


def gallery_patterns() -> Chart:
    """Return the entries of all gallery matrices with default parameters, but small."""
    charts = []
    for name in gallery_names():
        defaults = gallery_parameters(name)
        words = ", ".join(f"{key}={'...' if value is None else value}" for key, value in defaults.items())
        chart = pattern(_small(name, defaults))
        charts.append(replace(chart, caption=f"{name}, {words}. Drawn: {chart.caption}"))
    return panels("gallery", "With the default parameters, drawn small.", charts, _COLUMNS)


def _small(name: str, defaults: Mapping[str, int | None]) -> csr_array[Any]:
    """Return a gallery matrix of few rows: its first parameter is a power of two."""
    size, best = next(iter(defaults)), None
    for power in range(_GALLERY_ROWS.bit_length()):
        try:
            matrix = gallery(name, **{size: 1 << power})
        except ValueError:  # too small for its other parameters
            continue
        if matrix.shape[0] > _GALLERY_ROWS:
            break
        best = matrix
    if best is None:
        raise ValueError(f"no matrix {name} has at most {_GALLERY_ROWS} rows: draw it with other parameters")
    return best
