"""Files of trained networks that forecast one product in CSR on one thread: one reader for each ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.system.registry import Registry


@dataclass(frozen=True, slots=True)
class ProductForecast:
    """What a file forecasts of one product: seconds, joules, or both in two files."""

    time_s: float | None
    energy_j: float | None
    note: str  # a sentence on the file, with what of it is modelled


#: Readers by the ending of a file, without its dot.
PRODUCT_FILES: Registry[Callable[[Problem, Profile, Path], ProductForecast]] = Registry(
    "kind of network", "sparsecast.models.product_files"
)


def product_forecast(problem: Problem, profile: Profile, path: Path) -> ProductForecast:
    """Return what a file forecasts of the product of a matrix.

    An InputError says that no reader knows the ending, or that the file is damaged, of another machine, or of
    what is neither the time nor the energy of a product.
    """
    return PRODUCT_FILES.get(path.suffix.removeprefix(".") or path.name)(problem, profile, path)
