"""An operator that begins with plain CSR and finds out, while it is used, whether another format is faster.

It tries what a plan would try (`planning.trials`), spread over the products of its user. How many will follow
is unknown: nothing is tried before the products done so far would have gained what it costs, the rule for
renting skis, by which nobody pays more than twice what was needed (Karlin, Manasse, Rudolph, Sleator 1988,
"Competitive snoopy caching").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from sparsecast.devices.binding import Bound
from sparsecast.errors import InputError
from sparsecast.measuring.timing import low
from sparsecast.operators.block_operator import BlockOperator, Product
from sparsecast.planning.trials import HOPELESS, Contest
from sparsecast.records import Candidate, Forecast
from sparsecast.results.prediction import Trial

#: Products over which at most LOST_SHARE may be lost, even if fewer were done.
HORIZON = 1000

#: What pays only after more products is left alone, so that these have nothing to count.
MOST_PRODUCTS = 10 * HORIZON

#: Shorter products stay in CSR: to count them takes a quarter of a microsecond each.
SHORT_S = 1e-5

#: Turns of a trial, and products in a turn; the first of a turn fetches the data and does not count.
_TURNS, _IN_A_TURN = 3, 3

#: Products of CSR that tell its time, after a first one.
_FIRST = 4


#: What the schedule of an Adapting is: it yields how the next product is done, and is sent its seconds.
_Schedule = Generator[Product, float, None]


class Adapting:
    """All rows of a matrix, done in CSR at first, and later in whichever way proved faster.

    It has what a RowProduct has. Several threads may call its product at once: one of them follows the
    schedule, and builds what is tried; the others take what is in use. Several vectors at once stay in CSR.

    Parameters
    ----------
    csr : Candidate
    options : callable
        Returns, for the measured seconds of a product of CSR, Forecasts of all that may be tried, each with
        the time of its conversion.
    build : callable
        Returns a Candidate, bound.
    loading_s : callable
        Returns the seconds that it may take to load the code of a Candidate.
    rows : int

    Attributes
    ----------
    first, end, product, multivector
        As in a RowProduct.
    kept : Candidate
        In use now.
    tried : tuple of Trial
    """

    def __init__(
        self,
        csr: Candidate,
        options: Callable[[float], Sequence[Forecast]],
        build: Callable[[Candidate], Bound],
        loading_s: Callable[[Candidate], float],
        rows: int,
    ) -> None:
        bound = build(csr)
        self.first, self.end, self.multivector = 0, rows, bound.multivector
        self._csr, self._options, self._build, self._loading_s = csr, options, build, loading_s
        self._kept = bound.product
        self._contest: Contest | None = None
        self._done, self._idle = 0, 0
        self._one_thread = threading.Lock()
        self._schedule = self._scheduled()
        self._next = next(self._schedule)
        self.product: Product = self._follow

    @property
    def kept(self) -> Candidate:
        return self._contest.kept if self._contest else self._csr

    @property
    def tried(self) -> tuple[Trial, ...]:
        return self._contest.tried if self._contest else ()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is tried any more."""
        return self.product == self._kept

    def skip(self, most: int) -> tuple[int, float]:
        """Take at most `most` products before the next trial as done; return their number and seconds."""
        skipped = max(0, min(self._idle, most))
        self._idle -= skipped
        return skipped, skipped * self._contest.best_s if self._contest else 0.0

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
        """Measure CSR, and try what is expected to gain the most, each once it is paid."""
        yield self._kept
        csr_s = low((yield from _times(self._kept, _FIRST)))
        if csr_s <= SHORT_S:
            return
        options = list(self._options(csr_s))
        contest = Contest(self._csr, csr_s, options, lambda f: (self._loading_s(f.candidate),) * 2)
        self._contest = contest
        while waits := [
            (wait, option)
            for option in contest.options
            if (wait := contest.pays_from(option, HORIZON)) <= MOST_PRODUCTS
        ]:
            # What gains most over HORIZON products, if it is tried once that pays.
            wait, option = max(waits, key=lambda w: contest.rank(w[1], HORIZON - max(w[0], self._done)))
            if wait > self._done:
                self._idle = int(wait) - self._done
                self._done += self._idle
                yield self._kept
            yield from self._trial(contest, option)

    def _trial(self, contest: Contest, option: Forecast) -> Generator[Product, float, None]:
        """Build a Candidate and compare it in turn with what is in use."""
        start = perf_counter()
        try:
            built = self._build(option.candidate).product
        except (InputError, MemoryError):
            contest.add(Trial(option.candidate, option.time_s), perf_counter() - start, 0)
            return
        convert_s = perf_counter() - start
        new, old = [], []
        for _ in range(_TURNS):
            new += (yield from _times(built, _IN_A_TURN))[1:]
            old += (yield from _times(self._kept, _IN_A_TURN))[1:]
            if low(new) > HOPELESS * low(old):
                break
        is_kept = low(new) < low(old)
        if is_kept:
            self._kept = built
        trial = Trial(option.candidate, option.time_s, convert_s, low(new), low(old), is_kept)
        cost_s = convert_s + (0.0 if is_kept else len(new) * (low(new) - low(old)))
        contest.add(trial, cost_s, max(0, HORIZON - self._done))


def _times(product: Product, count: int) -> Generator[Product, float, list[float]]:
    taken = []
    for _ in range(count):
        taken.append((yield product))
    return taken


class AdaptingOperator(BlockOperator):
    """A SciPy LinearOperator that begins with CSR and keeps what proves faster in use.

    Products with one vector adapt; those with several at once stay in CSR. The transpose adapts by itself.
    Its parameters are those of a BlockOperator; the only block is an Adapting.
    """

    @property
    def kept(self) -> Candidate:
        return self.adapting.kept

    @property
    def tried(self) -> tuple[Trial, ...]:
        return self.adapting.tried

    def describe(self) -> str:
        """Return in words what was tried, and what is kept."""
        trials = [trial.sentence() for trial in self.tried] or ["Nothing was tried so far."]
        return " ".join((*trials, f"Products are done in {self.kept.format.upper()}."))

    @property
    def adapting(self) -> Adapting:
        """How products with one vector are done."""
        block: Adapting = self.blocks[0]
        return block
