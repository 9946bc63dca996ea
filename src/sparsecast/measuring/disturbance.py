"""Disturbance: whether other work slowed a measurement, and by how much at most.

The figures are from `python benchmarks/run.py busy-machine`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparsecast.measuring.timing import Timing
from sparsecast.records import Conditions

#: Limits of a quiet machine: mean number of other processes, share of stolen time, and share of products
#: whose threads waited for cores.
QUIET_OTHERS, QUIET_STOLEN, QUIET_WAITED = 0.25, 0.02, 0.1

#: Error of nine tenths of the times, at most: for each other process with a free core, and, once for every
#: thread, for each process on one of our cores. With two threads on two cores next to one process, large
#: products take up to twice as long, the median 1.1 to 1.25 times.
_APART_EACH, _INSTEAD_OF_EACH = 0.15, 0.4

#: Least disturbance that makes times useless for a forecast: with two threads on two cores next to two
#: processes, a tenth of the times is ten times too long.
UNUSABLE = 1.0

#: Least time with one thread of a product that is faster with several, unless they wait for cores.
_LARGE_S = 2e-4


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Disturbance of a measurement.

    Attributes
    ----------
    other_processes, stolen_share : float
        As in Conditions; 0.0 if the system does not report them.
    too_long : float
        Greatest relative error of times due to other work.
    waited_share : float
        Share of the compared parallel products whose threads waited for cores.
    """

    other_processes: float
    stolen_share: float
    too_long: float
    waited_share: float = 0.0

    @property
    def is_unusable(self) -> bool:
        return self.too_long >= UNUSABLE

    def sentence(self) -> str:
        """Return a sentence on the disturbance, with the remedy if the measurement is useless."""
        if not self.is_unusable:
            return f"{self}."
        return f"{self}. Calibrate again while the machine is idle: these times are no basis for a forecast."

    def __str__(self) -> str:
        causes = []
        if self.other_processes > QUIET_OTHERS:
            causes.append(f"{self.other_processes:.1f} other processes ran")
        if self.stolen_share > QUIET_STOLEN:
            causes.append(f"{self.stolen_share:.0%} of the processors' time went to other machines")
        if self.waited_share > QUIET_WAITED:
            causes.append(f"threads waited for cores in {self.waited_share:.0%} of the products compared")
        most = f"up to {self.too_long:.0%} " if self.too_long > 0.0 else ""
        return f"measured while {' and '.join(causes)}; times may be {most}too long"


def disturbance(conditions: Iterable[Conditions | None], threads: int, cores: int) -> Disturbance | None:
    """Return the disturbance of products with `threads` threads, None if there is none.

    The conditions of the Records (None for a Record without them) are averaged. `cores` is the number of
    cores of the machine.
    """
    reported = [condition for condition in conditions if condition is not None]
    others = _mean(condition.other_processes for condition in reported)
    stolen = _mean(condition.stolen_share for condition in reported)
    waited = _mean(condition.waited_for_cores for condition in reported)
    if others <= QUIET_OTHERS and stolen <= QUIET_STOLEN and waited <= QUIET_WAITED:
        return None
    free = max(0, cores - threads)
    apart, instead = min(others, free), max(0.0, others - free)
    too_long = _APART_EACH * apart + _INSTEAD_OF_EACH * instead * threads + stolen * threads
    return Disturbance(others, stolen, too_long, waited)


def waited_for_cores(together: Timing, alone: Timing, conditions: Conditions | None) -> bool:
    """Tell whether a product with all threads was slower than `alone` because they waited for cores.

    If the machine was quiet by the conditions, the kernel itself is slower in parallel.
    """
    if alone.time_s < _LARGE_S or together.time_s <= alone.time_s:
        return False
    if conditions is None or conditions.other_processes is None:
        return True
    return conditions.other_processes > QUIET_OTHERS or (conditions.stolen_share or 0.0) > QUIET_STOLEN


def _mean(values: Iterable[float | None]) -> float:
    reported = [value for value in values if value is not None]
    return sum(reported) / len(reported) if reported else 0.0
