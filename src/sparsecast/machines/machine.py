"""Description of a machine; nothing here is measured.

A strip is the rows, or non-zeros for COO, that a device handles in one full load of thread blocks.

Two papers count them, and differ for CSR, as their kernels do. P. Guo, L. Wang, P. Chen (2014), section 3.1
and table 2, have CSR with a warp per row, ELL with a thread per row, COO with a thread per non-zero; for AMD
with compute units, wavefronts and work-items instead. R. Wang, T. Gu, M. Li (2017), section 3.1, equations 1
to 3, have CSR-vector with half a warp per row, and CSR-scalar, ELL and JAD with a thread per row.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import psutil

from sparsecast.errors import InputError
from sparsecast.machines.data_sheet import GPU, DataSheet

_CPU_FOLDER = Path("/sys/devices/system/cpu/cpu0")
_SIMD_FLAGS = ("sse2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "asimd", "sve", "sve2")

#: Instruction sets that rules of kernels need beyond _SIMD_FLAGS.
_FEATURE_FLAGS = ("avx512_fp16",)

#: The device of a machine without a GPU, and the default of a question.
PROCESSOR = "cpu"


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data cache."""

    level: int
    bytes: int  # size of one instance
    shared_by: int  # logical cores that share an instance


@dataclass(frozen=True, slots=True)
class Machine:
    """Description of a machine."""

    processor: str
    architecture: str  # instruction set, such as ``"x86_64"``
    #: cores, threads: physical cores, and logical cores that this process may use.
    cores: int
    threads: int
    caches: tuple[Cache, ...]  # data and unified caches, innermost first; empty if unknown
    simd: tuple[str, ...]  # vector instruction sets among the well-known ones
    memory_bytes: int
    system: str
    device: str = PROCESSOR  # a member of DEVICES, or the name in published results, such as ``"hip"``
    gpu: GPU | None = None  # that device, if it is a GPU; None for a processor
    #: Instruction sets that rules of kernels need, in addition to `simd`; None if unknown.
    features: tuple[str, ...] | None = None
    #: Name of imported published results. Nothing runs on such a machine here, and its Records are all ways
    #: of doing the product. None for every other machine.
    published_as: str | None = None
    source: str | None = None  # source and licence of published results; None if unknown
    sheet: DataSheet | None = None  # published figures of its data sheet; None if unknown

    @property
    def name(self) -> str:
        """A name for files: device, or processor and threads, and a digest of all that sets the speed.

        Memory is left out of the digest: virtual machines of one kind differ in it by some megabytes. A
        machine of published results has the name of its import.
        """
        if self.published_as is not None:
            return self.published_as
        described = self.to_dict()
        del described["memory_bytes"]
        if self.gpu:
            del described["gpu"]["memory_bytes"]
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:8]
        title = (self.gpu.name if self.gpu else self.processor).lower()
        slug = re.sub(r"[^a-z0-9]+", "-", title).strip("-")[:32].strip("-")
        if self.gpu:
            return f"{slug or 'device'}-{digest}"
        return f"{slug or 'machine'}-{self.threads}t-{digest}"

    def to_dict(self) -> dict[str, Any]:
        described = dataclasses.asdict(self)
        return {key: value for key, value in described.items() if value is not None}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Machine:
        """Return the Machine that `to_dict` stored.

        A ValueError or msgspec.ValidationError says that it is something else.
        """
        machine = msgspec.convert(described, cls)
        if unknown := described.keys() - {field.name for field in dataclasses.fields(cls)}:
            raise ValueError(f"a description without {', '.join(sorted(unknown))}")
        return machine

    @property
    def product_caches(self) -> tuple[Cache, ...]:
        """The caches of a product: the GPU's second level, if there is one."""
        return (Cache(2, self.gpu.l2_bytes, 1),) if self.gpu else self.caches

    def with_last_cache(self, size_bytes: int) -> Machine:
        """Return this machine with this size of the last one of its `caches`, which has to exist."""
        *others, last = self.caches
        return dataclasses.replace(self, caches=(*others, dataclasses.replace(last, bytes=size_bytes)))

    @property
    def product_memory_bytes(self) -> int:
        """The memory of matrix and vectors: the GPU's, if there is one."""
        return self.gpu.memory_bytes if self.gpu else self.memory_bytes

    def shared_cache_bytes(self, threads: int) -> tuple[int | None, int | None]:
        """Return the bytes of L2 and of L3 cache that `threads` threads have together.

        None if unknown; 0 for a missing third level.
        """
        sizes = {cache.level: cache.bytes * -(-threads // cache.shared_by) for cache in self.caches}
        return sizes.get(2), sizes.get(3, 0 if sizes else None)

    def checked_threads(self, threads: int | None) -> int:
        """Return `threads`, by default all of the machine's; an InputError for an impossible number."""
        if threads is None:
            return self.threads
        if not 1 <= threads <= self.threads:
            raise InputError(
                f"threads {threads}: expected 1 to {self.threads}, the threads of {self.name}; "
                f"choose a number in that range"
            )
        return threads


def detect() -> Machine:
    """Describe the machine this process runs on, without a GPU: `Device.describe` adds that."""
    may_tell = hasattr(os, "sched_getaffinity")
    threads = len(os.sched_getaffinity(0)) if may_tell else os.cpu_count() or 1
    flags = set((_cpuinfo("flags") or _cpuinfo("Features") or "").split())
    return Machine(
        processor=_cpuinfo("model name") or platform.processor() or platform.machine(),
        architecture=platform.machine(),
        cores=_cpu_count(logical=False) or threads,
        threads=threads,
        caches=_caches(_CPU_FOLDER),
        simd=tuple(flag for flag in _SIMD_FLAGS if flag in flags),
        memory_bytes=int(psutil.virtual_memory().total),
        system=platform.system(),
        features=tuple(flag for flag in _FEATURE_FLAGS if flag in flags),
    )


_cpu_count = cache(psutil.cpu_count)


@cache
def _cpuinfo(key: str) -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None  # not Linux: the caller asks elsewhere
    match = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1) if match else None


@cache
def _caches(of_cpu: Path) -> tuple[Cache, ...]:
    caches = []
    for folder in sorted(of_cpu.glob("cache/index*")):
        kind = (folder / "type").read_text().strip()
        size = re.fullmatch(r"(\d+)([KMG])", (folder / "size").read_text().strip())
        if kind == "Instruction" or size is None:
            continue
        level = int((folder / "level").read_text())
        in_bytes = int(size.group(1)) << {"K": 10, "M": 20, "G": 30}[size.group(2)]
        caches.append(Cache(level, in_bytes, len(listed_numbers((folder / "shared_cpu_list").read_text()))))
    return tuple(sorted(caches, key=lambda cache: cache.level))


def listed_numbers(text: str) -> list[int]:
    """Return the numbers of a list such as ``"0-3,8"``, as the system writes cores."""
    spans = (part.split("-") for part in text.strip().split(","))
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


#: Rows (CSR, ELL) and non-zeros (COO) of a strip for each thread of a processor. A processor has no thread
#: blocks to fill. Its threads need enough work that waking them costs little: 1,024 rows of four non-zeros
#: take about 2 microseconds, about as long as the waking.
STRIP_ROWS_A_THREAD = 1024


def strip_rows(machine: Machine | None, threads: int, kernel: str = "csr") -> int:
    """Return the rows, or non-zeros for COO, of a strip of a machine (Guo et al., section 3.1: S).

    Without a machine, or without a GPU, it is a processor with `threads` threads, and `kernel` makes no
    difference; otherwise it is as in `guo_strip`.
    """
    if machine and machine.gpu:
        return guo_strip(machine.gpu, kernel)
    return threads * STRIP_ROWS_A_THREAD


def guo_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Guo et al. (2014), section 3.1: S.

    `kernel` is ``"csr"``, ``"ell"`` or ``"coo"``, whose S counts non-zeros. HYB has no strip of its own,
    since it is ELL and COO (section 3.5.4).
    """
    threads_a_row = {"csr": gpu.lanes, "ell": 1, "coo": 1}[kernel]
    return gpu.multiprocessors * (gpu.threads_per_multiprocessor // threads_a_row)


def wang_strip(gpu: GPU, kernel: str) -> int:
    """Return the rows of a strip of Wang et al. (2017), equations 1 to 3: S.

    `kernel` is ``"csr-vector"``, ``"csr-scalar"``, ``"ell"`` or ``"jad"``.
    """
    threads_a_row = {"csr-vector": gpu.lanes // 2, "csr-scalar": 1, "ell": 1, "jad": 1}[kernel]
    return gpu.multiprocessors * (gpu.threads_per_multiprocessor // threads_a_row)
