"""Measures bandwidths: in the caches and memory of a device, and between device and host."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparsecast.measuring.timing import Clock, Effort, measure
from sparsecast.records import Bandwidth
from sparsecast.system.version import VERSION

if TYPE_CHECKING:
    from sparsecast.devices.device import Device

#: A second or two for all sizes of a device: a large array is traversed 14 times.
BANDWIDTH_EFFORT = Effort(samples=3, sample_s=0.002)


def measure_bandwidths(
    device: Device,
    sizes: Sequence[int],
    threads: int,
    effort: Effort = BANDWIDTH_EFFORT,
    clock: Clock | None = None,
) -> list[Bandwidth]:
    """Measure every kind of Bandwidth of a device, with arrays of these sizes in bytes (words of 8)."""
    clock = clock or device.clock()
    bandwidths = []
    with device.errors():
        for size in sizes:
            calls = device.bandwidth_calls(size, threads)
            for kind, timing in measure(calls, effort, clock=clock).items():
                bandwidths.append(
                    Bandwidth(
                        kind=kind,
                        device=device.name,
                        threads=threads,
                        bytes=2 * size if kind == "copy" else size,
                        time_s=timing.time_s,
                        noise=timing.noise,
                        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
                        version=VERSION,
                    )
                )
    return bandwidths
