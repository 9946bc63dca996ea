"""What a user may do next, each with the forecast of a product afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecast.records import Forecast
from sparsecast.results.columns import stored_as, within
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import counted, interval, time

#: Of a NextStep.
NEXT_STEP: Columns = (
    Column("kind"),
    *within("forecast.candidate", keys("format", "vectors")),
    *keys("products", "time_s", "low_s", "high_s"),
    Column("now_s", value="now.time_s"),
    Column("gain"),
)

STEPS_ABOUT = "what would be faster and is left to you, at most three; empty without a calibration"


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something that only the user can decide, and what a product would take then."""

    #: ``"format"``: another one than plain CSR, which other programs have. ``"products"``: more of them pay
    #: for another format. ``"vectors"``: several at once. ``"values"``: these rounded to float32.
    #: ``"indices"``: these in 32 bits, not in 64.
    kind: str
    forecast: Forecast  # of the fastest product after this step; with several vectors, of all
    now: Forecast  # of a product with one vector without it
    #: From which on it pays for its conversion against plain CSR; None where that is not the question.
    products: int | None = None

    @property
    def vectors(self) -> int:
        return self.forecast.candidate.vectors

    @property
    def time_s(self) -> float:
        """Forecast seconds of a product with one vector."""
        return self.forecast.time_s / self.vectors

    @property
    def low_s(self) -> float | None:
        return None if self.forecast.low_s is None else self.forecast.low_s / self.vectors

    @property
    def high_s(self) -> float | None:
        return None if self.forecast.high_s is None else self.forecast.high_s / self.vectors

    @property
    def gain(self) -> float:
        """How many times as fast a product is."""
        return self.now.time_s / self.time_s

    def sentence(self) -> str:
        span = interval(self.low_s, self.high_s)
        took = f"{time(self.time_s)} (interval {span}), {self.gain:.2f} times as fast"
        storage = stored_as(self.forecast.candidate)
        if self.kind == "format":
            return f"Stored as {storage}, a product would take {took} as in plain CSR: sparsecast.compile."
        if self.kind == "products":
            return f"From {counted(self.products or 1, 'product')} on {storage} would pay: {took}."
        if self.kind == "vectors":
            return f"{self.vectors} vectors at once would take {took} each: --vectors {self.vectors}."
        if self.kind == "values":
            return f"Values rounded to float32 would take {took}: --values float32."
        return f"Indices are 64 bits wide and need 32: a product would take {took}."
