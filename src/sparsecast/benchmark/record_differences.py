"""Which of the same products two sets of Records time differently, beyond the noise."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.benchmark.journal import TRIED_SUITE
from sparsecast.benchmark.record_files import MergedRecord, MergedRecords
from sparsecast.errors import InputError
from sparsecast.measuring.timing import LOW_SHARE, SAMPLES_A_TURN
from sparsecast.records import Record
from sparsecast.results.differences import Difference, Differences, GeometricMean

#: Share of those that are said to differ that may not.
FALSE_SHARE = 0.05

#: The interval of a ratio is meant to hold it so often, and the drawings of matrices for that of a mean.
_HELD, _DRAWINGS = 0.95, 2000

#: Degrees of freedom of Student's distribution of a difference over its standard deviation: some products are
#: noisier than others, so that large differences are more frequent than among normal numbers.
_FREEDOM = 8

#: Standard deviation of normal numbers whose absolute values have the median 1.
_OF_MEDIAN = 1 / 0.6745

_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """The Records of a product in one set: mean of the logarithms of their times, and its variance."""

    records: list[MergedRecord]
    log_time: float
    variance: float

    @property
    def samples(self) -> int:
        return sum(len(merged.record.samples_s) for merged in self.records)


def differences(A: MergedRecords, B: MergedRecords) -> Differences:
    """Return how the times of B differ from those of A, for each product that both have.

    A product differs if the ratio of its times does from 1 by more than measurements of the same do: by those
    that were repeated in A or B; without any, by what most products of A and B differ by, or, on two
    machines, by the earlier and later samples of each Record. All samples of its own tell when it is noisier.
    The share of wrong ones among those that differ is limited for all products together (Benjamini and
    Hochberg 1995). Trials of plans do not count.

    Raises
    ------
    InputError
        If they have several machines, and none in common; or no product.
    """
    from scipy import stats

    is_across = _is_across(A, B)
    in_A, in_B = (by_product(merged.records, is_across) for merged in (A, B))
    paired, alone_A, alone_B = _paired(in_A, in_B)
    if not paired:
        raise InputError("no product in both: expected some of the same matrix and format; compare others")
    deviation, repeats = _deviation([*in_A.values(), *in_B.values()])
    if not repeats and not is_across:
        # Two runs of the same differ by more than the halves of one do: what most products differ by counts.
        apart = np.abs([np.log(_time_s(second) / _time_s(first)) for first, second in paired])
        deviation = max(deviation, float(np.median(apart)) * _OF_MEDIAN / np.sqrt(2))
    sides = [(_side(first, deviation), _side(second, deviation)) for first, second in paired]
    logs = np.array([b.log_time - a.log_time for a, b in sides])
    errors = np.sqrt([a.variance + b.variance for a, b in sides])
    errors = np.maximum(errors, np.finfo(float).tiny)  # no noise is known of published times
    p_values = stats.false_discovery_control(2 * stats.t.sf(np.abs(logs) / errors, _FREEDOM))
    reach = stats.t.isf((1 - _HELD) / 2, _FREEDOM) * errors
    rows = [
        Difference(
            matrix=b.records[0].matrix_name,
            specification=b.records[0].record.matrix,
            machine=b.records[0].machine,
            candidate=b.records[0].record.candidate,
            kernel_before=a.records[0].record.candidate.kernel,
            time_a_s=float(np.exp(a.log_time)),
            time_b_s=float(np.exp(b.log_time)),
            low=float(np.exp(log - wide)),
            high=float(np.exp(log + wide)),
            p_value=float(p_value),
            differs=bool(p_value < FALSE_SHARE),
            samples_a=a.samples,
            samples_b=b.samples,
        )
        for (a, b), log, wide, p_value in zip(sides, logs, reach, p_values, strict=True)
    ]
    matrices = [_content(b.records[0].record.matrix) for _, b in sides]
    formats = [row.candidate.format for row in rows]
    places = {name: np.flatnonzero([each == name for each in formats]) for name in sorted(set(formats))}
    by_format = {name: _mean([matrices[i] for i in own], logs[own]) for name, own in places.items()}
    rows.sort(key=lambda row: (not row.differs, -abs(np.log(row.ratio))))
    return Differences(
        rows, _mean(matrices, logs), by_format, float(deviation), repeats, alone_A, alone_B, is_across
    )


def _is_across(A: MergedRecords, B: MergedRecords) -> bool:
    """Tell whether one machine is compared with another one; else each is compared with itself."""
    in_A, in_B = ({merged.machine for merged in each.records} for each in (A, B))
    if in_A & in_B:
        return False
    if len(in_A) == len(in_B) == 1:
        return True
    raise InputError(
        f"records of {len(in_A)} and {len(in_B)} machines, none in both: expected machines in common, or one "
        f"on each side; name fewer files"
    )


def _content(specification: str) -> str:
    """Return a specification without the folder of a file, which differs between machines."""
    return re.sub(r"file:.*\?sha256=", "file:?sha256=", specification)


def by_product(records: Iterable[MergedRecord], is_across: bool) -> dict[_Key, list[MergedRecord]]:
    """Return the Records by what they are of: the matrix, the regime, the Candidate, its kernel last."""
    found: dict[_Key, list[MergedRecord]] = {}
    for merged in records:
        record, candidate = merged.record, merged.record.candidate
        if record.suite == TRIED_SUITE:
            continue
        machine = None if is_across else merged.machine
        rest = dataclasses.replace(candidate, kernel="")
        key = machine, _content(record.matrix), record.regime, rest, candidate.kernel
        found.setdefault(key, []).append(merged)
    return found


def _paired(
    in_A: Mapping[_Key, list[MergedRecord]], in_B: Mapping[_Key, list[MergedRecord]]
) -> tuple[list[tuple[list[MergedRecord], list[MergedRecord]]], int, int]:
    """Return the Records of each product in both, and the numbers of products in one of them alone.

    Where each has one kernel that the other lacks, of two versions or machines, these are compared.
    """
    pairs = [(in_A[key], in_B[key]) for key in in_A if key in in_B]
    alone_A, alone_B = (
        [key for key in own if key not in other] for own, other in ((in_A, in_B), (in_B, in_A))
    )
    of_A, of_B = (_by_rest(keys) for keys in (alone_A, alone_B))
    changed = [rest for rest, keys in of_A.items() if len(keys) == 1 and len(of_B.get(rest, ())) == 1]
    pairs += [(in_A[of_A[rest][0]], in_B[of_B[rest][0]]) for rest in changed]
    return pairs, len(alone_A) - len(changed), len(alone_B) - len(changed)


def _by_rest(keys: Iterable[_Key]) -> dict[_Key, list[_Key]]:
    found: dict[_Key, list[_Key]] = {}
    for key in keys:
        found.setdefault(key[:-1], []).append(key)
    return found


def _deviation(products: Iterable[Sequence[MergedRecord]]) -> tuple[float, int]:
    """Return the standard deviation of the logarithm of a measured time, and the repeats that tell it.

    Without repeats it is that of the halves of Records.
    """
    apart: list[float] = []
    noises = []
    for of_product in products:
        logs = np.log([merged.record.time_s for merged in of_product])
        count = len(logs)
        noises += [merged.record.noise for merged in of_product if merged.record.noise is not None]
        if count > 1:
            apart += list(np.abs(logs - logs.mean()) * np.sqrt(count / (count - 1)))
    if apart:
        return float(np.median(apart)) * _OF_MEDIAN, len(apart)
    return (float(np.median(noises)) * _OF_MEDIAN / np.sqrt(2) if noises else 0.0), 0


def _time_s(records: Sequence[MergedRecord]) -> float:
    return float(np.exp(np.mean(np.log([merged.record.time_s for merged in records]))))


def _side(records: list[MergedRecord], deviation: float) -> _Side:
    """Return the time of a product: that of each Record has the greater of two variances."""
    variances = [max(deviation, _deviation_of_samples(merged.record)) ** 2 for merged in records]
    return _Side(records, float(np.log(_time_s(records))), sum(variances) / len(records) ** 2)


def _deviation_of_samples(record: Record) -> float:
    """Return the standard deviation of the low quantile of samples, over the time (Woodruff 1952).

    The samples of a turn count as one.
    """
    turns = len(record.samples_s) / SAMPLES_A_TURN
    if turns < 1:
        return 0.0
    reach = np.sqrt(LOW_SHARE * (1 - LOW_SHARE) / turns)
    low, high = np.quantile(record.samples_s, np.clip([LOW_SHARE - reach, LOW_SHARE + reach], 0, 1))
    return float(high - low) / 2 / record.time_s


def _mean(matrices: Sequence[str], logs: Sequence[float] | NDArray[Any]) -> GeometricMean:
    """Return the geometric mean of ratios, with an interval from matrices drawn with replacement."""
    names, of = np.unique(matrices, return_inverse=True)
    sums, counts = (np.bincount(of, weights=values) for values in (logs, np.ones(len(of))))
    drawn = np.random.default_rng(0).integers(len(names), size=(_DRAWINGS, len(names)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.exp(np.quantile(means, ((1 - _HELD) / 2, (1 + _HELD) / 2)))
    is_known = len(names) > 1
    ratio = float(np.exp(np.mean(logs)))
    return GeometricMean(ratio, float(low) if is_known else None, float(high) if is_known else None, len(of))
