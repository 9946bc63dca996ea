"""An operator that begins with plain CSR and finds out, while it is used, whether another format is faster.

Nothing is converted before the products done so far would have saved what it costs: the rule for renting
skis, by which nobody pays more than twice what was needed (Karlin, Manasse, Rudolph, Sleator 1988,
"Competitive snoopy caching"). And what may be lost where a forecast is wrong is a small share of the time of
plain CSR.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from sparsecast.devices.binding import Bound
from sparsecast.devices.device import Device
from sparsecast.errors import InputError
from sparsecast.measuring.timing import low
from sparsecast.operators.block_operator import BlockOperator, Product
from sparsecast.records import Candidate, Forecast

#: Products over which at most LOST_SHARE of the time of plain CSR may be lost.
HORIZON, LOST_SHARE = 1000, 0.025

#: What pays only after more products is left alone, so that these have nothing to count.
MOST_PRODUCTS = 10 * HORIZON

#: Shorter products stay in CSR: to count them takes a quarter of a microsecond each.
SHORT_S = 1e-5

#: Other formats that are tried at most.
_TRIED = 2

#: A first conversion can take so many times as long as in a calibration, whose memory is used again: nine on
#: a virtual machine took 2 to 8 times as long, and this in the median.
_FRESH = 4.0

#: Turns of a trial, and products in a turn; the first of a turn fetches the data and does not count.
_TURNS, _IN_A_TURN = 3, 3

#: A format that is slower by this factor after a turn is tried no further.
_HOPELESS = 1.2

#: Products of CSR that tell its time, after a first one.
_FIRST = 4


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a Candidate that was tried.

    Attributes
    ----------
    candidate : Candidate
    forecast_s : float
        Of a product.
    convert_s : float or None
        Seconds to build it; None where it could not be built.
    time_s, other_s : float or None
        Of a product, and of one in the way that was used until then, in turn.
    is_kept : bool
        Whether it was faster.
    """

    candidate: Candidate
    forecast_s: float
    convert_s: float | None = None
    time_s: float | None = None
    other_s: float | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Ways:
    """How an Adapting finds Candidates to try, and builds them.

    Attributes
    ----------
    csr : Candidate
    options : callable
        Returns, for the measured seconds of a product of CSR, forecasts of all that may be tried, each with
        the time of its conversion.
    build : callable
        Returns the bound Candidate.
    loader : Loader
    """

    csr: Candidate
    options: Callable[[float], Sequence[Forecast]]
    build: Callable[[Candidate], Bound]
    loader: Loader


class Loader:
    """Compiles kernels, or loads what was compiled before, and knows how long that took in this process."""

    def __init__(self) -> None:
        self._seconds: dict[Candidate, float] = {}

    def load(self, device: Device, candidate: Candidate) -> None:
        if candidate not in self._seconds:
            start = perf_counter()
            device.warm_up(candidate)
            self._seconds[candidate] = perf_counter() - start

    def forecast_s(self, candidate: Candidate) -> float:
        """Return what it may take: 0 if it was done, else the longest so far."""
        return 0.0 if candidate in self._seconds else max(self._seconds.values(), default=0.0)


#: Of this process.
LOADER = Loader()

#: What the schedule of an Adapting is: it yields how the next product is done, and is sent its seconds.
_Schedule = Generator[Product, float, None]


