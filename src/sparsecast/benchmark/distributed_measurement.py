"""Measure distributed products: build them on all ranks, check and time them in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
    """A product on the ranks; `error` and `convert_s` are known to rank 0."""

    operator: DistributedOperator
    x: NDArray[Any]
    out: NDArray[Any]
    error: float
    convert_s: float


def measure_configurations(
    comm: Any,
    nodes: Nodes,
    problem: Problem | None,
    configurations: Sequence[Configuration],
    on_left_out: LeftOut = lambda configuration, why: None,
    suite: str = "user",
) -> list[MeasuredProduct]:
    """Measure products of one matrix on all ranks of a communicator together; return them, fastest first.

    Rank 0 has the `problem`, others None; it alone gets the products, with records of a `suite`, and calls
    `on_left_out` with each Configuration that is left out, and why.
    """
    built: dict[Configuration, _Built] = {}
    partitions: dict[str, Partition] = {}
    references: dict[str, ReferenceProduct] = {}
    for configuration in configurations:
        try:
            built[configuration] = _build(comm, problem, configuration, partitions, references)
        except RanksError as error:
            if comm.rank == 0:
                on_left_out(configuration, str(error))
    if not built:
        return []
    is_oversubscribed = nodes.is_oversubscribed(range(comm.size))
    cores = None if is_oversubscribed else cores_together(comm)
    calls = {way: partial(each.operator.product, each.x, each.out) for way, each in built.items()}
    timings = measure_together(calls, TogetherClock(comm), _WAIT_S, cores, _SAMPLES)
    parts = {way: parts_s(comm, each.operator.product, each.x, each.out) for way, each in built.items()}
    if problem is None:
        return []
    matrix, found = problem.matrix, []
    for configuration, product in built.items():
        timing = timings[configuration]
        record = DistributedRecord(
            configuration=configuration,
            matrix=problem.specification,
            nnz=int(matrix.nnz),
            distribution=distribute(matrix, partitions[configuration.partition]).to_dict(),
            samples_s=timing.samples_s,
            time_s=timing.time_s,
            spread=timing.spread,
            noise=timing.noise,
            error=product.error,
            is_oversubscribed=is_oversubscribed,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            version=VERSION,
            parts_s=parts[configuration],
            suite=suite,
            deviation=float(np.diff(matrix.indptr).std()) if matrix.shape[0] else 0.0,
        )
        found.append(MeasuredProduct(record, product.convert_s))
    return sorted(found, key=lambda product: product.record.time_s)


def _build(
    comm: Any,
    problem: Problem | None,
    configuration: Configuration,
    partitions: dict[str, Partition],
    references: dict[str, ReferenceProduct],
) -> _Built:
    """Build a product and compare it with the reference result, over the rows of all ranks.

    What rank 0 computes once for several is kept in `partitions`, by method, and in `references`, by type.
    """
    method, dtype = configuration.partition, configuration.dtype

    def own_partition() -> Partition | None:
        if problem is not None and method not in partitions:
            partitions[method] = partition(problem.matrix, comm.size, method)
        return partitions.get(method)

    parts = in_step(comm, own_partition)
    comm.Barrier()
    start = perf_counter()
    operator = compile(problem.matrix if problem else None, configuration, comm, parts)
    convert_s = slowest(comm, perf_counter() - start)
    whole = right_hand_side(operator.shape[1], dtype) if comm.rank == 0 else None
    x = operator.scatter(whole)
    # Filled with NaN, so that a row that a product forgets is found out.
    out = np.full(operator.range.size, np.nan, dtype=operator.dtype)
    operator.product(x, out)
    y, error = operator.gather(out), 0.0
    if problem is not None and whole is not None and y is not None:
        if dtype not in references:
            A = csr_array(problem.matrix.astype(dtype, copy=False))
            references[dtype] = ReferenceProduct.of(A, whole)
        what = f"{configuration.algorithm} in {configuration.format} on {configuration.ranks} ranks"
        error = references[dtype].check(y, what)  # on rank 0 alone
    return _Built(operator, x, out, error, convert_s)


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
