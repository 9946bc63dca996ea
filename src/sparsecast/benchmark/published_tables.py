"""Tables of published results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError, ProfileError

Line = Mapping[str, Any]

#: Columns that hold texts; all others hold numbers.
TEXTS = (
    *("machine", "executor", "group", "matrix", "format", "completed"),
    *("matrix_name", "implementation", "device"),
)


def header_of(path: Path) -> list[str]:
    """Return the column names of a table, plain or gzip; none if it cannot be read."""
    import pyarrow.csv

    try:
        with pyarrow.csv.open_csv(path, parse_options=_parsing(path)) as reader:
            return list(reader.schema.names)
    except (OSError, UnicodeError, pyarrow.ArrowException):
        return []  # whoever reads the lines says why


def _parsing(path: Path) -> Any:
    import pyarrow.csv

    is_tabbed = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    return pyarrow.csv.ParseOptions(delimiter="\t" if is_tabbed else ",")


def table_lines(path: Path, required: Sequence[str], optional: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of a table, plain or gzip, with texts, numbers, and None for empty cells.

    A ProfileError says that the file cannot be read, or lacks one of the columns `required`.
    """
    import pyarrow.csv

    types = {name: "string" if name in TEXTS else "float64" for name in (*required, *optional)}
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        table = pyarrow.csv.read_csv(path, convert_options=options, parse_options=_parsing(path))
        names = table.column_names
    except (OSError, UnicodeError, pyarrow.ArrowException) as error:
        raise ProfileError(
            f"{path} cannot be read as a table ({error}): expected CSV with the columns "
            f"{', '.join(required)}; name another file"
        ) from error
    if missing := [name for name in required if name not in names]:
        raise ProfileError(
            f"{path} has no column {', '.join(missing)}: expected {', '.join(required)}; add it, or name "
            f"another file"
        )
    if repeated := [name for name in types if names.count(name) > 1]:
        raise ProfileError(f"{path} has several columns {repeated[0]}: expected one; name another file")
    nothing = dict.fromkeys((*required, *optional), None)
    for line in table.select([name for name in types if name in names]).to_pylist():
        completed = (line.get("completed") or "true").lower() == "true"
        yield {**nothing, "machine": "", **line, "completed": completed}


def count(line: Line, name: str) -> int:
    """Return a count of a line; InputError for any other number."""
    value = line[name]
    if value is None or not math.isfinite(value) or value < 0 or value != int(value) or value >= 2**53:
        raise contradicting(line, f"{name} is {'missing' if value is None else format(value, 'g')}")
    return int(value)


def contradicting(line: Line, what: str) -> InputError:
    """Return the refusal of a line with the impossible value `what`."""
    name = "/".join(str(line[key]) for key in ("group", "matrix") if line.get(key))
    return InputError(
        f"matrix {name or 'of a table'}: {what}; expected numbers that one matrix can have; correct them"
    )
