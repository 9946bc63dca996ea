"""Which Candidates of a matrix are worth a trial, for the products that will be done: one rule.

A trial builds a Candidate and times it beside the best one so far. It is expected to gain what the products
that follow would save, were the logarithm of the time Laplace distributed, with INTERVAL_SHARE of it between
the ends of the forecast's interval (decision 46): the expected improvement of Jones, Schonlau and Welch
(1998), "Efficient global optimization of expensive black-box functions". It is worth while if that exceeds
its cost, and if not too much is lost where the forecast proves wrong. A little is spent on what gains less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from sparsecast.devices.device import Device
from sparsecast.models.fitting import INTERVAL_SHARE, half_width
from sparsecast.records import Candidate, Forecast
from sparsecast.results.prediction import Trial

#: What may be lost at most, of the time of all products in plain CSR.
LOST_SHARE = 0.05

#: What trials may cost in all that are not expected to gain it, of the time of all products in the best way.
DOUBT_SHARE = 0.02

#: A first conversion can take so many times as long as in a calibration, whose memory is used again: nine on
#: a virtual machine took 2 to 8 times as long.
FRESH = 8.0

#: A format that is slower than the best one by this factor in a few products is tried no further.
HOPELESS = 1.2


def _laplace(forecast: Forecast) -> tuple[float, float]:
    """Return the middle and the scale of the logarithm of a time; without an interval, it is certain."""
    half = half_width(forecast.low_s, forecast.high_s)
    if half is None or forecast.low_s is None:
        return math.log(forecast.time_s), 1e-12
    return math.log(forecast.low_s) + half, half / -math.log(1 - INTERVAL_SHARE)


def chance(limit_s: float, forecast: Forecast) -> float:
    """Return the probability that a product takes less than `limit_s`, above 0."""
    middle, scale = _laplace(forecast)
    x = (math.log(limit_s) - middle) / scale
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def expected_gain_s(best_s: float, forecast: Forecast) -> float:
    """Return the seconds of a product that a trial is expected to gain over one of `best_s`: at least 0.

    It is the integral of `chance` from 0 to `best_s`.
    """
    middle, scale = _laplace(forecast)
    x = (math.log(best_s) - middle) / scale
    if x <= 0:
        return best_s * math.exp(x) / 2 * scale / (1 + scale)
    above = math.expm1((scale - 1) * x) / (scale - 1) if scale != 1 else x
    middle_s = math.exp(middle)
    return best_s - middle_s + middle_s * scale / 2 * (1 / (1 + scale) - above)


@dataclass
class Contest:
    """What may be tried of a matrix, what was, and what is the best way so far."""

    kept: Candidate  # plain CSR at first
    best_s: float  # measured seconds of a product in it
    options: list[Forecast]  # what else there is, each with the time of its conversion
    #: Returns the seconds that a trial of an option takes beside the conversion: where it proves hopeless
    #: soon, and where it does not.
    extra_s: Callable[[Forecast], tuple[float, float]]
    lost_s: float = 0.0  # seconds that trials took and did not gain so far
    tried: tuple[Trial, ...] = ()
    csr_s: float = field(init=False)
    _doubt_s: float = 0.0
    _converted_s: float = 0.0
    _conversions_s: float = 0.0

    def __post_init__(self) -> None:
        self.csr_s = self.best_s

    @property
    def slower(self) -> float:
        """How many times their forecasts conversions took, at least 1: fresh memory slows all of them."""
        return max(1.0, self._converted_s / self._conversions_s) if self._conversions_s else 1.0

    def cost_s(self, option: Forecast) -> float:
        """Return the seconds that a trial is expected to take."""
        least_s, most_s = self.extra_s(option)
        is_close = chance(HOPELESS * self.best_s, option)
        return self.slower * (option.convert_s or 0.0) + least_s + is_close * (most_s - least_s)

    def net_gain_s(self, option: Forecast, products: float) -> float:
        """Return what a trial is expected to gain over so many products, its cost paid."""
        return products * expected_gain_s(self.best_s, option) - self.cost_s(option)

    def pays_from(self, option: Forecast, least: float = 0) -> float:
        """Return the products from which on a trial is worth while, infinity if it never is.

        They gain the cost, or DOUBT_SHARE of them pays for it and for what was tried without such a gain. And
        at most LOST_SHARE of them, or of `least` if these are more, is lost if the option is at the slow end
        of its interval and is built in fresh memory.
        """
        gain_s, cost_s = expected_gain_s(self.best_s, option), self.cost_s(option)
        if gain_s <= 0:
            return math.inf
        pays = cost_s / gain_s
        if chance(self.best_s, option) > (1 - INTERVAL_SHARE) ** 2 / 2:  # were its interval twice as wide
            pays = min(pays, (self._doubt_s + cost_s) / (DOUBT_SHARE * self.best_s))
        sure_s = 0.0 if option.high_s is None else max(0.0, self.best_s - option.high_s)
        most_s = self.lost_s + max(FRESH, self.slower) * (option.convert_s or 0.0) + self.extra_s(option)[1]
        unrisky = most_s / (LOST_SHARE * self.csr_s + sure_s)
        return pays if unrisky <= least else max(pays, unrisky)

    def rank(self, option: Forecast, products: float) -> tuple[float, float]:
        """Return what is greatest for the next to try: the net gain; without any, the fastest forecast."""
        return max(0.0, self.net_gain_s(option, products)), -option.time_s

    def add(self, trial: Trial, cost_s: float, products: float) -> None:
        """Take in what was tried, at so many seconds, before so many products."""
        option = next(option for option in self.options if option.candidate == trial.candidate)
        is_doubted = self.net_gain_s(option, products) <= 0
        self.options.remove(option)
        self.tried += (trial,)
        self._converted_s += trial.convert_s or 0.0
        self._conversions_s += (option.convert_s or 0.0) if trial.convert_s else 0.0
        self.lost_s += cost_s
        if trial.is_kept and trial.time_s is not None and trial.other_s is not None:
            self.lost_s -= (trial.other_s - trial.time_s) * products
            self.kept, self.best_s = trial.candidate, trial.time_s
        else:
            self.best_s = min(self.best_s, trial.other_s or self.best_s)  # interference only adds time
            self._doubt_s += cost_s if is_doubted else 0.0


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

    @property
    def spent_s(self) -> float:
        """Seconds of all that was compiled or loaded."""
        return sum(self._seconds.values())

    def forecast_s(self, candidate: Candidate) -> float:
        """Return what it may take: 0 if it was done, else the longest so far."""
        return 0.0 if candidate in self._seconds else max(self._seconds.values(), default=0.0)


#: Of this process.
LOADER = Loader()
