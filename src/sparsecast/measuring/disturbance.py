"""Disturbance: whether other work slowed a measurement, and by how much at most.

The figures are from `python benchmarks/run.py busy-calibrations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparsecast.measuring.timing import Timing
from sparsecast.records import Conditions

#: Limits of a quiet machine: mean number of other processes, share of stolen time, and share of products
#: that were never measured with a core for each thread.
QUIET_OTHERS, QUIET_STOLEN, QUIET_WAITED = 0.25, 0.02, 0.1

#: Error of nine tenths of the times, at most, beside other processes: samples that these disturbed do not
#: count.
_BESIDE = 0.25

#: Least error that makes times useless for a forecast, and share of products that were never measured with a
#: core for each thread: models cannot do without the most.
UNUSABLE, MOST_WAITED = 1.0, 0.5

CALIBRATE_AGAIN = "calibrate again while the machine is idle, or for fewer threads"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Disturbance of a measurement."""

    #: other_processes, stolen_share: as in Conditions; 0.0 if the system does not report them.
    other_processes: float
    stolen_share: float
    too_long: float  # greatest relative error of times due to other work
    waited_share: float = 0.0  # share of the products that were never measured with a core for each thread

    @property
    def is_unusable(self) -> bool:
        return self.too_long >= UNUSABLE or self.waited_share > MOST_WAITED

    def sentence(self) -> str:
        """Return a sentence on the disturbance, with the remedy if the measurement is useless."""
        if not self.is_unusable:
            return f"{self}."
        return f"{self}. {CALIBRATE_AGAIN.capitalize()}: these times are no basis for a forecast."

    def __str__(self) -> str:
        causes = []
        if self.other_processes > QUIET_OTHERS:
            causes.append(f"{self.other_processes:.1f} other processes ran")
        if self.stolen_share > QUIET_STOLEN:
            causes.append(f"{self.stolen_share:.0%} of the processors' time went to other machines")
        if self.waited_share > QUIET_WAITED:
            causes.append(f"threads of {self.waited_share:.0%} of the products always waited for cores")
        most = f"up to {self.too_long:.0%} " if self.too_long > 0.0 else ""
        return f"measured while {' and '.join(causes)}; times may be {most}too long"


def disturbance(conditions: Iterable[Conditions | None], threads: int) -> Disturbance | None:
    """Return the disturbance of products with `threads` threads, None if there is none.

    The conditions of the Records (None for a Record without them) are averaged.
    """
    reported = [condition for condition in conditions if condition is not None]
    others = _mean(condition.other_processes for condition in reported)
    stolen = _mean(condition.stolen_share for condition in reported)
    waited = _mean(condition.waited_for_cores for condition in reported)
    if others <= QUIET_OTHERS and stolen <= QUIET_STOLEN and waited <= QUIET_WAITED:
        return None
    return Disturbance(others, stolen, _BESIDE * min(1.0, others) + stolen * threads, waited)


def waited_for_cores(timing: Timing, conditions: Conditions) -> bool | None:
    """Tell whether a product was never measured with a core for each thread, as other programs had them.

    None if that is not known. On a quiet machine, the cores themselves were slow.
    """
    if timing.slow_share is None or conditions.other_processes is None:
        return None
    is_quiet = conditions.other_processes <= QUIET_OTHERS and (conditions.stolen_share or 0.0) <= QUIET_STOLEN
    return timing.slow_share == 1.0 and not is_quiet


def _mean(values: Iterable[float | None]) -> float:
    reported = [value for value in values if value is not None]
    return sum(reported) / len(reported) if reported else 0.0
