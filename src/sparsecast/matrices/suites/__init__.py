"""Suites of benchmark matrices that a calibration measures, always or on request.

A suite is one file, here or in the folder of a paper. A usual calibration takes the parts of all suites by
their order; a suite that is named is measured whole.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import ClassVar, NamedTuple, TypeVar

from sparsecast.machines.machine import Machine
from sparsecast.matrices.families import FAMILIES, VALUES, specification
from sparsecast.matrices.problem import Problem
from sparsecast.system.registry import Registry

_Item = TypeVar("_Item")

#: Parts of a suite with an order below this one are required of every profile.
OPTIONAL = 10


@dataclass(frozen=True, slots=True)
class SuiteMatrix:
    """A matrix of a suite, and the formats to measure on it."""

    problem: Problem
    suite: str  # name of the suite in Records
    formats: tuple[str, ...] = ()  # formats that the suite names
    #: If the suite names no format: only formats with this kind among their `benchmark_kinds`, or all.
    kind: str | None = None
    #: Whether formats are measured in narrow storage, too, where the matrix allows it.
    in_narrow_storage: bool = False

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def entries(self) -> int:
        return self.problem.expected_nnz

    def takes(self, format_name: str, benchmark_kinds: Container[str]) -> bool:
        """Tell whether a format with these kinds of benchmark matrices is measured on it."""
        if self.formats:
            return format_name in self.formats
        return self.kind is None or self.kind in benchmark_kinds


class Part(NamedTuple):
    """Matrices of a suite that are measured together, those of the lowest order first."""

    order: int
    matrices: list[SuiteMatrix]


class Suite(ABC):
    """Benchmark matrices that belong together."""

    name: ClassVar[str]

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return what a usual calibration of a machine measures of it."""
        return []

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        """Return all its matrices, the most important first, for a calibration that names this suite."""
        return list(chain.from_iterable(part.matrices for part in in_order(self.usual(machine, threads))))


#: Every suite, by name.
SUITES: Registry[type[Suite]] = Registry("suite", "sparsecast.matrices.suites")


def in_order(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: part.order)


def usual_parts(machine: Machine, threads: int) -> list[Part]:
    """Return what a usual calibration measures of all suites, the lowest order first."""
    suites = (SUITES.get(name)() for name in SUITES.names())
    return in_order(part for suite in suites for part in suite.usual(machine, threads))


def in_turn(lists: Iterable[Iterable[_Item]]) -> list[_Item]:
    """Return the first item of each list, then the second ones: a short budget covers each list."""
    return [item for turn in zip_longest(*lists) for item in turn if item is not None]


def ends_first(values: Sequence[int]) -> list[int]:
    """Return the first, the last and the middle value, then the others."""
    ends = [values[0], values[-1], values[len(values) // 2]]
    return ends + [value for value in values if value not in ends]


def suite_matrix(
    name: str, *shape: float | str, suite: str | None = None, formats: tuple[str, ...] = ()
) -> SuiteMatrix:
    """Return a matrix of FAMILIES by its parameters, in order; its suite is by default its family."""
    family = FAMILIES.get(name)
    problem = Problem.named(specification(name, **dict(zip(family.parameters, shape, strict=True))))
    return SuiteMatrix(problem, suite or name, formats, name if family.for_some_formats else None)


def with_narrow_storage(matrices: Iterable[SuiteMatrix]) -> list[SuiteMatrix]:
    """Have three of four matrices of families measured in narrow storage, too.

    By their place, these have values alike, their own, for the columns alone, and values of float32. Times of
    full storage do not depend on the values.
    """
    changed = []
    for place, matrix in enumerate(matrices):
        problem = matrix.problem
        if values := {1: "one", 3: "float32"}.get(place % 4):
            problem = Problem.named(f"{problem.specification}&{VALUES}={values}")
        changed.append(replace(matrix, problem=problem, in_narrow_storage=place % 4 > 0))
    return changed


def varied_benchmark(rows: int, mean_length: int, lengths: str, reach: float) -> SuiteMatrix:
    return suite_matrix("varied", rows, mean_length, lengths, reach)


def gallery_benchmark(specification: str, entries: int = 1_000_000) -> SuiteMatrix:
    """Return a gallery matrix with about `entries` entries. No model is fitted to it."""
    problem = Problem.named(f"gallery:{specification}")
    problem.expected_nnz = entries
    return SuiteMatrix(problem, "gallery", in_narrow_storage=True)
