"""Energy: the power of a product times the time that the default model forecasts.

The power is idle power, plus the joules of each kind of work over the time: a row, an entry, a byte from
beyond each cache, a line of x. So the joules of a product are the sum of joules for each second and for each
unit of work. They are fitted by non-negative least squares on relative residuals, all formats together,
because a byte from memory costs as much in each, and an entry as much in narrow storage as in full. Where
there are enough measurements, trees learn the power itself, from the features of the matrix and from how many
entries and bytes a second it does: cores that wait for memory, or for the longest row, need less.

Intervals have the errors of the power of groups of matrices that were left out, at measured times, and those
of the time. The two are taken for independent: squares of the logarithms add up.

Someone's own power model is a file of what a second, and a unit of each kind of work, costs in joules. It is
JSON: ``{"joules": {"idle": 30.0, "entries": 1e-10, "bytes beyond L3": 5e-11}}``. What is idle is in joules a
second, which is watts; the others are the kinds of work of the linear model.

On many ranks, energy is power times time (decision 36) for each node: its idle power while the product lasts,
whether its ranks compute or wait for messages, and the joules of the work of all nodes. Rows, entries,
mispredicted rows and lines of x are those of the whole matrix, as a node has them: they are the same however
many nodes share them. Bytes from beyond a cache are counted for a node's share of the matrix, because it may
fit where the whole does not. Network energy is not counted (decision 38).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.target import Target
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.models import MODELS
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.models.fitting import Floats, Interval, fitted_costs, interval_of_product, prediction_interval
from sparsecast.models.forecaster import AdjustedForecaster, Forecaster
from sparsecast.models.forest import Forest
from sparsecast.models.model import Model
from sparsecast.models.published_trees import of_matrix
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.sparsecast import of_matrix as of_own_matrix
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CORRECTION, ProductWork, work_in_full
from sparsecast.records import Candidate

#: Fewest Records with joules that the physics is fitted to, and that trees learn from.
LEAST_RECORDS, LEAST_LEARNED = 12, 60

#: Settings of scikit-learn's ExtraTreesRegressor, but for the fewer trees its usual ones.
FOREST: dict[str, Any] = {"n_estimators": 60, "random_state": 0}

#: Parts of the groups of matrices that are left out in turn.
_FOLDS = 3

#: The term of idle power, whose work is the seconds of a product.
IDLE = "idle"


@MODELS.register("power")
class PowerModel(Model):
    """Joules for each second and each unit of work, and trees that have learned the power."""

    name: ClassVar[str] = "power"
    quantity: ClassVar[str] = "energy"
    version: ClassVar[int] = 5
    optional_groups: ClassVar[tuple[str, ...]] = SparsecastModel.optional_groups
    time_: SparsecastModel  # the model of time
    joules_: dict[str, float]  # for a second, called IDLE, and for a unit of each kind of work
    labels_: tuple[str, ...]  # formats, or formats and kernels, that were measured
    forest_: Forest | None  # None where too little was measured
    #: Ends of the interval of measured over forecast power, where the time is known.
    ends_: tuple[float, float] | None

    def fit(self, training: TrainingSet) -> Self:
        """Learn times from all Records, and power from those with joules; refuse too few."""
        if len(_metered(training).records) < LEAST_RECORDS:
            raise self.insufficient(training)
        self.time_ = SparsecastModel().fit(training)
        return super().fit(training)

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        """Return what the model of time learns from: joules are looked for in it."""
        return SparsecastModel.used(training)

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: to all; groups are left out in turn."""
        return True

    def needed(self) -> str:
        return f"{LEAST_RECORDS} with joules; measure matrices where a meter is"

    def _fit(self, training: TrainingSet) -> None:
        metered = _metered(training)
        self._learn(metered)
        self.ends_ = self._ends(metered)

    def _learn(self, metered: TrainingSet) -> None:
        counted = [work.in_full() for work in ProductWork(self.machine_).counted(metered)]
        self.labels_ = tuple(sorted(work.label for work in counted))
        kinds = [IDLE, *sorted({kind for work in counted for kind in work.kinds if kind != "start"})]
        counts = np.zeros((len(metered.records), len(kinds)))
        for work in counted:
            for column, kind in enumerate(work.kinds):
                if kind != "start":
                    counts[work.places, kinds.index(kind)] = work.counts[:, column]
        counts[:, 0] = [record.time_s for record in metered.records]
        joules = np.array([record.energy_j for record in metered.records], dtype=float)
        costs = fitted_costs(counts, joules)
        self.joules_ = dict(zip(kinds, costs.tolist(), strict=True))
        self.forest_ = None
        if len(joules) >= LEAST_LEARNED:
            points = {r.matrix: self._of_matrix(metered.structure(r)) for r in metered.records}
            own = [[*points[r.matrix], *self._of_candidate(r.candidate)] for r in metered.records]
            nnz, rows = np.array([(r.nnz, metered.structure(r).rows) for r in metered.records]).T
            features = np.column_stack([own, _speeds(nnz, rows, counts[:, 0])])
            self.forest_ = Forest.grown(features, np.log(joules / counts[:, 0]), **FOREST)

    def _of_matrix(self, structure: Structure) -> list[float]:
        is_published = self.machine_.published_as is not None
        return of_matrix(structure) if is_published else of_own_matrix(structure)

    def _of_candidate(self, candidate: Candidate) -> list[float]:
        return [float(self.time_.physics.label(candidate) == label) for label in self.labels_]

    def _ends(self, metered: TrainingSet) -> tuple[float, float] | None:
        """Return the ends of measured over forecast power of groups left out, at measured times."""
        ratios = []
        for rest, left_out in metered.parts_left_out(_FOLDS):
            if len(rest.records) < LEAST_RECORDS:
                continue
            other = type(self)()
            other.machine_, other.device_, other.time_ = self.machine_, self.device_, self.time_
            other._learn(rest)
            for record in left_out.records:
                if record.energy_j is not None and other.serves(record.candidate):
                    blocks = RowBlocks.of(metered.structure(record))
                    time_s = np.array([record.time_s])
                    watts = float(other.watts(record.candidate, blocks, time_s)["watts"][0])
                    ratios.append(record.energy_j / record.time_s / watts)
        return prediction_interval(ratios) if len(ratios) > 1 else None

    def formats(self) -> list[str]:
        """Return the formats whose joules were measured and whose time is forecast."""
        measured = {label.partition(" ")[0] for label in self.labels_}
        return [name for name in self.time_.formats() if name in measured]

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return a format's kernels with joules, and forecasts of time; none on a processor."""
        forecast = self.time_.kernels(format_name)
        named = [label.partition(" ") for label in self.labels_]
        return tuple(kernel for name, _, kernel in named if name == format_name and kernel in forecast)

    def watts(self, candidate: Candidate, blocks: RowBlocks, time_s: Floats) -> dict[str, Floats]:
        """Return the power of a Candidate by what it goes to, where a product of each block takes so long.

        The term ``"watts"`` is the sum.
        """
        work = {IDLE: time_s, **work_in_full(ProductWork(self.machine_).of(candidate, blocks))}
        terms = {name: self.joules_[name] * work[name] / time_s for name in self.joules_ if name in work}
        watts = np.maximum(np.sum(list(terms.values()), axis=0), np.finfo(float).tiny)
        if self.forest_ is not None:
            point = [*self._of_matrix(blocks.matrix), *self._of_candidate(candidate)]
            speeds = _speeds(blocks.nnz, blocks.rows, time_s)
            features = np.column_stack([np.tile(point, (len(speeds), 1)), speeds])
            learned = np.exp(self.forest_.median_and_spread(features)[0])
            terms[CORRECTION], watts = learned - watts, learned
        return {**terms, "watts": watts}

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, NDArray[np.float64]]:
        """Return the joules of each block by what they go to, and their sum."""
        time_s = self.time_.values(candidate, blocks)
        terms = self.watts(candidate, blocks, time_s)
        watts = terms.pop("watts")
        return {**{name: value * time_s for name, value in terms.items()}, "energy_j": watts * time_s}

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the low and high end of a forecast; None where too little was left out, or of the time."""
        time_s = float(self.time_.values(candidate, RowBlocks.of(matrix))[0])
        low_s, high_s = self.time_.interval(candidate, time_s, matrix)
        if self.ends_ is None or low_s is None or high_s is None:
            return None, None
        return interval_of_product(value, self.ends_, (low_s / time_s, high_s / time_s))

    def _ratios(self, used: TrainingSet) -> dict[str, list[float]]:
        return {}  # it learns from what others hold out: `ends_` is for its intervals


def _metered(training: TrainingSet) -> TrainingSet:
    """Return the Records with joules: those of several vectors are not learned."""
    return training.where(lambda r: r.energy_j is not None and r.candidate.vectors == 1)


def _speeds(nnz: NDArray[Any], rows: NDArray[Any], time_s: Floats) -> Floats:
    """Return the logarithms of entries and bytes a second, the latter as CSR has them: shape (blocks, 2)."""
    streamed = 12 * np.maximum(nnz, 1) + 20 * rows
    return np.log(np.column_stack([np.maximum(nnz, 1), streamed]) / time_s[:, None])


#: What a file may name besides IDLE.
KINDS = (
    *("rows", "entries", "bytes beyond L2", "bytes beyond L3"),
    *("lines of x", "lines of x beyond L1", "lines of x beyond L2", "lines of x beyond L3"),
)


class PowerFile(msgspec.Struct, frozen=True):
    """A file of joules."""

    joules: dict[str, Annotated[float, msgspec.Meta(ge=0)]]  # at least one above 0

    @classmethod
    def read(cls, path: Path) -> PowerFile:
        """Read a file; a ProfileError if it cannot be read, or is something else."""
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, UnicodeError, msgspec.MsgspecError) as error:
            raise ProfileError(
                f"power model {path} cannot be read ({error}): expected JSON such as "
                '{"joules": {"idle": WATTS}}, with numbers from 0 on; correct the file'
            ) from error
        if unknown := found.joules.keys() - {IDLE, *KINDS}:
            names = ", ".join(sorted(unknown))
            raise ProfileError(
                f"power model {path} names '{names}': expected {', '.join((IDLE, *KINDS))}; correct it"
            )
        if not any(found.joules.values()):
            raise ProfileError(f"power model {path} has no joules above 0: expected some; correct the file")
        return found

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

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        work = work_in_full(ProductWork(self.machine_).of(candidate, blocks))
        work[IDLE] = self._model.values(candidate, blocks)
        joules = sum(cost * work[name] for name, cost in self._joules.items() if name in work)
        return {"energy_j": np.asarray(joules)}

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        return None, None


#: Kinds of work that a node's share has in proportion to it, once the caches have had their part.
_SHARED = "bytes beyond"


@dataclass(frozen=True, slots=True)
class ClusterPower:
    """What a node of a machine draws."""

    machine: Machine
    #: For a second of a node, called IDLE, and for a unit of each kind of work of the linear model.
    joules: Mapping[str, float]
    #: Ends of the interval of measured over forecast power; None where nothing tells them.
    ends: tuple[float, float] | None = None

    def of(self, forecast: ClusterForecast, whole: Structure) -> ClusterForecast:
        """Return a forecast with its joules, and their ends where both power and time have an interval."""
        way = forecast.configuration
        share = replace(whole, rows=math.ceil(whole.rows / way.nodes), nnz=math.ceil(whole.nnz / way.nodes))
        target = Target(PROCESSOR, way.dtype, way.index_bits, way.ranks_per_node)
        work = self._work(target, way.format, whole)
        of_share = self._work(target, way.format, share)
        work |= {kind: way.nodes * units for kind, units in of_share.items() if kind.startswith(_SHARED)}
        work[IDLE] = way.nodes * forecast.time_s
        joules = sum(cost * work[kind] for kind, cost in self.joules.items() if kind in work)
        if self.ends is None or forecast.low_s is None or forecast.high_s is None:
            return replace(forecast, energy_j=joules)
        time_ends = forecast.low_s / forecast.time_s, forecast.high_s / forecast.time_s
        low_j, high_j = interval_of_product(joules, self.ends, time_ends)
        return replace(forecast, energy_j=joules, energy_low_j=low_j, energy_high_j=high_j)

    def _work(self, target: Target, format_name: str, structure: Structure) -> dict[str, float]:
        blocks = RowBlocks.of(structure)
        candidate = target.candidate(format_name, blocks, self.machine)
        work = ProductWork(self.machine).of(candidate, blocks)
        return {kind: float(units[0]) for kind, units in work.items()}
