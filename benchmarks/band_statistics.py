"""Derive the band statistics that feed the synthetic matrices of the five-minute benchmark.

    python benchmarks/band_statistics.py OUT.json FILE...

Reads the matrices, takes the square ones with entries, and writes the mean share of their entries by distance
from the diagonal in classes of density, as Table II of Gahvari et al. 2007 does. The shipped
src/sparsecast/matrices/band_statistics.json is such an OUT.json.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.matrices.band_statistics import derive
from sparsecast.matrices.reading import load, matrix_name

NOTE = (
    "Averages over a corpus on purpose: the benchmark asks for statistics of practical matrices. Each matrix "
    "of a class weighs the same; no model or kernel is fitted to them."
)


def main() -> None:
    """Read the corpus and write its statistics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the JSON to write")
    parser.add_argument("files", type=Path, nargs="+", help="the corpus")
    arguments = parser.parse_args()
    found, left_out = {}, {}
    for path in arguments.files:
        name = matrix_name(path)
        try:
            each = structure(load(path))
        except InputError as error:
            left_out[name] = str(error)
            continue
        if each.rows == each.cols and each.nnz:
            found[name] = each
        else:
            left_out[name] = "not square" if each.nnz else "without entries"
    source = {
        "command": "python benchmarks/band_statistics.py OUT.json FILE...",
        "date": datetime.now(UTC).date().isoformat(),
        "matrices": len(found),
        "names": sorted(found),
        "left_out": len(left_out),
        "note": NOTE,
    }
    arguments.out.write_text(derive(found.values(), source).to_json(), "utf-8")
    for name, why in left_out.items():
        print(f"left out {name}: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
