"""Published results of cslab-ntua/SpMV-Research on GitHub: matrices by the moments of their rows.

No such file is part of this project; the user gives its path. A table has a line for each matrix,
implementation and repetition, and a header of MATRIX and RESULT columns; others are ignored. Tables of
features alone have other names for some columns, RENAMED. The features are those from which Mpakos et al.
(2023, section III) draw artificial matrices: mean, deviation and skew of the row lengths (longest over mean,
minus 1), and those of `Neighbourhood`.

Row lengths are taken as log-normal with that mean and deviation: its quartiles, its least of so many rows,
and the longest row are the five numbers for `lengths_of_five`. The deviation is the published one. Artificial
matrices, named `ARTIFICIAL`, are the same if all their features are. Those with equal rows are one group in
cross-validation, because they have the same lengths; every other matrix is a group. A time is the median of
the repetitions, from GFLOP/s at 2 flops per entry, because ``time_s`` is that of a loop of unknown length.
Joules are the median of the watts times it; watts of 0 are missing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

from sparsecast.errors import InputError, ProfileError
from sparsecast.features.neighbourhood import Neighbourhood
from sparsecast.features.row_lengths import RowLengths
from sparsecast.features.structure import Structure
from sparsecast.records import product_flops
from sparsecast.system.tabular import grouped

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
        yield {**nothing, **line, "completed": completed}


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


COUNTS = ("nr_rows", "nr_cols", "nr_nzeros")
MOMENTS = ("std_nnz_per_row", "skew")
LOCALITY = ("avg_bw", "std_bw", "avg_sc", "avg_num_neighbours", "cross_row_similarity")
MATRIX = ("matrix_name", *COUNTS, *MOMENTS, *LOCALITY)
RESULT = ("implementation", "gflops")

#: Mean watts during the products, 0 if not measured; a table may lack it.
WATTS = "W_avg"

#: Names of the same columns in a table of features alone.
RENAMED = {
    "matrix": "matrix_name",
    "nnz-r-std": "std_nnz_per_row",
    "skew_coeff": "skew",
    "bw-avg": "avg_bw",
    "bw-std": "std_bw",
    "sc-avg": "avg_sc",
    "num-neigh-avg": "avg_num_neighbours",
    "cross_row_sim-avg": "cross_row_similarity",
}

#: Name of artificial matrices.
ARTIFICIAL = "synthetic"

#: Standard normal deviates of the quartiles.
_QUARTILES = (-0.6744897501960817, 0.0, 0.6744897501960817)


def has_moments(path: Path) -> bool:
    """Tell whether a table is of this layout, by its header."""
    return "nr_nzeros" in header_of(path)


def moment_lines(
    path: Path, required: Sequence[str] = MATRIX, optional: Sequence[str] = ()
) -> Iterator[Line]:
    """Yield the lines of a table, by the names of MATRIX, with ``group`` and ``matrix``."""
    header = header_of(path)
    named = {new: old for old, new in RENAMED.items() if old in header and new not in header}
    back = {old: new for new, old in named.items()}
    for line in table_lines(path, [named.get(name, name) for name in required], optional):
        renamed = {back.get(name, name): value for name, value in line.items()}
        group = matrix = str(renamed["matrix_name"])
        if group == ARTIFICIAL:
            values = repr([renamed[column] for column in (*COUNTS, *MOMENTS, *LOCALITY)])
            group = f"{ARTIFICIAL}-{renamed['nr_rows']:.0f}"
            matrix = hashlib.sha256(values.encode()).hexdigest()[:12]
        yield {**renamed, "group": group, "matrix": matrix}


def moment_results(path: Path) -> Iterator[Line]:
    """Yield a line for each machine, matrix and implementation of a table, with the median of its times."""
    lines = list(moment_lines(path, (*MATRIX, *RESULT), ("device", WATTS)))
    for line in lines:
        if line["implementation"] is None or line["gflops"] is None or not 0 < line["gflops"] < math.inf:
            speed = "nothing" if line["gflops"] is None else format(line["gflops"], "g")
            raise ProfileError(
                f"{path} has {speed} as gflops of {line['matrix_name']} in {line['implementation']}: "
                f"expected more than 0; correct the file, or leave it out"
            )
    result = itemgetter("device", "group", "matrix", "implementation")
    for (machine, _, _, implementation), repeated in grouped(lines, result).items():
        flops = product_flops(int(repeated[0]["nr_nzeros"] or 0), "float64")
        time_s = flops / (median(line["gflops"] for line in repeated) * 1e9)
        watts = [line[WATTS] for line in repeated if line[WATTS] is not None and 0 < line[WATTS] < math.inf]
        yield {
            **repeated[0],
            "machine": machine,
            "executor": None,
            "format": implementation,
            "time_s": time_s,
            "energy_j": median(watts) * time_s if watts else None,
            "completed": True,
        }


def described(line: Line) -> Structure:
    """Return the Structure of a matrix from a line of `moment_lines`.

    An InputError names the first number that no matrix can have.
    """
    rows, cols, nnz = (count(line, name) for name in COUNTS)
    for name in (*MOMENTS, *LOCALITY):
        value = line[name]
        if value is None or not 0 <= value < math.inf:
            raise contradicting(line, f"{name} is {'missing' if value is None else format(value, 'g')}")
    if not (rows and nnz):
        return Structure(rows, cols, nnz).checked()
    # Row lengths of a log-normal distribution, with the longest row in addition.
    mean, deviation = nnz / rows, float(line["std_nnz_per_row"])
    longest = round(mean * (1 + float(line["skew"])))
    variance = math.log1p((deviation / mean) ** 2)
    # The expected least of so many rows is this many deviations below the middle.
    least = -math.sqrt(2 * math.log(max(rows, 2)))
    first, *quartiles = (
        round(min(math.exp(math.log(mean) - variance / 2 + math.sqrt(variance) * deviate), longest), 9)
        for deviate in (least, *_QUARTILES)
    )
    five = [float(math.floor(first)), *quartiles, float(longest)]
    if rows == 2:
        five[0] = float(nnz - longest)
    elif rows > 2:
        five = _adding_up(five, 4 * (nnz - five[0] - longest) / (rows - 2))
    lengths = RowLengths.of_five(rows, nnz, five, deviation)
    if lengths is None:
        raise contradicting(
            line,
            f"no {rows:,} rows with {nnz:,} entries have the deviation {deviation:g} and the skew "
            f"{line['skew']:g}",
        )
    near = Neighbourhood(
        # Published with six digits: a full row may seem wider than the matrix by one.
        row_bandwidth=min(line["avg_bw"], float(max(cols - 1, 0))),
        row_bandwidth_deviation=line["std_bw"],
        scatter=line["avg_sc"],
        neighbours=min(line["avg_num_neighbours"], 2.0),
        cross_row_similarity=min(line["cross_row_similarity"], 1.0),
    )
    return Structure(rows, cols, nnz).having(lengths, near).checked()


def _adding_up(five: list[float], four: float) -> list[float]:
    """Return five numbers whose quarters can have means with the sum `four`.

    A distribution that is cut off at the longest row has too small a mean: its quartiles then move towards
    that row, or otherwise towards the least one, as little as possible.
    """
    least, *quartiles, longest = five
    below, above = least + sum(quartiles) - four, four - sum(quartiles) - longest
    end, lacking = (longest, above) if above > 0 else (least, below)
    room = abs(3 * end - sum(quartiles))
    if lacking <= 0 or room == 0:
        return five
    share = min(lacking / room * (1 + 1e-9) + 1e-12, 1.0)
    return [least, *(length + share * (end - length) for length in quartiles), longest]
