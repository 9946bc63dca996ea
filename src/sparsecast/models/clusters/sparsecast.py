"""The model of this project for distributed products: node model, physics of messages, and measurements.

The time is that of the slowest rank: its local part, the communication, and its remote part. A local part is
what the node model forecasts for it alone, plus what it waits for memory that the other ranks of the node use
as well. Where the profile has no times of products on a node, physics takes its place: bytes and misses of x
at a rank's share of memory, and mispredicted ends of rows. Communication is `network`: composed from
latencies, memory and links, times the ratio by which measured collectives differ from that.

Where distributed products were measured on the machine, factors for each algorithm and format are fitted to
them: of computation by physics, and of each term of communication. Intervals come from matrices that were
left out of that fit. The node model needs no factor; with it communication has one, from products whose parts
were timed by rank. Without such products an interval is that of the node model, widened by the scatter of the
measured collectives, where both are known; otherwise there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.problem import group_of
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    COUNTED_FORMATS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Floats,
    Question,
    memory_bytes,
)
from sparsecast.models.clusters.local_work import (
    CacheShare,
    is_random,
    mispredicted_rows,
    ordered_misses,
    streamed_bytes,
    x_lines,
)
from sparsecast.models.clusters.network import Network
from sparsecast.models.fitting import nonnegative, prediction_interval
from sparsecast.records import Configuration, DistributedRecord
from sparsecast.system.memory import CACHE_LINE_BYTES

#: Seconds of a mispredicted branch: 16 cycles at 3 GHz, as most processors of servers take.
MISPREDICTION_S = 16 / 3.0e9

#: Seconds for which the next entry of a row waits: an FMA of 4 cycles at 3 GHz (the paper of Hossain and
#: Saule, section III.C.1.a), because each adds to the sum of the one before.
ENTRY_S = 4 / 3.0e9

#: Fewest measured products of an algorithm and format that factors are fitted to, and their matrices that
#: tell an interval.
LEAST_RECORDS, LEAST_GROUPS = 4, 3

#: How much the common factor of all terms weighs in a fit, beside one measurement. Its error on matrices left
#: out of the published times on 144 and 169 ranks is among the least of the weights from 0 to 0.5
#: (decision 33); without any weight, terms that are alike get any factors.
PRIOR_WEIGHT = 0.02

_Key = tuple[str, str, str]

#: Words that pass memory for each sum that is added to y by its row: index, sum, y twice.
ADDED_WORDS = 4


@CLUSTER_MODELS.register("sparsecast")
class SparsecastClusterModel(ClusterModel):
    """Node model, messages and memory of a node, corrected by what was measured.

    Parameters
    ----------
    prior_weight : float
        Of the common factor of all terms, as PRIOR_WEIGHT.

    What is learned of products goes by algorithm, format and parity.
    """

    name: ClassVar[str] = "sparsecast"

    def __init__(self, prior_weight: float = PRIOR_WEIGHT) -> None:
        self.prior_weight = prior_weight

    def fit(self, training: ClusterTraining) -> Self:
        """Learn the speeds, and from DistributedRecords the factors and the intervals."""
        for kind in ("triad", "ping-pong"):
            if not training.of_kind(kind):
                raise self.insufficient(
                    f"micro-benchmarks of kind {kind}, with no more ranks than cores; {ADD_MICROBENCHMARKS}"
                )
        self.network_ = Network(training)
        self.cache_ = CacheShare.all_levels(training.machine)
        # Of one multiplication and addition; 0 where it was not measured: it is next to nothing.
        self.fma_s_ = min((point.time_s for point in training.of_kind("fma")), default=0.0)
        #: Of computation and of each term of communication.
        self.factors_: dict[_Key, tuple[float, ...]] = {}
        #: Ends of the interval of measured over forecast, from matrices left out.
        self.ratios_: dict[_Key, tuple[float, float]] = {}
        #: Median and ends of the interval of measured over composed communication, for forecasts with the
        #: node model: where the parts of products were timed.
        self.beside_node_: dict[_Key, tuple[float, float, float]] = {}
        measured: dict[_Key, list[tuple[DistributedRecord, Question]]] = {}
        for record, question in self._learnable(training):
            if self._reaches(record.configuration):
                for key in _keys(record.configuration, question):
                    measured.setdefault(key, []).append((record, question))
        for key, pairs in measured.items():
            if len(pairs) >= LEAST_RECORDS:
                if key[1] in COUNTED_FORMATS:
                    self._learn(key, pairs)
                self._learn_communication(key, [pair for pair in pairs if pair[0].parts_s])
        return self

    def _learn(self, key: _Key, pairs: Sequence[tuple[DistributedRecord, Question]]) -> None:
        records = [record for record, _ in pairs]
        counts = np.array(
            [_counts(*self._terms(record.configuration, question)) for record, question in pairs]
        )
        measured = np.array([record.time_s for record in records])
        overlaps = np.array([_overlaps(record.configuration) for record in records])
        self.factors_[key] = tuple(_factors(counts, measured, self.prior_weight).tolist())
        groups = np.array([group_of(record.matrix) for record in records])
        ratios: list[float] = []
        for left_out in sorted(set(groups.tolist())):
            is_other = groups != left_out
            if is_other.sum() >= LEAST_RECORDS:
                factors = _factors(counts[is_other], measured[is_other], self.prior_weight)
                expected = _together(counts[~is_other] * factors, overlaps[~is_other])
                ratios += (measured[~is_other] / expected).tolist()
        if len(set(groups.tolist())) >= LEAST_GROUPS and len(ratios) > 1:
            self.ratios_[key] = prediction_interval(ratios)

    def _learn_communication(self, key: _Key, pairs: Sequence[tuple[DistributedRecord, Question]]) -> None:
        """Learn what products take beyond the computation of their slowest rank, over what is composed."""
        ratios = []
        for record, question in pairs:
            composed_s = sum(self._longest_messages(record.configuration, question).values())
            nothing = [0.0] * record.configuration.ranks
            local_s, remote_s = (record.parts_s.get(name) or nothing for name in ("local", "remote"))
            computed_s = max(map(sum, zip(local_s, remote_s, strict=True)), default=0.0)
            if composed_s > 0:
                ratios.append(max(record.time_s - computed_s, 0.0) / composed_s)
        if len(ratios) >= LEAST_RECORDS:
            low, high = np.quantile(ratios, (0.05, 0.95))
            self.beside_node_[key] = float(np.median(ratios)), float(low), float(high)

    def _reaches(self, configuration: Configuration) -> bool:
        """Tell whether messages between as many nodes can be forecast."""
        return configuration.nodes == 1 or self.network_.between is not None

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        """Return why it has no forecast: unmeasured messages between nodes."""
        if not self._reaches(configuration):
            return (
                f"{configuration.nodes} nodes: expected a ping-pong between two in the profile; "
                f"{ADD_MICROBENCHMARKS} on two nodes, or ask for the ranks of one"
            )
        return super().lacking(configuration, question)

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        """Return the time of the slowest rank."""
        has_node = configuration.format in question.local
        learned = self.beside_node_ if has_node else self.factors_
        key = next((key for key in _keys(configuration, question) if key in learned), None)
        work, messages = self._terms(configuration, question)
        counts = np.array(_counts(work, messages))
        scatter = self._scatter(configuration, question)
        if key is not None and has_node:
            middle, low, high = self.beside_node_[key]
            counts[1:] *= middle
            scatter = None if middle == 0 else (low / middle, high / middle)
        elif key is not None:
            counts = counts * self.factors_[key]
        computation_s, communication_s = float(counts[0]), float(counts[1:].sum())
        time_s = float(_together(counts[None, :], _overlaps(configuration))[0])
        forecast = ClusterForecast(
            configuration,
            max(time_s, float(np.finfo(float).tiny)),
            memory_bytes(configuration, question),
            tuple({**work, **messages}.items()),
            computation_s=computation_s,
            communication_s=communication_s,
        )
        if not has_node:
            return forecast.within(*self.ratios_[key]) if key in self.ratios_ else forecast
        parts = question.on_node(configuration)
        lows_s = [part.low_s for part in parts if part.low_s is not None]
        highs_s = [part.high_s for part in parts if part.high_s is not None]
        if scatter is None or not len(lows_s) == len(highs_s) == len(parts):
            return forecast
        low_s = sum(lows_s) + work["waiting"] + communication_s * scatter[0]
        high_s = sum(highs_s) + work["waiting"] + communication_s * scatter[1]
        return replace(forecast, low_s=min(low_s, forecast.time_s), high_s=max(high_s, forecast.time_s))

    def _scatter(self, configuration: Configuration, question: Question) -> tuple[float, float] | None:
        """Return how far measured collectives of the kinds of an algorithm are from their medians."""
        if configuration.ranks == 1:
            return 1.0, 1.0
        parts = PRODUCTS.get(configuration.algorithm).communication(question.distribution)
        scatters = [self.network_.measured[part.kind].scatter for part in parts]
        known = [scatter for scatter in scatters if scatter is not None]
        if len(known) < len(scatters):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def _terms(
        self, configuration: Configuration, question: Question
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the slowest rank's seconds of computation and of communication, before any factor."""
        if configuration.format in question.local:
            return self._on_node(configuration, question), self._longest_messages(configuration, question)
        work = self._work(configuration, question)
        messages = self.network_.terms(configuration, question.distribution)
        times_s = _together(np.column_stack(_counts(work, messages)), _overlaps(configuration))
        slowest = int(np.argmax(times_s))
        work_s, messages_s = (
            {name: float(seconds[slowest]) for name, seconds in terms.items()} for terms in (work, messages)
        )
        return work_s, messages_s

    def _longest_messages(self, configuration: Configuration, question: Question) -> dict[str, float]:
        """Return the longest communication of a rank: it holds up those that wait for its messages."""
        terms = self.network_.terms(configuration, question.distribution)
        return {name: float(seconds.max()) for name, seconds in terms.items()}

    def _work(self, configuration: Configuration, question: Question) -> dict[str, Floats]:
        """Return the seconds of each rank's computation by physics alone."""
        distribution = question.distribution
        streamed = streamed_bytes(configuration, distribution)
        share = self.network_.memory.share(configuration.ranks_per_node, streamed)
        if is_random(configuration):
            accesses = distribution.nnz.astype(float)
            others = streamed / CACHE_LINE_BYTES / np.maximum(accesses, 1.0)
            misses = self.cache_.warm_misses(accesses, x_lines(configuration, distribution), others)
        else:
            misses = ordered_misses(configuration, distribution, self.cache_)
        return {
            "streams": streamed / share,
            "misses": misses * CACHE_LINE_BYTES / share,
            "row ends": mispredicted_rows(configuration, question) * MISPREDICTION_S,
            "sums": np.maximum(self.fma_s_, ENTRY_S) * distribution.nnz,
        }

    def _on_node(self, configuration: Configuration, question: Question) -> dict[str, float]:
        """Return what the node model says of a rank, its waiting for memory, and its additions to y."""
        distribution, memory = question.distribution, self.network_.memory
        on_node = configuration.ranks_per_node
        rank = int(np.argmax(distribution.nnz)) if question.rank is None else question.rank
        if configuration.format in COUNTED_FORMATS:
            streamed = streamed_bytes(configuration, distribution)[rank : rank + 1]
        else:
            streamed = np.array([float(question.bytes_on_node(configuration))])
        touched = streamed + x_lines(configuration, distribution)[rank] * CACHE_LINE_BYTES
        fits = float(touched[0]) <= self.cache_.lines * CACHE_LINE_BYTES
        slower = np.maximum(1 / memory.share(on_node, touched) - 1 / memory.share(1, touched), 0.0)
        local, *remote = question.on_node(configuration)
        terms = {"local": local.time_s, "waiting": 0.0 if fits else float((streamed * slower)[0])}
        if not remote:
            return terms
        added = min(distribution.rows[rank], distribution.remote_nnz[rank]) * ADDED_WORDS
        added_bytes = np.array([float(added * configuration.value_bytes)])
        additions_s = float((added_bytes / memory.share(on_node, added_bytes))[0])
        return {**terms, "remote": remote[0].time_s, "additions": additions_s}


