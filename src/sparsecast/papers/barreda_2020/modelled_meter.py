"""A meter that counts nothing: joules by a model of power, for the way of energy without a counter."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from sparsecast.measuring.energy import DRAM, MODELLED, PACKAGE, ProcessorMeter
from sparsecast.measuring.meters import METERS
from sparsecast.models.fitting import fitted_costs
from sparsecast.papers import published


@METERS.register("modelled")
class ModelledMeter(ProcessorMeter):
    """Watts for each second and joules for each entry, of the package and of the memory of the paper's core.

    The seconds of this machine are multiplied by `slowdown`, where a lower frequency is modelled, too.
    `costs` are watts, and joules of an entry, of each domain.
    """

    order = 100
    is_modelled = True
    source, run_s, step_s = MODELLED, 0.001, 1e-6

    @classmethod
    def is_present(cls) -> bool:
        return True

    def __init__(self) -> None:
        self.slowdown, self.costs = 1.0, _costs()
        self._start, self._entries = time.perf_counter(), 0

    def work(self, entries: int) -> None:
        self._entries += entries

    def joules(self) -> float:
        return sum(self.domains().values())

    def domains(self) -> dict[str, float]:
        seconds = self.slowdown * (time.perf_counter() - self._start)
        return {
            name: watts * seconds + joules * self._entries for name, (watts, joules) in self.costs.items()
        }


@cache
def _costs() -> dict[str, tuple[float, float]]:
    """Return watts, and joules of an entry, of each domain: fitted to the means of Table 1.

    The printed times are counts of a clock of the highest frequency, divided by the set one (see the head of
    this paper), so that they are multiplied by the ratio of the two again.
    """
    table = published("barreda_2020")["table_1"]
    ghz = np.array(table["frequency_ghz"])
    time_ns = np.array(table["time"]["mean"]) * ghz / ghz.max()
    counts = np.column_stack([time_ns, np.full(len(ghz), 1e9)])  # nanojoules: of watts, of joules an entry
    fits = {name: fitted_costs(counts, np.array(table[name]["mean"])) for name in (PACKAGE, DRAM)}
    return {name: (float(watts), float(joules)) for name, (watts, joules) in fits.items()}
