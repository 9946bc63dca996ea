"""Measure distributed products: build them on all ranks, check and time them in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.product_timer import ReferenceProduct, right_hand_side
from sparsecast.distributed.compiling import compile
from sparsecast.distributed.distributed_product import COMMUNICATION, LOCAL, REMOTE, DistributedProduct
from sparsecast.distributed.operator import DistributedOperator
from sparsecast.distributed.processes import Nodes, in_step
from sparsecast.distributed.timing import TogetherClock, cores_together, measure_together, slowest
from sparsecast.errors import RanksError
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Timing
from sparsecast.records import Configuration, DistributedRecord
from sparsecast.results.cluster import MeasuredProduct
from sparsecast.system.version import VERSION

#: Samples of each product, and seconds that each may wait for full speed of all cores.
_SAMPLES, _WAIT_S = 80, 0.4

#: Batches of products, step by step, of which one tells where the time goes; seconds and calls of a batch.
_BATCHES, _BATCH_S, _MOST_CALLS = 11, 0.005, 1000

#: Told which Configuration is left out, and why.
LeftOut = Callable[[Configuration, str], None]


@dataclass(frozen=True)
class _Built:
    """A Configuration on the ranks; `error` and `convert_s` are known to rank 0."""

    configuration: Configuration
    operator: DistributedOperator
    x: NDArray[Any]
    out: NDArray[Any]
    error: float
    convert_s: float

    def call(self) -> None:
        self.operator.product(self.x, self.out)


@dataclass
class DistributedMeasurement:
    """Measures products of one matrix on the ranks of a communicator; all make one and run it."""

    comm: Any
    nodes: Nodes
    problem: Problem | None  # on rank 0; None elsewhere
    configurations: Sequence[Configuration]  # the same on all ranks
    #: Called on rank 0 with each Configuration that is left out, and why.
    on_left_out: LeftOut = lambda configuration, why: None
    suite: str = "user"  # of the records
    _partitions: dict[str, Partition] = field(default_factory=dict)
    _references: dict[str, ReferenceProduct] = field(default_factory=dict)

    def run(self) -> list[MeasuredProduct]:
        """Return what was measured, fastest first, on rank 0; nothing elsewhere."""
        built = {str(place): product for place, product in enumerate(self._built())}
        if not built:
            return []
        cores = None if self._is_oversubscribed else cores_together(self.comm)
        clock = TogetherClock(self.comm)
        calls = {key: product.call for key, product in built.items()}
        timings = measure_together(calls, clock, _WAIT_S, cores, _SAMPLES)
        parts = {
            key: parts_s(self.comm, product.operator.product, product.x, product.out)
            for key, product in built.items()
        }
        if self.comm.rank:
            return []
        found = [self._measured(product, timings[key], parts[key]) for key, product in built.items()]
        return sorted(found, key=lambda product: product.record.time_s)

    @property
    def _is_oversubscribed(self) -> bool:
        return self.nodes.is_oversubscribed(range(self.comm.size))

    def _built(self) -> list[_Built]:
        found = []
        for configuration in self.configurations:
            try:
                found.append(self._build(configuration))
            except RanksError as error:
                if self.comm.rank == 0:
                    self.on_left_out(configuration, str(error))
        return found

    def _build(self, configuration: Configuration) -> _Built:
        """Build a product and compare it with the reference result, over the rows of all ranks."""
        parts = in_step(self.comm, lambda: self._partition(configuration))
        matrix = self.problem.matrix if self.problem else None
        self.comm.Barrier()
        start = perf_counter()
        operator = compile(matrix, configuration, self.comm, parts)
        convert_s = slowest(self.comm, perf_counter() - start)
        whole = right_hand_side(operator.shape[1], configuration.dtype) if self.comm.rank == 0 else None
        x = operator.scatter(whole)
        # Filled with NaN, so that a row that a product forgets is found out.
        out = np.full(operator.range.size, np.nan, dtype=operator.dtype)
        operator.product(x, out)
        y = operator.gather(out)
        error = 0.0 if y is None else self._error(configuration, y, whole)
        return _Built(configuration, operator, x, out, error, convert_s)

    def _partition(self, configuration: Configuration) -> Partition | None:
        if self.problem is None:
            return None
        method = configuration.partition
        if method not in self._partitions:
            self._partitions[method] = partition(self.problem.matrix, self.comm.size, method)
        return self._partitions[method]

    def _error(self, configuration: Configuration, y: NDArray[Any], x: NDArray[Any] | None) -> float:
        """Return the error of a whole y, refusing more than rounding explains; on rank 0."""
        assert self.problem is not None
        assert x is not None
        dtype = configuration.dtype
        if dtype not in self._references:
            A = csr_array(self.problem.matrix.astype(dtype, copy=False))
            self._references[dtype] = ReferenceProduct.of(A, x)
        what = f"{configuration.algorithm} in {configuration.format} on {configuration.ranks} ranks"
        return self._references[dtype].check(y, what)

    def _measured(self, built: _Built, timing: Timing, parts: Mapping[str, list[float]]) -> MeasuredProduct:
        assert self.problem is not None
        matrix = self.problem.matrix
        found = distribute(matrix, self._partitions[built.configuration.partition])
        record = DistributedRecord(
            configuration=built.configuration,
            matrix=self.problem.specification,
            nnz=int(matrix.nnz),
            distribution=found.to_dict(),
            samples_s=timing.samples_s,
            time_s=timing.time_s,
            spread=timing.spread,
            noise=timing.noise,
            error=built.error,
            is_oversubscribed=self._is_oversubscribed,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            version=VERSION,
            parts_s=parts,
            suite=self.suite,
            deviation=float(np.diff(matrix.indptr).std()) if matrix.shape[0] else 0.0,
        )
        return MeasuredProduct(record, built.convert_s)


def parts_s(
    comm: Any, product: DistributedProduct, x: NDArray[Any], out: NDArray[Any]
) -> dict[str, list[float]]:
    """Return where the time of one product goes: seconds of each part, by rank; the same on all ranks.

    Of some batches of products, run step by step, it is the one whose slowest rank takes least. What a rank
    waits for others is in its communication. Empty where the steps are not known one by one.
    """
    names, steps = (LOCAL, COMMUNICATION, REMOTE), product.steps
    if any(step.name not in names for step in steps):
        return {}
    once = TogetherClock(comm).seconds(lambda: product(x, out), 1)
    calls = int(np.clip(_BATCH_S / max(once, 1e-9), 1, _MOST_CALLS))
    best, least_s = np.zeros((comm.size, len(names))), np.inf
    for _ in range(_BATCHES):
        own = np.zeros(len(names))
        comm.Barrier()
        for _ in range(calls):
            before = perf_counter()
            for step in steps:
                step.run(x, out)
                now = perf_counter()
                own[names.index(step.name)] += now - before
                before = now
        every = np.empty((comm.size, len(names)))
        comm.Allgather(own / calls, every)
        if every.sum(axis=1).max() < least_s:
            best, least_s = every, float(every.sum(axis=1).max())
    used = {step.name for step in steps}
    return {name: best[:, place].tolist() for place, name in enumerate(names) if name in used}
