"""The search space of the five-minute benchmark: its matrices and their sizes.

Square matrices of dimensions 2**9 to 2**20, of 24 to 34 non-zeros a row, in 36 block sizes, are multiplied in
CSR (1 x 1) or in BCSR of exactly their block size (Gahvari et al. 2007, section IV). Symmetric ones,
of which one triangle is stored, are added: the paper leaves them to future work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.machine import Machine
from sparsecast.matrices.banded_synthesis import band_statistics, banded_matrix
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.records import NO_PARAMETERS, Parameters

#: Section IV: 29 +- 5 non-zeros a row, the mean of the paper's matrices; dimensions that are powers of two.
NNZ_PER_ROW, MIDDLE = tuple(range(24, 35)), 29

FIRST_DIMENSION, LAST_DIMENSION = 1 << 9, 1 << 20

SIZES = ("small", "medium", "large")


@dataclass(frozen=True, slots=True)
class Series:
    """The matrices that share a threshold dimension: those of one block size, or the symmetric ones.

    Those are stored as one triangle.
    """

    block: tuple[int, int] = (1, 1)
    is_symmetric: bool = False

    @property
    def name(self) -> str:
        """Block size, or ``"symmetric"``."""
        return "symmetric" if self.is_symmetric else f"{self.block[0]}x{self.block[1]}"

    @property
    def format(self) -> str:
        plain = "symmetric_csr" if self.is_symmetric else "csr"
        return plain if self.block == (1, 1) else "bcsr"

    @property
    def is_blocked(self) -> bool:
        return self.format == "bcsr"

    @property
    def parameters(self) -> Parameters:
        return Parameters({"block": self.block}) if self.is_blocked else NO_PARAMETERS


UNBLOCKED, SYMMETRIC = Series(), Series(is_symmetric=True)


def all_series(blocks: Sequence[str] | None = None) -> tuple[Series, ...]:
    """Return the series of block sizes such as ``"4x2"``, by default all 36, and the symmetric one.

    Square sizes come first and symmetric matrices second, so that a run that is cut short has seen each kind.
    """
    by_name = {Series(size).name: Series(size) for size in product(BLOCK_SIDES, BLOCK_SIDES)}
    for name in blocks or ():
        if name not in by_name:
            raise InputError(
                f"block size '{name}': expected RxC with R and C of {', '.join(map(str, BLOCK_SIDES))}; "
                f"name one such as 4x2"
            )
    chosen = [by_name[name] for name in dict.fromkeys(blocks or by_name)]
    squares_first = sorted(chosen, key=lambda series: series.block[0] != series.block[1])
    return (squares_first[0], SYMMETRIC, *squares_first[1:])


@dataclass(frozen=True, slots=True)
class Point:
    """One square matrix of the search space, with about `nnz_per_row` non-zeros per row."""

    series: Series
    dimension: int
    nnz_per_row: int

    @property
    def name(self) -> str:
        return f"synthetic?rows={self.dimension}&nnz_per_row={self.nnz_per_row}&kind={self.series.name}"

    @classmethod
    def named(cls, name: str) -> Point:
        """Return the point of this name of a matrix in a Record; a ValueError if none has it."""
        parts = re.fullmatch(r"synthetic\?rows=(\d+)&nnz_per_row=(\d+)&kind=(symmetric|(\d)x(\d))", name)
        if parts is None:
            raise ValueError(f"{name!r} is no matrix of the five-minute benchmark")
        rows, length, kind, r, c = parts.groups()
        series = SYMMETRIC if kind == "symmetric" else Series((int(r), int(c)))
        return cls(series, int(rows), int(length))


def _synthetic(rows: int, nnz_per_row: int, kind: str) -> csr_array[Any]:
    block = (1, 1) if kind == "symmetric" else (int(kind[0]), int(kind[2]))
    return banded_matrix(
        rows,
        nnz_per_row,
        block=block,
        bands=band_statistics().bands(MIDDLE),  # section III: one distribution for all
        symmetric=kind == "symmetric",
        seed=rows + nnz_per_row,
    )


FAMILIES.register("synthetic")(Family(_synthetic, lambda rows, nnz_per_row, kind: rows * nnz_per_row))


def dimensions(cache_bytes: int, value_bytes: int, most_entries: float) -> tuple[int, ...]:
    """Return the dimensions of the search space, ascending.

    They end at 2**20, or at the first that no longer fits in the last cache of `cache_bytes`, so that the
    benchmark keeps up with machines that grow; and before the memory for `most_entries` non-zeros ends.
    """
    ascending, dimension, longest = [], FIRST_DIMENSION, NNZ_PER_ROW[-1]
    while dimension * longest <= most_entries:
        ascending.append(dimension)
        if dimension >= LAST_DIMENSION and problem_bytes(dimension, longest, value_bytes) > cache_bytes:
            break
        dimension *= 2
    return tuple(ascending)


def problem_bytes(dimension: int, nnz_per_row: float, value_bytes: int, index_bytes: int = 4) -> float:
    """Return the bytes of a matrix in CSR and of its two vectors."""
    entry, row = value_bytes + index_bytes, index_bytes + 2 * value_bytes
    return dimension * (nnz_per_row * entry + row)


def size_class(dimension: int, nnz_per_row: float, value_bytes: int, cache_bytes: int) -> str | None:
    """Return the size of a problem (section II); None where the cache is not known.

    Small: all of it fits in the last cache. Medium: the source vector does. Large: not even that.
    """
    if not cache_bytes:
        return None
    if problem_bytes(dimension, nnz_per_row, value_bytes) <= cache_bytes:
        return "small"
    return "medium" if dimension * value_bytes <= cache_bytes else "large"


def last_cache_bytes(machine: Machine, threads: int) -> int:
    """Return what the last caches hold that these threads use together; 0 where that is not known."""
    caches = machine.product_caches
    return caches[-1].bytes * -(-threads // caches[-1].shared_by) if caches else 0
