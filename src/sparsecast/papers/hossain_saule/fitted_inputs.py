"""What the paper measured of its cluster and does not print, fitted to its own forecasts.

It prints the processor, from which the time of a multiplication and addition follows, and the cache. STREAM's
curve and the times of messages are in figures without numbers. So that hossain-micro can be compared with the
paper's forecasts, each is found from one table, by least squares of relative residuals:

- table IV: bandwidth of a rank in CSR, and the time of a call from rank to rank;
- table V: bandwidth of a rank in COO, with that time of a call;
- table II: what computation leaves is Reduce and Bcast, half each;
- table VI: what computation leaves is Allgatherv.

Tables III and VII check it. With CSR's bandwidth for both formats III and V are missed: by table I, COO moves
more bytes than CSR in 1D, but the paper forecasts it to be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from sparsecast.machines.profile import Profile
from sparsecast.models.clusters.cluster_model import ClusterForecast, ClusterTraining, Question
from sparsecast.models.clusters.network import COLLECTIVES, Placement
from sparsecast.papers.hossain_saule.micro import KINDS, HossainMicroCluster, spanned_nodes
from sparsecast.papers.hossain_saule.published_times import PublishedTime, of_table
from sparsecast.records import MicroBenchmark

#: The tables that tell each input.
FITTED_TABLES = {"csr": "IV", "coo": "V", "2d": "II", "global-1d": "VI"}

#: Bytes of the triad and of the messages of which one time is known: any, as it is all that is measured.
_ANY_BYTES = 1 << 20

#: Least seconds of what computation leaves: the forecasts of the paper have two digits.
_LEAST_S = 1e-9

QuestionOf = Callable[[PublishedTime], Question]


@dataclass(frozen=True)
class FittedInputs:
    """Micro-benchmarks of the paper's cluster as its forecasts tell them.

    Of the `profile` of published figures the time of a multiplication and addition, and the cache, count. The
    bandwidth is that of a rank, by format; `call_s` is one call from rank to rank.
    """

    profile: Profile
    bandwidth_bytes_per_s: dict[str, float]
    call_s: float
    collectives: tuple[MicroBenchmark, ...] = ()

    def model(self, format_name: str) -> HossainMicroCluster:
        machine, triad_s = self.profile.machine, _ANY_BYTES / self.bandwidth_bytes_per_s[format_name]
        points = [point for point in self.profile.microbenchmarks if point.kind == "fma"]
        for ranks in range(1, machine.cores + 1):  # the paper's bandwidth depends on the size alone
            points.append(_point("triad", ranks, 1, _ANY_BYTES, triad_s, "IV, V"))
        points.append(_point("ping-pong", 2, 2, _ANY_BYTES, self.call_s, "IV"))
        return HossainMicroCluster(as_printed=True).fit(
            ClusterTraining(machine, (*points, *self.collectives))
        )

    def forecasts(self, times: Sequence[PublishedTime], question_of: QuestionOf) -> list[ClusterForecast]:
        models = {name: self.model(name) for name in self.bandwidth_bytes_per_s}
        return [
            models[time.configuration.format].forecast([time.configuration], question_of(time))[0]
            for time in times
        ]


def fitted_inputs(profile: Profile, question_of: QuestionOf) -> FittedInputs:
    """Return the inputs that the paper does not print; `question_of` returns what is known of a matrix."""
    from scipy.optimize import nnls

    # At one byte a second, and a second for each call, the terms of the model are bytes and calls.
    none = tuple(_point(kind, 2, 1, _ANY_BYTES, 1.0, "none") for kind in COLLECTIVES)
    units = FittedInputs(profile, {"csr": 1.0, "coo": 1.0}, 1.0, none)
    columns, target_s, predicted_s = _local_1d(units, of_table(FITTED_TABLES["csr"]), question_of)
    (inverse, call_s), _ = nnls(columns / predicted_s[:, None], target_s / predicted_s)
    bandwidths = {"csr": 1 / float(inverse)}
    columns, target_s, predicted_s = _local_1d(units, of_table(FITTED_TABLES["coo"]), question_of)
    left_s = target_s - call_s * columns[:, 1]
    (inverse,), _ = nnls(columns[:, :1] / predicted_s[:, None], left_s / predicted_s)
    bandwidths["coo"] = 1 / float(inverse)
    computing = replace(units, bandwidth_bytes_per_s=bandwidths, call_s=float(call_s))
    times = [time for algorithm in ("2d", "global-1d") for time in of_table(FITTED_TABLES[algorithm])]
    return replace(computing, collectives=tuple(_collectives(computing, times, question_of)))


def _local_1d(
    units: FittedInputs, times: Sequence[PublishedTime], question_of: QuestionOf
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bytes and calls of each time, the seconds that they take, and the paper's forecast."""
    terms = [dict(forecast.terms) for forecast in units.forecasts(times, question_of)]
    columns = np.array([[term["sequential"] + term["misses"], term.get("ping-pong", 0.0)] for term in terms])
    predicted_s = np.array([time.predicted_s for time in times], dtype=float)
    return columns, predicted_s - [term["FMA"] for term in terms], predicted_s


def _collectives(
    computing: FittedInputs, times: Sequence[PublishedTime], question_of: QuestionOf
) -> list[MicroBenchmark]:
    """Return micro-benchmarks of what computation leaves of each forecast of the paper."""
    points = []
    for time, forecast in zip(times, computing.forecasts(times, question_of), strict=True):
        assert time.predicted_s is not None and forecast.computation_s is not None
        way, left_s = time.configuration, max(time.predicted_s - forecast.computation_s, _LEAST_S)
        value, side = way.value_bytes, isqrt(way.ranks)
        if way.algorithm == "global-1d":
            size = round(value * time.rows / way.ranks)
            points.append(_point("allgatherv", way.ranks, way.nodes, size, left_s, time.table))
            continue
        size = value * -(-time.rows // side)
        for kind, nodes in zip(KINDS["2d"], spanned_nodes(Placement(way.ranks, way.nodes)), strict=True):
            points.append(_point(kind, side, nodes, size, left_s / 2, time.table))
    return points


def _point(kind: str, ranks: int, nodes: int, size: int, time_s: float, table: str) -> MicroBenchmark:
    return MicroBenchmark(
        kind=kind,
        ranks=ranks,
        nodes=nodes,
        bytes=size,
        neighbours=None,
        time_s=time_s,
        noise=None,
        is_oversubscribed=False,
        measured_at=f"fitted to table {table}, not measured",
        version="published",
    )
