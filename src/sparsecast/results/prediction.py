"""The forecasts of one matrix in every format that suits it, and what of them was tried on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from sparsecast.devices.product_timer import Rounding
from sparsecast.features.structure import Structure
from sparsecast.models.transfer import Setting
from sparsecast.records import Candidate, Forecast
from sparsecast.results.columns import (
    BUILT,
    CANDIDATE,
    ENERGY,
    INTERVAL,
    ROUNDING,
    THREADS,
    TRANSFERRED_FROM,
    matrix_column,
    stored_as,
    thread_numbers,
    within,
)
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys, lines_of
from sparsecast.system.texts import conversion, counted, percent, size, time

#: Of a Trial.
TRIAL: Columns = (
    *within("candidate", CANDIDATE),
    *keys("forecast_s", "convert_s", "time_s", "other_s", "is_kept"),
)

#: Of Trials.
TRIALS: Columns = (
    *keys("used_s", "csr_ratio", "gain_s"),
    Column("tried", columns=TRIAL, about="beside plain CSR, in the order tried; time_s is null if not built"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a Candidate that was tried."""

    candidate: Candidate
    forecast_s: float  # of a product
    convert_s: float | None = None  # seconds to build it; None where it could not be built
    #: time_s, other_s: of a product, and of one in the way that was the best until then, in turn.
    time_s: float | None = None
    other_s: float | None = None
    is_kept: bool = False  # whether it was faster

    def sentence(self) -> str:
        name = stored_as(self.candidate)
        if self.time_s is None:
            return f"{name} could not be built."
        return (
            f"{name} took {time(self.time_s)} instead of {time(self.other_s)} (forecast "
            f"{time(self.forecast_s)}), {time(self.convert_s)} to convert: "
            f"{'kept' if self.is_kept else 'dropped'}."
        )


@dataclass(frozen=True, slots=True)
class Trials:
    """What was tried for a plan or a forecast."""

    used_s: float  # seconds that it took in all
    csr_ratio: float  # measured time of plain CSR over its forecast
    gain_s: float  # what a product in the best way takes less than one of plain CSR; 0 where that is the best
    tried: tuple[Trial, ...] = ()  # beside plain CSR, in the order tried
    #: `used_s` over the time in plain CSR of all products that the plan is for; None for stated seconds.
    share: float | None = None

    def sentence(self) -> str:
        """Return in words what was tried, what that took, and what it gained."""
        of_all = "" if self.share is None else f", {percent(self.share)} of all products in CSR"
        gained = f"saves {time(self.gain_s)} a product" if self.gain_s > 0 else "saves nothing"
        return " ".join(
            (
                f"A product of CSR took {self.csr_ratio:.2f} times its forecast, by which the others are "
                f"corrected.",
                *(trial.sentence() for trial in self.tried),
                f"Trials took {time(self.used_s)}{of_all}; the best way {gained} against plain CSR.",
            )
        )


#: Of a Forecast.
FORECAST: Columns = (
    *within("candidate", CANDIDATE),
    Column("time_s", "time"),
    Column("", "basis", lambda item: None if item.basis == "model" else item.basis),
    *INTERVAL,
    Column("bytes", "bytes"),
    Column("gflops", "GFLOP/s", text="{:.2f}".format),
    Column("convert_s", "to convert", text=conversion),
    *ENERGY,
    *(replace(column, heading="") for column in BUILT),
    Column("why", value=lambda item: dict(item.why), about="the terms of the model"),
    Column("basis", about='"model"; after trials "measured" or "corrected"'),
)


@dataclass(frozen=True, slots=True)
class Dense:
    """A product with the matrix stored dense: its bytes, and the time to read them at the measured bandwidth.

    No dense product was measured: none can take less for long.
    """

    bytes: int
    time_s: float


