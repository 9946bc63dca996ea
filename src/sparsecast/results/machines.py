"""What is known about machines: imported results of others, and findings of a checkup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from sparsecast.devices import threads_text
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth, Record
from sparsecast.results.columns import storage_of, within
from sparsecast.system.tabular import Column, Columns, Table, keys
from sparsecast.system.texts import counted, size


@dataclass(frozen=True)
class Imported:
    """A Profile of published results, and how many results were left out for which reason."""

    profile: Profile
    left_out: Mapping[str, int]

    def sentences(self) -> list[str]:
        """Return how many results are kept, of which formats, and how many are left out."""
        records = self.profile.records
        matrices = counted(len(self.profile.matrices), "matrix")
        results = f"{counted(len(records), 'result')} of {matrices}"
        formats = dict.fromkeys(record.candidate.kernel for record in records)
        return [
            f"{results}, kept as {self.profile.name}: {', '.join(formats)}",
            *(f"- left out, {reason}: {count:,}" for reason, count in self.left_out.items()),
        ]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part of the machine or its software; `remedy` is empty if all is well."""

    what: str
    state: str
    remedy: str = ""


#: Of a Finding.
FINDING: Columns = (
    Column("what", "checked"),
    Column("state", "state"),
    Column("remedy", value=lambda finding: finding.remedy or None, about="null where all is well"),
    Column("", "to do", lambda finding: finding.remedy or "nothing"),
)


@dataclass(frozen=True)
class Machines:
    """The machine at hand, and the profiles."""

    machine: Machine
    contents: Mapping[str, str]  # what each profile holds, or why it cannot be used, by name
    #: Where profiles are from that were not measured here, and under which licence.
    origins: Mapping[str, str] = field(default_factory=dict)
    bandwidths: Mapping[str, tuple[Bandwidth, ...]] = field(default_factory=dict)
    disturbances: Mapping[str, list[str]] = field(default_factory=dict)  # what disturbed the calibrations

    def table(self) -> Table:
        """Return what each profile holds, with its origin and its bandwidths."""
        here = self.machine
        rows = []
        for name, content in self.contents.items():
            rows.append((f"{name} (this machine)" if name == here.name else name, content))
            if name in self.origins:
                rows.append(("", self.origins[name]))
            if name in self.bandwidths:
                rows.append(("", bandwidth_sentence(self.bandwidths[name])))
        if here.name not in self.contents:
            rows.append((f"{here.name} (this machine)", "not calibrated yet: run sparsecast calibrate"))
        columns = (
            Column("profile", "profile", lambda row: row[0]),
            Column("holds", "holds", lambda row: row[1]),
        )
        caches = ", ".join(f"L{cache.level} {cache.bytes >> 10:,} KiB" for cache in here.caches)
        described = (
            f"{here.processor}, {counted(here.cores, 'core')}, {counted(here.threads, 'thread')}, "
            f"{caches or 'caches unknown'}, "
            f"{here.memory_bytes / 2**30:.0f} GiB of memory, {' '.join(here.simd) or 'no vector sets known'}"
        )
        return Table(f"This machine: {here.name}", columns, rows, (described,))


def kernel_speeds(records: Iterable[Record]) -> dict[str, dict[str, float]]:
    """Return the median GFLOP/s of each kernel, by device, type of values and threads."""
    speeds: dict[str, dict[str, list[float]]] = {}
    for record in records:
        one = record.candidate
        target = " ".join(filter(None, (one.device, one.dtype, threads_text(one.device, one.threads))))
        kernel = f"{storage_of(one)}, {one.kernel}" + (f", {one.vectors} vectors" if one.vectors > 1 else "")
        speeds.setdefault(target, {}).setdefault(kernel, []).append(record.gflops)
    return {target: {kernel: median(own) for kernel, own in of.items()} for target, of in speeds.items()}


def bandwidth_sentence(bandwidths: Iterable[Bandwidth]) -> str:
    """Return the bandwidth of each kind of stream, over the most bytes that it was measured with."""
    largest: dict[str, Bandwidth] = {}
    for stream in sorted(bandwidths, key=lambda stream: stream.bytes):
        words = stream.device, threads_text(stream.device, stream.threads), stream.kind
        largest[" ".join(filter(None, words))] = stream
    return ", ".join(f"{key} {size(largest[key].bandwidth_bytes_per_s)}/s" for key in sorted(largest))


def machine_document(machine: Machine) -> dict[str, Any]:
    """Return a machine with its name."""
    return {"name": machine.name, **machine.to_dict()}


def _streams(measured: Iterable[Bandwidth]) -> list[dict[str, Any]]:
    return [{**asdict(stream), "bandwidth_bytes_per_s": stream.bandwidth_bytes_per_s} for stream in measured]


#: Of a mapping with a profile, its path, and the records that were added.
_KEPT: Columns = (
    Column("profile", value="profile.name"),
    Column("path"),
    Column("records", value=lambda item: len(item["records"])),
    Column(
        "machine",
        value=lambda item: machine_document(item["profile"].machine),
        about="its name, and what is known of it",
    ),
)


_MACHINES: Columns = (
    Column("machine", value=lambda here: machine_document(here.machine), about="as of calibrate"),
    Column("profiles", value="contents", about="{name: what it holds}"),
    Column("origins", about="{name: source and licence}"),
    Column(
        "bandwidths",
        value=lambda here: {name: _streams(measured) for name, measured in here.bandwidths.items()},
        about="{name: streams}",
    ),
    Column("disturbances", about="{name: sentences}"),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "machines": _MACHINES,
    "machines show": (
        *within("here", _MACHINES),
        Column("gflops", about="{device, type, threads: {format, kernel: median of its records}}"),
    ),
    "machines import": (
        *_KEPT,
        Column("matrices", value=lambda item: len(item["profile"].matrices)),
        Column("left_out", about="{reason: results}"),
    ),
    "doctor": (Column("findings", columns=tuple(column for column in FINDING if column.key)),),
    "calibrate": (*_KEPT, *keys("budget_s", "used_s", "interrupted", "figures", "notes")),
    "calibrate --ranks": (
        *keys("profile", "path", "microbenchmarks"),
        Column("left", about="micro-benchmarks for which the budget did not suffice"),
        Column("products", about="matrices of --suites whose products were measured on all ranks"),
        Column("products_left", about="matrices for which the budget did not suffice"),
        *keys("ranks", "nodes", "budget_s", "used_s", "notes"),
    ),
}
