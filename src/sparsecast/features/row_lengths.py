"""Row lengths: the number of entries of the rows, and the mispredicted row ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.system.integers import GOLDEN, unsigned
from sparsecast.system.jit import inner, njit

Integers = NDArray[np.int64]

#: Row lengths at which rows are counted: every length up to 64, then eight steps per octave, up to 2**31.
#: Every statistic of a row block in the models follows from differences of such counts.
ROW_LENGTH_LEVELS: tuple[int, ...] = (
    *range(64),
    *(2**octave + step * 2 ** (octave - 3) for octave in range(6, 31) for step in range(8)),
    2**31,
)

#: Size of the table of histories of four row lengths, for the estimate of mispredicted rows. A history keeps
#: 16 bits of each length, so longer ones than this count as equal.
_HISTORIES, _LONGEST_REMEMBERED = 2**16, 2**16 - 2

#: Least length of rows that are listed one by one; shorter ones are counted by length.
_LONG_ROW = 1024

#: Rows that are compared at once with the row before: most rows of a mesh have the same length.
_GROUP = 16

_ZERO, _ONE = np.uint64(0), np.uint64(1)
#: Times a length + 1: the history of four rows of that length.
_ALIKE = np.uint64(0x0001000100010001)

#: Runs of rows to which `lengths_of_five` gives one length, or two that differ by one.
_RUNS = 1024


@FEATURES.register("row_lengths")
@dataclass(frozen=True, slots=True)
class RowLengths(FeatureGroup):
    """Statistics of the entries per row."""

    name: ClassVar[str] = "row_lengths"

    mean: float
    deviation: float  # population standard deviation
    mode: int  # most frequent number of entries, the smallest of equals
    min: int
    max: int
    empty_rows: int
    #: Rows whose length differs from that of the row before; None if the order of the rows is unknown.
    changes: int | None
    #: Rows whose length differs from the one that followed the same four lengths last time: an estimate of
    #: the mispredicted ends of the row loop, from a table of 65,536 histories; None as `changes`.
    mispredicted: int | None
    #: rows_at_least, entries_up_to: for each level of ROW_LENGTH_LEVELS up to the first that is >= `max`: the
    #: rows with at least this many entries, and the sum over rows of min(length, level).
    rows_at_least: tuple[int, ...]
    entries_up_to: tuple[int, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        pointers = unsigned(source.indptr)
        short_rows = np.zeros(_LONG_ROW, dtype=np.int64)
        long_rows = np.zeros(source.nnz // _LONG_ROW, dtype=np.int64)
        changes, mispredicted, listed = _count_rows(pointers, short_rows, long_rows)
        long, long_counts = np.unique(long_rows[:listed], return_counts=True)
        present = np.flatnonzero(short_rows)
        lengths, counts = np.append(present, long), np.append(short_rows[present], long_counts)
        return cls(**row_length_statistics(lengths, counts), changes=changes, mispredicted=mispredicted)

    @classmethod
    def of_five(cls, rows: int, nnz: int, five: list[float], deviation: float) -> Self | None:
        """Return the features of rows with five given lengths, in any order; None if no rows have them.

        The five are least, first quartile, median, third quartile and greatest; see `lengths_of_five`.
        """
        lengths_and_counts = lengths_of_five(rows, nnz, five)
        if lengths_and_counts is None:
            return None
        statistics = {**row_length_statistics(*lengths_and_counts), "deviation": deviation}
        return cls(**statistics, changes=None, mispredicted=None)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self | None:
        """Return the stored features, or those that `of_five` computes from five stored lengths.

        Shipped profiles hold the five, at a tenth of the size.
        """
        if "five" not in stored or stored["version"] != cls.version:
            # With slots, the class is another one than super() without arguments would see.
            return super(RowLengths, cls).from_dict(stored)
        lengths = cls.of_five(stored["rows"], stored["nnz"], stored["five"], stored["deviation"])
        if lengths is None:
            raise ValueError(f"no {stored['rows']} rows have the lengths {stored['five']}")
        return lengths

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        at_least, up_to = self.rows_at_least, self.entries_up_to
        if not len(at_least) == len(up_to) == int(np.searchsorted(ROW_LENGTH_LEVELS, self.max)) + 1:
            return f"{len(at_least)} and {len(up_to)} levels stand for rows of up to {self.max} entries"
        filled = at_least[1] if len(at_least) > 1 else 0
        # A row that reaches the lower level only adds at least nothing and less than the step to the higher.
        steps, gains = np.diff(ROW_LENGTH_LEVELS[: len(at_least)]), np.diff(up_to)
        least, most = np.array(at_least[1:]) * steps, np.array(at_least[:-1]) * steps
        checks = {
            f"row lengths go from {self.min} to {self.max}": 0 <= self.min <= self.max,
            f"the mode {self.mode} is outside of {self.min} to {self.max}": (
                self.min <= self.mode <= self.max or not rows
            ),
            f"{rows:,} rows have a mean of {self.mean:g} entries": (
                abs(self.mean * rows - nnz) <= 1e-9 * max(nnz, 1)
            ),
            f"the deviation of the row lengths is {self.deviation:g}": (
                0 <= self.deviation <= max(self.max, 1) * (1 + 1e-9)
            ),
            f"{self.mispredicted} rows are mispredicted": 0 <= (self.mispredicted or 0) <= rows,
            f"{self.changes} rows have another length than the one before": 0 <= (self.changes or 0) <= rows,
            f"{self.empty_rows:,} rows are empty": 0 <= self.empty_rows <= rows,
            f"{at_least[0]:,} rows have at least 0 entries": at_least[0] == rows,
            f"{self.empty_rows:,} rows are empty and {filled:,} are not": self.empty_rows == rows - filled,
            f"no row has {self.max:,} entries": self.max == 0 or (len(at_least) > 1 and at_least[-2] > 0),
            "a number of rows with at least k entries is below 0": at_least[-1] >= 0,
            "the number of rows with at least k entries grows with k": all(np.diff(at_least) <= 0),
            f"the rows have {up_to[-1]:,} entries together": up_to[-1] == nnz,
            "the entries up to a level are no sum over rows": (
                up_to[0] == 0 and bool(np.all((least <= gains) & (gains <= most)))
            ),
        }
        return next((text for text, holds in checks.items() if not holds), None)


def row_length_statistics(lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return the features that do not depend on the order of the rows.

    `lengths` are the distinct lengths, ascending; `counts` the number of rows of each.
    """
    rows, nnz = int(counts.sum()), int(counts @ lengths)
    mean = nnz / max(rows, 1)
    longest = int(lengths.max(initial=0))
    levels = np.array(ROW_LENGTH_LEVELS[: int(np.searchsorted(ROW_LENGTH_LEVELS, longest)) + 1])
    shorter = np.searchsorted(lengths, levels)
    rows_below = np.concatenate(([0], np.cumsum(counts)))[shorter]
    entries_below = np.concatenate(([0], np.cumsum(counts * lengths)))[shorter]
    rows_at_least = rows - rows_below
    return {
        "mean": mean,
        "deviation": math.sqrt(float(np.sum(counts * (lengths - mean) ** 2)) / max(rows, 1)),
        "mode": int(lengths[np.argmax(counts)]) if rows else 0,
        "min": int(lengths[0]) if rows else 0,
        "max": longest,
        "empty_rows": int(counts[lengths == 0].sum()),
        "rows_at_least": tuple(rows_at_least.tolist()),
        "entries_up_to": tuple((entries_below + rows_at_least * levels).tolist()),
    }