#: Times the fastest product from which on dense storage is not worth a sentence.
_FAR = 10.0


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
    trials : Trials or None
        None where nothing was measured for it.
    transferred_from : Setting or None
        Type of values and threads of the Records that it is forecast from, where they are others.
    rounding : Rounding or None
        Of lossy values, which some Candidates may have; None where none are asked for.
    dense : Dense or None
        None of several vectors, and where the profile has no bandwidths of the device.
    """

    forecasts: tuple[Forecast, ...]
    refused: dict[str, str]
    structure: Structure
    profile: str
    model: str
    predict_s: float
    notes: tuple[str, ...] = ()
    trials: Trials | None = None
    transferred_from: Setting | None = None
    rounding: Rounding | None = None
    dense: Dense | None = None

    @overload
    def __getitem__(self, index: int) -> Forecast: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Forecast, ...]: ...
    def __getitem__(self, index: int | slice) -> Forecast | tuple[Forecast, ...]:
        return self.forecasts[index]

    def __len__(self) -> int:
        return len(self.forecasts)

    def table(self, title: str = "") -> Table:
        """Return a row for each Forecast, fastest first, and below them what has none."""
        title = title or f"Forecast of y = A x on {self.profile} by {self.model}"
        times_s: dict[int, float] = {}
        for forecast in self.forecasts:  # the fastest first
            for threads in thread_numbers([forecast.candidate]):
                times_s.setdefault(threads, forecast.time_s)
        columns, below, dense = FORECAST, [*lines_of(self.refused)], self.dense
        if dense and self.forecasts and dense.time_s <= _FAR * self.forecasts[0].time_s:
            times = f"{dense.time_s / self.forecasts[0].time_s:.2g} times"
            below.append(
                f"Stored dense it has {size(dense.bytes)}, which take {time(dense.time_s)} to read: {times} "
                f"the time of {stored_as(self.forecasts[0].candidate)}; no dense product was measured."
            )
        if len(times_s) > 1:
            columns = (THREADS, *FORECAST)
            below.append(threads_sentence(next(iter(times_s)), times_s))
        return Table(title, columns, self.forecasts, tuple(below))


def threads_sentence(best: int, times_s: Mapping[int, float]) -> str:
    """Return which number of threads is best, and how long the fastest product takes with each other one."""
    others = [f"{time(s)} with {counted(n, 'thread')}" for n, s in sorted(times_s.items()) if n != best]
    verb = "is" if best == 1 else "are"
    begin = f"{counted(best, 'thread')} {verb} best: a product takes {time(times_s[best])}"
    if others:
        too_little = "; that gains too little" if min(times_s.values()) < times_s[best] else ""
        return f"{begin}, {', '.join(others)}{too_little}."
    return f"{begin}; no other number was calibrated."


#: Of a Prediction, beside its matrix.
PREDICTION: Columns = (
    *keys("profile", "model", "predict_s"),
    Column("forecasts", columns=FORECAST),
    Column("refused", about="{format: reason}"),
    Column("notes"),
    Column("trials", columns=TRIALS, about="null where nothing was measured for it"),
    ROUNDING,
    TRANSFERRED_FROM,
    Column(
        "dense",
        columns=keys("bytes", "time_s"),
        about="stored dense, read at the measured bandwidth, or null",
    ),
)


#: Of a Forecast in a table of matrices.
TABLE_ROW: Columns = (
    Column("matrix", "matrix", about="GROUP/MATRIX, in the order of the table"),
    *within("forecast.candidate", CANDIDATE[:3]),
    *within("forecast", (Column("time_s", "time"), *INTERVAL)),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "predict": (matrix_column("name", "prediction.structure"), *within("prediction", PREDICTION)),
    "predict TABLE.csv": (
        *within("first", keys("profile", "model")),
        Column("rows", columns=TABLE_ROW),
        Column("refused", about="{matrix: reason}"),
        Column("notes"),
        *within("first", (TRANSFERRED_FROM,)),
    ),
}
