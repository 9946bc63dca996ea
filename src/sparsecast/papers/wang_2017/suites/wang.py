"""The benchmark matrices of Wang et al. (2017), section 3.1: row lengths of four distributions."""

from __future__ import annotations

from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine
from sparsecast.machines.strips import strip_rows, wang_strip
from sparsecast.matrices.suites import SUITES, Part, Suite, SuiteMatrix, ends_first, suite_matrix
from sparsecast.papers.wang_2017.grids import LENGTHS, THREAD_GRID, VECTOR_GRID

#: Of these grids the strips and lengths that come first: a model can be fitted to them.
_FIRST_THREAD = ((1, 5, 10), (4, 32, 256))
_FIRST_VECTOR = ((1, 2, 10, 40), (4, 64, 1024, 2048))

#: Wang et al. (2017), section 3.1: strips and mean non-zeros a row of their matrices, for CSR with half a
#: warp a row, and for CSR, ELL and JAD with a thread a row. Of their values every other one or so.
_SOME_VECTOR = ((1, 3, 5, 10, 20, 30, 40, 50), (4, 16, 64, 256, 1024, 2048, 3072))
_SOME_THREAD = ((1, 3, 5, 7, 10), (4, 16, 32, 256, 1024))


@SUITES.register("wang")
class Wang(Suite):
    """Normal, uniform, binomial and fixed row lengths, on strips of half a warp and of a thread a row."""

    name = "wang"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return some of the matrices for a GPU; a processor's are measured on request."""
        return [] if machine.gpu is None else [Part(1, matrices) for matrices in _of_gpu(machine.gpu)]

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
    """Return the benchmark matrices of Wang et al. (2017), section 3.1, on strips of so many rows.

    Those that a model needs at least come first, the distributions in turn. They are measured in `formats`;
    with a strip of half-warps also those for CSR with half a warp a row.
    """
    points = _points(thread_strip, *THREAD_GRID, *_FIRST_THREAD, formats)
    if vector_strip:
        points += _points(vector_strip, *VECTOR_GRID, *_FIRST_VECTOR, ("csr",))
    return [
        suite_matrix("row lengths", rows, length, lengths, formats=formats)
        for _, _, rows, length, formats in sorted(points)
        for lengths in LENGTHS
    ]


def _points(
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


def _of_gpu(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices with normal and uniform row lengths, for half a warp and for a thread a row."""
    kinds = (
        ("csr-vector", _SOME_VECTOR, ("csr",)),
        ("csr-scalar", _SOME_THREAD, ("csr", "ell", "jad")),
    )
    return [
        [
            suite_matrix(
                "row lengths", strips * wang_strip(gpu, kernel), mean_length, lengths, formats=formats
            )
            for mean_length in ends_first(grid[1])
            for strips in ends_first(grid[0])
            if 2 * mean_length <= strips * wang_strip(gpu, kernel)
        ]
        for lengths in ("normal", "uniform")
        for kernel, grid, formats in kinds
    ]
