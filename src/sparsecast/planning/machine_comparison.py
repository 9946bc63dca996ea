"""The same products on several machines: time, energy and price, with what cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparsecast.errors import InputError, remedy_for
from sparsecast.planning.prediction import Prediction

_SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class ComparedMachine:
    """A matrix on one machine, in the format that is forecast to be the fastest there.

    Attributes
    ----------
    matrix, machine, format, kernel : str
    products : int
    time_s, low_s, high_s : float; float or None
        Of all products, without building the format.
    energy_j : float or None
        Of all products; None where none was ever measured.
    price : float or None
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


def compared(
    matrix: str, predictions: Mapping[str, Prediction], products: int, prices: Mapping[str, float]
) -> list[ComparedMachine]:
    """Return a row for each machine, the fastest first.

    Parameters
    ----------
    matrix : str
    predictions : mapping of str to Prediction
        Of the matrix, by machine; each with a forecast.
    products : int
    prices : mapping of str to float
        Of an hour, by machine.
    """
    rows = []
    for machine, prediction in predictions.items():
        best = prediction[0]
        total_s = products * best.time_s
        price = prices[machine] * total_s / _SECONDS_AN_HOUR if machine in prices else None
        rows.append(
            ComparedMachine(
                matrix,
                machine,
                best.candidate.format,
                best.candidate.kernel,
                products,
                total_s,
                None if best.low_s is None else products * best.low_s,
                None if best.high_s is None else products * best.high_s,
                None if best.energy_j is None else products * best.energy_j,
                price,
                notes=prediction.notes,
            )
        )
    return _with_ties(sorted(rows, key=lambda row: row.time_s))


def _with_ties(rows: Sequence[ComparedMachine]) -> list[ComparedMachine]:
    """Mark those that may be as fast as the first one; nobody knows where there are no intervals."""
    first, *others = rows
    high_s = first.high_s
    if high_s is None:
        return list(rows)
    ties = (replace(row, is_tie=row.low_s is not None and row.low_s <= high_s) for row in others)
    return [first, *ties]


def prices_of(texts: Sequence[str], machines: Sequence[str]) -> dict[str, float]:
    """Return prices of an hour from texts such as ``A=2.10`` or ``A=2.10/h``.

    Raises
    ------
    InputError
        If a text is something else, or names a machine that is not compared.
    """
    found = {}
    for text in texts:
        machine, _, number = text.rpartition("=")
        try:
            price = float(number.removesuffix("/h"))
        except ValueError:
            price = math.nan
        if not 0 <= price < math.inf:
            raise InputError(f"price '{text}': expected MACHINE=NUMBER/h with a number from 0 on; give one")
        if machine not in machines:
            raise InputError(
                f"price '{text}': expected one of the machines that are compared, {', '.join(machines)}; "
                f"{remedy_for(machine, machines, 'name one of them')}"
            )
        found[machine] = price
    return found
