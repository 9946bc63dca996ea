"""The interface of applications: products with a matrix, and loops over vectors between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Protocol, Self

from scipy.sparse import csr_array

from sparsecast.errors import InputError, remedy_for
from sparsecast.operators.block_operator import LocalSpace, Operator, VectorSpace

#: Name of the product among the loops.
PRODUCT = "SpMV"

#: Called at the end of each loop, with its name.
Lap = Callable[[str], None]

#: Called after each iteration, with its number and its residual.
OnIteration = Callable[[int, float], object]


def no_laps(name: str) -> None:
    """Time nothing."""


def no_iteration(iteration: int, residual: float) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """A loop over vectors, for a roofline whose only roof is memory (Barreda et al. 2020)."""

    name: str
    #: Entries of vectors that are read or written per entry of a vector, including reads before an overwrite.
    moved: float
    is_once: bool = False  # whether it runs before the iterations instead of in each


@dataclass(slots=True)
class Laps:
    """Seconds and runs of each loop. Call it with the name of a loop at its end."""

    #: Total seconds of each loop.
    time_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    runs: Counter[str] = field(default_factory=Counter)
    _last: float = field(default_factory=perf_counter)

    def start(self) -> None:
        self._last = perf_counter()

    def __call__(self, name: str) -> None:
        now = perf_counter()
        self.time_s[name] += now - self._last
        self.runs[name] += 1
        self._last = now


@dataclass(frozen=True, slots=True)
class Iterations:
    """A forecast number of iterations. Fewer than `low` are rare, but possible."""

    expected: int
    low: int
    high: int
    why: str  # origin of the numbers, in a sentence
    tried: int = 0  # iterations that were run for the forecast
    tried_s: float = 0.0  # seconds that these took

    @classmethod
    def known(cls, number: int) -> Iterations:
        """Return a number given by the user."""
        if number < 1:
            raise InputError(f"iterations {number}: expected at least 1; name those that will be done")
        return cls(number, number, number, "The number of iterations is given.")


class Outcome(Protocol):
    """The iterations that were run, the distance from the result after each, and the reason of the end."""

    @property
    def iterations(self) -> int: ...

    @property
    def residuals(self) -> tuple[float, ...]: ...

    @property
    def stop(self) -> str: ...


class Application(ABC):
    """An application of one matrix, ready to be forecast and to be run.

    A subclass registers in APPLICATIONS under its `name`. Its constructor takes the user's matrix, checks it,
    and takes the `settings` as keywords.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()  # keywords of the constructor, each with a default
    matrix: csr_array[Any]  # the matrix of the products: the user's, or one that is derived from it
    loops: tuple[VectorLoop, ...]  # all loops but the product
    vectors: int  # number of vectors of an iteration
    most_iterations: int  # greatest number of iterations of a run
    trials: int  # iterations, at least, that forecast the number of all
    notes: tuple[str, ...] = ()  # sentences on the matrix for the user

    @classmethod
    def with_settings(cls, A: csr_array[Any], settings: Mapping[str, Any]) -> Self:
        """Return the application of a matrix; raise an InputError for an unknown setting."""
        for name in settings:
            if name not in cls.settings:
                accepted = ", ".join(cls.settings) or "none"
                raise InputError(
                    f"setting '{name}' of {cls.name}: expected one of {accepted}; "
                    f"{remedy_for(name, cls.settings, 'leave it out')}"
                )
        return cls(A, **settings)  # type: ignore[call-arg]

    def iterations(
        self, op: Operator | None = None, laps: Laps | None = None, most_s: float = 0.0
    ) -> Iterations:
        """Return the forecast number of iterations, after some with an operator, SciPy's by default.

        These are `trials`, and as many more as take `most_s` seconds: a short run is counted to its end.
        """
        op = ScipyOperator(self.matrix) if op is None else op
        laps = Laps() if laps is None else laps
        if most_s:
            self.run(op, 2, no_iteration, Laps())  # compiles
        done = self.run(op, self.trials, no_iteration, laps)
        most = min(self.most_iterations, int(most_s * self.trials / sum(laps.time_s.values())))
        if done.iterations == self.trials < most:
            done = self.run(op, most, no_iteration, laps)
        if done.stop != "converged" and done.iterations >= self.most_iterations:
            raise InputError(
                f"{self.name} does not converge within {done.iterations:,} iterations, the most of a run: "
                f"expected that it does; allow a greater error, or name another matrix"
            )
        return self.told(done)

    @abstractmethod
    def told(self, done: Any) -> Iterations:
        """Return the number of iterations that the Outcome of the first ones tells."""

    def untried(self) -> Iterations:
        """Return what is known of their number without a product; an InputError where nothing is."""
        raise InputError(
            f"{self.name} without a trial: expected the number of iterations, which only iterations tell; "
            f"give --iterations N, or leave --forecast-only out"
        )

    @abstractmethod
    def run(self, op: Operator, most: int, on_iteration: OnIteration, laps: Laps) -> Outcome:
        """Run with an operator of `matrix`, for at most `most` iterations.

        ``laps.start()`` is called at the beginning, and `laps` at the end of the product and of each loop.
        """


class ScipyOperator:
    """A matrix with SciPy's product, for some iterations before anything is built or compiled."""

    def __init__(self, matrix: csr_array[Any]) -> None:
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    @property
    def domain(self) -> VectorSpace:
        return LocalSpace(self.shape[1], self.dtype)

    range = domain

    def matvec(self, x: Any, out: Any = None) -> Any:
        out[:] = self.matrix @ x
        return out
