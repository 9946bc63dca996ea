"""Derive the atlas: the Structures of real matrices, whose twins a calibration measures.

    python benchmarks/atlas.py OUT.json.gz FILE...

Reads the matrices and keeps counts and histograms only. Twins come in three sizes: a third, whole, triple.
Their order begins with the twin in the middle of the space of features. Each next one is the farthest from
all before it, so every budget covers the space. The shipped src/sparsecast/matrices/atlas.json.gz is one.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sparsecast.errors import InputError, PaddingError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats.bcsr import BCSR, best_block
from sparsecast.matrices.atlas import MIRRORED, SIZES, Atlas, AtlasEntry
from sparsecast.matrices.reading import load, matrix_name

#: Twins beyond these numbers of entries are not made: the call takes most of the time of a smaller one, and a
#: larger one takes the time of many.
LEAST_ENTRIES, MOST_ENTRIES = 1_000, 8_000_000


def block_of(found: Structure) -> int:
    """Return the side of the best square blocks, 1 where they would stream as much as CSR."""
    try:
        BCSR.refuse_unsuited(RowBlocks.of(found), 8, 4)
    except PaddingError:
        return 1
    return best_block(found.blocks.fill)


def features(found: Structure, scale: float) -> list[float]:
    """Return what the order of the twins is to cover, each about as wide as the others."""
    lengths, locality = found.row_lengths, found.locality
    nnz, mean = max(found.nnz, 1), max(found.nnz / max(found.rows, 1), 0.1)
    reuse = np.asarray(locality.reuse_histogram)
    return [
        np.log10(scale * nnz) / 2,
        np.log10(mean),
        np.log10(1 + lengths.deviation / mean),
        np.log10(max(lengths.max, 1) / mean) / 2,
        (lengths.mispredicted or 0) / max(found.rows, 1),
        locality.line_changes / nnz,
        float(reuse @ np.arange(len(reuse))) / len(reuse),
        found.blocks.fill[1] / 9 if found.blocks else 1.0,
    ]


def covering(points: np.ndarray) -> list[int]:
    """Return the points in an order in which each is the farthest from all before it."""
    order = [int(np.argmin(np.linalg.norm(points - np.median(points, axis=0), axis=1)))]
    distance = np.linalg.norm(points - points[order[0]], axis=1)
    for _ in range(len(points) - 1):
        order.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(points - points[order[-1]], axis=1))
    return order


def main() -> None:
    """Read the matrices and write the atlas."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("files", type=Path, nargs="+", help="the matrices")
    arguments = parser.parse_args()
    entries: dict[str, AtlasEntry] = {}
    for path in arguments.files:
        try:
            found = structure(load(path))
        except InputError as error:
            print(f"left out {path.name}: {error}", file=sys.stderr)
            continue
        if found.nnz >= LEAST_ENTRIES:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
            entries[matrix_name(path)] = AtlasEntry(found, block_of(found), digest)
    twins = [
        (name, size)
        for name, each in entries.items()
        for size, scale in SIZES.items()
        if size != MIRRORED and LEAST_ENTRIES <= scale * each.structure.nnz <= MOST_ENTRIES
    ]
    points = np.array([features(entries[name].structure, SIZES[size]) for name, size in twins])
    source = {
        "command": "python benchmarks/atlas.py OUT.json.gz FILE...",
        "date": datetime.now(UTC).date().isoformat(),
        "names": sorted(entries),
    }
    made = Atlas(source, entries, tuple(twins[place] for place in covering(points)))
    arguments.out.write_bytes(made.to_bytes())
    print(f"{len(entries)} Structures, {len(twins)} twins, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
