"""The random matrices of Hossain and Saule, section III.A: rows of one length, uniform columns."""

from __future__ import annotations

from sparsecast.machines.machine import Machine
from sparsecast.matrices.suites import SUITES, Suite, SuiteMatrix, suite_matrix

#: Section III.A: non-zeros a row of their random matrices. They give no list of rows; these go from the first
#: cache to memory.
NNZ_PER_ROW = (1, 2, 4, 8, 16, 32, 64, 128)
ROWS = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000)


@SUITES.register("hossain")
class Hossain(Suite):
    """Measured on request, in the paper's two formats, the smallest first."""

    name = "hossain"

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        if machine.gpu is not None:
            return []
        points = sorted((rows * length, rows, length) for rows in ROWS for length in NNZ_PER_ROW)
        return [
            suite_matrix("row lengths", rows, length, "fixed", suite=self.name, formats=("csr", "coo"))
            for _, rows, length in points
        ]
