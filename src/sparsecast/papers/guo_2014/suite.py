"""The benchmark matrices of Guo et al. (2014), section 3.2, on strips of the machine.

The paper times a format on matrices of one strip, two strips and so on, with rows of one length, and leaves
the columns open: here they lie in a band around the diagonal.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, guo_strip, strip_rows
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.suites import (
    OPTIONAL,
    SUITES,
    Part,
    Suite,
    SuiteMatrix,
    ends_first,
    in_turn,
    suite_matrix,
)
from sparsecast.matrices.synthesis import varied_matrix

#: Section 3.2.2: strips 1 to 10; non-zeros a row 4, 16 ... 1024 for CSR and ELL, 10, 20 ... 100 for COO.
STRIPS = tuple(range(1, 11))
NNZ_PER_ROW = (4, 16, 64, 256, 1024)
ENTRY_STRIPS = tuple(range(10, 101, 10))

#: Of these grids what a usual calibration requires.
_COARSE_STRIPS = (1, 5, 10)
_COARSE_NNZ_PER_ROW = (4, 16, 64)
_COARSE_ENTRY_STRIPS = (10, 50, 100)

#: Non-zeros a row of the matrices for CSR: two more lengths than for a processor, beyond the threads of a
#: block, from where on section 3.5.1 has another line.
CSR_NNZ_PER_ROW = (*NNZ_PER_ROW, 2048, 3072)


def _strips(rows: int, nnz_per_row: int) -> csr_array[Any]:
    return varied_matrix(rows, nnz_per_row, "fixed", 0.0, seed=0)


FAMILIES.register("strips")(Family(_strips, lambda rows, nnz_per_row: rows * nnz_per_row))


@SUITES.register("guo")
class Guo(Suite):
    """Rows of one length in whole strips; for COO, strips of non-zeros."""

    name = "guo"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return a coarse grid as required, then what makes it fine; for a GPU, a part for each format.

        Our own model learns of a GPU's kernels from matrices of many kinds: none of these is required there.
        """
        if machine.gpu is not None:
            return [Part(OPTIONAL, matrices) for matrices in _of_gpu(machine.gpu)]
        rows = strip_rows(None, threads)
        grid = [(strips, length) for length in NNZ_PER_ROW for strips in STRIPS if length < strips * rows]

        def is_coarse(strips: int, length: int) -> bool:
            return strips in _COARSE_STRIPS and length in _COARSE_NNZ_PER_ROW

        # All formats on these: it gives the models that see more than strips a first look at each.
        required = [strips_benchmark(rows, *point, ()) for point in grid if is_coarse(*point)]
        required += [entry_strips_benchmark(rows, strips) for strips in _COARSE_ENTRY_STRIPS]
        entries = [
            entry_strips_benchmark(rows, strips)
            for strips in ENTRY_STRIPS
            if strips not in _COARSE_ENTRY_STRIPS
        ]
        # Long rows first: they carry the fixed-strips relationships furthest.
        rest = [point for point in grid if not is_coarse(*point)]
        rest.sort(key=lambda point: point[0] not in _COARSE_STRIPS)
        fine = [strips_benchmark(rows, *point) for point in rest]
        return [Part(0, required), Part(OPTIONAL + 1, entries), Part(OPTIONAL + 3, fine)]

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        return in_turn(_of_gpu(machine.gpu)) if machine.gpu is not None else super().whole(machine, threads)


def strips_benchmark(
    strip: int, strips: int, nnz_per_row: int, formats: tuple[str, ...] = ("csr", "ell")
) -> SuiteMatrix:
    """Return the matrix of `strips` strips of `strip` rows of one length."""
    return suite_matrix("strips", strips * strip, nnz_per_row, formats=formats)


def entry_strips_benchmark(strip: int, strips: int) -> SuiteMatrix:
    """Return the matrix of `strips` strips of `strip` non-zeros.

    It has one strip of rows, and as many non-zeros a row as strips of non-zeros are wanted.
    """
    return suite_matrix("strips", strip, strips, suite="entry strips", formats=("coo",))


def _of_gpu(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices for CSR, for ELL and for COO, each in strips of its own kernel."""
    rows = {name: guo_strip(gpu, name) for name in ("csr", "ell", "coo")}
    # The shortest and the longest rows and the fewest and the most strips first.
    suites = [
        [
            strips_benchmark(rows[name], strips, length, (name,))
            for length in ends_first(lengths)
            for strips in ends_first(STRIPS)
            if length <= strips * rows[name]
        ]
        for name, lengths in (("csr", CSR_NNZ_PER_ROW), ("ell", NNZ_PER_ROW))
    ]
    return [*suites, [entry_strips_benchmark(rows["coo"], strips) for strips in ends_first(ENTRY_STRIPS)]]
