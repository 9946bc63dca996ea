"""Which Candidates of a matrix are worth a trial, for the products that will be done: one rule.

A trial builds a Candidate and times it beside the best one so far. It is expected to gain what the products
that follow would save, were the time normally distributed in its logarithm, with INTERVAL_SHARE of it between
the ends of the forecast's interval: the expected improvement of Jones, Schonlau and Welch (1998), "Efficient
global optimization of expensive black-box functions", equation 15, for logarithms. It is worth while if that
exceeds its cost, and if not too much is lost where the forecast proves wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from time import perf_counter

from sparsecast.devices.device import Device
from sparsecast.models.intervals import INTERVAL_SHARE, half_width
from sparsecast.records import Candidate, Forecast
from sparsecast.results.trials import Trial

#: What may be lost at most, of the time of all products in plain CSR.
LOST_SHARE = 0.05

#: A first conversion can take so many times as long as in a calibration, whose memory is used again: nine on
#: a virtual machine took 2 to 8 times as long.
FRESH = 8.0

#: A format that is slower than the best one by this factor in a few products is tried no further.
HOPELESS = 1.2

_NORMAL = NormalDist()

#: Standard deviations from the middle of an interval to its ends.
_DEVIATIONS = _NORMAL.inv_cdf((1 + INTERVAL_SHARE) / 2)


def expected_gain_s(best_s: float, forecast: Forecast) -> float:
    """Return the seconds of a product that a trial is expected to gain over one of `best_s`: at least 0.

    Without an interval, the forecast is taken for certain.
    """
    half = half_width(forecast.low_s, forecast.high_s)
    if half is None or forecast.low_s is None or best_s <= 0:
        return max(0.0, best_s - forecast.time_s)
    deviation, middle = half / _DEVIATIONS, math.log(forecast.low_s) + half
    score = (math.log(best_s) - middle) / deviation
    mean_s = math.exp(middle + deviation**2 / 2)
    return max(0.0, best_s * _NORMAL.cdf(score) - mean_s * _NORMAL.cdf(score - deviation))


@dataclass
class Contest:
    """What may be tried of a matrix, what was, and what is the best way so far.

    Attributes
    ----------
    kept : Candidate
        Plain CSR at first.
    best_s : float
        Measured seconds of a product in it.
    options : list of Forecast
        What else there is, each with the time of its conversion.
    extra_s : callable
        Returns the seconds that a trial of an option takes beside the conversion.
    lost_s : float
        Seconds that trials took and did not gain so far.
    tried : tuple of Trial
    slower : float
        How many times its forecast the last conversion took, at least 1: fresh memory slows all of them.
    """

    kept: Candidate
    best_s: float
    options: list[Forecast]
    extra_s: Callable[[Forecast], float]
    lost_s: float = 0.0
    tried: tuple[Trial, ...] = ()
    slower: float = 1.0
    csr_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.csr_s = self.best_s

    def contenders(self) -> list[Forecast]:
        """Return the options whose intervals reach below the best time so far."""
        return [f for f in self.options if (f.time_s if f.low_s is None else f.low_s) < self.best_s]

    def cost_s(self, option: Forecast) -> float:
        return self.slower * (option.convert_s or 0.0) + self.extra_s(option)

    def net_gain_s(self, option: Forecast, products: float) -> float:
        """Return what a trial is expected to gain over so many products, its cost paid."""
        return products * expected_gain_s(self.best_s, option) - self.cost_s(option)

    def pays_from(self, option: Forecast, least: float = 0) -> float:
        """Return the products from which on a trial is worth while, infinity if it never is.

        They gain the cost. And at most LOST_SHARE of them, or of `least` if these are more, is lost if the
        option is at the slow end of its interval and is built in fresh memory.
        """
        gain_s, cost_s = expected_gain_s(self.best_s, option), self.cost_s(option)
        if gain_s <= 0:
            return math.inf
        sure_s = 0.0 if option.high_s is None else max(0.0, self.best_s - option.high_s)
        most_s = self.lost_s + max(FRESH, self.slower) * (option.convert_s or 0.0) + self.extra_s(option)
        unrisky = most_s / (LOST_SHARE * self.csr_s + sure_s)
        return cost_s / gain_s if unrisky <= least else max(cost_s / gain_s, unrisky)

    def add(self, trial: Trial, cost_s: float, products: float) -> None:
        """Take in what was tried, at so many seconds, before so many products."""
        option = next(option for option in self.options if option.candidate == trial.candidate)
        self.options.remove(option)
        self.tried += (trial,)
        if trial.convert_s and option.convert_s:
            self.slower = max(1.0, trial.convert_s / option.convert_s)
        self.lost_s += cost_s
        if trial.is_kept and trial.time_s is not None and trial.other_s is not None:
            self.lost_s -= (trial.other_s - trial.time_s) * products
            self.kept, self.best_s = trial.candidate, trial.time_s


class Loader:
    """Compiles kernels, or loads what was compiled before, and knows how long that took in this process."""

    def __init__(self) -> None:
        self._seconds: dict[Candidate, float] = {}

    def load(self, device: Device, candidate: Candidate) -> float:
        """Return the seconds that it took, 0 if it was done."""
        if candidate in self._seconds:
            return 0.0
        start = perf_counter()
        device.warm_up(candidate)
        self._seconds[candidate] = perf_counter() - start
        return self._seconds[candidate]

    def forecast_s(self, candidate: Candidate) -> float:
        """Return what it may take: 0 if it was done, else the longest so far."""
        return 0.0 if candidate in self._seconds else max(self._seconds.values(), default=0.0)


#: Of this process.
LOADER = Loader()
