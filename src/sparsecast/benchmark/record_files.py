"""Records of many files: profiles, journals and merged files, of one machine or several.

Two sets of Records are compared by the products that they time differently, beyond the noise.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sparsecast.benchmark.journal import TRIED_SUITE, read_journal
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, read_table
from sparsecast.machines.storage import write_table
from sparsecast.measuring.timing import LOW_SHARE, SAMPLES_A_TURN
from sparsecast.records import ROW_KINDS, SCHEMA_VERSION, Record
from sparsecast.results.differences import Difference, Differences, GeometricMean
from sparsecast.results.measurement import MERGED
from sparsecast.system.files import Place, files_in, shown
from sparsecast.system.tabular import Table, Tabular, grouped
from sparsecast.system.texts import counted

if TYPE_CHECKING:
    import pyarrow


_MERGED_KEY = b"sparsecast_merged"

#: Columns of a merged file before those of the Record.
_NAMES: dict[str, type] = {"schema": int, "machine": str, "host": str, "matrix_name": str}
_NamesOfRow = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class MergedRecord:
    """A Record with the name of its machine, that of its node, None if unknown, and that of its matrix."""

    record: Record
    machine: str
    host: str | None
    matrix_name: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What two copies of one measurement share, and no two measurements; it orders a merged file."""
        record, host = self.record, self.host or ""
        candidate = json.dumps(record.candidate.to_dict(), sort_keys=True)
        rest = record.regime, str(record.kernel_version), record.samples_s
        return self.machine, record.matrix, record.measured_at, host, record.suite, candidate, *rest


