"""The benchmark matrices of every device: those of Guo, Wang and Chen (2014), section 3.2, and others.

Theirs are on strips of a device. Others have rows of varied length, dense blocks, full diagonals or mirrored
entries. And there are some gallery matrices that no model is fitted to, from which the models learn
how far off they are on matrices of other kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from urllib.parse import quote

from sparsecast.matrices.atlas import MIRRORED, atlas
from sparsecast.matrices.families import FAMILIES, specification
from sparsecast.matrices.problem import Problem

#: Section 3.2.2: strips 1 to 10; non-zeros a row 4, 16 ... 1024 for CSR and ELL, 10, 20 ... 100 for COO.
STRIPS = tuple(range(1, 11))
NNZ_PER_ROW = (4, 16, 64, 256, 1024)
ENTRY_STRIPS = tuple(range(10, 101, 10))

#: Wang et al. (2017), section 3.1: strips I and mean non-zeros a row P, for CSR with a thread a row, ELL and
#: JAD, and for CSR with half a warp a row. The distributions of the row lengths are its own two, the one that
#: its generator has, and the one of the model that it compares with.
_WANG_NNZ_PER_ROW = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
WANG_THREAD = (tuple(range(1, 11)), _WANG_NNZ_PER_ROW)
WANG_VECTOR = ((*range(1, 11), *range(15, 51, 5)), (*_WANG_NNZ_PER_ROW, 1536, 2048, 2560, 3072))
WANG_LENGTHS = ("normal", "uniform", "binomial", "fixed")

#: Of these grids the strips and lengths that come first: a model can be fitted to them.
_WANG_FIRST_THREAD = ((1, 5, 10), (4, 32, 256))
_WANG_FIRST_VECTOR = ((10, 40), (4, 64, 1024, 2048))

#: Hossain and Saule, section III.A: non-zeros a row of their random matrices. They give no list of rows;
#: these go from the first cache to memory.
HOSSAIN_NNZ_PER_ROW = (1, 2, 4, 8, 16, 32, 64, 128)
HOSSAIN_ROWS = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000)

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
#: Rows, diagonals and reach of matrices of full diagonals: from cache to memory, few and many diagonals,
#: adjacent and far apart. CSR and the format for diagonals are measured on them.
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

#: Formats that are measured on the matrices of a family; all on the others.
_FORMATS = {
    "blocks": ("bcsr", "csr", "sell"),
    "symmetric": ("csr", "sell", "symmetric_csr"),
    "diagonals": ("csr", "dia"),
}

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
class SuiteMatrix:
    """A matrix of a suite, which is named as in a Record, and what is measured on it."""

    problem: Problem
    suite: str
    formats: tuple[str, ...] = ()  # empty: all of them

    @property
    def name(self) -> str:
        """Name of the matrix."""
        return self.problem.name

    @property
    def entries(self) -> int:
        """About its number of entries."""
        return self.problem.expected_nnz

    def takes(self, format_name: str) -> bool:
        """Tell whether a format is measured on it."""
        return not self.formats or format_name in self.formats


def suite_matrix(
    family: str, *shape: float | str, suite: str | None = None, formats: tuple[str, ...] | None = None
) -> SuiteMatrix:
    """Return a matrix of FAMILIES, by its parameters in their order; its suite is by default its family."""
    parameters = dict(zip(FAMILIES[family].parameters, shape, strict=True))
    problem = Problem.named(specification(family, **parameters))
    return SuiteMatrix(problem, suite or family, _FORMATS.get(family, ()) if formats is None else formats)


def suites_beside_strips() -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
    """Return the required matrices and the others of the suites that need no strip of a device."""
    half = len(VARIED) // 2
    suites = (
        [varied_benchmark(*shape) for shape in VARIED[:half]],
        [suite_matrix("blocks", *shape) for shape in BLOCKS],
        [suite_matrix("symmetric", *shape) for shape in SYMMETRIC],
        [suite_matrix("diagonals", *shape) for shape in DIAGONALS],
        [gallery_benchmark(specification) for specification in GALLERY[:_REQUIRED_GALLERY]],
    )
    # In turn, so that a budget that ends early has left out some of each and none whole.
    needed = [matrix for turn in zip_longest(*suites) for matrix in turn if matrix]
    optional = [gallery_benchmark(specification) for specification in GALLERY[_REQUIRED_GALLERY:]]
    optional += [varied_benchmark(*shape) for shape in VARIED[half:]]
    return needed, optional


def atlas_benchmarks() -> list[SuiteMatrix]:
    """Return the twins of the atlas, in an order that covers the space of features at every length.

    Symmetric ones are measured in what only symmetric matrices can be stored in, beside plain CSR.
    """
    found = []
    for name, size in atlas().order:
        found.append(suite_matrix("atlas", quote(name, safe=""), size))
        if size == "whole" and atlas().entries[name].structure.symmetry.triangle_nnz:
            formats = ("csr", "symmetric_csr")
            found.append(suite_matrix("atlas", quote(name, safe=""), MIRRORED, formats=formats))
    return found


def strips_benchmark(
    strip: int, strips: int, nnz_per_row: int, formats: tuple[str, ...] = ("csr", "ell")
) -> SuiteMatrix:
    """Return the matrix of so many strips of `strip` rows of one length."""
    return suite_matrix("strips", strips * strip, nnz_per_row, formats=formats)


def entry_strips_benchmark(strip: int, strips: int) -> SuiteMatrix:
    """Return the matrix of so many strips of `strip` non-zeros.

    It has one strip of rows, and as many non-zeros a row as strips of non-zeros are wanted.
    """
    return suite_matrix("strips", strip, strips, suite="entry strips", formats=("coo",))


def wang_matrices(
    thread_strip: int, formats: tuple[str, ...], vector_strip: int | None = None
) -> list[SuiteMatrix]:
    """Return the benchmark matrices of Wang et al. (2017), section 3.1, on strips of so many rows.

    Those that a model needs at least come first, the distributions in turn. They are measured in `formats`;
    with a strip of half-warps also those for CSR with half a warp a row.
    """
    points = _wang_points(thread_strip, *WANG_THREAD, *_WANG_FIRST_THREAD, formats)
    if vector_strip:
        points += _wang_points(vector_strip, *WANG_VECTOR, *_WANG_FIRST_VECTOR, ("csr",))
    return [
        suite_matrix("row lengths", rows, length, lengths, formats=own)
        for _, _, rows, length, own in sorted(points)
        for lengths in WANG_LENGTHS
    ]


def _wang_points(
    strip: int,
    counts: tuple[int, ...],
    lengths: tuple[int, ...],
    first_counts: tuple[int, ...],
    first_lengths: tuple[int, ...],
    formats: tuple[str, ...],
) -> list[tuple[bool, int, int, int, tuple[str, ...]]]:
    """Return for each matrix whether it comes late, its entries, rows, mean length, and formats."""
    return [
        (
            not (count in first_counts and length in first_lengths),
            count * strip * length,
            count * strip,
            length,
            formats,
        )
        for count in counts
        for length in lengths
        if 2 * length <= count * strip  # varied lengths need room
    ]


def hossain_matrices() -> list[SuiteMatrix]:
    """Return the random matrices of Hossain and Saule, section III.A: uniform columns, the smallest first."""
    points = sorted((rows * length, rows, length) for rows in HOSSAIN_ROWS for length in HOSSAIN_NNZ_PER_ROW)
    return [
        suite_matrix("row lengths", rows, length, "fixed", suite="hossain", formats=("csr", "coo"))
        for _, rows, length in points
    ]


def varied_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> SuiteMatrix:
    """Return the matrix of a line of VARIED."""
    return suite_matrix("varied", rows, mean_length, lengths, reach)


def gallery_benchmark(specification: str, entries: int = 1_000_000) -> SuiteMatrix:
    """Return the matrix of a gallery specification, held out of the fit, with about so many entries."""
    problem = Problem.named(f"gallery:{specification}")
    problem.expected_nnz = entries
    return SuiteMatrix(problem, "gallery")
