"""Narrow storage: values and columns in fewer bytes, with every bit of a product kept but on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import FormatError, InputError
from sparsecast.features.narrow_storage import GROUP_ROWS, NARROW_COLUMNS
from sparsecast.features.sweep import extremes
from sparsecast.system.jit import njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, equal_parts, in_parts, threads_for

#: What `values` may be on request alone: rounded to float32, complex ones to complex64.
LOSSY = "lossy float32"

#: What `values` and `columns` of Narrow may be.
VALUES, COLUMNS = ("one", "float32", LOSSY), (16,)

NO_BASES: NDArray[Any] = np.empty(0, dtype=np.int32)

#: The parameters of Narrow.
NARROW_PARAMETERS = frozenset({"values", "columns"})

_ZERO, _ONE, _GROUP = np.uint64(0), np.uint64(1), np.uint64(GROUP_ROWS)
_MOST_OFFSET = np.uint64(NARROW_COLUMNS - 1)


@dataclass(frozen=True, slots=True)
class Narrow:
    """How the entries of a matrix are stored; by default in full."""

    #: ``"one"``: all values have the same bits, and one of them is stored. ``"float32"``: every value of a
    #: float64 matrix is a float32, bit for bit, and is stored as such. LOSSY: values of float64, or the two
    #: parts of complex128, are rounded to float32. Sums are of x's type in all.
    values: str | None = None
    #: 16: as unsigned integers of 16 bits that count from the base of their group of GROUP_ROWS rows, its
    #: least column. The bases are 0 in a matrix of at most NARROW_COLUMNS columns.
    columns: int | None = None

    def __post_init__(self) -> None:
        if self.values not in (None, *VALUES) or self.columns not in (None, *COLUMNS):
            raise InputError(
                f"values {self.values!r} and columns {self.columns!r}: expected one, float32 or {LOSSY}, "
                f"and 16; leave them out for full storage"
            )

    def streamed_bytes(self, value_bytes: int, index_bytes: int) -> tuple[int, int]:
        """Return the bytes of a stored value and of a column."""
        by_values = {None: value_bytes, "one": 0}
        return by_values.get(self.values, value_bytes // 2), 2 if self.columns else index_bytes

    def size(
        self, entries: NDArray[np.int64], rows: NDArray[np.int64], value_bytes: int, index_bytes: int
    ) -> NDArray[np.int64]:
        """Return the bytes of so many entries in blocks of so many rows, with the one value and the bases."""
        bases = -(-rows // GROUP_ROWS) * index_bytes if self.columns else 0
        one = value_bytes if self.values == "one" else 0
        return np.asarray(entries * sum(self.streamed_bytes(value_bytes, index_bytes)) + bases + one)

    def stored_values(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return the values to store: `data` itself in full, the one in an array of shape (1,).

        Raises
        ------
        FormatError
            If a value would change its bits, or where LOSSY become infinite; or of another type of values.
        """
        if self.columns and data.dtype.kind == "c":
            refuse(f"columns in 16 bits of a {data.dtype} matrix", "real values")
        if self.values is None:
            return data
        of_double = {"float32": ("float64",), LOSSY: ("float64", "complex128")}
        full = of_double.get(self.values, ("float64", "float32"))
        if data.dtype.name not in full:
            refuse(f"values '{self.values}' of a {data.dtype} matrix", f"one of {' or '.join(full)}")
        if self.values == LOSSY:
            return rounded(data)
        if self.values == "one":
            bits, parts = data.view(f"u{data.dtype.itemsize}"), equal_parts(len(data), threads_for(len(data)))
            if not all(in_parts(_are_alike, (bits,), parts)):
                refuse("values 'one' of a matrix with several", "all of them alike, bit for bit")
            return data[:1].copy() if len(data) else np.zeros(1, dtype=data.dtype)
        stored, is_exact, _ = _in_single(data)
        if not is_exact:
            refuse("values 'float32' of other float64 values", "all of them exact in float32")
        return stored

    def stored_columns(
        self, indptr: NDArray[Any], indices: NDArray[Any], cols: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the columns to store and the bases of the groups; there are none in full.

        `indptr` are the row pointers and `indices` the columns of a matrix in CSR, with `cols` columns.

        Raises
        ------
        FormatError
            If the columns of a group are too far apart.
        """
        indices = np.ascontiguousarray(indices[: int(indptr[-1])])
        if self.columns is None:
            return indices, NO_BASES
        rows = len(indptr) - 1
        starts = np.append(np.arange(0, rows, GROUP_ROWS), rows)
        bases = np.zeros(len(starts) - 1, dtype=indices.dtype)
        offsets = aligned_empty(len(indices), np.uint16)
        is_far = np.zeros(len(bases), dtype=np.bool_)
        arrays = (indptr, indices, cols > NARROW_COLUMNS, bases, offsets, is_far)
        in_parts(_count_from_bases, arrays, balanced_parts(indptr[starts]))
        if is_far.any():
            row = int(is_far.argmax()) * GROUP_ROWS
            what = f"columns in 16 bits, but the {GROUP_ROWS} rows from row {row} on reach further"
            refuse(what, f"a reach below {NARROW_COLUMNS:,} columns")
        return offsets, bases


def suited(parameters: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """Return those of the parameters of Narrow that a type of values takes."""
    if np.dtype(dtype).kind == "c":
        return {}
    is_double = dtype == "float64"
    return {name: value for name, value in parameters.items() if is_double or value != "float32"}


def rounded(data: NDArray[Any]) -> NDArray[Any]:
    """Return contiguous values of double precision in single; a FormatError if a finite one is beyond it."""
    stored, _, stays_finite = _in_single(data)
    if not stays_finite:
        refuse("finite values beyond the range of float32", f"none above {np.finfo(np.float32).max:.2e}")
    return stored


def _in_single(data: NDArray[Any]) -> tuple[NDArray[Any], bool, bool]:
    """Return values of double precision in single; whether all have their bits, and finite ones stay so."""
    stored = aligned_empty(len(data), np.complex64 if data.dtype.kind == "c" else np.float32)
    numbers = data.view(np.float64), stored.view(np.float32), data.view(np.uint64)
    checks = in_parts(_round, numbers, equal_parts(len(numbers[0]), threads_for(len(data))))
    return stored, all(is_exact for is_exact, _ in checks), all(is_finite for _, is_finite in checks)


def refuse(problem: str, expected: str) -> None:
    """Refuse a narrow storage that does not hold."""
    raise FormatError(f"{problem}: expected {expected}; leave the parameter out")


@njit(nogil=True, cache=True)
def _are_alike(bits, first, last):
    differing = bits.dtype.type(0)
    for k in range(first, last):
        differing |= bits[k] ^ bits[0]
    return differing == 0


@njit(nogil=True, cache=True)
def _round(data, stored, bits, first, last):
    """Write values as float32; tell whether all have their bits when read again, and none became infinite."""
    differing, is_beyond = _ZERO, False
    for k in range(first, last):
        stored[k] = data[k]
        differing |= np.float64(stored[k]).view(np.uint64) ^ bits[k]
        is_beyond |= np.isinf(stored[k]) != np.isinf(data[k])
    return differing == _ZERO, not is_beyond


@njit(nogil=True, cache=True)
def _count_from_bases(indptr, indices, is_wide, bases, offsets, is_far, first, last):
    """Write the base of each group, and its columns from there on; mark groups that reach too far."""
    rows = np.uint64(len(indptr)) - _ONE
    for group in range(first, last):
        begin, end = np.uint64(indptr[group * _GROUP]), np.uint64(indptr[min((group + _ONE) * _GROUP, rows)])
        base = _ZERO
        if is_wide and begin < end:
            base, most = extremes(indices, begin, end)
            is_far[group] = most - base > _MOST_OFFSET
        bases[group] = base
        for k in range(begin, end):
            offsets[k] = np.uint64(indices[k]) - base
