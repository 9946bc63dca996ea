"""What a session is about: the setting of its products, and what its forecasts rest on."""

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


class SettingOptions(TypedDict, total=False):
    """The fields of Setting, as keyword arguments."""

    threads: Threads
    dtype: str | None
    device: str | None
    vectors: int
    values: str | None
    library: str | None


class SessionOptions(SettingOptions, total=False):
    """The fields of Setting and Trust, as keyword arguments."""

    model: str | None
    drift_correction: bool
    as_printed: bool
    power_model: PowerFile | None
    energy_model: str | None
    anyway: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """The products of a session, whatever the matrix.

    Attributes
    ----------
    threads : int or str, optional
        All of the machine's by default; none are named for a GPU. ``"auto"`` compares each number that the
        profile has Records of.
    dtype : str, optional
        One of DTYPES; the matrix' own by default (whole numbers count as float64), float64 for a Structure.
        A real matrix may be asked for as complex, though not on a GPU.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default the GPU of the profile if it is one's, else the CPU.
        A forecast needs neither the GPU nor a library for it.
    vectors : int
        Columns of X in Y = A X, which count as one product; several on a processor alone. Several are
        forecast from one, times a factor for each format; a note tells where the profile has too few Records
        of several.
    values : str, optional
        ``"float32"``: values of double precision may be stored so, with rounding where float32 does not hold
        them (`rounding` of a result says how much is lost); sums stay double. The matrix is needed, and a
        processor.
    library : str, optional
        Other libraries that are candidates, too: ``"any"`` that is installed, or names such as
        ``"mkl,scipy"``. Forecasts of them rest on a calibration with `library`.
    """

    threads: Threads = None
    dtype: str | None = None
    device: str | None = None
    vectors: int = 1
    values: str | None = None
    library: str | None = None

    def target(self, A: Problem | Structure, machine: Machine, *, is_here: bool = True) -> Target:
        """Return what all candidates share; `is_here` tells whether products are done on this machine."""
        target = Target.of(A, machine, number_of(self.threads), self.dtype)
        libraries = chosen_libraries(self.library, target.device, is_here=is_here)
        return replace(target, vectors=self.vectors, values=self.values, libraries=libraries)


@dataclass(frozen=True, slots=True)
class Trust:
    """What the forecasts of a session rest on.

    Attributes
    ----------
    model : str, optional
        Name of the model that forecasts time; DEFAULT_MODEL without one.
    drift_correction : bool
        Whether, on the machine of the profile, reference products are timed again, for some tenths of a
        second, and forecasts are scaled by what has changed beyond their noise. Without it they are for the
        machine as it was calibrated.
    as_printed : bool
        Whether the model is fitted as its paper prints it, and plans are made as that paper does.
    power_model : PowerFile, optional
        What tells energy in place of the profile's Records.
    energy_model : str, optional
        Name of the model that learns energy from these; without one the default, where enough have joules.
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
        """The name of the model of time; an UnknownNameError or InputError refuses others."""
        return model_for("time", self.model)


def split_options(kind: type, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options that a TypedDict has, and the others."""
    own = {name: value for name, value in options.items() if name in kind.__annotations__}
    return own, {name: value for name, value in options.items() if name not in own}
