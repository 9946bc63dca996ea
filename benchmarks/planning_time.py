"""What planning costs: strip statistics and the dynamic programme, for matrices of 10 to 100,000 strips.

Run as ``python benchmarks/planning_time.py [PROFILE]``, with the name or path of a profile; without one,
this machine's. The strips are of STRIP_ROWS rows, far fewer than a model's own, so that 100,000 of them
fit in memory; the programme's work depends on the number of strips and not on their rows. Rows hold 0 to 8
entries at random, all in column 0. The least of SAMPLES times is quoted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

import sparsecast as sc
from sparsecast.devices.target import Target
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import StripStatistics
from sparsecast.machines.machine import detect
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.plan import make_plan

STRIP_ROWS = 64
STRIPS = (10, 100, 1_000, 10_000, 100_000)
SAMPLES = 3


def short_rows(rows: int) -> csr_array:
    """Return a matrix of random short rows."""
    indptr = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(np.random.default_rng(0).integers(0, 9, rows), out=indptr[1:])
    entries = int(indptr[-1])
    return csr_array((np.ones(entries, np.float32), np.zeros(entries, np.int32), indptr), (rows, rows))


def least_seconds(task: Callable[[], object]) -> float:
    """Return the least seconds of several calls."""
    seconds = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def row(strips: int, model: Model, target: Target) -> str:
    """Return the table's line for one matrix."""
    A = short_rows(strips * STRIP_ROWS)
    found = sc.structure(A)

    def count() -> StripStatistics:
        return strip_statistics(A.indptr, found, STRIP_ROWS)

    statistics = count()
    blocks = statistics.strips * (statistics.strips + 1) // 2 * len(model.formats())
    counting = least_seconds(count)
    programme = least_seconds(lambda: make_plan(statistics, model, target, detect(), 1000))
    return (
        f"{strips:9,} {A.shape[0]:11,} {statistics.strips:12} {blocks:17,} "
        f"{counting:14.4f} {programme:14.4f} {counting + programme:12.4f}"
    )


def main(profile_name: str | None = None) -> None:
    """Print a table for every model that the profile suffices for."""
    profile = sc.profile(profile_name)
    first = profile.records[0].candidate
    target = Target(first.device, first.dtype, first.index_bits, first.threads)
    records = profile.select(device=first.device, dtype=first.dtype, threads=first.threads)
    for name in MODELS.names():
        try:
            model = MODELS.get(name)().fit(TrainingSet.of(profile, records))
        except ProfileError as error:
            print(error)
            continue
        print(f"model {name}{' (default)' if name == DEFAULT_MODEL else ''}, {len(model.formats())} formats")
        print(
            f"{'strips':>9} {'rows':>11} {'strips used':>12} {'blocks evaluated':>17} {'statistics, s':>14} "
            f"{'programme, s':>14} {'together, s':>12}"
        )
        for strips in STRIPS:
            print(row(strips, model, target), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
