"""Parquet files of an evaluation: one row for each forecast."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.reports.documents import evaluation_row
from sparsecast.results.evaluation import EvaluationRow

_TEXTS = ("matrix", "group", "format", "kernel", "device", "dtype", "parameters", "model", "measured_at")
_COUNTS = ("nnz", "threads")
_MEASURED = tuple(
    f"{what}_{unit}" for unit in ("s", "j") for what in ("predicted", "low", "high", "measured", "again")
)

#: Columns: texts, whole numbers, and numbers that may be missing. Parameters are a text in JSON.
COLUMNS = (*_TEXTS, *_COUNTS, *_MEASURED, "error", "noise")


def refuse_other_kind(path: Path) -> None:
    """Raise an InputError if the name of a file does not say that it is Parquet."""
    if path.suffix != ".parquet":
        raise InputError(f"rows {path}: expected a name that ends in .parquet; name it so")


def write_rows(rows: Sequence[EvaluationRow], path: Path) -> None:
    """Write the rows of an evaluation, with the keys of its JSON rows as columns.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    import pyarrow
    import pyarrow.parquet

    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, pyarrow.float64())
    kinds |= dict.fromkeys(_TEXTS, pyarrow.string()) | dict.fromkeys(_COUNTS, pyarrow.int64())
    documents = [evaluation_row(row) for row in rows]
    lines = [{**each, "parameters": json.dumps(each["parameters"])} for each in documents]
    table = pyarrow.Table.from_pylist(lines, schema=pyarrow.schema(list(kinds.items())))
    try:
        pyarrow.parquet.write_table(table, path)
    except OSError as error:
        raise InputError(
            f"rows {path} cannot be written ({error.strerror or error}): expected a file in a writable "
            f"folder; name another"
        ) from error
