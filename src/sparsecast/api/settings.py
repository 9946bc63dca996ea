"""Options of a session: the setting of its products, and the basis of its forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from sparsecast.devices import Threads, number_of
from sparsecast.devices.target import Target
from sparsecast.features.structure import Structure
from sparsecast.formats.libraries import chosen_libraries
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.models import model_for
from sparsecast.models.power import PowerFile


class SessionOptions(TypedDict, total=False):
    """The fields of Setting and Trust, as keyword arguments."""

    threads: Threads
    dtype: str | None
    device: str | None
    vectors: int
    values: str | None
    library: str | None
    model: str | None
    drift_correction: bool
    as_printed: bool
    power_model: PowerFile | None
    energy_model: str | None
    anyway: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of the products of a session, for all matrices.

    Attributes
    ----------
    threads : int or str, optional
        Number of threads; by default all of the machine. Not for a GPU. ``"auto"`` compares the numbers that
        the profile has Records of.
    dtype : str, optional
        One of DTYPES; by default that of the matrix (integers count as float64), float64 for a Structure. A
        complex type for a real matrix is possible, but not on a GPU.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default the GPU if the profile is that of a GPU, else the
        CPU. A forecast needs neither the GPU nor its library.
    vectors : int
        Columns of X in Y = A X, which count as one product; several only on a processor. The forecast for
        several vectors is that for one, times a factor for each format. A note reports if the profile has too
        few Records of several vectors.
    values : str, optional
        ``"float32"``: double-precision values may be stored in float32, with rounding if float32 cannot
        represent them (`rounding` of a result is the loss); sums stay double. Needs the matrix, and a
        processor.
    library : str, optional
        Other libraries as additional candidates: ``"any"`` for all installed ones, or names such as
        ``"mkl,scipy"``. Their forecasts need a calibration with `library`.
    """

    threads: Threads = None
    dtype: str | None = None
    device: str | None = None
    vectors: int = 1
    values: str | None = None
    library: str | None = None

    def target(self, A: Problem | Structure, machine: Machine, *, is_here: bool = True) -> Target:
        """Return what all candidates share; `is_here` is whether products are done on this machine."""
        target = Target.of(A, machine, number_of(self.threads), self.dtype)
        libraries = chosen_libraries(self.library, target.device, is_here=is_here)
        return replace(target, vectors=self.vectors, values=self.values, libraries=libraries)


@dataclass(frozen=True, slots=True)
class Trust:
    """Basis of the forecasts of a session.

    Attributes
    ----------
    model : str, optional
        Name of the model that forecasts time; DEFAULT_MODEL by default.
    drift_correction : bool
        Whether, on the machine of the profile, reference products are timed again, for some tenths of a
        second, and forecasts are scaled by changes beyond their noise. Without it, forecasts are for the
        speed of the machine at its calibration.
    as_printed : bool
        Whether the model is fitted, and plans are made, as printed in the model's paper.
    power_model : PowerFile, optional
        Power model that gives the energy in place of the profile's Records.
    energy_model : str, optional
        Name of the model that learns energy from Records; by default the default model, if enough Records
        have joules.
    anyway : bool
        Whether to forecast, with a warning, from a calibration that was disturbed too much.
    """

    model: str | None = None
    drift_correction: bool = True
    as_printed: bool = False
    power_model: PowerFile | None = None
    energy_model: str | None = None
    anyway: bool = False

    @property
    def time_model(self) -> str:
        """Name of the model of time; raises UnknownNameError or InputError for other names."""
        return model_for("time", self.model)


def split_options(kind: type, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options that a TypedDict or a dataclass has, and the others."""
    own = {name: value for name, value in options.items() if name in kind.__annotations__}
    return own, {name: value for name, value in options.items() if name not in own}


def refuse_unknown(kind: type, options: Mapping[str, Any]) -> None:
    """Raise a TypeError for a keyword that a TypedDict of options does not have."""
    for name in options.keys() - kind.__annotations__.keys():
        known = ", ".join(kind.__annotations__)
        raise TypeError(f"unexpected keyword argument '{name}': expected some of {known}; correct it")


def setting_and_trust(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of Setting and those of Trust; a TypeError refuses what is of neither."""
    refuse_unknown(SessionOptions, options)
    return split_options(Setting, options)
