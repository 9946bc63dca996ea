"""The same products on several machines: time, energy and price, with what cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparsecast.errors import InputError, remedy_for
from sparsecast.results.comparison import ComparedMachine
from sparsecast.results.prediction import Prediction

_SECONDS_AN_HOUR = 3600


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
        low_s, high_s = _times(products, best.low_s), _times(products, best.high_s)
        a_second = prices[machine] / _SECONDS_AN_HOUR if machine in prices else None
        rows.append(
            ComparedMachine(
                matrix,
                machine,
                best.candidate.format,
                best.candidate.kernel,
                products,
                products * best.time_s,
                low_s,
                high_s,
                _times(products, best.energy_j),
                _times(a_second, products * best.time_s),
                notes=prediction.notes,
                energy_low_j=_times(products, best.energy_low_j),
                energy_high_j=_times(products, best.energy_high_j),
                price_low=_times(a_second, low_s),
                price_high=_times(a_second, high_s),
            )
        )
    return _with_ties(sorted(rows, key=lambda row: row.time_s))


def _times(factor: float | None, value: float | None) -> float | None:
    return None if factor is None or value is None else factor * value


def without_common_format(predictions: Mapping[str, Prediction]) -> str | None:
    """Return why machines cannot be compared: no format has a forecast on all; None where one has."""
    formats = {
        machine: sorted({each.candidate.format.upper() for each in found})
        for machine, found in predictions.items()
    }
    if set.intersection(*map(set, formats.values())):
        return None
    listed = "; ".join(f"{machine} has {', '.join(names)}" for machine, names in formats.items())
    return f"no format in common ({listed}): expected one that all machines have; compare fewer"


def _with_ties(rows: Sequence[ComparedMachine]) -> list[ComparedMachine]:
    """Mark those that may be as fast as the first one; unknown where there are no intervals."""
    first, *others = rows
    high_s = first.high_s
    if high_s is None:
        return list(rows)
    ties = (replace(row, is_tie=row.low_s is not None and row.low_s <= high_s) for row in others)
    return [first, *ties]


def prices_of(texts: Sequence[str], machines: Sequence[str]) -> dict[str, float]:
    """Return prices of an hour from texts such as ``A=2.10/h``.

    Raises
    ------
    InputError
        If a text is something else, has no unit, or names a machine that is not compared.
    """
    found = {}
    for text in texts:
        machine, _, number = text.rpartition("=")
        try:
            price = float(number.removesuffix("/h")) if number.endswith("/h") else math.nan
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
