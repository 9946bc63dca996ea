"""The structure of a matrix as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.structure import Structure
from sparsecast.results.columns import matrix_column
from sparsecast.results.next_steps import NEXT_STEP, STEPS_ABOUT
from sparsecast.system.tabular import Column, Columns, Table
from sparsecast.system.texts import size

#: Feature groups whose features are called by words; those of papers and plug-ins describe themselves.
_IN_WORDS = {"row_lengths", "locality", "bands", "blocks", "symmetry", "stored_values"}

_FEATURE: Columns = (
    Column("feature", "feature", lambda row: row[0]),
    Column("value", "value", lambda row: row[1]),
)


_SYMMETRIC = {
    None: "no",
    "symmetric": "yes, value by value",
    "hermitian": "Hermitian, value by value",
    "skew": "skew-symmetric, value by value",
}


def structure_table(name: str, structure: Structure) -> Table:
    """Return what the models read of a matrix."""
    lengths, bands = structure.row_lengths, structure.bands
    sizes = zip(BLOCK_SIZES, structure.blocks.fill, strict=True)
    fill = ", ".join(f"{size}x{size} {value:.2f}" for size, value in sizes)
    histogram = " ".join(f"{100 * share:.0f}" for share in bands.histogram)
    zeros = structure.stored_values.explicit_zeros
    rows = [
        ("rows x columns", f"{structure.rows:,} x {structure.cols:,}"),
        ("non-zeros", f"{structure.nnz:,} (of them stored zeros: {zeros:,})"),
        ("stored dense", f"{size(8 * structure.rows * structure.cols)} of float64"),
        ("row length", f"mean {lengths.mean:.2f}, deviation {lengths.deviation:.2f}"),
        ("", f"mode {lengths.mode}, least {lengths.min}, most {lengths.max:,}"),
        ("empty rows", f"{lengths.empty_rows:,}"),
        ("mispredicted rows", _share(lengths.mispredicted or 0, structure.rows)),
        ("half-bandwidth", f"{bands.half_bandwidth:,}"),
        ("diagonals occupied", f"{bands.diagonals:,}"),
        ("symmetric", _SYMMETRIC[structure.symmetry.kind]),
        ("share by distance, %", f"{histogram}  (ten bands from the diagonal outwards)"),
        ("block fill", f"{fill}  (stored / non-zeros)"),
        ("new cache lines of x", _share(structure.locality.line_changes, structure.nnz)),
    ]
    for group in sorted(structure.groups.keys() - _IN_WORDS):
        rows += structure.require(group).summary()
    return Table(name, _FEATURE, rows)


def gallery_table(listed: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the names of the gallery with the defaults of their parameters and what each matrix is."""
    columns = (
        Column("name", "name", lambda row: row[0]),
        Column("parameters", "parameters", lambda row: row[1]["parameters"], _parameters),
        Column("summary", "matrix", lambda row: row[1]["summary"]),
    )
    return Table("gallery:NAME?key=value&key=value", columns, list(listed.items()))


def _parameters(defaults: Mapping[str, int | None]) -> str:
    return " ".join(name if value is None else f"{name}={value}" for name, value in defaults.items())


def _share(count: int, total: int) -> str:
    return f"{count:,} ({100 * count / total:.0f} %)" if total else f"{count:,}"


#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "structure": (
        matrix_column("name", "structure"),
        Column("structure", about="rows, cols, nnz, and each feature group by name"),
        Column("notes"),
        Column("next_steps", columns=NEXT_STEP, about=STEPS_ABOUT),
    ),
    "gallery": (Column("{name}", columns=(Column("parameters"), Column("summary"))),),
    "gallery --draw": (Column("figure"),),
}
