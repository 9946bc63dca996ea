"""Bandwidths: which arrays are read, and what a Bandwidth says of a measurement."""

import dataclasses

import pytest

from sparsecast.devices import DEVICES
from sparsecast.devices.device import measure_bandwidths
from sparsecast.devices.gpu import clock as cuda_clock
from sparsecast.devices.gpu.gpu_device import MOST_TRANSFER_BYTES
from sparsecast.machines import data_sheet
from sparsecast.machines.machine import Cache, Machine
from sparsecast.measuring.timing import Effort

CACHES = (Cache(1, 1 << 15, 1), Cache(2, 1 << 20, 2), Cache(3, 1 << 25, 8))
MACHINE = Machine("test", "x86_64", 8, 8, CACHES, (), 1 << 34, "Linux")
CPU, CUDA = DEVICES.get("cpu"), DEVICES.get("cuda")
GPU = data_sheet.GPU("a device", 100, 64, 32, 1024, 1 << 36, 50 << 20, 1_500_000_000, 2_000_000_000, (9, 0))


def test_half_of_each_cache_is_read_and_twice_the_last_and_its_halves():
    assert CPU.array_sizes(MACHINE, 1) == [1 << 14, 1 << 19, *(1 << power for power in range(22, 27))]
    assert CPU.array_sizes(MACHINE, 8) == [1 << 17, 1 << 21, *(1 << power for power in range(24, 27))]


def test_unknown_and_huge_caches_have_an_array_too():
    (beyond,) = CPU.array_sizes(dataclasses.replace(MACHINE, caches=()), 8)
    assert beyond == 128 << 20
    huge = dataclasses.replace(MACHINE, caches=(Cache(3, 1 << 40, 8),))
    assert CPU.array_sizes(huge, 1)[-1] == 512 << 20 == max(CPU.array_sizes(huge, 1))


def test_a_device_reads_beyond_its_l2_and_transfers_little_and_much():
    sizes = CUDA.array_sizes(dataclasses.replace(MACHINE, device="cuda", gpu=GPU), 1)
    assert max(sizes) == 200 << 20 and min(sizes) == 1 << 12
    assert sum(size <= MOST_TRANSFER_BYTES for size in sizes) >= 3


def test_reads_of_the_processor_by_each_size():
    found = measure_bandwidths(CPU, [1 << 12, 1 << 22], 1, Effort(samples=2, sample_s=1e-4))
    assert [(s.kind, s.device, s.threads, s.bytes) for s in found] == [
        ("read", "cpu", 1, 1 << 12),
        ("read", "cpu", 1, 1 << 22),
    ]
    assert found[0].time_s < found[1].time_s  # a thousand times the bytes


def test_the_bytes_of_a_copy_count_twice_and_large_arrays_are_not_transferred(monkeypatch):
    class Clock:
        """On which every call takes a millisecond."""

        least_calls = 1

        def seconds(self, call, times):
            return 1e-3 * times

    for name in ("device_read", "device_copy", "device_upload", "device_download"):
        monkeypatch.setattr(cuda_clock, name, lambda size: lambda: None)
    found = measure_bandwidths(CUDA, [1 << 10, MOST_TRANSFER_BYTES + 8], 1, clock=Clock())
    assert {(s.kind, s.bytes) for s in found} == {
        ("read", 1 << 10),
        ("copy", 1 << 11),
        ("to device", 1 << 10),
        ("from device", 1 << 10),
        ("read", MOST_TRANSFER_BYTES + 8),
        ("copy", 2 * (MOST_TRANSFER_BYTES + 8)),
    }
    assert all(s.time_s == pytest.approx(1e-3) for s in found)
