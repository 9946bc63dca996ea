"""Description of the machine at hand; nothing here is measured."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from sparsecast.errors import DeviceError, InputError
from sparsecast.machines.gpu import Device

_CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0")
_SIMD_FLAGS = ("sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "asimd", "sve", "sve2")


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data cache.

    Attributes
    ----------
    level : int
    bytes : int
        Size of one instance.
    shared_by : int
        Logical cores that share an instance.
    """

    level: int
    bytes: int
    shared_by: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine is made of.

    Attributes
    ----------
    processor : str
        The processor's model name.
    architecture : str
        Instruction set, such as ``"x86_64"``.
    cores, threads : int
        Physical cores, and logical cores this process may use.
    caches : tuple of Cache
        Data and unified caches, innermost first; empty where the system does not tell.
    simd : tuple of str
        Vector instruction sets among the well-known ones.
    memory_bytes : int
        Physical memory.
    system : str
        Operating system.
    device : Device or None
        The GPU that goes with it; None where the processor computes alone.
    """

    processor: str
    architecture: str
    cores: int
    threads: int
    caches: tuple[Cache, ...]
    simd: tuple[str, ...]
    memory_bytes: int
    system: str
    device: Device | None = None

    @property
    def gpu(self) -> Device | None:
        """The GPU that goes with it."""
        return self.device

    @property
    def name(self) -> str:
        """A name for files: device, or processor and threads, and a digest of all that sets the speed.

        Memory is left out of the digest: virtual machines of one kind differ in it by some megabytes.
        """
        described = self.to_dict()
        del described["memory_bytes"]
        if self.device:
            del described["device"]["memory_bytes"]
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:8]
        if self.device:
            return f"{_slug(self.device.name) or 'device'}-{digest}"
        return f"{_slug(self.processor) or 'machine'}-{self.threads}t-{digest}"

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain data, without the key ``device`` where there is none."""
        described = dataclasses.asdict(self)
        if self.device is None:  # so a machine keeps the name it had before devices were described
            del described["device"]
        return described

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Machine:
        """Return the Machine that `to_dict` described."""
        values = dict(described)
        values["caches"] = tuple(Cache(**cache) for cache in values["caches"])
        values["simd"] = tuple(values["simd"])
        if "device" in values:
            values["device"] = Device.from_dict(values["device"])
        return cls(**values)

    def caches_of(self, device: str) -> tuple[Cache, ...]:
        """Return the caches that products on a device go through: the processor's, or the GPU's second level.

        Parameters
        ----------
        device : str
            ``"cpu"``, or another for the machine's GPU.

        Raises
        ------
        DeviceError
            If the machine has no GPU described.
        """
        return self.caches if device == "cpu" else (Cache(2, self.described_device(device).l2_bytes, 1),)

    def described_device(self, device: str) -> Device:
        """Return the machine's GPU, which goes by the name `device` in Candidates.

        Raises
        ------
        DeviceError
            If none is described.
        """
        if self.device is None:
            raise DeviceError(
                f"device '{device}' is not described by machine {self.name}: expected one with a GPU; "
                f"name the profile of one, or the device cpu"
            )
        return self.device

    def checked_threads(self, threads: int | None) -> int:
        """Return `threads`, or all of the machine's for None.

        Raises
        ------
        InputError
            If there are fewer than 1 or more than the machine has.
        """
        if threads is None:
            return self.threads
        if not 1 <= threads <= self.threads:
            raise InputError(
                f"threads {threads}: expected 1 to {self.threads}, the threads of {self.name}; "
                f"choose a number in that range"
            )
        return threads


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:32].strip("-")


def detect() -> Machine:
    """Describe the machine this process runs on, without its devices: `detect_device` describes those."""
    return Machine(
        processor=_processor(),
        architecture=platform.machine(),
        cores=psutil.cpu_count(logical=False) or _usable_threads(),
        threads=_usable_threads(),
        caches=_caches(),
        simd=_simd(),
        memory_bytes=int(psutil.virtual_memory().total),
        system=platform.system(),
    )


def _usable_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpuinfo(key: str) -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None  # not Linux: the caller asks elsewhere
    found = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else None


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _simd() -> tuple[str, ...]:
    flags = set((_cpuinfo("flags") or _cpuinfo("Features") or "").split())
    return tuple(flag for flag in _SIMD_FLAGS if flag in flags)


def _caches() -> tuple[Cache, ...]:
    caches = []
    for folder in sorted(_CPU_FOLDER.glob("cache/index*")):
        kind = (folder / "type").read_text().strip()
        size = re.fullmatch(r"(\d+)([KMG])", (folder / "size").read_text().strip())
        if kind == "Instruction" or size is None:
            continue
        level = int((folder / "level").read_text())
        in_bytes = int(size.group(1)) << {"K": 10, "M": 20, "G": 30}[size.group(2)]
        caches.append(Cache(level, in_bytes, _count_cores((folder / "shared_cpu_list").read_text())))
    return tuple(sorted(caches, key=lambda cache: cache.level))


def _count_cores(listed: str) -> int:
    total = 0
    for part in listed.strip().split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total
