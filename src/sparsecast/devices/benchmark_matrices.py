"""The benchmark matrices of every device: those of Guo, Wang and Chen (2014), section 3.2, and others.

Theirs are on strips of a device. Others have rows of varied length, dense blocks, full diagonals or mirrored
entries. And there are some gallery matrices that no model is fitted to, from which the models learn
how far off they are on matrices of other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from scipy.sparse import csr_array

from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.synthesis import (
    block_matrix,
    diagonal_matrix,
    mirrored,
    strip_matrix,
    varied_matrix,
)

#: Section 3.2.2: strips 1 to 10; non-zeros a row 4, 16 ... 1024 for CSR and ELL, 10, 20 ... 100 for COO.
STRIPS = tuple(range(1, 11))
NNZ_PER_ROW = (4, 16, 64, 256, 1024)
ENTRY_STRIPS = tuple(range(10, 101, 10))

#: Rows, mean row length, distribution of the row lengths and reach of the columns of matrices with rows of
#: varied length: small and large, short and long rows, near and far columns, each with each other at least
#: once. The first half is required.
VARIED = (
    (20_000, 4, "power", 0.01),
    (100_000, 6, "mixed", 0.001),
    (200_000, 3, "uniform", 0.001),
    (100_000, 10, "uniform", 1.0),
    (5_000, 40, "power", 1.0),
    (300_000, 4, "fixed", 1.0),
    (10_000, 30, "mixed", 0.1),
    (30_000, 20, "fixed", 0.1),
    (150_000, 12, "fixed", 0.001),
    (60_000, 50, "uniform", 0.02),
    (400_000, 3, "power", 0.2),
    (4_000, 8, "uniform", 0.1),
    (400_000, 8, "mixed", 0.3),
    (1_000_000, 3, "fixed", 0.0),
    (250_000, 20, "power", 0.05),
    (80_000, 30, "fixed", 1.0),
    (100_000, 60, "mixed", 0.0),
    (400_000, 12, "uniform", 0.0),
    (12_000, 100, "power", 0.1),
    (20_000, 6, "fixed", 1.0),
    (600_000, 6, "uniform", 0.3),
    (120_000, 60, "fixed", 0.01),
)

#: Block rows, blocks a row, block size and reach of matrices of dense blocks: from cache to memory, small and
#: large blocks. Only formats that could be chosen for them are measured on them.
BLOCKS = (
    (1_000, 10, 8, 0.5),
    (2_000, 9, 3, 1.0),
    (4_000, 20, 6, 0.1),
    (10_000, 12, 4, 0.05),
    (20_000, 8, 3, 0.01),
    (60_000, 6, 2, 0.001),
    (300, 8, 4, 0.3),
    (5_000, 30, 2, 0.02),
    (30_000, 14, 3, 0.0),
    (12_000, 16, 6, 0.01),
    (150_000, 7, 2, 0.1),
    (50_000, 10, 4, 0.002),
    (8_000, 6, 3, 0.5),
    (6_000, 12, 8, 0.0),
)
_BLOCK_FORMATS = ("bcsr", "csr", "sell")

#: As VARIED, for matrices that are mirrored at the diagonal.
SYMMETRIC = (
    (3_000, 20, "uniform", 0.3),
    (20_000, 5, "power", 0.01),
    (100_000, 6, "mixed", 0.001),
    (60_000, 10, "uniform", 1.0),
    (200_000, 4, "fixed", 1.0),
    (30_000, 20, "fixed", 0.1),
    (10_000, 60, "mixed", 0.1),
    (150_000, 12, "fixed", 0.001),
    (40_000, 50, "uniform", 0.02),
    (8_000, 130, "power", 1.0),
    (300_000, 7, "fixed", 0.0),
    (30_000, 80, "mixed", 0.0),
    (5_000, 8, "fixed", 1.0),
    (120_000, 25, "mixed", 0.3),
)
_SYMMETRIC_FORMATS = ("csr", "sell", "symmetric_csr")
#: Rows, diagonals and reach of matrices of full diagonals: from cache to memory, few and many diagonals, side
#: by side and far apart. The format for them is measured on them, beside CSR.
DIAGONALS = (
    (2_000, 5, 0.05),
    (20_000, 3, 0.0),
    (1_000, 101, 0.2),
    (100_000, 5, 0.01),
    (8_000, 27, 0.1),
    (40_000, 7, 0.3),
    (10_000, 60, 0.0),
    (400_000, 3, 0.2),
    (40_000, 27, 0.02),
    (150_000, 7, 0.005),
    (200_000, 5, 0.0),
    (60_000, 13, 0.1),
    (20_000, 41, 0.0),
    (800_000, 1, 0.0),
    (5_000, 15, 0.0),
)
_DIAGONAL_FORMATS = ("csr", "dia")

#: Kinds that differ in what the strip models do not see: row lengths, reach of the columns, size.
GALLERY = (
    "poisson2d?n=400",
    "rmat?scale=15&degree=12",
    "elasticity3d?n=18",
    "circuit?n=60000",
    "banded?n=40000&half_bandwidth=12",
    "poisson3d?n=40&points=27",
    "random?n=150000&nnz_per_row=6",
    "poisson3d?n=90&points=7",
)

#: So many of them are required: two for each format at least, or its forecasts have no interval.
_REQUIRED_GALLERY = 5


@dataclass(frozen=True, slots=True)
class BenchmarkMatrix:
    """A matrix to be measured, not yet built.

    Attributes
    ----------
    name, suite : str
        As in a Record.
    entries : int
        Estimate of its non-zeros, for the time and memory it will take.
    formats : tuple of str
        Formats to measure on it.
    build : callable
        Makes the matrix.
    """

    name: str
    suite: str
    entries: int
    formats: tuple[str, ...]
    build: Callable[[], csr_array[Any]]


def suites_beside_strips() -> tuple[list[BenchmarkMatrix], list[BenchmarkMatrix]]:
    """Return the required matrices and the others of the suites that need no strip of a device."""
    half = len(VARIED) // 2
    suites = (
        [varied_benchmark(*shape) for shape in VARIED[:half]],
        [blocks_benchmark(*shape) for shape in BLOCKS],
        [symmetric_benchmark(*shape) for shape in SYMMETRIC],
        [diagonals_benchmark(*shape) for shape in DIAGONALS],
        [gallery_benchmark(specification) for specification in GALLERY[:_REQUIRED_GALLERY]],
    )
    # In turn, so that a budget that ends early has left out some of each and none whole.
    needed = [matrix for turn in zip_longest(*suites) for matrix in turn if matrix]
    optional = [gallery_benchmark(specification) for specification in GALLERY[_REQUIRED_GALLERY:]]
    optional += [varied_benchmark(*shape) for shape in VARIED[half:]]
    return needed, optional


def strips_benchmark(
    strip: int, strips: int, nnz_per_row: int, formats: tuple[str, ...] = ("csr", "ell")
) -> BenchmarkMatrix:
    """Return the matrix of so many strips of `strip` rows of one length."""
    rows = strips * strip
    return BenchmarkMatrix(
        f"strips?rows={rows}&nnz_per_row={nnz_per_row}",
        "strips",
        rows * nnz_per_row,
        formats,
        lambda: strip_matrix(rows, nnz_per_row, seed=0),
    )


def entry_strips_benchmark(strip: int, strips: int) -> BenchmarkMatrix:
    """Return the matrix of so many strips of `strip` non-zeros."""
    # One strip of rows and as many non-zeros a row as there shall be strips of non-zeros.
    return BenchmarkMatrix(
        f"strips?rows={strip}&nnz_per_row={strips}",
        "entry strips",
        strip * strips,
        ("coo",),
        lambda: strip_matrix(strip, strips, seed=0),
    )


def varied_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of VARIED."""
    return BenchmarkMatrix(
        f"varied?rows={rows}&mean_length={mean_length}&lengths={lengths}&reach={reach:g}",
        "varied",
        rows * mean_length,
        tuple(FORMATS.names()),
        lambda: varied_matrix(rows, mean_length, lengths, reach, seed=0),
    )


