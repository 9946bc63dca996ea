"""Parquet files of an evaluation, with one row per forecast."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sparsecast.machines.storage import write_atomically
from sparsecast.results.evaluation import EVALUATION_ROW, EvaluationRow
from sparsecast.system.addresses import Place
from sparsecast.system.tabular import document

#: Columns of texts and of whole numbers; the others are numbers that may be missing.
_TEXTS = ("matrix", "group", "format", "kernel", "device", "dtype", "parameters", "model", "measured_at")
_COUNTS = ("nnz", "threads", "vectors")


def write_rows(rows: Sequence[EvaluationRow], path: Place) -> None:
    """Write the rows of an evaluation, with the keys of its JSON rows as columns.

    A StorageError says that they cannot be written.
    """
    import pyarrow
    import pyarrow.parquet

    kinds: dict[str, Any] = {column.key: pyarrow.float64() for column in EVALUATION_ROW if column.key}
    kinds |= dict.fromkeys(_TEXTS, pyarrow.string()) | dict.fromkeys(_COUNTS, pyarrow.int64())
    lines = [document(EVALUATION_ROW, row) for row in rows]
    lines = [{**line, "parameters": json.dumps(line["parameters"])} for line in lines]
    table = pyarrow.Table.from_pylist(lines, schema=pyarrow.schema(list(kinds.items())))
    write_atomically(path, lambda temporary: pyarrow.parquet.write_table(table, temporary))
