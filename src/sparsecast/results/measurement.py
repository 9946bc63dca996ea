"""Measurements of a matrix on one machine, beside their forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sparsecast.devices.product_timer import Rounding
from sparsecast.features.structure import Structure
from sparsecast.formats.libraries import library_called
from sparsecast.measuring.energy import MODELLED
from sparsecast.measuring.timing import Speedup
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.columns import (
    CANDIDATE,
    INTERVAL,
    ROUNDING,
    THREADS,
    matrix_column,
    stored_as,
    thread_numbers,
    within,
)
from sparsecast.system.files import shown
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys, lines_of
from sparsecast.system.texts import counted, energy, percent, signed_percent, time


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fastest Record of a matrix, another one that was sampled in turn with it, and how they compare."""

    fastest: Record
    other: Record
    speedup: Speedup

    def sentence(self) -> str:
        """Return the speed of the fastest beside the other."""
        one, other = (_called(record.candidate) for record in (self.fastest, self.other))
        return f"{one} is {self.speedup} as {other}."


@dataclass(frozen=True)
class Measurements:
    """The Records of a matrix, the Forecasts of the same Candidates, and what was refused."""

    name: str
    structure: Structure
    records: Sequence[Record]
    forecasts: Mapping[Candidate, Forecast]
    refused: Mapping[str, str]
    rounding: Rounding | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each Record with its Forecast."""
        return [
            {"record": record, "forecast": self.forecasts.get(record.candidate)} for record in self.records
        ]

    def table(self) -> Table:
        """Return a row for each Record, with its frequency where one was measured at several."""
        is_repeated = len({record.candidate for record in self.records}) < len(self.records)
        columns = (*MEASUREMENT, _FREQUENCY) if is_repeated else MEASUREMENT
        if len(thread_numbers(record.candidate for record in self.records)) > 1:
            columns = (*within("record", (THREADS,)), *columns)
        return Table(f"Measured: {self.name}", columns, self.rows, lines_of(self.refused))

    @property
    def comparison(self) -> Comparison | None:
        """The fastest Record beside SciPy's where that was measured, else plain CSR's, else the next one."""
        ordered = sorted(self.records, key=lambda record: record.time_s)
        others = []
        for record in ordered[1:]:  # those whose samples were taken in turn: of one frequency
            both = record, ordered[0]
            frequencies = {each.conditions and each.conditions.frequency_hz for each in both}
            if len(frequencies) == 1 and len(thread_numbers(each.candidate for each in both)) < 2:
                others.append(record)
        if not others:
            return None
        references = (each for name in ("SciPy", "CSR") for each in others if _called(each.candidate) == name)
        other = next(references, others[0])
        return Comparison(ordered[0], other, Speedup.of(ordered[0], other))

    def accuracy(self) -> str:
        """Return how far the Forecasts are off what was measured; empty without Forecasts."""
        found = [row for row in self.rows if row["forecast"]]
        errors = [abs(error) for error in map(_error, self.rows) if error is not None]
        if not errors:
            return ""
        ends = [(row["forecast"].low_s, row["record"].time_s, row["forecast"].high_s) for row in found]
        held = [low_s <= time_s <= high_s for low_s, time_s, high_s in ends if low_s is not None]
        lies = f"; {sum(held)} of {counted(len(held), 'measured time')} in the interval" if held else ""
        of = f" in the median of {len(found)}, by {percent(max(errors))} at most" if len(found) > 1 else ""
        return f"Forecasts are off by {percent(median(errors))}{of}{lies}."


def _called(candidate: Candidate) -> str:
    library = library_called(candidate.format)
    return library.title if library else stored_as(candidate)


@dataclass
class MeasuredCollection(Tabular):
    """The Records of a collection."""

    machine: str
    #: ``"matrix"``, the name, ``"record"``, and ``"forecast"``, which is None.
    rows: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # matrices that could not be measured, and why
    taken_over: int = 0  # matrices of which nothing was measured, because all of it was taken over
    interrupted: bool = False  # by the user; what was done until then is here

    def table(self) -> Table:
        """Return a row for each Record."""
        matrices = counted(len({row["matrix"] for row in self.rows}), "matrix", "matrices")
        title = f"Measured on {self.machine}: {counted(len(self.rows), 'record')} of {matrices}"
        return Table(title, COLLECTION, self.rows, lines_of(self.refused), most=60)


@dataclass(frozen=True)
class Pending(Tabular):
    """The matrices that a run would measure, each with the number of its Records or labels that are kept."""

    shard: str | None
    rows: Sequence[Mapping[str, Any]]
    refused: Mapping[str, str]

    def table(self) -> Table:
        """Return a row for each matrix."""
        part = f" in shard {self.shard}" if self.shard else ""
        title = f"{counted(len(self.rows), 'matrix', 'matrices')}{part}; nothing is measured"
        return Table(title, PENDING, self.rows, lines_of(self.refused))


def _error(row: Mapping[str, Any]) -> float | None:
    return row["forecast"].time_s / row["record"].time_s - 1 if row["forecast"] else None


def _energy(record: Record) -> str | None:
    if record.energy_j is None:
        return None
    return energy(record.energy_j, record.energy_source if record.energy_source == MODELLED else None)


_FREQUENCY = Column("", "frequency", "record.conditions.frequency_hz", lambda hz: f"{hz / 1e9:.2f} GHz")

#: Of a Record with its Forecast.
MEASUREMENT: Columns = (
    *within("record.candidate", CANDIDATE),
    Column("time_s", "measured", "record.time_s"),
    Column("spread", value="record.spread"),
    Column("noise", "noise", "record.noise", percent),
    Column("gflops", "GFLOP/s", "record.gflops", "{:.2f}".format),
    Column("forecast_s", "forecast", "forecast.time_s"),
    Column("forecast_low_s", value="forecast.low_s"),
    Column("forecast_high_s", value="forecast.high_s"),
    *within("forecast", INTERVAL[-1:]),
    Column("", "error", _error, signed_percent),
    Column(
        "convert_s",
        "converted",
        "record.convert_s",
        lambda seconds: "nothing" if seconds == 0 else time(seconds),
    ),
    Column("energy_j", value="record.energy_j"),
    Column("", "energy", lambda row: _energy(row["record"])),
    Column("energy_source", value="record.energy_source"),
    Column("error", value="record.error", about="relative, against the reference result"),
    *within("record.conditions", keys("idle_w", "frequency_hz")),
    Column("bytes", value="record.traffic_bytes"),
    Column("samples_s", value="record.samples_s"),
)

#: Of a Comparison.
COMPARISON: Columns = (
    Column("format", value="fastest.candidate.format"),
    Column("other", value="other.candidate.format", about="scipy where it was measured, or csr, or the next"),
    Column("speedup", value="speedup.factor"),
    Column("speedup_deviation", value="speedup.deviation", about="of `speedup`, as samples in turn tell it"),
)

#: Of a Record of a collection.
COLLECTION: Columns = (Column("matrix", "matrix"), *MEASUREMENT)

#: Of a matrix that is to be measured.
PENDING: Columns = (
    Column("matrix", "matrix"),
    Column("kept", "kept", about="its Records, or labels, that are there already"),
)

#: Of the Records of a host in a merged file.
MERGED: Columns = tuple(Column(name, name) for name in ("machine", "host", "matrices", "records"))

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "measure": (
        matrix_column("name", "structure"),
        Column("measurements", value="rows", columns=MEASUREMENT),
        Column("refused", about="{format: reason}"),
        ROUNDING,
        Column("comparison", columns=COMPARISON, about="of the fastest; null of one record"),
    ),
    "measure FOLDER": (
        Column("machine"),
        Column("measurements", value="rows", columns=COLLECTION),
        Column("refused", about="{matrix: reason}"),
        *keys("interrupted", "taken_over"),
    ),
    "measure --dry-run": (
        Column("shard", about="null without one"),
        Column("matrices", value="rows", columns=PENDING),
        Column("refused", about="{matrix: reason}"),
    ),
    "merge": (
        Column("path", value=lambda merged: shown(merged.path)),
        Column("hosts", value="rows", columns=MERGED, about="host is null where a file does not name it"),
        Column("records", value=lambda merged: len(merged.records)),
        *keys("files", "repeated", "notes"),
    ),
}
