"""The forecasts of one matrix in every format that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from sparsecast.features.structure import Structure
from sparsecast.models.transfer import Setting
from sparsecast.records import Forecast
from sparsecast.system.tabular import Tabular


@dataclass(frozen=True, slots=True)
class Probe:
    """What was measured of a matrix to correct its forecasts.

    Attributes
    ----------
    used_s : float
        Seconds that it took, without compiling.
    csr_ratio : float
        Measured time of CSR over its forecast.
    measured : tuple of str
        The formats that were measured, fastest first.
    """

    used_s: float
    csr_ratio: float
    measured: tuple[str, ...]

    def sentence(self) -> str:
        """Return in words which times are measured, and how the others are corrected."""
        return (
            f"{', '.join(name.upper() for name in self.measured)} measured; a product of CSR took "
            f"{self.csr_ratio:.2f} times its forecast, and the forecasts of the other formats are corrected "
            f"by that."
        )


@dataclass(frozen=True)
class Prediction(Tabular, Sequence[Forecast]):
    """The Forecasts of a matrix, fastest first; a sequence of them.

    Attributes
    ----------
    refused : dict of str to str
        Formats that do not suit the matrix, and why.
    structure : Structure
        What was forecast from.
    profile, model : str
        Their names.
    predict_s : float
        Seconds that the forecast took, the Structure included.
    notes : tuple of str
        Sentences on how far to trust it: a disturbed calibration, a machine that has changed since.
    probe : Probe or None
        None where nothing was measured for it.
    transferred_from : Setting or None
        Type of values and threads of the Records that it is forecast from, where they are others.
    """

    forecasts: tuple[Forecast, ...]
    refused: dict[str, str]
    structure: Structure
    profile: str
    model: str
    predict_s: float
    notes: tuple[str, ...] = ()
    probe: Probe | None = None
    transferred_from: Setting | None = None

    @overload
    def __getitem__(self, index: int) -> Forecast: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Forecast, ...]: ...
    def __getitem__(self, index: int | slice) -> Forecast | tuple[Forecast, ...]:
        return self.forecasts[index]

    def __len__(self) -> int:
        return len(self.forecasts)

    def table_rows(self) -> list[dict[str, Any]]:
        """Return a row for each Forecast, fastest first."""
        return [
            {
                "format": each.candidate.format,
                "kernel": each.candidate.kernel,
                "time_s": each.time_s,
                "low_s": each.low_s,
                "high_s": each.high_s,
                "gflops": each.gflops,
                "bytes": each.bytes,
                "convert_s": each.convert_s,
                "energy_j": each.energy_j,
                "basis": each.basis,
            }
            for each in self
        ]

    def table_caption(self) -> str:
        """Return where and by what the product was forecast."""
        return f"Forecast of y = A x on {self.profile} by {self.model}"