def lengths_of_five(rows: int, nnz: int, five: list[float]) -> tuple[Integers, Integers] | None:
    """Return row lengths with five given numbers and a given sum, or None if no rows have them.

    The five are least, first quartile, median, third quartile and greatest length. One row has the least
    length and one the greatest. For the others, a quarter at a time, the length at the share u of the
    quarter's rows is left + (right - left) u**p, with one p for which the lengths of all quarters have the
    given sum. Runs of rows get the whole numbers around their mean.

    Returned are the lengths, ascending, and the number of rows of each.
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
    """Return each length once, ascending, with its total count, without zeros."""
    distinct, place = np.unique(np.asarray(lengths, dtype=np.int64), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, place, counts)
    return distinct[sums > 0], sums[sums > 0]


@njit(cache=True, nogil=True)
def find_mispredicted_rows(lengths):
    """Tell for each row whether its length differs from the one that last followed the same four lengths.

    A new history counts as mispredicted. All rows above 65,533 entries count as equally long. Histories share
    a table of 65,536 places.
    """
    followers = np.zeros(_HISTORIES, dtype=np.uint16)
    mispredicted = np.empty(len(lengths), dtype=np.bool_)
    history = _ZERO
    for i in range(len(lengths)):
        mispredicted[i], history = _follow(followers, history, np.uint64(lengths[i]))
    return mispredicted


@inner
def _follow(followers, history, length):
    """Return whether a length is mispredicted from the four before, and the history that ends with it."""
    remembered = min(length, np.uint64(_LONGEST_REMEMBERED)) + _ONE
    place = (history * GOLDEN) >> np.uint64(48)
    is_mispredicted = followers[place] != remembered
    followers[place] = remembered
    return is_mispredicted, history << np.uint64(16) | remembered


@njit(cache=True, nogil=True)
def _count_rows(indptr, short_rows, long_rows):
    """Count rows by length and list the long ones; return how many change, are mispredicted and are long.

    A group of rows is counted at once if all its lengths are predicted.
    """
    rows, row, group = np.uint64(indptr.size - 1), _ZERO, np.uint64(_GROUP)
    followers = np.zeros(_HISTORIES, dtype=np.uint16)
    history, changes, mispredicted, listed = _ZERO, 0, 0, 0
    before = np.uint64(indptr[1]) - np.uint64(indptr[0]) if rows > _ZERO else _ZERO
    while row < rows:
        end = min(row + group, rows)
        # As long as the four rows before, which is what followed such a history the last time.
        is_predicted = history == (before + _ONE) * _ALIKE and before < np.uint64(_LONG_ROW)
        if is_predicted and followers[(history * GOLDEN) >> np.uint64(48)] == before + _ONE:
            differing = np.uint64(end - row != group)
            for following in range(row, end):
                differing |= np.uint64(indptr[following + _ONE]) - np.uint64(indptr[following]) ^ before
            if differing == _ZERO:
                short_rows[before] += _GROUP
                row = end
                continue
        for following in range(row, end):
            length = np.uint64(indptr[following + _ONE]) - np.uint64(indptr[following])
            changes += length != before
            before = length
            is_mispredicted, history = _follow(followers, history, length)
            mispredicted += is_mispredicted
            if length < np.uint64(_LONG_ROW):
                short_rows[length] += 1
            else:
                long_rows[listed] = length
                listed += 1
        row = end
    return changes, mispredicted, listed
