"""What is unusual about a matrix among others: its features, each against the range of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sparsecast.features.structure import Structure
from sparsecast.results.reports import Rarity

#: A value is unusual where no more than this share of the others lie beyond it, on its side.
_FEW = 0.05

#: From so many others on, it can be told what few of them are.
_LEAST_OTHERS = 10

#: What is compared: numbers above 0 that do not grow with the matrix, but for its size. The names are those
#: that a sentence can have as its subject.
TRAITS: dict[str, Callable[[Structure], float]] = {
    "non-zeros": lambda found: found.nnz,
    "columns, the entries of x": lambda found: found.cols,
    "mean row length": lambda found: found.row_lengths.mean,
    "deviation of the row lengths over their mean": lambda found: (
        found.row_lengths.deviation / (found.row_lengths.mean or 1.0)
    ),
    "longest row over the mean": lambda found: found.row_lengths.max / (found.row_lengths.mean or 1.0),
    "share of empty rows": lambda found: found.row_lengths.empty_rows / max(found.rows, 1),
    "share of mispredicted rows": lambda found: (found.row_lengths.mispredicted or 0) / max(found.rows, 1),
    "share of entries that read another line of x": lambda found: (
        found.locality.line_changes / max(found.nnz, 1)
    ),
    "share of x that a row can reach (half-bandwidth)": lambda found: (
        found.bands.half_bandwidth / max(found.cols, 1)
    ),
    "values stored in 2x2 blocks for a non-zero": lambda found: found.blocks.fill[0],
    "columns over rows": lambda found: found.cols / max(found.rows, 1),
}


#: Groups that the traits are read from.
_GROUPS = ("row_lengths", "locality", "bands", "blocks")


def rarities(found: Structure, others: Iterable[Structure]) -> tuple[Rarity, ...]:
    """Return in what a matrix is unusual among others: what lies farthest outside of their range first.

    Nothing is unusual among fewer than _LEAST_OTHERS, nor where a feature group is not known.
    """
    known = [each for each in others if not each.lacks(_GROUPS)]
    if found.lacks(_GROUPS) or len(known) < _LEAST_OTHERS:
        return ()
    seen = [_rarity(trait, read(found), [read(each) for each in known]) for trait, read in TRAITS.items()]
    rare = [each for each in seen if each.beyond <= _FEW * each.others]
    return tuple(sorted(rare, key=lambda each: (-each.distance, each.beyond)))


def _rarity(trait: str, value: float, others: list[float]) -> Rarity:
    larger, smaller = (sum(each >= value for each in others), sum(each <= value for each in others))
    is_large = larger < smaller
    end = max(others) if is_large else min(others)
    return Rarity(trait, value, end, is_large, min(larger, smaller), len(others))
