"""A family and a suite of benchmark matrices: rows of equal length that use some of the columns only."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from sparsecast.machines.machine import Machine
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.suites import SUITES, Suite, SuiteMatrix, suite_matrix


def used_columns(rows: int, used: int) -> csr_array[Any]:
    columns = np.arange(4 * rows, dtype=np.int32) % used
    indptr = np.arange(0, 4 * rows + 1, 4, dtype=np.int32)
    return csr_array((np.ones(4 * rows), columns, indptr), shape=(rows, rows))


def entries(rows: int, used: int) -> int:
    return 4 * rows


FAMILIES.register("used columns")(Family(used_columns, entries))


@SUITES.register("columns")
class UsedColumns(Suite):
    name: ClassVar[str] = "columns"

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        return [suite_matrix("used columns", 5000, used, suite=self.name) for used in (4, 100, 5000)]
