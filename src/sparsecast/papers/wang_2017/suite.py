"""The benchmark matrices of Wang et al. (2017), section 3.1: row lengths of four distributions."""

from __future__ import annotations

from itertools import product

from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, strip_rows, wang_strip
from sparsecast.matrices.suites import OPTIONAL, SUITES, Part, Suite, SuiteMatrix, ends_first, suite_matrix

_Grid = tuple[tuple[int, ...], tuple[int, ...]]

#: Wang et al. (2017), section 3.1: strips I and mean non-zeros a row P, for CSR with a thread a row, ELL and
#: JAD, and for CSR with half a warp a row. The distributions of the row lengths are its own two, the one that
#: its generator has, and the one of the model that it compares with.
_NNZ_PER_ROW = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
THREAD_GRID = (tuple(range(1, 11)), _NNZ_PER_ROW)
VECTOR_GRID = ((*range(1, 11), *range(15, 51, 5)), (*_NNZ_PER_ROW, 1536, 2048, 2560, 3072))
LENGTHS = ("normal", "uniform", "binomial", "fixed")

#: Of these grids the strips and lengths that come first: a model can be fitted to them.
_FIRST_THREAD = ((1, 5, 10), (4, 32, 256))
_FIRST_VECTOR = ((1, 2, 10, 40), (4, 64, 1024, 2048))

#: What is usual on a GPU: every other one or so of the values of each grid.
_SOME_VECTOR = ((1, 3, 5, 10, 20, 30, 40, 50), (4, 16, 64, 256, 1024, 2048, 3072))
_SOME_THREAD = ((1, 3, 5, 7, 10), (4, 16, 32, 256, 1024))


@SUITES.register("wang")
class Wang(Suite):
    """Normal, uniform, binomial and fixed row lengths, on strips of half a warp and of a thread a row."""

    name = "wang"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return some of the matrices for a GPU; a processor's are measured on request."""
        return [] if machine.gpu is None else [Part(OPTIONAL, matrices) for matrices in _of_gpu(machine.gpu)]

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        """Return the matrices of the paper's grids; on a processor, those of kernels with a thread a row."""
        formats = ("csr", "ell", "jad")
        if machine.gpu is None:
            return wang_matrices(strip_rows(None, threads), formats)
        return wang_matrices(
            wang_strip(machine.gpu, "csr-scalar"), formats, wang_strip(machine.gpu, "csr-vector")
        )


def wang_matrices(
    thread_strip: int, formats: tuple[str, ...], vector_strip: int | None = None
) -> list[SuiteMatrix]:
    """Return the benchmark matrices of Wang et al. (2017), section 3.1, on strips of these rows.

    Those that a model needs at least come first, the distributions in turn. They are measured in `formats`;
    with a strip of half-warps also those for CSR with half a warp a row.
    """
    kinds: list[tuple[int, _Grid, _Grid, tuple[str, ...]]]
    kinds = [(thread_strip, THREAD_GRID, _FIRST_THREAD, formats)]
    if vector_strip:
        kinds.append((vector_strip, VECTOR_GRID, _FIRST_VECTOR, ("csr",)))
    points = sorted(
        (
            not (count in first[0] and length in first[1]),
            count * strip * length,
            count * strip,
            length,
            kernels,
        )
        for strip, (counts, lengths), first, kernels in kinds
        for count, length in product(counts, lengths)
        if 2 * length <= count * strip  # varied lengths need room
    )
    return [
        suite_matrix("row lengths", rows, length, lengths, formats=kernels)
        for _, _, rows, length, kernels in points
        for lengths in LENGTHS
    ]


def _of_gpu(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices with normal and uniform row lengths, for half a warp and for a thread a row."""
    kinds = (
        (wang_strip(gpu, "csr-vector"), _SOME_VECTOR, ("csr",)),
        (wang_strip(gpu, "csr-scalar"), _SOME_THREAD, ("csr", "ell", "jad")),
    )
    return [
        [
            suite_matrix("row lengths", count * strip, length, lengths, formats=formats)
            for length, count in product(ends_first(some_lengths), ends_first(counts))
            if 2 * length <= count * strip
        ]
        for lengths in ("normal", "uniform")
        for strip, (counts, some_lengths), formats in kinds
    ]
