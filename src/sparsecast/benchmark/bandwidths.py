"""Measuring how fast bytes move: in the caches and memory of a device, and between it and the host."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sparsecast.machines.gpu import driver_errors
from sparsecast.machines.machine import Machine
from sparsecast.measuring.memory_read import memory_read
from sparsecast.measuring.timing import Call, Clock, Effort, measure
from sparsecast.records import Bandwidth
from sparsecast.version import VERSION

#: A second or two for all sizes of a device: a large array is gone through 14 times.
BANDWIDTH_EFFORT = Effort(samples=3, sample_s=0.002)

#: Largest arrays that a processor reads, which it has to fill first, within its caches and beyond them: the
#: latter exceeds what one virtual machine gets of the largest caches, though not always the caches.
_MOST_CACHED_BYTES, _MOST_BEYOND_BYTES = 32 << 20, 512 << 20

#: Where the system does not tell of caches, beyond those of most processors.
_BEYOND_MOST_CACHES_BYTES = 128 << 20

#: Arrays copied between host and device, from those whose latency counts alone to those where it does not; a
#: larger one would take a second.
_TRANSFER_BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26)
MOST_TRANSFER_BYTES = 1 << 28


def array_sizes(machine: Machine, threads: int) -> list[int]:
    """Return the bytes of the arrays to measure with, the smallest first.

    Parameters
    ----------
    machine : Machine
        With a device: sizes for transfers, and one of four times its L2. Else half of each cache that so many
        threads have together, as far as 32 MiB, and twice the last, as far as 512 MiB.
    threads : int
    """
    if machine.device:
        return sorted({*_TRANSFER_BYTES, 4 * machine.device.l2_bytes})
    caches = [cache.bytes * -(-threads // cache.shared_by) for cache in machine.caches]
    beyond = 2 * caches[-1] if caches else _BEYOND_MOST_CACHES_BYTES
    within = {min(each // 2, _MOST_CACHED_BYTES) for each in caches}
    return [*sorted(within), min(beyond, _MOST_BEYOND_BYTES)]


@driver_errors()
def measure_bandwidths(
    clock: Clock, device: str, threads: int, sizes: Sequence[int], effort: Effort = BANDWIDTH_EFFORT
) -> list[Bandwidth]:
    """Measure every kind of Bandwidth that a device has: on the CPU reads, on a GPU all.

    Parameters
    ----------
    clock : Clock
        That of the device.
    device : str
        ``"cpu"`` or ``"cuda"``.
    threads : int
        Of the CPU; 1 on a device.
    sizes : sequence of int
        Bytes of the arrays, whole words of 8; between host and device only those up to 256 MiB are copied.
    effort : Effort

    Raises
    ------
    DeviceError
        If the device is not there or is lost.
    MatrixSizeError
        If its memory is too small for an array.
    """
    found = []
    for size in sizes:
        calls = _device_calls(size) if device == "cuda" else {"read": memory_read(size, threads)}
        for kind, timing in measure(calls, effort, clock=clock).items():
            found.append(
                Bandwidth(
                    kind=kind,
                    device=device,
                    threads=threads,
                    bytes=2 * size if kind == "copy" else size,
                    time_s=timing.time_s,
                    noise=timing.noise,
                    measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
                    version=VERSION,
                )
            )
    return found


def _device_calls(size: int) -> dict[str, Call]:
    # Only here: it asks for a device's libraries.
    from sparsecast.measuring.cuda_clock import device_copy, device_download, device_read, device_upload

    calls = {"read": device_read(size), "copy": device_copy(size)}
    if size <= MOST_TRANSFER_BYTES:
        calls |= {"to device": device_upload(size), "from device": device_download(size)}
    return calls
