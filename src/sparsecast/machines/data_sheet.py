"""Data sheets of machines of published results."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class GPU:
    """Description of a GPU."""

    name: str
    multiprocessors: int  # streaming multiprocessors (NVIDIA) or compute units (AMD)
    warps_per_multiprocessor: int  # warps, or wavefronts, that a multiprocessor holds at once
    lanes: int  # threads of a warp: 32, or 64 of a wavefront
    threads_per_block: int  # the greatest number
    #: memory_bytes, l2_bytes: device memory and second-level cache.
    memory_bytes: int
    l2_bytes: int
    #: clock_hz, memory_clock_hz: the highest clocks.
    clock_hz: int
    memory_clock_hz: int
    compute_capability: tuple[int, int] | None = None  # of CUDA; None for other devices

    @property
    def threads_per_multiprocessor(self) -> int:
        """Threads, or work-items, that a multiprocessor holds at once."""
        return self.warps_per_multiprocessor * self.lanes


@dataclass(frozen=True, slots=True)
class DataSheet:
    """Published figures of a machine that decide the speed of products."""

    bandwidth_bytes_per_s: float  # peak bandwidth of the memory of matrices
    cores: int  # cores of a processor; multiprocessors, or compute units, of a GPU
    frequency_hz: float  # base frequency of a processor, highest clock of a GPU
    #: l2_bytes, l3_bytes: of all cores together; 0 without a third level.
    l2_bytes: int
    l3_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PublishedMachine:
    """A machine whose published results can be imported."""

    device: str  # ``"cuda"``, ``"hip"`` or ``"omp"``
    sheet: DataSheet
    gpu: GPU | None  # None for a processor


@cache
def published_machines() -> Mapping[str, PublishedMachine]:
    """Return the machines by their names in the files of results."""
    text = resources.files(__package__).joinpath("published_machines.toml").read_text(encoding="utf-8")
    machines = {}
    for name, entry in tomllib.loads(text).items():
        values = {**entry["published"], **entry.get("assumed", {})}
        clock_hz, l2_bytes = values["clock_mhz"] * 1_000_000, values["l2_kib"] << 10
        sheet = DataSheet(
            bandwidth_bytes_per_s=values["bandwidth_gb_per_s"] * 1e9,
            cores=values["cores"],
            frequency_hz=float(clock_hz),
            l2_bytes=l2_bytes,
            l3_bytes=values.get("l3_kib", 0) << 10,
        )
        gpu = None
        if "lanes" in values:
            capability = values.get("compute_capability")
            gpu = GPU(
                name=values["name"],
                multiprocessors=sheet.cores,
                warps_per_multiprocessor=values["warps_per_multiprocessor"],
                lanes=values["lanes"],
                threads_per_block=values["threads_per_block"],
                memory_bytes=values["memory_gib"] << 30,
                l2_bytes=l2_bytes,
                clock_hz=clock_hz,
                memory_clock_hz=values["memory_clock_mhz"] * 1_000_000,
                compute_capability=tuple(capability) if capability else None,
            )
        machines[name] = PublishedMachine(entry["device"], sheet, gpu)
    return machines
