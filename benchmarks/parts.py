"""What each part of the sparsecast model brings: a replay of stored Records without one after the other.

    python benchmarks/parts.py [--profile NAME|PATH] [--threads N]

First calibrate (`sparsecast calibrate --budget 300 --threads N --dtype float64`) and measure matrices
(`sparsecast evaluate FILE... --threads N`), whose Records are kept. Each variant is fitted to four of five
parts of the groups of matrices, and scored on the other one. No hardware is used.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from rich.table import Table

import sparsecast as sc
from sparsecast.api.resolving import stored_target, training_for
from sparsecast.benchmark.replay import replay
from sparsecast.errors import SparsecastError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import Model
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate


class _WithoutSuite(SparsecastModel):
    left_out: ClassVar[str]

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite."""
        return suite != cls.left_out


class WithoutAtlas(_WithoutSuite):
    """The suites of before alone: strips, varied rows, blocks, diagonals, and the gallery."""

    name, left_out = "without the atlas", "atlas"


class WithoutOwnRecords(_WithoutSuite):
    """The calibration alone."""

    name, left_out = "without the user's Records", "user"


class WithoutLearner(LinearModel):
    """The physics, learned from all Records as in the whole model."""

    name = "without the learner"

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: to all."""
        return True


class _Bytes(LinearModel):
    def _work(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Any]:
        storage: Any = FORMATS.get(candidate.format)
        size = storage.predicted_bytes(blocks, candidate.value_bytes, candidate.index_bytes)
        return {"start": np.ones(len(blocks.rows)), "bytes": np.asarray(size, dtype=float)}


class WithoutPhysics(SparsecastModel):
    """One cost for each byte of a format, and the learner."""

    name = "without the physics"

    def _physics(self) -> LinearModel:
        physics = _Bytes()
        physics.machine_, physics.device_ = self.machine_, self.device_
        return physics


class WithSlowRecords(SparsecastModel):
    """Also what was measured while the cores were slow."""

    name = "with slow Records"

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        """Return the part of a training set that it can learn from."""
        return training.where(lambda record: record.regime == "warm")


VARIANTS: tuple[type[Model], ...] = (
    SparsecastModel,
    WithoutAtlas,
    WithoutOwnRecords,
    WithoutLearner,
    WithoutPhysics,
    WithSlowRecords,
)


def main() -> int:
    """Print a line for each variant and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile")
    parser.add_argument("--threads", type=int)
    asked = parser.parse_args()
    try:
        profile = sc.profile(asked.profile)
        training = training_for(profile, stored_target(profile.machine, "float64", asked.threads))
        found = replay(training, VARIANTS)
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    table = Table(
        "model", "median error", "mean", "90th percentile", "regret", "worst choice", title=found.profile
    )
    for name, score in found.models.items():
        errors = (score.median_error, score.mean_error, score.p90_error, score.regret)
        table.add_row(name, *(f"{each:.1%}" for each in errors), f"{score.worst_ratio:.2f}")
    console = Console()
    console.print(table)
    for name, why in found.refused.items():
        console.print(f"{name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
