"""Makes the next matrices of a calibration, several at once, before a device is measured on them.

They are not made meanwhile: a thread that computes here delays the launches of the products that are timed.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SuiteMatrix


@dataclass
class MadeAhead:
    """Matrices with their Structures, of at most so many entries together."""

    most_entries: float
    cores: int
    #: Seconds of the last batch, and what each of its matrices has of them.
    batch_s: float = 0.0
    share_s: float = 0.0
    _made: dict[str, Problem] = field(default_factory=dict)

    def take(self, matrix: SuiteMatrix, upcoming: Iterable[SuiteMatrix]) -> Problem:
        """Return the problem of a matrix; if need be it is made, with as many others as there are cores.

        One that cannot be made is returned unmade: whoever needs it learns why.
        """
        name, self.batch_s = matrix.problem.specification, 0.0
        if name not in self._made:
            chosen, entries = {name: matrix.problem}, matrix.entries
            for other in upcoming:  # the same one comes again in another type
                entries += other.entries * (other.problem.specification not in chosen)
                if len(chosen) >= self.cores or entries > self.most_entries:
                    break
                chosen[other.problem.specification] = other.problem
            start_s = perf_counter()
            with ThreadPoolExecutor(len(chosen)) as pool:
                self._made = dict(zip(chosen, pool.map(_made, chosen.values()), strict=True))
            self.batch_s = perf_counter() - start_s
            self.share_s = self.batch_s / len(chosen)
        return self._made.pop(name)


def _made(problem: Problem) -> Problem:
    made = problem.released()
    with suppress(Exception):  # raised again where the matrix is used
        _ = made.structure
    return made
