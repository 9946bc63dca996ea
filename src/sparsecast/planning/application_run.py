"""A run of an application that was measured, beside what was forecast of it."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecast.planning.application_cost import ApplicationCost


@dataclass(frozen=True, slots=True)
class LoopError:
    """Signed errors of the forecast of a loop: above 0 where it was too long.

    Attributes
    ----------
    relative : float
        Of the measured time (Barreda et al. 2020, equation 5).
    weighted : float
        Of the mean time of all loops (equations 6 and 7).
    """

    relative: float
    weighted: float


@dataclass(frozen=True, slots=True)
class ApplicationRun:
    """A run that was measured.

    Attributes
    ----------
    iterations : int
    stop : str
        Why it ended.
    time_s : float
        Of all loops, without conversion and compiling.
    loops : dict of str to float
        Seconds of one run of each loop, in the mean.
    residual : float
        The last one.
    energy_j : float or None
        None where nothing measured it.
    """

    iterations: int
    stop: str
    time_s: float
    loops: dict[str, float]
    residual: float
    energy_j: float | None = None

    def errors(self, cost: ApplicationCost) -> dict[str, LoopError]:
        """Return the errors of each loop's forecast."""
        mean_s = sum(self.loops.values()) / len(self.loops)
        forecast = {each.name: each.time_s for each in cost.loops}
        return {
            name: LoopError((forecast[name] - own) / own, (forecast[name] - own) / mean_s)
            for name, own in self.loops.items()
        }

    def weighted_error(self, cost: ApplicationCost) -> float:
        """Return the mean of the weighted errors (equation 8)."""
        errors = self.errors(cost).values()
        return sum(each.weighted for each in errors) / len(errors)

    def error(self, cost: ApplicationCost) -> float:
        """Return the error of the whole run, given the iterations that there were."""
        seconds = {each.name: each.time_s for each in cost.loops}
        forecast = cost.total_s(seconds, self.iterations) - cost.plan.convert_s
        return (forecast - self.time_s) / self.time_s
