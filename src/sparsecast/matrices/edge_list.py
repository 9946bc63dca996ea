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

from sparsecast.matrices.assembly import Contents, from_triplets
from sparsecast.matrices.sources import BLOCK_BYTES, TextSource, check_memory, damaged, failures_of, shown
from sparsecast.system.integers import index_dtype

SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".el")

_NAMES = ["from", "to", "weight"]
_COMMENT = re.compile(rb"^ *[#%].*", re.MULTILINE)
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


def read_edge_list(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read an edge list, plain or gzip: entry (i, j) is the weight of an edge i -> j, by default 1.

    Nodes without an edge are left out and the others renumbered; a note says so.
    """
    import pyarrow

    notes: list[str] = []
    with failures_of(path), TextSource(path, 0) as source:
        source.allow(source.largest_text)  # nothing is declared; the memory is looked at as edges come
        tables = list(_tables(source, notes))
    if not tables:
        raise damaged(path, "holds no edges", _EXPECTED)
    edges = pyarrow.concat_tables(tables)
    ends = np.stack([edges[name].to_numpy() for name in _NAMES[:2]])
    if ends.min() < 0:
        raise damaged(path, f"has a node {ends.min()}", _EXPECTED)
    nodes, places = np.unique(ends, return_inverse=True)
    if nodes[-1] != len(nodes) - 1:
        notes.append(
            f"numbers its {len(nodes):,} nodes from {nodes[0]:,} to {nodes[-1]:,}: they are renumbered from "
            f"0, in the same order"
        )
    width = index_dtype(len(nodes), len(nodes), len(edges))
    start, end = places.reshape(ends.shape).astype(width)
    weights = edges["weight"].to_numpy() if edges.num_columns == 3 else np.ones(len(edges))
    values = weights.astype(np.float64 if dtype is None else dtype)
    return Contents(from_triplets(start, end, values, (len(nodes), len(nodes))), tuple(notes))


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


def _tables(source: TextSource, notes: list[str]) -> Iterator[Any]:
    """Yield the edges as tables of Arrow, all with as many columns as the first line that is no heading."""
    columns, edges = 0, 0
    for piece in _pieces(source):
        lines = piece.translate(_SEPARATORS)
        comments = _COMMENT.findall(lines) if b"#" in lines or b"%" in lines else []
        if comments:
            lines = _COMMENT.sub(b"", lines)
            if not notes and any(b"undirected" in comment.lower() for comment in comments):
                notes.append("says that it is undirected: its edges are taken as they stand, one way")
        # One blank between the numbers, none around them, is what Arrow's parser takes.
        while b"  " in lines:
            lines = lines.replace(b"  ", b" ")
        lines = lines.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip()
        first = lines.partition(b"\n")[0]
        if first and not columns and not any(map(_is_number, first.split())):
            notes.append(f"has the heading {shown(first)}, left out")
            lines = lines.removeprefix(first).strip()
            first = lines.partition(b"\n")[0]
        columns = columns or len(first.split())
        if lines:
            if columns not in (2, 3):
                raise damaged(source.path, f"holds the line {shown(first)}", _EXPECTED)
            edges += lines.count(b"\n") + 1
            check_memory(source.path, edges * _EDGE_BYTES, f"a graph of at least {edges:,} edges")
            yield _parsed(source.path, lines, columns)


def _parsed(path: Path, lines: bytes, columns: int) -> Any:
    import pyarrow
    from pyarrow import csv

    names, kinds = _NAMES[:columns], (pyarrow.int64(), pyarrow.int64(), pyarrow.float64())
    types = dict(zip(names, kinds, strict=False))
    try:
        return csv.read_csv(
            pyarrow.BufferReader(lines),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except pyarrow.ArrowInvalid as error:
        # Its rows are counted from the beginning of a piece, and without comments.
        why = re.sub(r"Row #\d+: ", "", str(error))[:_SHOWN]
        raise damaged(path, f"is no edge list ({why})", _EXPECTED) from error


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
