"""How far a profile can be trusted now: what disturbed its calibration, and how the machine has drifted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sparsecast.api.resolving import machine_of
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import threads_text
from sparsecast.machines.profile import Profile
from sparsecast.measuring.disturbance import Disturbance, disturbance
from sparsecast.planning.candidates import Target
from sparsecast.planning.drift import NO_DRIFT, Drift
from sparsecast.records import Record

#: Times that the reference products are timed for a forecast. Each reading of a level ends after some 20 ms.
_READINGS = 3

_SECONDS_A_DAY = 86_400


def disturbances(profile: Profile) -> dict[str, Disturbance]:
    """Return what disturbed the Records of a profile, for each device and number of threads that it has."""
    found = {}
    for device, threads in dict.fromkeys((r.candidate.device, r.candidate.threads) for r in profile.records):
        own = disturbed(profile, profile.select(device=device, threads=threads))
        if own is not None:
            found[f"{device} {threads_text(device, threads)}".rstrip()] = own
    return found


def disturbed(profile: Profile, records: Sequence[Record]) -> Disturbance | None:
    """Return what disturbed some Records of one number of threads, None if nothing did."""
    if not records:
        return None
    threads = records[0].candidate.threads
    return disturbance([record.conditions for record in records], threads, profile.machine.threads)


def age_days(records: Sequence[Record]) -> float | None:
    """Return the days since the newest of some Records; None where no time of measurement is known."""
    dates = [datetime.fromisoformat(record.measured_at) for record in records if record.measured_at]
    return (datetime.now(UTC) - max(dates)).total_seconds() / _SECONDS_A_DAY if dates else None


def drift_since(profile: Profile, target: Target, records: Sequence[Record]) -> Drift:
    """Return how this machine has changed since its calibration; no drift if that is unknown.

    It is known only of this machine, and only if the calibration kept the times of reference products.
    """
    if not any(record.conditions and record.conditions.references_s for record in records):
        return NO_DRIFT
    here = machine_of(target.device)
    if here.name != profile.name:
        return NO_DRIFT
    monitor = DEVICES.get(target.device).references(here, target.threads)
    if monitor is None:
        return NO_DRIFT
    for _ in range(_READINGS):
        monitor.time()
    return Drift.since(records, monitor.pooled())
