"""Drift: how much slower or faster a machine has become since it was calibrated, and forecasts for now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecast.devices import DEVICES, machine_of
from sparsecast.devices.target import Target
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.measuring.references import Pooled, level_of, scale_since
from sparsecast.models.work import CORRECTION, beyond_last
from sparsecast.records import MEMORY, Forecast, Record
from sparsecast.results.plan import Plan, PlannedBlock

#: A change below this is followed and not worth a sentence.
_LEAST_NAMED = 0.02


@dataclass(frozen=True, slots=True)
class Drift:
    """How many times longer products take now than in the calibration."""

    #: By where the data of a product lie: ``"L2"``, ``"last cache"``, ``"memory read"``. A change within the
    #: noise of the reference products is 1.0. It is None where they waited for cores.
    scales: Mapping[str, float | None]

    def scale(self, forecast: Forecast, machine: Machine) -> float:
        """Return how many times longer a product takes now: its terms of memory change apart from all others.

        These change as the cache that holds all that the product touches, or beyond all as the core's own.
        Of a model without terms of memory, that cache or memory decides.
        """
        l2, l3 = machine.shared_cache_bytes(forecast.candidate.threads)
        level = level_of(forecast.bytes, l2 or 0, l3 or 0)
        memory = self.scales.get(MEMORY) or 1.0
        cached = self.scales.get("L2" if level == MEMORY else level) or 1.0
        terms = {name: seconds for name, seconds in forecast.why if name != CORRECTION}
        waits, work_s = beyond_last(machine, list(terms)), np.array(list(terms.values()))
        if not waits.any() or work_s.sum() <= 0:
            return memory if level == MEMORY else cached
        share = float(work_s[waits].sum() / work_s.sum())
        return share * memory + (1 - share) * cached

    def forecast(self, forecast: Forecast, machine: Machine) -> Forecast:
        scale = self.scale(forecast, machine)
        return replace(forecast, **_scaled_times(forecast, scale))

    def plan(self, made: Plan, baseline: Forecast, machine: Machine) -> Plan:
        """Return a plan with its times for now.

        All of its parts change as the forecast of its baseline does, so it stays the best.
        """
        scale = self.scale(baseline, machine)

        def scaled(block: PlannedBlock) -> PlannedBlock:
            return replace(block, time_s=scale * block.time_s, convert_s=scale * block.convert_s)

        return replace(
            made,
            blocks=tuple(map(scaled, made.blocks)),
            baseline=scaled(made.baseline),
            convert_s=scale * made.convert_s,
            **_scaled_times(made, scale),
        )

    def sentence(self) -> str:
        """Return in words what changed; empty where nothing did."""
        changed = [
            f"{scale:.2f} in {_named(level)}"
            for level, scale in self.scales.items()
            if scale is not None and abs(scale - 1) >= _LEAST_NAMED
        ]
        waited = [_named(level) for level, scale in self.scales.items() if scale is None]
        said = []
        if changed:
            said.append(
                f"Products take {', '.join(changed)} times as long now as in the calibration: the forecasts "
                f"are scaled by that; --no-drift-correction leaves it out."
            )
        if waited:
            said.append(
                f"Reference products in {', '.join(waited)} waited for cores, now or in the calibration: the "
                f"forecasts there are not scaled; ask again when fewer programs run."
            )
        return " ".join(said)


def _named(level: str) -> str:
    return "memory" if level == MEMORY else level


def _scaled_times(item: Forecast | Plan, scale: float) -> dict[str, Any]:
    times = {"time_s": item.time_s, "low_s": item.low_s, "high_s": item.high_s}
    return {name: None if seconds is None else scale * seconds for name, seconds in times.items()}


#: Nothing changed, or nothing is known of it.
NO_DRIFT = Drift({})


#: Times that the reference products are timed for a forecast. Each reading of a level ends after some 20 ms.
_READINGS = 3


def drift_since(profile: Profile, target: Target, records: Sequence[Record]) -> Drift:
    """Return how this machine has changed since its calibration; no drift if that is unknown.

    It is known only of this machine, and only if the calibration kept the times of reference products.
    """
    if not any(record.references_s for record in records):
        return NO_DRIFT
    here = machine_of(target.device)
    if here.name != profile.name:
        return NO_DRIFT
    monitor = DEVICES.get(target.device).references(here, target.threads)
    if monitor is None:
        return NO_DRIFT
    for _ in range(_READINGS):
        monitor.time()
    readings: dict[str, dict[float, None]] = {}
    for record in records:
        for level, seconds in record.references_s.items():
            readings.setdefault(level, {})[seconds] = None  # once for all that were measured together
    then = {level: Pooled.of(list(seconds)) for level, seconds in readings.items()}
    return Drift(scale_since(then, monitor.pooled()))
