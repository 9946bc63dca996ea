"""Joules of products on many ranks: a second of each node, and the work of all of them.

Energy is power times time (decision 36), for each node: its idle power while the product lasts, whether its
ranks compute or wait for messages, and the joules of the work. Rows, entries, mispredicted rows and lines of
x are those of the whole matrix, as a node has them: they are the same however many nodes share them. Bytes
from beyond a cache are counted for a node's share of the matrix, because it may fit where the whole does not.
Network energy is not counted (decision 38).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from sparsecast.devices.target import Target
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.models.fitting import interval_of_product
from sparsecast.models.power import IDLE
from sparsecast.models.work import ProductWork

#: Kinds of work that a node's share has in proportion to it, once the caches have had their part.
_SHARED = "bytes beyond"


@runtime_checkable
class PricesWork(Protocol):
    """A fitted model of energy that tells joules by kinds of work, to be added up over nodes."""

    #: joules_, ends_: as `joules` and `ends` of ClusterPower.
    joules_: dict[str, float]
    ends_: tuple[float, float] | None


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
        per_node = math.ceil(way.ranks / way.nodes)
        share = replace(whole, rows=math.ceil(whole.rows / way.nodes), nnz=math.ceil(whole.nnz / way.nodes))
        target = Target(PROCESSOR, way.dtype, way.index_bits, per_node)
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
        return {
            kind: float(units[0]) for kind, units in ProductWork(self.machine).of(candidate, blocks).items()
        }
