"""The experiments of papers: one file for each, in the folder `experiments` of the paper.

An Experiment repeats what its paper did, on this machine or on stored Records, and puts its numbers
beside the printed ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.results.paper import Paper, PaperReport
from sparsecast.system.registry import Registry


@dataclass(frozen=True)
class ExperimentSetting:
    """How an experiment is run.

    No dtype is that of the paper, no profile that of this machine, no matrices those that the experiment
    takes by default.
    """

    device: str = "cpu"
    dtype: str | None = None
    profile: Profile | None = None
    budget_s: float = 600.0
    matrices: Sequence[str | Path] = ()
    on_progress: Progress = no_progress


def refuse_other_devices(setting: ExperimentSetting, paper: str) -> None:
    """Raise an InputError for a setting of a paper that computes on processors in float64 alone."""
    if setting.device != PROCESSOR or setting.dtype not in (None, "float64"):
        raise InputError(
            f"device '{setting.device}' and type '{setting.dtype or 'float64'}' for {paper}: expected "
            f"{PROCESSOR} and float64, which it computes with; leave them out"
        )


class Experiment(ABC):
    """What `sparsecast paper` runs."""

    paper: ClassVar[Paper]

    @abstractmethod
    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Measure within the budget, and return the tables of the paper with our columns.

        What is measured is kept at once. A later run takes it over, so that a stopped one goes on.

        An InputError says that the setting is none that the experiment can have.
        """

    @abstractmethod
    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        """Return the tables from what was measured before; no hardware is needed.

        A ProfileError says that the profile lacks what the experiment reads.
        """


#: Every experiment, by the name of its paper.
EXPERIMENTS: Registry[type[Experiment]] = Registry("paper", "sparsecast.benchmark.experiments", separator="-")
