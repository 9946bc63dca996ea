"""Measuring how fast bytes move: in the caches and memory of a device, and between it and the host."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparsecast.measuring.timing import Clock, Effort, measure
from sparsecast.records import Bandwidth
from sparsecast.system.version import VERSION

if TYPE_CHECKING:
    from sparsecast.devices.device import Device

#: A second or two for all sizes of a device: a large array is gone through 14 times.
BANDWIDTH_EFFORT = Effort(samples=3, sample_s=0.002)


def measure_bandwidths(
    device: Device,
    sizes: Sequence[int],
    threads: int,
    effort: Effort = BANDWIDTH_EFFORT,
    clock: Clock | None = None,
) -> list[Bandwidth]:
    """Measure every kind of Bandwidth that a device has, with arrays of these sizes in bytes: words of 8.

    Raises
    ------
    DeviceError
        If the device cannot be found, or is lost.
    MatrixSizeError
        If its memory is too small for an array.
    """
    clock = clock or device.clock()
    found = []
    with device.errors():
        for size in sizes:
            calls = device.bandwidth_calls(size, threads)
            for kind, timing in measure(calls, effort, clock=clock).items():
                found.append(
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
    return found
