"""The clock of a GPU, and the copies and reads that measure its memory bandwidth.

Calls only queue work on the default stream; two events on it mark begin and end on the device. Earlier work
is waited for, so that the host's head start does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecast.devices.gpu.launching import SIMULATED, cuda
from sparsecast.measuring.timing import Call, HostClock

_THREADS, _BLOCKS = 256, 2048


class EventClock:
    """The clock of the current GPU, for calls that queue their work on its default stream.

    In the simulator of numba-cuda, which runs every call to its end and has no times of events, it is the
    host's clock.
    """

    #: Only the first call of a run includes the latency of a launch.
    least_calls = 1

    def seconds(self, call: Call, times: int) -> float:
        """Return the device's seconds from the begin of the first call to the end of the last."""
        if SIMULATED:
            return HostClock().seconds(call, times)
        begin, end = cuda.event(), cuda.event()
        cuda.synchronize()
        begin.record()
        for _ in range(times):
            call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


def device_copy(size_bytes: int) -> Call:
    """Return a callable that queues a copy of `size_bytes`, which are read and written."""
    source, target = (cuda.device_array(_words(size_bytes), np.float64) for _ in range(2))
    return lambda: target.copy_to_device(source)


def device_read(size_bytes: int) -> Call:
    """Return a callable that queues a read of an array, and returns partial sums on the device."""
    words = _words(size_bytes)
    blocks = max(1, min(_BLOCKS, words // _THREADS))
    kernel = cuda.jit(_sum_strided)[blocks, _THREADS]
    source, sums = cuda.device_array(words, np.float64), cuda.device_array(blocks * _THREADS, np.float64)
    # There: to make gigabytes on the host and to copy them takes seconds.
    cuda.jit(_fill_with_ones)[blocks, _THREADS](source)

    def read() -> Any:
        kernel(source, sums)
        return sums

    return read


def device_upload(size_bytes: int) -> Call:
    """Return a callable that copies a pageable NumPy array to the device."""
    source = np.ones(_words(size_bytes))
    target = cuda.device_array(source.size, np.float64)

    def upload() -> Any:
        target.copy_to_device(source)
        return target

    return upload


def device_download(size_bytes: int) -> Call:
    """Return a callable that copies an array on the device to a NumPy array."""
    source = cuda.to_device(np.ones(_words(size_bytes)))
    target = np.zeros(source.size)
    return lambda: source.copy_to_host(target)


def _words(size_bytes: int) -> int:
    """Return the words of 8 bytes of at least `size_bytes` bytes."""
    return max(1, -(-size_bytes // 8))


def _fill_with_ones(target):
    for i in range(cuda.grid(1), target.size, cuda.gridsize(1)):
        target[i] = 1.0


def _sum_strided(source, sums):
    first = cuda.grid(1)
    total = 0.0
    for i in range(first, source.size, cuda.gridsize(1)):
        total += source[i]
    sums[first] = total
