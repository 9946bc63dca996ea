"""Shards: parts of a collection for several processes, the same whatever the order of its matrices."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass

from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem

#: Asks for the shard of a task of a Slurm array.
SLURM = "slurm"

_TASK = tuple(f"SLURM_ARRAY_TASK_{end}" for end in ("ID", "MIN", "MAX", "COUNT"))


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1 to `count`, of a collection of matrices."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def of(cls, text: str | Shard | None) -> Shard:
        """Return the shard of ``"I/N"``, that of this task of a Slurm array, or, of None, the whole.

        An InputError says that it is no shard, or this no task of an array of numbers without gaps.
        """
        if text is None or isinstance(text, Shard):
            return text or cls(1, 1)
        if text == SLURM:
            try:
                number, first, last, count = (int(os.environ[name]) for name in _TASK)
                if last - first + 1 != count:
                    raise ValueError(f"{count} tasks from {first} to {last}")
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"shard {SLURM} ({error}): expected a task of a Slurm array of numbers without gaps, as "
                    f"of --array=1-8, which has {', '.join(_TASK)}; give the shard as I/N"
                ) from error
            return cls(number - first + 1, count)
        shard = cls(*map(int, text.split("/"))) if re.fullmatch(r"\d+/\d+", text) else cls(0, 0)
        if not 1 <= shard.number <= shard.count:
            raise InputError(
                f"shard '{text}': expected I/N with I from 1 to N, such as 3/8, or {SLURM} in a task of an "
                f"array; correct it"
            )
        return shard

    def has(self, problem: Problem) -> bool:
        """Tell whether a matrix belongs to this shard, by its name.

        Its specification has the checksum of its file, which every process would have to read for it, and its
        folder, which may be another one on another node.
        """
        digest = hashlib.sha256(problem.name.encode()).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1
