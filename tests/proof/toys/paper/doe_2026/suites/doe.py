"""The benchmark matrices of Doe (2026), table 1: few and many rows, short and long ones."""

from __future__ import annotations

from typing import ClassVar

from sparsecast.machines.machine import Machine
from sparsecast.matrices.suites import SUITES, Suite, SuiteMatrix, suite_matrix


@SUITES.register("doe")
class DoeSuite(Suite):
    name: ClassVar[str] = "doe"

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        shapes = [(rows, length) for rows in (1000, 8000) for length in (4, 32)]
        return [suite_matrix("strips", *shape, suite=self.name, formats=("csr",)) for shape in shapes]
