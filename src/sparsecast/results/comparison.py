"""A matrix on several machines."""

from __future__ import annotations

from dataclasses import dataclass


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
