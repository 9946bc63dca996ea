"""Published results of cslab-ntua/SpMV-Research on GitHub: matrices by the moments of what their rows have.

No such file is part of this project; the user gives its path. A table has a line for each matrix,
implementation and repetition, and a header of MATRIX and RESULT columns; others are not looked at. Tables of
the features of matrices alone call some columns otherwise, RENAMED. What is said of a matrix is what
Mpakos et al. (2023, section III) draw artificial ones from: mean, deviation and skew of the row lengths,
where skew is the longest over the mean, less 1, and the features of `Neighbourhood`. Taken for granted is:

- the row lengths follow a log-normal distribution of that mean and deviation: its quartiles, its least of so
  many rows, and the longest row are the five numbers that `lengths_of_five` takes. The deviation is the
  published one;
- artificial matrices, whose name is `ARTIFICIAL`, are the same where all that is said of them is. Those with
  as many rows are one group in cross-validation, because they were drawn from the same lengths. Every other
  matrix is a group of its own;
- a time is the median of the repetitions. It follows from GFLOP/s at 2 flops an entry, because ``time_s`` is
  that of a loop of unknown length. Joules are the median of the watts times it; watts of 0 are none.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from statistics import median

from sparsecast.benchmark.published_tables import (
    Line,
    contradicting,
    count,
    header_of,
    table_lines,
)
from sparsecast.errors import ProfileError
from sparsecast.features.neighbourhood import Neighbourhood
from sparsecast.features.row_lengths import RowLengths
from sparsecast.features.structure import Structure
from sparsecast.records import product_flops

COUNTS = ("nr_rows", "nr_cols", "nr_nzeros")
MOMENTS = ("std_nnz_per_row", "skew")
LOCALITY = ("avg_bw", "std_bw", "avg_sc", "avg_num_neighbours", "cross_row_similarity")
MATRIX = ("matrix_name", *COUNTS, *MOMENTS, *LOCALITY)
RESULT = ("implementation", "gflops")

#: Mean watts during the products, 0 where nobody measured them; a table may lack it.
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

#: What artificial matrices are called.
ARTIFICIAL = "synthetic"

#: Standard normal deviates of the quartiles.
_QUARTILES = (-0.6744897501960817, 0.0, 0.6744897501960817)


def has_moments(path: Path) -> bool:
    """Tell whether a table is of this layout, by its header."""
    return "nr_nzeros" in header_of(path)


def moment_matrices(path: Path) -> Iterator[Line]:
    """Give what a table tells of matrices, in the names of MATRIX, with ``group`` and ``matrix``.

    Raises
    ------
    ProfileError
        If the file cannot be read, or lacks a column.
    """
    yield from _lines(path, MATRIX, ())


def moment_results(path: Path) -> Iterator[Line]:
    """Give a line for each machine, matrix and implementation of a table, with the median of its times.

    Raises
    ------
    ProfileError
        If the file cannot be read, lacks a column, or has a speed that cannot be.
    """
    repeated: dict[tuple[str, ...], list[Line]] = {}
    for line in _lines(path, (*MATRIX, *RESULT), ("device", WATTS)):
        if line["implementation"] is None or line["gflops"] is None or not 0 < line["gflops"] < math.inf:
            speed = "nothing" if line["gflops"] is None else format(line["gflops"], "g")
            raise ProfileError(
                f"{path} has {speed} as gflops of {line['matrix_name']} in {line['implementation']}: "
                f"expected more than 0; correct the file, or leave it out"
            )
        key = line["device"] or "", line["group"], line["matrix"], line["implementation"]
        repeated.setdefault(key, []).append(line)
    for (machine, *_), lines in repeated.items():
        speed = median(line["gflops"] for line in lines) * 1e9
        entries = lines[0]["nr_nzeros"] or 0
        time_s = product_flops(int(entries), "float64") / speed
        watts = [line[WATTS] for line in lines if line[WATTS] is not None and 0 < line[WATTS] < math.inf]
        yield {
            **lines[0],
            "machine": machine,
            "executor": None,
            "format": lines[0]["implementation"],
            "time_s": time_s,
            "energy_j": median(watts) * time_s if watts else None,
            "completed": True,
        }


def _lines(path: Path, required: Collection[str], optional: Collection[str]) -> Iterator[Line]:
    header = header_of(path)
    named = {new: old for old, new in RENAMED.items() if old in header and new not in header}
    lines = table_lines(path, [named.get(name, name) for name in required], tuple(optional))
    back = {old: new for new, old in named.items()}
    for line in lines:
        renamed = {back.get(name, name): value for name, value in line.items()}
        yield {**renamed, **_named(renamed)}


def _named(line: Line) -> dict[str, str]:
    name = str(line["matrix_name"])
    if name != ARTIFICIAL:
        return {"group": name, "matrix": name}
    values = repr([line[column] for column in (*COUNTS, *MOMENTS, *LOCALITY)])
    return {
        "group": f"{ARTIFICIAL}-{line['nr_rows']:.0f}",
        "matrix": hashlib.sha256(values.encode()).hexdigest()[:12],
    }


def described(line: Line) -> Structure:
    """Return the Structure of a matrix from a line of `moment_matrices`.

    Raises
    ------
    InputError
        If no matrix has such numbers; the message names the first of them.
    """
    rows, cols, nnz = (count(line, name) for name in COUNTS)
    for name in (*MOMENTS, *LOCALITY):
        value = line[name]
        if value is None or not 0 <= value < math.inf:
            raise contradicting(line, f"{name} is {'missing' if value is None else format(value, 'g')}")
    if not (rows and nnz):
        return Structure(rows, cols, nnz).checked()
    lengths = _lengths(line, rows, nnz)
    near = Neighbourhood(
        # Published with six digits: a full row may seem one wider than the matrix.
        row_bandwidth=min(line["avg_bw"], float(max(cols - 1, 0))),
        row_bandwidth_deviation=line["std_bw"],
        scatter=line["avg_sc"],
        neighbours=min(line["avg_num_neighbours"], 2.0),
        cross_row_similarity=min(line["cross_row_similarity"], 1.0),
    )
    return Structure(rows, cols, nnz).having(lengths, near).checked()


def _lengths(line: Line, rows: int, nnz: int) -> RowLengths:
    """Return row lengths of a log-normal distribution, with the longest row in addition."""
    mean, deviation = nnz / rows, float(line["std_nnz_per_row"])
    longest = round(mean * (1 + float(line["skew"])))
    variance = math.log1p((deviation / mean) ** 2)
    # The expected least of so many rows lies about so many deviations below the middle.
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
    return lengths


def _adding_up(five: list[float], four: float) -> list[float]:
    """Return five numbers whose quarters can have the means that add up to `four`.

    A distribution that is cut off at the longest row has too small a mean: its quartiles are then moved
    towards that row, or else towards the least one, no further than they must be.
    """
    least, *quartiles, longest = five
    below, above = least + sum(quartiles) - four, four - sum(quartiles) - longest
    end, lacking = (longest, above) if above > 0 else (least, below)
    room = abs(3 * end - sum(quartiles))
    if lacking <= 0 or room == 0:
        return five
    share = min(lacking / room * (1 + 1e-9) + 1e-12, 1.0)
    return [least, *(length + share * (end - length) for length in quartiles), longest]
