"""Shards: parts of a collection for several processes, the same whatever the order of its matrices."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem

#: Asks for the shard of a task of a Slurm array.
SLURM = "slurm"

_TASK = "SLURM_ARRAY_TASK_"


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1 to `count`, of a collection of matrices."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def of(cls, text: str | Shard) -> Shard:
        """Return the shard of ``"I/N"``, or, of ``"slurm"``, that of this task of a Slurm array.

        Raises
        ------
        InputError
            If it is no shard, or this is no task of an array of numbers without gaps.
        """
        if isinstance(text, Shard):
            return text
        if text == SLURM:
            return cls._of_task(os.environ)
        parts = re.fullmatch(r"(\d+)/(\d+)", text)
        shard = cls(*map(int, parts.groups())) if parts else None
        if shard is None or not 1 <= shard.number <= shard.count:
            raise InputError(
                f"shard '{text}': expected I/N with I from 1 to N, such as 3/8, or {SLURM} in a task of an "
                f"array; correct it"
            )
        return shard

    @classmethod
    def _of_task(cls, environment: Mapping[str, str]) -> Shard:
        try:
            number, first, last, count = (
                int(environment[f"{_TASK}{end}"]) for end in ("ID", "MIN", "MAX", "COUNT")
            )
        except (KeyError, ValueError) as error:
            raise InputError(
                f"shard {SLURM} without {_TASK}ID, _MIN, _MAX and _COUNT: expected a task of a Slurm array; "
                f"give the shard as I/N"
            ) from error
        if last - first + 1 != count:
            raise InputError(
                f"shard {SLURM} of {count} tasks from {first} to {last}: expected numbers without gaps, as "
                f"of --array=1-{count}; give the shard as I/N"
            )
        return cls(number - first + 1, count)

    def has(self, problem: Problem) -> bool:
        """Tell whether a matrix belongs to this shard, by its name.

        Its specification has the checksum of its file, which every process would have to read for it, and its
        folder, which may be another one on another node.
        """
        digest = hashlib.sha256(problem.name.encode()).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1
