"""What is known about machines: imported results of others, and findings of a checkup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from sparsecast.devices.naming import threads_text
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth, Record
from sparsecast.results.columns import shown_storage, storage_of
from sparsecast.system.tabular import Column, Columns, Table, keys
from sparsecast.system.texts import counted, percent, size


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


def findings_table(findings: Iterable[Finding]) -> Table:
    return Table("This machine", FINDING, list(findings))


#: Of a Finding.
FINDING: Columns = (
    Column("what", "checked"),
    Column("state", "state"),
    Column("remedy", value=lambda finding: finding.remedy or None, about="null where all is well"),
    Column("", "to do", lambda finding: finding.remedy or "nothing"),
)


@dataclass(frozen=True)
class Machines:
    """The machine at hand, and the profiles.

    Attributes
    ----------
    contents : mapping of str to str
        What each profile holds, or why it cannot be used, by name.
    origins : mapping of str to str
        Where profiles are from that were not measured here, and under which licence.
    bandwidths : mapping of str to tuple of Bandwidth
    disturbances : mapping of str to list of str
        What disturbed the calibrations.
    """

    machine: Machine
    contents: Mapping[str, str]
    origins: Mapping[str, str] = field(default_factory=dict)
    bandwidths: Mapping[str, tuple[Bandwidth, ...]] = field(default_factory=dict)
    disturbances: Mapping[str, list[str]] = field(default_factory=dict)

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
        return Table(f"This machine: {here.name}", columns, rows, (machine_sentence(here),))


@dataclass(frozen=True)
class ProfileContents:
    """A Profile as people read it; `origin` and `disturbances` as of Machines."""

    profile: Profile
    origin: str
    disturbances: list[str]

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """What was measured of each kernel, for a type of values and a number of threads and vectors."""
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in self.profile.records:
            candidate = record.candidate
            setting = candidate.device, candidate.dtype, candidate.threads, candidate.vectors
            groups.setdefault((*setting, storage_of(candidate), candidate.kernel), []).append(record)
        names = "device", "dtype", "threads", "vectors", "format", "kernel"
        return [dict(zip(names, key, strict=True)) | _summary(groups[key]) for key in sorted(groups)]

    def tables(self) -> list[Table]:
        """Return the kernels, the bandwidths, and the micro-benchmarks of ranks where there are some."""
        profile = self.profile
        below = (machine_sentence(profile.machine), *filter(None, [self.origin]), *self.disturbances)
        title = f"Measured on {profile.name}" if profile.records else f"{profile.name}, without records"
        tables = [Table(title, KERNELS, self.kernels, below)]
        for title, columns, rows in (
            ("Bandwidths", STREAMS, profile.bandwidths),
            ("Micro-benchmarks of ranks", MICROBENCHMARKS, profile.microbenchmarks),
        ):
            tables += [Table(title, columns, rows)] if rows else []
        return tables


def _summary(records: list[Record]) -> dict[str, Any]:
    """Return how many Records of a kernel there are, and their speeds."""
    speeds = sorted(record.gflops for record in records)
    noise = [record.noise for record in records if record.noise is not None]
    return {
        "records": len(records),
        "median_gflops": median(speeds),
        "best_gflops": speeds[-1],
        "noise": median(noise) if noise else None,
        "newest": max(record.measured_at for record in records) or None,
    }


def machine_sentence(machine: Machine) -> str:
    """Return processor, cores, caches, memory and vector sets of a machine, or what is known of its GPU."""
    if machine.gpu is not None:
        return f"{machine.gpu.name}, {size(machine.product_memory_bytes)} of memory"
    caches = ", ".join(f"L{cache.level} {cache.bytes >> 10:,} KiB" for cache in machine.caches)
    return (
        f"{machine.processor}, {counted(machine.cores, 'core')}, {counted(machine.threads, 'thread')}, "
        f"{caches or 'caches unknown'}, {machine.memory_bytes / 2**30:.0f} GiB of memory, "
        f"{' '.join(machine.simd) or 'no vector sets known'}"
    )


def bandwidth_sentence(bandwidths: Iterable[Bandwidth]) -> str:
    """Return the bandwidth of each kind of stream, over the most bytes that it was measured with."""
    largest: dict[str, Bandwidth] = {}
    for stream in sorted(bandwidths, key=lambda stream: stream.bytes):
        words = stream.device, threads_text(stream.device, stream.threads), stream.kind
        largest[" ".join(filter(None, words))] = stream
    return ", ".join(f"{key} {size(largest[key].bandwidth_bytes_per_s)}/s" for key in sorted(largest))


def made_sentences(profile: Profile) -> list[str]:
    """Return what a machine was made from that nobody measured."""
    machine = profile.machine
    if machine.made is None or machine.sheet is None:
        return []
    sheet = machine.sheet
    caches = f"{size(sheet.l2_bytes)} of L2{f', {size(sheet.l3_bytes)} of L3' if sheet.l3_bytes else ''}"
    return [
        f"{machine.made.sentence(profile.name)}.",
        f"{size(sheet.bandwidth_bytes_per_s)}/s, {counted(sheet.cores, 'core')} at "
        f"{sheet.frequency_hz / 1e9:.2f} GHz, "
        f"{caches}; {counted(len(profile.records), 'time')} of {machine.made.like} were scaled.",
    ]


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


#: Of the kernels of ProfileContents.
KERNELS: Columns = (
    *(Column(key, key) for key in ("device", "dtype", "threads", "vectors")),
    Column("format", "format", text=shown_storage),
    *(Column(key, key) for key in ("kernel", "records")),
    Column("median_gflops", "median GFLOP/s"),
    Column("best_gflops", "best GFLOP/s"),
    Column("noise", "noise", text=percent, about="median"),
    Column("newest", "newest", text=lambda moment: str(moment)[:10]),
)

#: Of a Bandwidth.
STREAMS: Columns = (
    *(Column(key, key) for key in ("kind", "device", "threads", "bytes")),
    Column("bandwidth_bytes_per_s", "a second", text=size),
    *keys("time_s", "noise", "measured_at"),
)

#: Of a MicroBenchmark.
MICROBENCHMARKS: Columns = (
    *(Column(key, key) for key in ("kind", "ranks", "nodes", "bytes", "neighbours")),
    Column("time_s", "time"),
    *keys("noise", "is_oversubscribed", "measured_at"),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "machines": (
        Column("machine", value=lambda here: machine_document(here.machine), about="as of machines new"),
        Column("profiles", value="contents", about="{name: what it holds}"),
        Column("origins", about="{name: source and licence}"),
        Column(
            "bandwidths",
            value=lambda here: {name: _streams(measured) for name, measured in here.bandwidths.items()},
            about="{name: streams}",
        ),
        Column("disturbances", about="{name: sentences}"),
    ),
    "machines import": (
        *_KEPT,
        Column("matrices", value=lambda item: len(item["profile"].matrices)),
        Column("left_out", about="{reason: results}"),
    ),
    "machines new": _KEPT,
    "machines show": (
        Column(
            "machine", value=lambda shown: machine_document(shown.profile.machine), about="as of machines"
        ),
        *keys("origin", "disturbances"),
        Column("kernels", columns=KERNELS),
        Column("bandwidths", value="profile.bandwidths", columns=STREAMS),
        Column("microbenchmarks", value="profile.microbenchmarks", columns=MICROBENCHMARKS),
    ),
    "doctor": (Column("findings", columns=tuple(column for column in FINDING if column.key)),),
    "calibrate": (
        *_KEPT,
        *keys("budget_s", "used_s", "interrupted", "figures", "notes"),
    ),
    "calibrate --ranks": (
        *keys("profile", "path", "microbenchmarks"),
        Column("left", about="micro-benchmarks for which the budget did not suffice"),
        Column("products", about="matrices of --suites whose products were measured on all ranks"),
        Column("products_left", about="matrices for which the budget did not suffice"),
        *keys("ranks", "nodes", "budget_s", "used_s", "notes"),
    ),
}
