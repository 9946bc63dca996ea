"""Columns that several results share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from sparsecast.devices import DEVICES
from sparsecast.formats import FORMATS
from sparsecast.records import Candidate
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import energy_interval, interval


def storage_of(candidate: Candidate) -> str:
    """Return the format of a Candidate, and what it stores in fewer bytes: ``"csr (values one)"``."""
    names, chosen = FORMATS.get(candidate.format).narrow_parameters, candidate.parameters
    narrow = ", ".join(f"{name} {chosen[name]}" for name in names if name in chosen)
    return candidate.format + (f" ({narrow})" if narrow else "")


def shown_storage(name: str) -> str:
    """Return what `storage_of` gives for people: ``"CSR (values one)"``."""
    format_name, space, narrow = name.partition(" ")
    return format_name.upper() + space + narrow


def stored_as(candidate: Candidate) -> str:
    """Return the format of a Candidate, and what it stores in fewer bytes, for people."""
    return shown_storage(storage_of(candidate))


def thread_numbers(candidates: Iterable[Candidate]) -> set[int]:
    """Return the numbers of threads that Candidates differ in; one thread of serial formats is no choice."""
    return {each.threads for each in candidates if not FORMATS.get(each.format).is_serial}


#: Of a Rounding.
ROUNDING = Column(
    "rounding",
    columns=keys("value_error", "y_error"),
    about="of lossy values, the largest of a value and of a row of y; null where none are asked for",
)

#: Of a Candidate.
CANDIDATE: Columns = (
    *keys("format"),
    Column("", "format", stored_as),
    Column("kernel", "kernel"),
    *keys("device", "dtype", "threads", "vectors", "parameters"),
)


def same_bits(candidate: Candidate) -> str | None:
    """Return when products have the same bits each time on one machine; None where no test tells.

    That is of several vectors, on GPUs, and of kernels that are not ours.
    """
    device = DEVICES.get(candidate.device) if candidate.device in DEVICES else None
    if candidate.vectors > 1 or device is None or not device.shares_host:
        return None
    kernels = device.kernels.get(candidate.format) if candidate.format in device.kernels.names() else None
    if kernels is None or candidate.kernel not in kernels.variants:
        return None
    return "with as many threads" if kernels.sums_by_threads else "always"


#: Memory and bits of what has a Candidate.
BUILT: Columns = (
    Column("built_bytes", "memory", about="of the format, beside the matrix in CSR; null if unknown"),
    Column("building_bytes", "to build", about="the most that it takes beside the matrix while it is built"),
    Column(
        "same_bits",
        "same bits",
        lambda row: same_bits(row.candidate),
        lambda when: "yes" if when == "always" else "by threads",
        about='each time on one machine: "always" or "with as many threads"; null where it is unknown',
    ),
)

#: Where rows differ in it.
THREADS = Column("", "threads", "candidate.threads")

#: The ends of a forecast's interval, which people read as one text.
INTERVAL: Columns = (
    *keys("low_s", "high_s"),
    Column("", "interval", lambda row: (row.low_s, row.high_s), lambda ends: interval(*ends)),
)

#: Joules, with the ends of their interval.
ENERGY: Columns = (
    *keys("energy_j", "energy_low_j", "energy_high_j"),
    Column(
        "",
        "energy",
        lambda row: None if row.energy_j is None else (row.energy_j, row.energy_low_j, row.energy_high_j),
        lambda joules: energy_interval(*joules),
    ),
)

#: What Records were made in that a forecast rests on.
TRANSFERRED_FROM = Column(
    "transferred_from",
    columns=keys("dtype", "threads"),
    about="of the records; null where they are those of the question",
)


def within(path: str, columns: Columns) -> Columns:
    """Return columns of a part of a row, as columns of the row."""
    return tuple(replace(column, value=partial(_of_part, Column(path), column)) for column in columns)


def _of_part(part: Column, column: Column, row: Any) -> Any:
    item = part.of(row)
    return None if item is None else column.of(item)


def matrix_column(name: str, structure: str) -> Column:
    """Return the column of what identifies a matrix, by the paths of its name and of its Structure."""
    columns = (Column("name", value=name), *within(structure, keys("rows", "cols", "nnz")))
    return Column("matrix", value=lambda item: item, columns=columns)