@dataclass
class MergedRecords(Tabular):
    """Records of several files."""

    records: list[MergedRecord] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict)  # by name; those that some file describes
    files: int = 0  # that were read
    repeated: int = 0  # Records that several files have
    notes: list[str] = field(default_factory=list)  # what of the files does not count, and why
    path: Place = ""  # that was written

    @classmethod
    def of(cls, places: Iterable[Place]) -> MergedRecords:
        """Return the Records of files and of all files in folders, each once.

        An InputError says that nothing is there, or that it cannot be read, that one name stands for two
        machines, or that there are no Records; a ProfileError that a file is damaged.
        """
        merged, places = cls(), list(places)
        for place in places:
            for file in files_in(place, (".parquet", ".jsonl")):
                merged.files += 1
                if str(file).partition("?")[0].endswith(".parquet"):
                    merged._add_table(file, is_named=str(file) == str(place))
                else:
                    merged._add_journal(file)
        if not merged.records:
            why = f" ({'; '.join(merged.notes)})" if merged.notes else ""
            raise InputError(
                f"no records in {', '.join(map(shown, places))}{why}: expected profiles, journals or merged "
                f"files; name others"
            )
        by_key = {each.key: each for each in merged.records}
        merged.repeated = len(merged.records) - len(by_key)
        merged.records = [by_key[key] for key in sorted(by_key)]
        return merged

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each machine and host the number of matrices and of Records."""
        of_hosts = grouped(self.records, lambda merged: (merged.machine, merged.host))
        matrices = {host: {merged.record.matrix for merged in own} for host, own in of_hosts.items()}
        return [
            {"machine": machine, "host": host, "matrices": len(matrices[machine, host]), "records": len(own)}
            for (machine, host), own in of_hosts.items()
        ]

    def table(self) -> Table:
        """Return a row for each machine and host."""
        records, files = counted(len(self.records), "record"), counted(self.files, "file")
        below = f"{counted(self.repeated, 'record')} that several files have stand in it once"
        title = f"{records} of {files} in {shown(self.path)}"
        return Table(title, MERGED, self.rows, (below,) if self.repeated else ())

    def _add_table(self, file: Place, is_named: bool) -> None:
        expected = "a Parquet file that calibrate or merge wrote; name another, or move it away"
        table = read_table(file, "a file of records", expected)
        if _MERGED_KEY in (table.schema.metadata or {}):
            self._add_merged(file, table)
        elif Profile.is_stored(table):
            profile = Profile.of_table(table, file)
            self._add_machine(profile.machine, file)
            names = {key: entry.name for key, entry in profile.matrices.items()}
            self.records += [MergedRecord(r, profile.name, None, names[r.matrix]) for r in profile.records]
        elif is_named:
            raise ProfileError(f"{shown(file)} is Parquet without records: expected {expected}")
        else:
            self.files -= 1
            self.notes.append(f"{shown(file)} holds no records, and is left out")

    def _add_journal(self, file: Place) -> None:
        journal, name = read_journal(file), Path(str(file)).stem
        if journal.is_cut:
            count = counted(len(journal.records), "record")
            self.notes.append(
                f"{shown(file)} ends in the middle of a line: what stands before it counts ({count})"
            )
        if journal.left_out:
            without = counted(journal.left_out, "record")
            self.notes.append(f"{shown(file)}: {without} without the line of the matrix: left out")
        if journal.distributed:
            count = f"{len(journal.distributed):,}"
            self.notes.append(f"{shown(file)}: {count} products of many ranks are left out")
        if journal.machine is not None:
            name = journal.machine.name
            self._add_machine(journal.machine, file)
        names = {key: entry.name for key, entry in journal.matrices.items()}
        self.records += [MergedRecord(r, name, journal.host, names[r.matrix]) for r in journal.records]

    def _add_merged(self, file: Place, table: pyarrow.Table) -> None:
        try:
            described = json.loads(table.schema.metadata[_MERGED_KEY])
            machines = [Machine.from_dict(machine) for machine in described["machines"]]
            if described["schema"] != SCHEMA_VERSION:
                raise ValueError(f"schema {SCHEMA_VERSION}: it has {described['schema']}")
            for row in table.to_pylist():
                names = row["machine"], row["host"], row["matrix_name"]
                self.records.append(MergedRecord(Record.from_row(row), *msgspec.convert(names, _NamesOfRow)))
        except (KeyError, TypeError, ValueError, msgspec.DecodeError) as error:
            raise ProfileError(
                f"{shown(file)} lacks {error}: expected what merge wrote; merge again"
            ) from error
        for machine in machines:
            self._add_machine(machine, file)

    def _add_machine(self, machine: Machine, file: Place) -> None:
        known = self.machines.setdefault(machine.name, machine)
        # Nodes of one kind differ in memory, which a name does not stand for.
        described, other = (
            replace(each, memory_bytes=0, gpu=each.gpu and replace(each.gpu, memory_bytes=0))
            for each in (known, machine)
        )
        if described != other:
            raise InputError(
                f"{machine.name} in {shown(file)} is another machine than in the files before: expected one "
                f"machine of a name; give one of them another name, or merge them apart"
            )

    def write(self, place: Place) -> None:
        """Write a Parquet file with a row for each Record; a StorageError if it cannot be written."""
        rows = []
        for merged in self.records:
            names = {"machine": merged.machine, "host": merged.host, "matrix_name": merged.matrix_name}
            rows.append({"schema": SCHEMA_VERSION, **names, **merged.record.to_row()})
        machines = [machine.to_dict() for machine in self.machines.values()]
        described = json.dumps({"schema": SCHEMA_VERSION, "machines": machines})
        write_table(place, rows, _NAMES | ROW_KINDS, {_MERGED_KEY: described.encode()})
        self.path = place


#: Share of those that are said to differ that may not.
FALSE_SHARE = 0.05

#: The interval of a ratio is meant to hold it so often, and the drawings of matrices for that of a mean.
_HELD, _DRAWINGS = 0.95, 2000

#: Degrees of freedom of Student's distribution of a difference over its standard deviation: some products are
#: noisier than others, so that large differences are more frequent than among normal numbers.
_FREEDOM = 8

#: Standard deviation of normal numbers whose absolute values have the median 1.
_OF_MEDIAN = 1 / 0.6745

_Key = tuple[Any, ...]

#: The Records of a product in A or in B, and those of all products by what they are of.
_Side = list[MergedRecord]
_Products = dict[_Key, _Side]


def differences(A: MergedRecords, B: MergedRecords) -> Differences:
    """Return how the times of B differ from those of A, for each product that both have.

    A product differs if the ratio of its times does from 1 by more than measurements of the same do: by those
    that were repeated in A or B; without any, by what most products of A and B differ by, or, on two
    machines, by the earlier and later samples of each Record. All samples of its own tell when it is noisier.
    The share of wrong ones among those that differ is limited for all products together (Benjamini and
    Hochberg 1995). Where nothing tells the noise of a product, as of published times on two machines, it is
    None whether it differs. Trials of plans do not count.

    An InputError says that they have several machines, and none in common; or no product.
    """
    from scipy import stats

    is_across = _is_across(A, B)
    in_A, in_B = (by_product(merged.records, is_across) for merged in (A, B))
    paired, alone = _paired(in_A, in_B)
    if not paired:
        raise InputError("no product in both: expected some of the same matrix and format; compare others")
    deviation, repeats = _deviation([*in_A.values(), *in_B.values()])
    log_times = np.array([[_logs(side).mean() for side in pair] for pair in paired])
    logs = np.diff(log_times)[:, 0]
    if not repeats and not is_across:
        # Two runs of the same differ by more than the halves of one do: what most products differ by counts.
        deviation = max(deviation, float(np.median(np.abs(logs))) * _OF_MEDIAN / np.sqrt(2))
    errors = np.sqrt([sum(_variance(side, deviation) for side in pair) for pair in paired])
    p_values = 2 * stats.t.sf(np.abs(logs) / errors, _FREEDOM)
    is_known = ~np.isnan(p_values)
    p_values[is_known] = stats.false_discovery_control(p_values[is_known])
    reach = stats.t.isf((1 - _HELD) / 2, _FREEDOM) * errors
    numbers = np.column_stack([np.exp(log_times), np.exp(logs - reach), np.exp(logs + reach), p_values])
    values = numbers.astype(object)
    values[np.isnan(numbers)] = None
    rows = [
        Difference(
            b[0].matrix_name,
            b[0].record.matrix,
            b[0].machine,
            b[0].record.candidate,
            a[0].record.candidate.kernel,
            *(time_a_s, time_b_s, low, high, p_value),
            differs=None if p_value is None else p_value < FALSE_SHARE,
            samples_a=sum(len(merged.record.samples_s) for merged in a),
            samples_b=sum(len(merged.record.samples_s) for merged in b),
        )
        for (a, b), (time_a_s, time_b_s, low, high, p_value) in zip(paired, values.tolist(), strict=True)
    ]
    matrices = np.array([_content(row.specification) for row in rows])
    formats = np.array([row.candidate.format for row in rows])
    means = {
        name: _mean(matrices[formats == name], logs[formats == name]) for name in np.unique(formats).tolist()
    }
    rows.sort(key=lambda row: (not row.differs, -abs(np.log(row.ratio))))
    return Differences(rows, _mean(matrices, logs), means, deviation or None, repeats, *alone, is_across)


def _is_across(A: MergedRecords, B: MergedRecords) -> bool:
    """Tell whether one machine is compared with another one; else each is compared with itself."""
    in_A, in_B = ({merged.machine for merged in each.records} for each in (A, B))
    if in_A & in_B:
        return False
    if len(in_A) == len(in_B) == 1:
        return True
    raise InputError(
        f"records of {len(in_A)} and {len(in_B)} machines, none in both: expected machines in common, or one "
        f"on each side; name fewer files"
    )


def _content(specification: str) -> str:
    """Return a specification without the folder of a file, which differs between machines."""
    return re.sub(r"file:.*\?sha256=", "file:?sha256=", specification)


def by_product(records: Iterable[MergedRecord], is_across: bool) -> _Products:
    """Return the Records by what they are of: the matrix, the regime, the Candidate, its kernel last."""

    def key(merged: MergedRecord) -> _Key:
        record, candidate = merged.record, merged.record.candidate
        machine = None if is_across else merged.machine
        rest = dataclasses.replace(candidate, kernel="")
        return machine, _content(record.matrix), record.regime, rest, candidate.kernel

    return grouped((merged for merged in records if merged.record.suite != TRIED_SUITE), key)


def _paired(in_A: _Products, in_B: _Products) -> tuple[list[tuple[_Side, _Side]], tuple[int, int]]:
    """Return the Records of each product in both, and the numbers of products in one of them alone.

    Where each has one kernel that the other lacks, of two versions or machines, these are compared.
    """
    pairs = [(in_A[key], in_B[key]) for key in in_A if key in in_B]
    only_A, only_B = (  # by all but the kernel
        grouped((key for key in of if key not in other), lambda key: key[:-1])
        for of, other in ((in_A, in_B), (in_B, in_A))
    )
    both = ((keys, only_B.get(rest, [])) for rest, keys in only_A.items())
    changed = [(in_A[a[0]], in_B[b[0]]) for a, b in both if len(a) == len(b) == 1]
    return pairs + changed, (len(in_A) - len(pairs + changed), len(in_B) - len(pairs + changed))


def _logs(side: _Side) -> NDArray[Any]:
    return np.log([merged.record.time_s for merged in side])


def _deviation(products: Iterable[_Side]) -> tuple[float, int]:
    """Return the standard deviation of the logarithm of a measured time, and the repeats that tell it.

    Without repeats it is that of the halves of Records; 0 if they have none.
    """
    apart: list[float] = []
    noises = []
    for of_product in products:
        logs, count = _logs(of_product), len(of_product)
        noises += [merged.record.noise for merged in of_product if merged.record.noise is not None]
        if count > 1:
            apart += list(np.abs(logs - logs.mean()) * np.sqrt(count / (count - 1)))
    if apart:
        return float(np.median(apart)) * _OF_MEDIAN, len(apart)
    return (float(np.median(noises)) * _OF_MEDIAN / np.sqrt(2) if noises else 0.0), 0


def _variance(side: _Side, deviation: float) -> float:
    """Return that of the mean logarithm of the times: each Record has the greater of two deviations.

    One is given, the other is that of the low quantile of its samples, over the time (Woodruff 1952), where
    the samples of a turn count as one; a long product has less than a turn. NaN if a Record has neither.
    """
    variances = []
    for record in (merged.record for merged in side):
        own = 0.0
        if len(record.samples_s) > 1:
            turns = max(len(record.samples_s) / SAMPLES_A_TURN, 1.0)
            reach = np.sqrt(LOW_SHARE * (1 - LOW_SHARE) / turns)
            low, high = np.quantile(record.samples_s, np.clip([LOW_SHARE - reach, LOW_SHARE + reach], 0, 1))
            own = float(high - low) / 2 / record.time_s
        variances.append(max(deviation, own) ** 2)
    return sum(variances) / len(side) ** 2 if all(variances) else np.nan


def _mean(matrices: NDArray[Any], logs: NDArray[Any]) -> GeometricMean:
    """Return the geometric mean of ratios, with an interval from matrices drawn with replacement."""
    from scipy import stats

    _, of = np.unique(matrices, return_inverse=True)
    low = high = None
    if of.any():  # of two matrices or more
        drawn = stats.bootstrap(
            (np.bincount(of, weights=logs), np.bincount(of)),
            lambda sums, counts, axis: sums.sum(axis) / counts.sum(axis),
            paired=True,
            n_resamples=_DRAWINGS,
            confidence_level=_HELD,
            method="percentile",
            rng=0,
        )
        low, high = np.exp(drawn.confidence_interval).tolist()
    return GeometricMean(float(np.exp(np.mean(logs))), low, high, len(of))
