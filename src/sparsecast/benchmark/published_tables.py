"""Tables of published results: their lines, and the row lengths that few numbers tell of."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError, ProfileError

Line = Mapping[str, Any]
Integers = NDArray[np.int64]

#: Columns that hold texts; all others hold numbers.
TEXTS = (
    *("machine", "executor", "group", "matrix", "format", "completed"),
    *("matrix_name", "implementation", "device"),
)

#: Runs of rows that `row_lengths` gives one length, or two that differ by one.
_RUNS = 1024

#: Characters of a header that are looked at.
_LONGEST_HEADER = 1 << 16


def header_of(path: Path) -> list[str]:
    """Return the names of the columns of a table, plain or gzip; none where there is no text."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as stream:
            return str(stream.readline(_LONGEST_HEADER)).strip().split(_delimiter(path))
    except (OSError, UnicodeDecodeError, EOFError):
        return []  # whoever reads the lines says why


def _delimiter(path: Path) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","


def table_lines(path: Path, required: Sequence[str], optional: Sequence[str]) -> Iterator[Line]:
    """Give the lines of a table, plain or gzip: texts, and numbers where they are; None where nothing is.

    Raises
    ------
    ProfileError
        If the file cannot be read, or lacks one of the columns `required`.
    """
    import pyarrow.csv

    types = {name: "string" if name in TEXTS else "float64" for name in (*required, *optional)}
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    parse = pyarrow.csv.ParseOptions(delimiter=_delimiter(path))
    try:
        table = pyarrow.csv.read_csv(path, convert_options=options, parse_options=parse)
    except (OSError, pyarrow.ArrowException) as error:
        why = " ".join(str(error).split())
        raise ProfileError(
            f"{path} cannot be read as a table ({why}): expected CSV with the columns "
            f"{', '.join(required)}; name another file"
        ) from error
    if missing := [name for name in required if name not in table.column_names]:
        raise ProfileError(
            f"{path} has no column {', '.join(missing)}: expected {', '.join(required)}; add it, or name "
            f"another file"
        )
    nothing = dict.fromkeys((*required, *optional), None)
    for line in table.select([name for name in types if name in table.column_names]).to_pylist():
        completed = (line.get("completed") or "true").lower() == "true"
        yield {**nothing, "machine": "", **line, "completed": completed}


def count(line: Line, name: str) -> int:
    """Return a number of a line that counts something; InputError if it does not."""
    value = line[name]
    if value is None or not math.isfinite(value) or value < 0 or value != int(value) or value >= 2**53:
        raise contradicting(line, f"{name} is {'missing' if value is None else format(value, 'g')}")
    return int(value)


def contradicting(line: Line, what: str) -> InputError:
    """Return the refusal of a line of which `what` cannot be."""
    name = "/".join(str(line[key]) for key in ("group", "matrix") if line.get(key))
    return InputError(
        f"matrix {name or 'of a table'}: {what}; expected numbers that one matrix can have; correct them"
    )


def row_lengths(rows: int, nnz: int, five: list[float]) -> tuple[Integers, Integers] | None:
    """Return row lengths that have five given numbers and a given sum, or None where no rows have.

    One row has the least length and one the greatest. For the others, a quarter at a time, the length at the
    share u of the quarter's rows is left + (right - left) u**p, and p is the one with which the lengths of
    all quarters add up. Runs of rows get the whole numbers around their mean.

    The five are least, first quartile, median, third quartile and greatest length.

    Returns
    -------
    tuple of int64 arrays of shape (lengths,) or None
        The lengths, ascending, and the number of rows of each.
    """
    if not all(low <= high for low, high in zip([0.0, *five], five, strict=False)):
        return None
    least, greatest = int(five[0]), int(five[-1])
    if rows <= 2:
        whole = [nnz] if rows == 1 else [least, greatest]
        return _counted(whole, [1] * rows) if sum(whole) == nnz and whole[-1] == greatest else None
    others, entries = rows - 2, nnz - least - greatest
    left, right = np.array(five[:-1]), np.array(five[1:])
    span = float((right - left).sum())
    excess = 4 * entries / others - float(left.sum())
    if not 0 <= excess <= span:
        return None
    share = excess / span if span else 0.0  # 1 / (p + 1)
    bounds = np.unique(np.linspace(0, others, min(others, _RUNS) + 1).round().astype(np.int64))
    quarter = np.minimum(4 * bounds // others, 3)
    u = 4 * bounds / others - quarter
    before = np.concatenate(([0.0], np.cumsum(left + (right - left) * share)))[quarter]
    within = left[quarter] * u + (right - left)[quarter] * share * u ** (1 / max(share, 1e-300))
    up_to = np.round(others * (before + within) / 4).astype(np.int64)
    up_to[-1] = entries
    in_run, of_run = np.diff(bounds), np.diff(up_to)
    longer = of_run % in_run
    lengths = np.concatenate(([least, greatest], of_run // in_run, of_run // in_run + 1))
    return _counted(lengths, np.concatenate(([1, 1], in_run - longer, longer)))


def _counted(lengths: Any, counts: Any) -> tuple[Integers, Integers]:
    """Return each length once, ascending, with the sum of its counts, where that is not 0."""
    distinct, place = np.unique(np.asarray(lengths, dtype=np.int64), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, place, counts)
    return distinct[sums > 0], sums[sums > 0]
