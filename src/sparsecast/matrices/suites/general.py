"""The matrices that all models learn from: varied rows, blocks, diagonals, mirrored ones, twins, gallery.

No model is fitted to those of the gallery: on them the models learn their errors on other kinds of matrices.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import numpy as np

from sparsecast.machines.machine import Machine
from sparsecast.matrices.atlas import MIRRORED, atlas
from sparsecast.matrices.problem import TRANSPOSE_PREFIX, Problem
from sparsecast.matrices.suites import (
    OPTIONAL,
    SUITES,
    Part,
    Suite,
    SuiteMatrix,
    gallery_benchmark,
    in_turn,
    suite_matrix,
    varied_benchmark,
    with_narrow_storage,
)

#: Rows, mean row length, distribution of the row lengths and reach of the columns: small and large, short and
#: long rows, near and far columns, in all pairs. The first half is required.
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
    (5_000, 8, "fixed", 1.0),
    (20_000, 5, "power", 0.01),
    (150_000, 12, "fixed", 0.001),
    (2_000, 40, "fixed", 0.1),
    (100_000, 6, "mixed", 0.001),
    (60_000, 10, "uniform", 1.0),
    (300_000, 7, "fixed", 0.0),
    (30_000, 20, "fixed", 0.1),
    (10_000, 60, "mixed", 0.1),
    (200_000, 4, "fixed", 1.0),
    (40_000, 50, "uniform", 0.02),
    (8_000, 130, "power", 1.0),
    (30_000, 80, "mixed", 0.0),
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

#: Matrices whose transposes are benchmark matrices, too: of the gallery, and as VARIED.
TRANSPOSED_GALLERY = (
    "rmat?scale=15&degree=12",
    "random?n=150000&nnz_per_row=6",
    "rmat?scale=17&degree=4",
    "random?n=300000&cols=20000&nnz_per_row=4",
)
TRANSPOSED = ((250_000, 20, "power", 0.05), (400_000, 8, "mixed", 0.3), (5_000, 40, "power", 1.0))

#: How many of them are required: at least two for each format, or its forecasts have no interval.
_REQUIRED_GALLERY = 5

#: How many varied matrices, and those of blocks, symmetric ones, of diagonals and of the gallery, a GPU is
#: measured on first: every kernel is on some more than a fit of its costs needs.
_FIRST_OF_GPU = (6, 14, 4, 4, 5)

#: As VARIED, BLOCKS and DIAGONALS of a processor's calibration, and gallery matrices held out of the fit,
#: larger than the caches of a device.
LARGE_VARIED = (
    (1_500_000, 6, "mixed", 0.001),
    (600_000, 30, "fixed", 0.01),
    (1_000_000, 8, "power", 0.2),
    (2_500_000, 4, "uniform", 1.0),
    (200_000, 120, "uniform", 0.02),
    (3_000_000, 8, "fixed", 0.0),
)
LARGE_BLOCKS = ((300_000, 9, 3, 0.01), (60_000, 10, 6, 0.1), (400_000, 8, 2, 0.001), (40_000, 9, 8, 0.01))
LARGE_DIAGONALS = ((1_500_000, 7, 0.005), (500_000, 27, 0.02))
LARGE_GALLERY = (
    "banded?n=1000000&half_bandwidth=8",
    "rmat?scale=19&degree=16",
    "poisson3d?n=90&points=27",
    "random?n=1000000&nnz_per_row=8",
)

#: Family, entries in each row or row of blocks, what follows the rows in its parameters, and formats of
#: matrices beyond the last cache of a processor, in CSR so many times as large: one for each kind of work,
#: and three for formats of few kinds. A calibration of a minute has the first ones.
BEYOND = (
    ("varied", 12, (12, "fixed", 0.0), ("csr", "sell", "ell", "hyb", "coo", "jad")),
    ("varied", 3, (3, "fixed", 1.0), ("csr", "coo", "sell", "hyb")),
    ("diagonals", 27, (27, 0.005), ("csr", "dia", "sell", "jad")),
    ("symmetric", 20, (20, "fixed", 0.01), ("csr", "symmetric_csr")),
    ("varied", 5, (5, "mixed", 0.001), ("csr", "hyb", "jad", "sell")),
    ("blocks", 81, (9, 3, 0.01), ("csr", "bcsr")),
    ("varied", 60, (60, "uniform", 0.01), ("csr", "sell", "coo", "ell", "hyb")),
    ("symmetric blocks", 81, (9, 3, 0.01), ("bcsr", "symmetric_bcsr")),
    ("varied", 10, (10, "power", 1.0), ("csr", "coo", "hyb", "jad")),
    ("diagonals", 5, (5, 0.02), ("csr", "dia", "ell", "coo")),
    ("symmetric", 8, (8, "fixed", 0.001), ("symmetric_csr",)),
    ("diagonals", 13, (13, 0.0), ("dia",)),
    ("symmetric blocks", 40, (10, 2, 0.001), ("symmetric_bcsr",)),
    ("symmetric", 50, (50, "mixed", 0.02), ("symmetric_csr",)),
    ("blocks", 288, (8, 6, 0.02), ("bcsr",)),
    ("symmetric blocks", 288, (8, 6, 0.02), ("symmetric_bcsr",)),
)
_TIMES_BEYOND, _LEAST_BEYOND, _MOST_BEYOND = 2.5, 2_000_000, 8_000_000

#: Number of other matrices before each of them.
_OTHERS_BETWEEN = 4

#: About the non-zeros of each of them.
_LARGE_GALLERY_ENTRIES = 15_000_000


@SUITES.register("general")
class General(Suite):
    """Matrices of many kinds, from the first cache to memory; for a GPU also larger ones."""

    name = "general"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return half of the varied matrices and most others as required, twins, transposes, the rest."""
        half = len(VARIED) // 2
        required = [
            with_narrow_storage(varied_benchmark(*shape) for shape in VARIED[:half]),
            with_narrow_storage(suite_matrix("blocks", *shape) for shape in BLOCKS),
            with_narrow_storage(suite_matrix("symmetric", *shape) for shape in SYMMETRIC),
            with_narrow_storage(suite_matrix("diagonals", *shape) for shape in DIAGONALS),
            [gallery_benchmark(specification) for specification in GALLERY[:_REQUIRED_GALLERY]],
        ]
        optional = [gallery_benchmark(specification) for specification in GALLERY[_REQUIRED_GALLERY:]]
        optional += with_narrow_storage(varied_benchmark(*shape) for shape in VARIED[half:])
        if machine.gpu is None:
            symmetric_blocks = with_narrow_storage(
                suite_matrix("symmetric blocks", *shape) for shape in BLOCKS
            )
            first = in_turn([*required, symmetric_blocks])
            for place, matrix in reversed(list(enumerate(beyond_benchmarks(machine, threads), 1))):
                first.insert(place * _OTHERS_BETWEEN, matrix)
            held_out = [gallery_benchmark(specification) for specification in TRANSPOSED_GALLERY]
            originals = in_turn([held_out, [varied_benchmark(*shape) for shape in TRANSPOSED]])
            transposed = [
                replace(matrix, problem=Problem.named(f"{TRANSPOSE_PREFIX}{matrix.problem.specification}"))
                for matrix in originals  # in whose groups they stay
            ]
            others = Part(OPTIONAL, in_turn([atlas_benchmarks(), transposed]))
            return [Part(1, first), others, Part(OPTIONAL + 2, optional)]
        large = [varied_benchmark(*shape) for shape in LARGE_VARIED]
        large += [suite_matrix("blocks", *shape) for shape in LARGE_BLOCKS]
        large += [suite_matrix("diagonals", *shape) for shape in LARGE_DIAGONALS]
        large += [gallery_benchmark(each, _LARGE_GALLERY_ENTRIES) for each in LARGE_GALLERY]
        # A GPU is measured in every format that it has a kernel for: of blocks, BCSR alone needs all.
        parts = [[replace(matrix, kind=None) for matrix in part] for part in (*required, optional, large)]
        numbers = (*_FIRST_OF_GPU, 0, 0)
        first = in_turn(part[:number] for part, number in zip(parts, numbers, strict=True))
        rest = [part[number:] for part, number in zip(parts, numbers, strict=True)]
        return [Part(1, first), *(Part(OPTIONAL, part) for part in rest)]


def beyond_benchmarks(machine: Machine, threads: int) -> list[SuiteMatrix]:
    """Return matrices beyond the last cache that so many threads have."""
    cache_bytes = max((size or 0 for size in machine.shared_cache_bytes(threads)), default=0)
    entries = int(np.clip(_TIMES_BEYOND * cache_bytes / 12, _LEAST_BEYOND, _MOST_BEYOND))
    return [
        suite_matrix(family, entries // row_length, *shape, formats=formats)
        for family, row_length, shape, formats in BEYOND
    ]


def atlas_benchmarks() -> list[SuiteMatrix]:
    """Return the twins of the atlas, ordered so that any number of them covers the space of features.

    Symmetric ones are also measured in CSR and the formats for symmetric matrices.
    """
    benchmarks = []
    for name, size in atlas().order:
        benchmarks.append(suite_matrix("atlas", quote(name, safe=""), size))
        if size == "whole" and atlas().entries[name].structure.symmetry.kind == "symmetric":
            mirrored = suite_matrix("atlas", quote(name, safe=""), MIRRORED)
            benchmarks.append(replace(mirrored, kind=MIRRORED))
    return with_narrow_storage(benchmarks)