def blocks_benchmark(block_rows: int, blocks_per_row: int, block: int, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of BLOCKS."""
    return BenchmarkMatrix(
        f"blocks?block_rows={block_rows}&blocks_per_row={blocks_per_row}&block={block}&reach={reach:g}",
        "blocks",
        block_rows * blocks_per_row * block**2,
        _BLOCK_FORMATS,
        lambda: block_matrix(block_rows, blocks_per_row, block, reach, seed=0),
    )


def symmetric_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of SYMMETRIC."""
    return BenchmarkMatrix(
        f"symmetric?rows={rows}&mean_length={mean_length}&lengths={lengths}&reach={reach:g}",
        "symmetric",
        rows * mean_length,
        _SYMMETRIC_FORMATS,
        lambda: mirrored(varied_matrix(rows, mean_length, lengths, reach, seed=0)),
    )


def diagonals_benchmark(rows: int, diagonals: int, reach: float) -> BenchmarkMatrix:
    """Return the matrix of a line of DIAGONALS."""
    return BenchmarkMatrix(
        f"diagonals?rows={rows}&diagonals={diagonals}&reach={reach:g}",
        "diagonals",
        rows * diagonals,
        _DIAGONAL_FORMATS,
        lambda: diagonal_matrix(rows, diagonals, reach, seed=0),
    )


def gallery_benchmark(specification: str) -> BenchmarkMatrix:
    """Return the matrix of a gallery specification, held out of the fit."""
    return BenchmarkMatrix(
        f"gallery:{specification}",
        "gallery",
        1_000_000,
        tuple(FORMATS.names()),
        lambda: gallery_from_specification(specification),
    )
