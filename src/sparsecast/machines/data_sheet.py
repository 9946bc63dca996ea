"""Data sheets of machines of published results, and of machines that are estimated from them.

A GPU of NVIDIA is described in multiprocessors and warps, one of AMD in compute units and wavefronts. Users
write figures such as 400e9, 400GB/s, 1MiB, 2.4GHz.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Self

import numpy as np

from sparsecast.errors import InputError


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

    @property
    def cache_bytes(self) -> int:
        """Bytes of the caches that may hold a small matrix."""
        return self.l2_bytes + self.l3_bytes

    @property
    def cycles_per_s(self) -> float:
        return self.cores * self.frequency_hz


@dataclass(frozen=True, slots=True)
class PublishedMachine:
    """A machine whose published results can be imported."""

    device: str  # ``"cuda"``, ``"hip"`` or ``"omp"``
    sheet: DataSheet
    gpu: GPU | None  # None for a processor

    @classmethod
    def of(cls, device: str, values: Mapping[str, Any]) -> Self:
        """Return the machine of an entry of the file, published and assumed values together."""
        clock_hz, l2_bytes = values["clock_mhz"] * 1_000_000, values["l2_kib"] << 10
        sheet = DataSheet(
            bandwidth_bytes_per_s=values["bandwidth_gb_per_s"] * 1e9,
            cores=values["cores"],
            frequency_hz=float(clock_hz),
            l2_bytes=l2_bytes,
            l3_bytes=values.get("l3_kib", 0) << 10,
        )
        if "lanes" not in values:
            return cls(device, sheet, None)
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
        return cls(device, sheet, gpu)


@cache
def published_machines() -> Mapping[str, PublishedMachine]:
    """Return the machines by their names in the files of results."""
    text = resources.files(__package__).joinpath("published_machines.toml").read_text(encoding="utf-8")
    return {
        name: PublishedMachine.of(entry["device"], {**entry["published"], **entry.get("assumed", {})})
        for name, entry in tomllib.loads(text).items()
    }


@dataclass(frozen=True, slots=True)
class Made:
    """Origin of an estimated machine, and the errors of such estimates."""

    like: str  # name of the measured machine whose times were scaled
    #: Number of measured machines that were left out once, and forecast from their data sheet and the others.
    left_out: int
    #: over_start, low, high: ascending logarithms of time over the shortest time of a kernel, with the ends
    #: of the interval of log(measured / forecast) of the machines that were left out.
    over_start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def widened(self, time_s: float, start_s: float, low_s: float, high_s: float) -> tuple[float, float]:
        """Return an interval that includes the errors of the data sheet.

        The errors of the model and of the data sheet count as independent, like those of power and time in a
        forecast of energy.

        `start_s` is the shortest time of the kernel of this forecast; `low_s` and `high_s` are the interval
        of the model alone.
        """
        place = math.log(max(time_s / start_s, 1.0))
        below, above = (float(np.interp(place, self.over_start, ends)) for ends in (self.low, self.high))
        low = -math.hypot(math.log(low_s / time_s), min(below, 0.0))
        high = math.hypot(math.log(high_s / time_s), max(above, 0.0))
        return time_s * math.exp(low), time_s * math.exp(high)

    def sentence(self, name: str) -> str:
        """Return a sentence: the machine of this name was not measured."""
        return (
            f"{name} is estimated from a data sheet, like {self.like}: it was not measured. The model "
            f"sparsecast gives intervals that contain the errors for {self.left_out} measured machines, each "
            f"left out once"
        )


_PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PREFIXES |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_TEXT = re.compile(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([KMGT]I?)?(\S*)\s*", re.IGNORECASE)


def quantity(what: str, text: str, unit: str) -> float:
    """Return a figure in a unit without a prefix, such as ``"B/s"``.

    `text` is a number above 0, with an optional decimal or binary prefix, and the unit; `what` names it in
    the refusal.
    """
    match = _TEXT.fullmatch(text)
    value = math.nan
    if match and match[3].lower() in ("", unit.lower()):
        try:
            value = float(match[1]) * _PREFIXES[(match[2] or "").upper()]
        except ValueError:  # more than one point
            value = math.nan
    if not 0 < value < math.inf:
        raise InputError(
            f"{what} '{text}': expected a number above 0 in {unit}, such as 400e9, 400G{unit} or 4M{unit}; "
            f"give one"
        )
    return value
