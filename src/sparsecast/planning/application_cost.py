"""What an application will cost: its products by a plan, its loops over vectors by the roofline, iterations.

Barreda et al. (2020), equations 3 and 4: T = T_once + k (T_SpMV + sum of T_loop).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import Profile
from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.models.forecaster import ConversionCost, what_is_built
from sparsecast.models.training import TrainingSet
from sparsecast.operators.applications.application import PRODUCT, Application
from sparsecast.records import VALUE_BYTES, Record
from sparsecast.results.application import LoopCost
from sparsecast.results.plan import Plan


@dataclass(frozen=True, slots=True)
class Usual:
    """How many times as long as forecast something takes, with the ends that most Records are between."""

    expected: float = 1.0
    low: float = 1.0
    high: float = 1.0

    @classmethod
    def of(cls, ratios: Sequence[float], expected: Callable[[Sequence[float]], float]) -> Usual:
        """Return what ratios of Records tell, at least 1; 1 where there are none."""
        if not ratios:
            return cls()
        usual, rest = max(1.0, expected(ratios)), (1 - INTERVAL_SHARE) / 2
        low, high = np.quantile(ratios, (rest, 1 - rest))
        return cls(usual, min(usual, float(low)), max(usual, float(high)))


def usual_over_full(records: Iterable[Record]) -> Usual:
    """Return how much longer products take than Records say, which have them at full speed of the cores.

    A time is a low quantile of samples, so that measurements can be compared. In a run their mean counts. The
    median over the Records is expected.
    """
    ratios = [fmean(record.samples_s) / record.time_s for record in records if record.samples_s]
    return Usual.of(ratios, median)


def usual_conversion(training: TrainingSet, plan: Plan) -> Usual:
    """Return how much longer conversions take in the mean than forecast, which is the usual time.

    Of the Records of the formats of a plan.
    """
    fit, formats = ConversionCost.fitted(training), {what_is_built(block.candidate) for block in plan.blocks}
    ratios = [
        record.convert_s / float(fit.seconds(record.candidate, RowBlocks.of(training.structure(record)))[0])
        for record in training.records
        if record.convert_s and what_is_built(record.candidate) in formats
    ]
    return Usual.of(ratios, fmean)


def costs_of(
    application: Application,
    plan: Plan,
    profile: Profile,
    product_bytes: int,
    slower: Usual,
    loops_s: Mapping[str, float],
) -> tuple[LoopCost, ...]:
    """Return the costs of the loops of an application and of its product, which takes `slower` in a run.

    Loops that were measured, in `loops_s`, take as long again. The others run on one thread. A product brings
    the matrix through the caches, and leaves there a part of the vectors: so these come at a speed between
    those of the smallest cache that holds all vectors, and of the one that holds the matrix as well. The
    forecast is the geometric mean of both, which are also the ends of the interval. A loop also takes a call,
    and so does the product.

    A ProfileError says that the profile has no Bandwidth of reads.
    """
    vector_bytes = application.matrix.shape[0] * VALUE_BYTES[plan.baseline.candidate.dtype]
    vectors_bytes = application.vectors * vector_bytes
    # What an iteration goes through: the bytes of a product have x and y, which are two of the vectors.
    working_bytes = product_bytes + vectors_bytes - 2 * vector_bytes
    levels, call_s = _speeds(profile)
    fast, slow = (
        next(per_s for holds, per_s in levels if size_bytes <= holds)
        for size_bytes in (vectors_bytes, working_bytes)
    )
    low_s, high_s = (
        None if end_s is None else factor * end_s + call_s
        for factor, end_s in ((slower.low, plan.low_s), (slower.high, plan.high_s))
    )
    found = [LoopCost(PRODUCT, slower.expected * plan.time_s + call_s, low_s, high_s)]
    for loop in application.loops:
        moved = loop.moved * vector_bytes
        time_s = loops_s.get(loop.name, call_s + moved / math.sqrt(fast * slow))
        ends = min(time_s, moved / fast), max(time_s, call_s + moved / slow)
        found.append(LoopCost(loop.name, time_s, *ends, loop.is_once))
    return tuple(found)


def _speeds(profile: Profile) -> tuple[list[tuple[float, float]], float]:
    """Return the levels of the memory of a machine, and the seconds of a call.

    Of each level the bytes that it holds at most, ascending, and the bytes a second that one thread reads
    from it. The last one, the memory, holds anything.
    """
    reads = [read for read in profile.bandwidths if read.kind == "read"]
    if not reads:
        raise ProfileError(
            f"profile {profile.name} has no bandwidths: expected those of reads, for the loops over "
            f"vectors; calibrate the machine"
        )
    threads = min(read.threads for read in reads)
    reads = sorted((read for read in reads if read.threads == threads), key=lambda read: read.bytes)
    # The smallest array takes a call, and what its bytes take at the speed of the fastest.
    fastest = max(reads, key=lambda read: read.bandwidth_bytes_per_s)
    call_s = max(0.0, reads[0].time_s - reads[0].bytes / fastest.bandwidth_bytes_per_s)
    larger = [read for read in reads if read.bytes >= fastest.bytes]
    caches = sorted(cache.bytes for cache in profile.machine.product_caches)
    # An array measured the least cache that is not smaller; an unknown cache holds what was measured.
    holds = [next((c for c in caches if c >= read.bytes), read.bytes) for read in larger[:-1]]
    per_s = [read.bandwidth_bytes_per_s / threads for read in larger]
    return list(zip((*holds, math.inf), per_s, strict=True)), call_s
