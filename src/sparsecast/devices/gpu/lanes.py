"""Sums over the lanes of a warp: the only code that differs between a device and the simulator of numba-cuda.

The simulator has no warp shuffles. There, the lanes meet in shared memory, in the same order of additions.
"""

from __future__ import annotations

from sparsecast.devices.gpu.launching import SIMULATED, cuda, device_function

_ALL_LANES = 0xFFFFFFFF


def _sum_by_shuffles(value, lanes):  # type: ignore[no-untyped-def]
    offset = lanes >> 1
    while offset > 0:
        value += cuda.shfl_down_sync(_ALL_LANES, value, offset)
        offset >>= 1
    return value


def _sum_in_shared_memory(value, lanes):  # type: ignore[no-untyped-def]
    shared = cuda.shared.array(cuda.blockDim.x, value.dtype)
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    if thread % lanes:
        return value
    values = [shared[thread + lane] for lane in range(lanes)]
    while len(values) > 1:
        half = len(values) // 2
        values = [values[lane] + values[lane + half] for lane in range(half)]
    return values[0]


#: lane_sum(value, lanes): the sum over a group of 1, 2, ..., 32 neighbouring lanes, in the first of them; the
#: result of the others is undefined. Every thread of a block must call it, once in a kernel.
lane_sum = device_function(_sum_in_shared_memory if SIMULATED else _sum_by_shuffles)