def _counts(work: Mapping[str, Any], messages: Mapping[str, Any]) -> list[Any]:
    """Return what each factor multiplies: the computation, and each term of communication."""
    return [sum(work.values()), *messages.values()]


def _overlaps(configuration: Configuration) -> bool:
    """Tell whether messages travel while ranks compute: inside a node it is the ranks that copy them."""
    return PRODUCTS.get(configuration.algorithm).overlaps and configuration.nodes > 1


def _together(counts: Floats, overlaps: bool | NDArray[np.bool_]) -> Floats:
    """Return the times of computation and communication: one after the other, or at once."""
    computation, communication = counts[:, 0], counts[:, 1:].sum(axis=1)
    both = np.maximum(computation, communication), computation + communication
    return np.asarray(np.where(overlaps, *both))


def _factors(counts: Floats, measured: Floats, prior_weight: float) -> Floats:
    """Return the factors with the least squares of residuals and of their distance from a common one.

    All are at least 0. The common factor decides where the measurements cannot tell two terms apart.
    """
    common = float(np.median(measured / counts.sum(axis=1)))
    prior = np.diag(np.full(counts.shape[1], prior_weight))
    relative = np.vstack([counts * common / measured[:, None], prior])
    target = np.concatenate([np.ones(len(measured)), np.full(counts.shape[1], prior_weight)])
    return common * nonnegative(relative, target)


def _keys(configuration: Configuration, question: Question) -> list[_Key]:
    """Return what a Configuration may learn from, the most alike first.

    Libraries gather from an even number of ranks by exchanges of neighbours, and from an odd one in a ring
    (Open MPI does, for long vectors), so these are learned apart, where both were measured.
    """
    key = configuration.algorithm, configuration.format
    parts = PRODUCTS.get(configuration.algorithm).communication(question.distribution)
    if all(part.kind != "allgatherv" for part in parts):
        return [(*key, "")]
    return [(*key, "odd" if configuration.ranks % 2 else "even"), (*key, "")]
