"""Measurements of a matrix on one machine, beside their forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecast.devices.rounding import Rounding
from sparsecast.features.structure import Structure
from sparsecast.measuring.energy import MODELLED
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.columns import CANDIDATE, MATRIX, ROUNDING, THREADS, matrix_document, within
from sparsecast.system.tabular import Column, Columns, Table, keys, lines_of
from sparsecast.system.texts import energy, interval, percent, signed_percent, time


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
        if len({record.candidate.threads for record in self.records}) > 1:
            columns = (*within("record", (THREADS,)), *columns)
        return Table(f"Measured: {self.name}", columns, self.rows, lines_of(self.refused))


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
    Column(
        "",
        "interval",
        lambda row: (row["forecast"].low_s, row["forecast"].high_s) if row["forecast"] else None,
        lambda ends: interval(*ends),
    ),
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

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "measure": (
        Column("matrix", value=lambda done: matrix_document(done.name, done.structure), columns=MATRIX),
        Column("measurements", value="rows", columns=MEASUREMENT),
        Column("refused", about="{format: reason}"),
        ROUNDING,
    ),
}
