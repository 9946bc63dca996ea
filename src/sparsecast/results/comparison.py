"""A matrix on several machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsecast.results.columns import ENERGY, INTERVAL
from sparsecast.system.tabular import Column, Columns, Table, keys


@dataclass(frozen=True, slots=True)
class ComparedMachine:
    """A matrix on one machine, in the format that is forecast to be the fastest there.

    Attributes
    ----------
    matrix, machine, format, kernel : str
    products : int
    time_s, low_s, high_s : float; float or None
        Of all products, without building the format.
    energy_j, energy_low_j, energy_high_j : float or None
        Of all products; None where none was ever measured.
    price, price_low, price_high : float or None
        Of all products; None where no price was given.
    is_tie : bool
        Whether its interval overlaps with that of the fastest machine, so that either may be faster.
    notes : tuple of str
    """

    matrix: str
    machine: str
    format: str
    kernel: str
    products: int
    time_s: float
    low_s: float | None
    high_s: float | None
    energy_j: float | None
    price: float | None
    is_tie: bool = False
    notes: tuple[str, ...] = ()
    energy_low_j: float | None = None
    energy_high_j: float | None = None
    price_low: float | None = None
    price_high: float | None = None


#: Of a ComparedMachine.
COMPARED: Columns = (
    *keys("matrix"),
    Column("machine", "machine"),
    Column("format", "format", text=str.upper),
    *keys("kernel", "products"),
    Column("time_s", "time", about="of all products, without conversions"),
    *INTERVAL,
    *ENERGY,
    Column("price", "price"),
    *keys("price_low", "price_high"),
    Column("tie", value="is_tie", about="the interval overlaps with that of the fastest"),
    Column("notes"),
)


@dataclass(frozen=True)
class Comparison:
    """Matrices on machines, the fastest first for each; why a machine has no row, by matrix and machine."""

    rows: Sequence[ComparedMachine]
    refused: Mapping[str, Mapping[str, str]]

    def table(self, title: str) -> Table:
        """Return a row for each machine of each matrix."""
        fastest = {row.matrix: row for row in reversed(self.rows)}

        def ratio(row: ComparedMachine) -> tuple[float, bool]:
            return row.time_s / fastest[row.matrix].time_s, row.is_tie

        matrix = Column("", "matrix", lambda row: row.matrix if row is fastest[row.matrix] else "")
        columns = (matrix, *COMPARED, Column("", "over the fastest", ratio, _ratio_text))
        ties = "tie: the intervals overlap with that of the fastest, so either may be faster"
        missing = [
            f"{name} on {machine}: {why}"
            for name, machines in self.refused.items()
            for machine, why in machines.items()
        ]
        below = ([ties] if any(row.is_tie for row in self.rows) else []) + notes_of(self.rows) + missing
        return Table(title, columns, self.rows, tuple(below))


def _ratio_text(ratio: tuple[float, bool]) -> str:
    return f"{ratio[0]:.2f} x{' (tie)' if ratio[1] else ''}"


def notes_of(rows: Sequence[ComparedMachine]) -> list[str]:
    """Return the notes on forecasts, each once, after the machines that it is of."""
    machines: dict[str, dict[str, None]] = {}
    for row in rows:
        for note in row.notes:
            machines.setdefault(note, {})[row.machine] = None
    return [f"{', '.join(names)}: {note}" for note, names in machines.items()]


#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "compare": (
        Column("rows", columns=COMPARED, about="the fastest first for each matrix"),
        Column("refused", about="{matrix: {machine: reason}}"),
    ),
}
