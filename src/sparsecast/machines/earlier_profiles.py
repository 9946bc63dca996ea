"""Profiles of the schema before this one: a single table, the Structure's fields in every row."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparsecast.records import Conditions

#: The one that is read here.
SCHEMA_VERSION = 2

_BANDWIDTHS_KEY = b"sparsecast_streams"

#: For each feature group, its features and the columns that held them.
_COLUMNS = {
    "row_lengths": {
        **{name: f"row_length_{name}" for name in ("mean", "deviation", "mode", "min", "max", "changes")},
        **{name: name for name in ("empty_rows", "rows_at_least", "entries_up_to")},
        "mispredicted": "row_length_surprises",
    },
    "bands": {
        "half_bandwidth": "half_bandwidth",
        "histogram": "band_histogram",
        "diagonals": "diagonals",
    },
    "blocks": {"fill": "block_fill"},
    "locality": {"line_changes": "x_line_changes", "reuse_histogram": "x_reuse_histogram"},
    "stored_values": {"explicit_zeros": "explicit_zeros"},
    "symmetry": {"triangle_nnz": "triangle_nnz"},
}

#: What was measured under the name of a kernel that complex values do not have, by format.
_COMPLEX_GATHERED = {"csr": "unrolled", "sell": "chunks"}

Row = Mapping[str, Any]


def tables(
    rows: Sequence[Row], metadata: Mapping[bytes, bytes]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the Records, matrices and bandwidths of such a profile in the present schema.

    A KeyError or a ValueError says that it is not whole.
    """
    matrices = {row["matrix"]: matrix_entry(row) for row in rows}
    bandwidths = json.loads(metadata.get(_BANDWIDTHS_KEY, b"[]"))
    return [record_row(row) for row in rows], list(matrices.values()), bandwidths


def record_row(row: Row) -> dict[str, Any]:
    """Return the row of a Record as it is now."""
    own = {key: value for key, value in row.items() if not key.startswith("matrix_") and key != "block"}
    block = row.get("block")
    if row["kernel"] == "gathered" and row["dtype"].startswith("complex"):
        own["kernel"] = _COMPLEX_GATHERED[row["format"]]
    return {
        **own,
        "nnz": row["matrix_nnz"],
        "parameters": json.dumps({"block": list(block)} if block else {}),
        "kernel_version": 1,
        **dict.fromkeys(each.name for each in dataclasses.fields(Conditions)),
    }


def matrix_entry(row: Row) -> dict[str, Any]:
    """Return the matrix of a Record's row, as a table of matrices has it now."""
    groups = {
        group: {"version": 1, **{feature: row[f"matrix_{column}"] for feature, column in columns.items()}}
        for group, columns in _COLUMNS.items()
    }
    # What was not read of published results stood as empty: such features are not known.
    if not row["matrix_x_reuse_histogram"]:
        del groups["locality"]
    if row["matrix_explicit_zeros"] is None:
        del groups["stored_values"]
    structure = {"rows": row["matrix_rows"], "cols": row["matrix_cols"], "nnz": row["matrix_nnz"], **groups}
    return {"specification": row["matrix"], "name": row["matrix"], "structure": structure}
