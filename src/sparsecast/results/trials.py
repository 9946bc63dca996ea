"""What was tried of a matrix on this machine: Candidates that were built and timed to choose among them."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecast.records import Candidate
from sparsecast.results.columns import CANDIDATE, stored_as, within
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import percent, time

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
