"""Edge lists: a graph as text, a line "from to" or "from to weight" for each edge, as SNAP publishes them.

The separators are blanks, tabs, commas or semicolons. Lines that begin with # or % are comments. An
undirected graph whose edges are listed once is read as it is, whatever a comment says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.matrices.assembly import Contents, from_triplets
from sparsecast.matrices.sources import BLOCK_BYTES, TextSource, check_memory, damaged, failures_of, shown
from sparsecast.system.integers import index_dtype

SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".el")

_COMMENTS = b"#", b"%"
_SEPARATORS = bytes.maketrans(b",\t;\r", b"    ")
_EXPECTED = (
    "expected lines 'from to' or 'from to weight' with whole numbers from 0 on for the nodes; correct it"
)

#: Characters of the parser's reason that a message repeats: it may hold a whole line.
_SHOWN = 160

#: Bytes parsed at a time: long enough that the overhead of a call is negligible.
_PIECE_BYTES = 1 << 24

#: Bytes for an edge while a graph is read: both ends and the weight, once read, sorted and compressed.
_EDGE_BYTES = 3 * 24


#: Both ends of each edge, shape (2, edges), and its weight.
_Edges = tuple[NDArray[np.int64], NDArray[np.float64]]


def read_edge_list(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read an edge list, plain or gzip: entry (i, j) is the weight of an edge i -> j, by default 1.

    Nodes without an edge are left out and the others renumbered; a note says so.
    """
    lines = _Lines(path)
    with failures_of(path), TextSource(path, 0) as source:
        source.allow(source.largest_text)  # nothing is declared; the memory is looked at as edges come
        parts = [lines.parsed(piece) for piece in _pieces(source)]
    ends = np.concatenate([part[0] for part in parts], axis=1)
    weights = np.concatenate([part[1] for part in parts])
    if not len(weights):
        raise damaged(path, "holds no edges", _EXPECTED)
    nodes, places = np.unique(ends, return_inverse=True)
    notes = list(lines.notes)
    if nodes[-1] != len(nodes) - 1:
        notes.append(
            f"numbers its {len(nodes):,} nodes from {nodes[0]:,} to {nodes[-1]:,}: they are renumbered from "
            f"0, in the same order"
        )
    width = index_dtype(len(nodes), len(nodes), len(weights))
    start, end = places.reshape(ends.shape).astype(width)
    values = weights.astype(np.float64 if dtype is None else dtype)
    matrix = from_triplets(start, end, values, (len(nodes), len(nodes)))
    return Contents(matrix, tuple(notes))


def _pieces(source: TextSource) -> Iterator[bytes]:
    held: list[bytes] = []
    while text := source.block():
        if b"\0" in text:
            raise damaged(source.path, "holds bytes 0 among its numbers", "it is binary: replace it")
        cut = text.rfind(b"\n") + 1
        if not cut and len(text) == BLOCK_BYTES:
            raise damaged(source.path, f"a line does not end within {BLOCK_BYTES} bytes", _EXPECTED)
        held.append(text[:cut])
        if cut and len(held) * BLOCK_BYTES >= _PIECE_BYTES:
            yield b"".join(held)
            held = []
        held.append(text[cut:])
    yield b"".join(held)


class _Lines:
    """Parser of lines of edges, all with as many numbers as the first one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = 0
        self.notes: list[str] = []
        self._edges = 0

    def parsed(self, text: bytes) -> _Edges:
        import pyarrow
        from pyarrow import csv

        lines = text.translate(_SEPARATORS)
        if not self.columns or any(mark in lines for mark in _COMMENTS):
            lines = self._without_comments(lines)
        if not lines.strip():
            return np.empty((2, 0), dtype=np.int64), np.empty(0)
        self._edges += lines.count(b"\n") + 1
        check_memory(self.path, self._edges * _EDGE_BYTES, f"a graph of at least {self._edges:,} edges")
        # One blank between the numbers, none around them, is what Arrow's parser takes.
        while b"  " in lines:
            lines = lines.replace(b"  ", b" ")
        lines = lines.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()
        names = ["from", "to", "weight"][: self.columns]
        kinds = {"from": pyarrow.int64(), "to": pyarrow.int64(), "weight": pyarrow.float64()}
        try:
            table = csv.read_csv(
                pyarrow.BufferReader(lines),
                read_options=csv.ReadOptions(column_names=names, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
                convert_options=csv.ConvertOptions(column_types=kinds, null_values=[]),
            )
        except pyarrow.ArrowInvalid as error:
            # Its rows are counted from the beginning of a piece, and without comments.
            why = re.sub(r"Row #\d+: ", "", str(error))[:_SHOWN]
            raise damaged(self.path, f"is no edge list ({why})", _EXPECTED) from error
        ends = np.stack([table[name].to_numpy() for name in names[:2]])
        if ends.min() < 0:
            raise damaged(self.path, f"has a node {ends.min()}", _EXPECTED)
        return ends, table["weight"].to_numpy() if self.columns == 3 else np.ones(ends.shape[1])

    def _without_comments(self, text: bytes) -> bytes:
        """Return the lines that are no comments; the first one sets the number of columns."""
        kept = []
        for line in text.split(b"\n"):
            words = line.strip()
            if words.startswith(_COMMENTS):
                if b"undirected" in words.lower() and not self.notes:
                    self.notes.append(
                        "says that it is undirected: its edges are taken as they stand, one way"
                    )
            elif words:
                kept.append(words)
        if kept and not self.columns:
            if not any(_is_number(word) for word in kept[0].split()):
                self.notes.append(f"has the heading {shown(kept.pop(0))}, left out")
            self.columns = len(kept[0].split()) if kept else 0
            if kept and self.columns not in (2, 3):
                raise damaged(self.path, f"holds the line {shown(kept[0])}", _EXPECTED)
        return b"\n".join(kept)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
