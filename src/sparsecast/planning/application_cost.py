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
from sparsecast.operators.applications.application import PRODUCT, VectorLoop
from sparsecast.records import Bandwidth, Record
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


@dataclass(frozen=True, slots=True)
class RunConditions:
    """What a run finds, in which products are not alone."""

    #: vector_bytes, vectors_bytes, bytes: of one vector, of all, and of all with the matrix: what an
    #: iteration goes through.
    vector_bytes: int
    vectors_bytes: int
    bytes: int
    usual_over_full: Usual  # what a product takes, over its forecast time
    loops_s: Mapping[str, float]  # measured seconds of loops over vectors; empty if unknown


def costs_of(
    loops: Sequence[VectorLoop], plan: Plan, profile: Profile, conditions: RunConditions
) -> tuple[LoopCost, ...]:
    """Return the costs of the loops of an application and of its product.

    Loops that were measured take as long again. The others run on one thread. A product brings the matrix
    through the caches, and leaves there a part of the vectors: so these come at a speed between those of the
    smallest cache that holds all vectors, and of the one that holds the matrix as well. The forecast is the
    geometric mean of both, which are also the ends of the interval. A loop also takes a call, and so does the
    product.

    A ProfileError says that the profile has no Bandwidth of reads.
    """
    speeds = _Speeds.of(profile)
    slower, call_s = conditions.usual_over_full, speeds.call_s
    fast, slow = speeds.at(conditions.vectors_bytes), speeds.at(conditions.bytes)
    low_s, high_s = (
        None if end_s is None else factor * end_s + call_s
        for factor, end_s in ((slower.low, plan.low_s), (slower.high, plan.high_s))
    )
    found = [LoopCost(PRODUCT, slower.expected * plan.time_s + call_s, low_s, high_s)]
    for loop in loops:
        moved = loop.moved * conditions.vector_bytes
        time_s = conditions.loops_s.get(loop.name, call_s + moved / math.sqrt(fast * slow))
        ends = min(time_s, moved / fast), max(time_s, call_s + moved / slow)
        found.append(LoopCost(loop.name, time_s, *ends, loop.is_once))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Speeds:
    """What one thread of a machine reads from each level of its memory, and the seconds of a call.

    `holds_bytes` is what the level holds at most, ascending; the last one, the memory, holds anything.
    """

    holds_bytes: tuple[float, ...]
    per_s: tuple[float, ...]
    call_s: float

    @classmethod
    def of(cls, profile: Profile) -> _Speeds:
        reads = [read for read in profile.bandwidths if read.kind == "read"]
        if not reads:
            raise ProfileError(
                f"profile {profile.name} has no bandwidths: expected those of reads, for the loops over "
                f"vectors; calibrate the machine"
            )
        threads = min(read.threads for read in reads)
        reads = sorted((read for read in reads if read.threads == threads), key=lambda read: read.bytes)
        # The smallest array takes a call, and what its bytes take at the speed of the fastest.
        fastest = max(reads, key=_per_s)
        call_s = max(0.0, reads[0].time_s - reads[0].bytes / _per_s(fastest))
        larger = [read for read in reads if read.bytes >= fastest.bytes]
        caches = sorted(cache.bytes for cache in profile.machine.product_caches)
        # An array measured the least cache that is not smaller; an unknown cache holds what was measured.
        holds = [next((c for c in caches if c >= read.bytes), read.bytes) for read in larger]
        return cls((*holds[:-1], math.inf), tuple(_per_s(read) / threads for read in larger), call_s)

    def at(self, size_bytes: int) -> float:
        """Return the bytes a second from the least level that holds so many bytes."""
        level = next(k for k, holds in enumerate(self.holds_bytes) if size_bytes <= holds)
        return self.per_s[level]


def _per_s(read: Bandwidth) -> float:
    return read.bandwidth_bytes_per_s
