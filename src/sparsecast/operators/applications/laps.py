"""Loops of an application: what each moves, and the seconds that it took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

#: What the product is called among the loops.
PRODUCT = "SpMV"

#: Called at the end of each loop, with its name.
Lap = Callable[[str], None]


def no_laps(name: str) -> None:
    """Time nothing."""


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """A loop over vectors, as a roofline sees it whose only roof is memory (Barreda et al. 2020).

    Attributes
    ----------
    name : str
    moved : float
        Entries of vectors that are moved for each entry of one: read, written, and read before others
        overwrite them.
    is_once : bool
        Whether it runs before the iterations instead of in each.
    """

    name: str
    moved: float
    is_once: bool = False


@dataclass(slots=True)
class Laps:
    """Seconds and runs of each loop: call it at the end of one, with its name.

    Attributes
    ----------
    time_s : dict of str to float
        Seconds of each loop together.
    runs : Counter
    """

    time_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    runs: Counter[str] = field(default_factory=Counter)
    _last: float = field(default_factory=perf_counter)

    def start(self) -> None:
        """Begin the first loop now."""
        self._last = perf_counter()

    def __call__(self, name: str) -> None:
        """End a loop, and begin the next."""
        now = perf_counter()
        self.time_s[name] += now - self._last
        self.runs[name] += 1
        self._last = now