class Adapting:
    """All rows of a matrix, done in CSR at first, and later in whichever way proved faster.

    It has what a RowProduct has. Several threads may call its product at once: one of them follows the
    schedule, and builds what is tried; the others take what is in use. Several vectors at once stay in CSR.

    Attributes
    ----------
    first, end, product, multivector
        As in a RowProduct.
    kept : Candidate
        In use now.
    tried : tuple of Trial
    """

    def __init__(self, ways: Ways, rows: int) -> None:
        csr = ways.build(ways.csr)
        self.first, self.end, self.multivector = 0, rows, csr.multivector
        self.kept = ways.csr
        self.tried: tuple[Trial, ...] = ()
        self._ways, self._kept = ways, csr.product
        self._done, self._idle, self._csr_s, self._lost_s = 0, 0, 0.0, 0.0
        self._one_thread = threading.Lock()
        self._schedule = self._scheduled()
        self._next = next(self._schedule)
        self.product: Product = self._follow

    def _follow(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Compute one product as the schedule says, and go on in it."""
        self._idle -= 1
        if self._idle >= 0 or not self._one_thread.acquire(blocking=False):
            self._kept(x, out)
            return
        try:
            start = perf_counter()
            self._next(x, out)
            self._done += 1
            self._next = self._schedule.send(perf_counter() - start)
        except StopIteration:
            self.product = self._next = self._kept
        finally:
            self._one_thread.release()

    def _scheduled(self) -> _Schedule:
        """Measure CSR, and try what is forecast to be best, each once it is paid."""
        yield self._kept
        self._csr_s = low((yield from self._times(self._kept, _FIRST)))
        options = [f for f in self._ways.options(self._csr_s) if f.candidate != self._ways.csr]
        best_s = self._csr_s if self._csr_s > SHORT_S else 0.0
        for _ in range(_TRIED):
            waits = {option: self._wait(option, best_s) for option in options if option.time_s < best_s}
            if not waits:
                return
            option = min(waits, key=lambda option: self._total_s(option, waits[option], best_s))
            if waits[option] > MOST_PRODUCTS:
                return
            if waits[option] > self._done:
                self._idle = waits[option] - self._done
                self._done += self._idle
                yield self._kept
            options.remove(option)
            best_s = yield from self._trial(option, best_s)

    def _wait(self, option: Forecast, best_s: float) -> int:
        """Return the number of products after which a Candidate may be tried.

        They would have saved what it costs, if it is as forecast. And not too much is lost if it is at the
        slow end of its interval and built in fresh memory.
        """
        cost_s = self._cost_s(option)
        products = cost_s / (best_s - option.time_s)
        least_s = 0.0 if option.high_s is None else max(0.0, best_s - option.high_s)
        lost_s = self._lost_s + _FRESH * cost_s - least_s * max(0.0, HORIZON - products)
        if lost_s > LOST_SHARE * HORIZON * self._csr_s:
            products = max(products, lost_s / LOST_SHARE / self._csr_s)
        return int(min(products, MOST_PRODUCTS + 1))

    def _total_s(self, option: Forecast, wait: int, best_s: float) -> float:
        """Return the forecast seconds of HORIZON products, if a Candidate is taken after so many."""
        before = min(max(wait, self._done), HORIZON)
        return before * best_s + self._cost_s(option) + (HORIZON - before) * option.time_s

    def _cost_s(self, option: Forecast) -> float:
        return (option.convert_s or 0.0) + self._ways.loader.forecast_s(option.candidate)

    def _times(self, product: Product, count: int) -> Generator[Product, float, list[float]]:
        taken = []
        for _ in range(count):
            taken.append((yield product))
        return taken

    def _trial(self, option: Forecast, best_s: float) -> Generator[Product, float, float]:
        """Build a Candidate and compare it in turn with what is in use; return the time of the better one."""
        start = perf_counter()
        try:
            built = self._ways.build(option.candidate).product
        except (InputError, MemoryError):
            self._lost_s += perf_counter() - start
            self.tried += (Trial(option.candidate, option.time_s),)
            return best_s
        convert_s = perf_counter() - start
        new, old = [], []
        for _ in range(_TURNS):
            new += (yield from self._times(built, _IN_A_TURN))[1:]
            old += (yield from self._times(self._kept, _IN_A_TURN))[1:]
            if low(new) > _HOPELESS * low(old):
                break
        is_kept = low(new) < low(old)
        self.tried += (Trial(option.candidate, option.time_s, convert_s, low(new), low(old), is_kept),)
        if is_kept:
            self._kept, self.kept = built, option.candidate
            self._lost_s += convert_s - (low(old) - low(new)) * max(0, HORIZON - self._done)
        else:
            self._lost_s += convert_s + len(new) * (low(new) - low(old))
        return min(low(new), low(old))


class AdaptingOperator(BlockOperator):
    """A SciPy LinearOperator that begins with CSR and keeps what proves faster in use.

    Products with one vector adapt; those with several at once stay in CSR. The transpose adapts by itself.
    Its parameters are those of a BlockOperator; the only block is an Adapting.
    """

    @property
    def kept(self) -> Candidate:
        return self._adapting.kept

    @property
    def tried(self) -> tuple[Trial, ...]:
        return self._adapting.tried

    def describe(self) -> str:
        """Return in words what was tried, and what is kept."""
        trials = [_sentence(trial) for trial in self.tried] or ["Nothing was tried so far."]
        return " ".join((*trials, f"Products are done in {self.kept.format.upper()}."))

    @property
    def _adapting(self) -> Adapting:
        block: Adapting = self.blocks[0]
        return block


def _sentence(trial: Trial) -> str:
    name = trial.candidate.format.upper()
    if trial.time_s is None or trial.other_s is None or trial.convert_s is None:
        return f"{name} could not be built."
    what = "kept" if trial.is_kept else "dropped"
    return (
        f"{name} took {trial.time_s:.3g} s instead of {trial.other_s:.3g} s (forecast {trial.forecast_s:.3g} "
        f"s), {trial.convert_s:.3g} s to convert: {what}."
    )
