"""How far a profile can be trusted now: what disturbed its calibration, and how the machine has drifted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from sparsecast.api.resolving import machine_of
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import threads_text
from sparsecast.devices.target import Target
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.measuring.disturbance import Disturbance, disturbance
from sparsecast.measuring.references import Pooled
from sparsecast.planning.drift import NO_DRIFT, Drift
from sparsecast.records import Record

#: Times that the reference products are timed for a forecast. Each reading of a level ends after some 20 ms.
_READINGS = 3

_SECONDS_A_DAY = 86_400

#: What reference products take, by where their data lie.
Readings = Mapping[str, Pooled]

#: What `one_reading` shares, by machine, device and threads; None outside of it.
_SHARED: ContextVar[dict[tuple[str, str, int], Readings | None] | None] = ContextVar("readings", default=None)


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
    known, key = _SHARED.get(), (here.name, target.device, target.threads)
    if known is None:
        return _drift(records, _read(here, target))
    if key not in known:
        known[key] = _read(here, target)
    return _drift(records, known[key])


@contextmanager
def one_reading() -> Iterator[None]:
    """Let all questions within share one reading of the reference products, of one moment."""
    if _SHARED.get() is not None:
        yield
        return
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def _read(here: Machine, target: Target) -> Readings | None:
    """Return what the reference products take now; None on a device that has none."""
    monitor = DEVICES.get(target.device).references(here, target.threads)
    if monitor is None:
        return None
    for _ in range(_READINGS):
        monitor.time()
    return monitor.pooled()


def _drift(records: Sequence[Record], now: Readings | None) -> Drift:
    return NO_DRIFT if now is None else Drift.since(records, now)
