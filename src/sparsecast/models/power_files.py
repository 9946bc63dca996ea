"""Power models of someone's own: what a second, and a unit of each kind of work, costs in joules.

A file is JSON: ``{"joules": {"idle": 30.0, "entries": 1e-10, "bytes beyond L3": 5e-11}}``. What is idle is
in joules a second, which is watts; the others are the kinds of work of the linear model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.models.fitting import Floats
from sparsecast.models.forecaster import AdjustedForecaster, Forecaster
from sparsecast.models.intervals import Interval
from sparsecast.models.power import IDLE
from sparsecast.models.work import ProductWork, work_in_full
from sparsecast.records import Candidate

#: What a file may name besides IDLE.
KINDS = (
    *("rows", "entries", "bytes beyond L2", "bytes beyond L3"),
    *("lines of x", "lines of x beyond L1", "lines of x beyond L2", "lines of x beyond L3"),
)


@dataclass(frozen=True, slots=True)
class PowerFile:
    """A file of joules."""

    joules: Mapping[str, float]  # at least one above 0

    @classmethod
    def read(cls, path: Path) -> PowerFile:
        """Read a file; a ProfileError if it cannot be read, or is something else."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["joules"]
            joules = {str(name): float(value) for name, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ProfileError(
                f"power model {path} cannot be read ({error}): expected JSON such as "
                '{"joules": {"idle": WATTS}}; correct the file'
            ) from error
        for name, value in joules.items():
            if name not in (IDLE, *KINDS):
                raise ProfileError(
                    f"power model {path} names '{name}': expected {', '.join((IDLE, *KINDS))}; correct it"
                )
            if not 0 <= value < math.inf:
                raise ProfileError(
                    f"power model {path} has {value:g} joules for '{name}': expected a number from 0 on; "
                    f"correct the file"
                )
        if not any(joules.values()):
            raise ProfileError(f"power model {path} has no joules above 0: expected some; correct the file")
        return cls(joules)

    def model(self, time: Forecaster) -> GivenPower:
        return GivenPower(self.joules, time)


class GivenPower(AdjustedForecaster):
    """Joules of products by a power model of someone's own, and the times of a model, without intervals.

    `joules` are as in a PowerFile; `model` is fitted, of time.
    """

    quantity: ClassVar[str] = "energy"

    def __init__(self, joules: Mapping[str, float], model: Forecaster) -> None:
        super().__init__(model)
        self._joules = joules

    def terms_of_all(self, candidates: Sequence[Candidate], blocks: RowBlocks) -> list[dict[str, Floats]]:
        counting = ProductWork(self.machine_)
        joules_of_all = []
        for candidate, terms in zip(candidates, self._model.terms_of_all(candidates, blocks), strict=True):
            work = {IDLE: terms["time_s"], **work_in_full(counting.of(candidate, blocks))}
            joules = sum(value * work[name] for name, value in self._joules.items() if name in work)
            joules_of_all.append({"energy_j": np.asarray(joules)})
        return joules_of_all

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        return None, None
