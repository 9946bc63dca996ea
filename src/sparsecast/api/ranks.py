"""What runs on the ranks that mpirun started: calibrations and measurements. All ranks call alike."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsecast.api.clustering import cluster
from sparsecast.benchmark.distributed_measurement import measure_configurations
from sparsecast.benchmark.journal import keep_distributed, kept
from sparsecast.benchmark.rank_calibration import RankCalibration
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.distributed.compiling import check_ranks
from sparsecast.distributed.processes import Nodes, in_step, node_machine, together, world
from sparsecast.distributed.processes import started_ranks as started_ranks
from sparsecast.distributed.products import PRODUCTS, default_algorithms
from sparsecast.errors import InputError
from sparsecast.formats import FORMATS
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, user_path
from sparsecast.matrices.partitioning.methods import GRID, METHODS, default_method
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SUITES, in_turn
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Configuration
from sparsecast.results.cluster import MeasuredOnRanks


@contextmanager
def on_ranks() -> Iterator[Any]:
    """Give the communicator of all ranks; all of them end when one fails within the body."""
    comm = world()
    with together(comm):
        yield comm


def rank_calibration(comm: Any, budget_s: float, suites: Sequence[str] = ()) -> RankCalibration:
    """Return the calibration of the ranks of a communicator, whose micro-benchmarks join the profile.

    Unknown suites, for `measure_suites_on_ranks`, are refused before anything is measured.
    """
    in_step(comm, lambda: SUITES.require(suites))
    machine = node_machine()
    nodes = Nodes.of(comm, machine)
    return in_step(comm, lambda: RankCalibration(comm, machine, nodes, budget_s))


@dataclass(frozen=True)
class ProductOptions:
    """What `measure_on_ranks` measures; None is the default.

    Attributes
    ----------
    algorithms, formats : sequence of str or None
        All that the number of ranks allows; CSR.
    remote_format : str or None
        CSR, or COO beside COO.
    partition : str or None
        METIS where it is installed and the matrix is square, else rows by non-zeros; a grid for 2D.
    dtype : str or None
        That of the matrix.
    suite : str
        In Records. Only products of a user's matrix are forecast beside the measurement.
    """

    algorithms: Sequence[str] | None = None
    formats: Sequence[str] | None = None
    remote_format: str | None = None
    partition: str | None = None
    dtype: str | None = None
    suite: str = "user"


def measure_on_ranks(
    comm: Any, matrix: str | Path, options: ProductOptions, *, keeps: bool = True
) -> MeasuredOnRanks | None:
    """Measure distributed products of a matrix on the ranks of a communicator; None on all ranks but 0.

    Rank 0 reads or makes the `matrix`. With `keeps` the records are kept in the data folder, for the models.
    A RanksError says on all ranks that a name is unknown, that the matrix cannot be read, or that the ranks
    cannot do an algorithm.
    """
    machine = node_machine()
    nodes = Nodes.of(comm, machine)
    problem, configured = in_step(comm, lambda: _prepared(comm, matrix, options, nodes, keeps))
    configurations = comm.bcast(configured)
    refused: dict[str, str] = {}
    forecasts: dict[Configuration, ClusterForecast] = {}
    if problem is not None and options.suite == "user":
        forecasts = _forecasts(problem, machine, configurations, refused)

    def leave_out(configuration: Configuration, why: str) -> None:
        refused[f"{configuration.algorithm} {configuration.format}"] = why

    measured = measure_configurations(comm, nodes, problem, configurations, leave_out, options.suite)
    if problem is None:
        return None
    if not measured:
        raise InputError(next(iter(refused.values())))
    if keeps:
        keep_distributed(machine, [product.record for product in measured])
    products = [dataclasses.replace(it, forecast=forecasts.get(it.record.configuration)) for it in measured]
    return MeasuredOnRanks(problem, products, refused, tuple(nodes.notes()))


def measure_suites_on_ranks(
    comm: Any, suites: Sequence[str], budget_s: float, on_progress: Progress = no_progress
) -> tuple[int, int]:
    """Measure products of benchmark matrices on all ranks, until all are measured or the budget is spent.

    Each is kept at once. A later run on as many ranks goes on with the matrices that are left. The suites
    take turns. `on_progress` is called on rank 0 with the seconds done, the seconds expected in all, and the
    matrix. Return on all ranks how many matrices were measured, and for how many the budget did not suffice.
    """
    machine, ranks = node_machine(), comm.size
    every = in_turn(SUITES.get(name)().whole(machine, ranks) for name in suites)
    before = {
        record.matrix
        for record in ([] if comm.rank else kept(machine).distributed)
        if record.suite in suites and record.configuration.ranks == ranks
    }
    todo = [place for place, matrix in enumerate(every) if matrix.problem.specification not in before]
    start_s, measured = time.perf_counter(), 0
    while True:
        used_s = time.perf_counter() - start_s
        is_over = measured == len(todo) or used_s > budget_s
        # Rank 0 alone knows what was kept, and its clock counts.
        place, left = comm.bcast((None if is_over else todo[measured], len(todo) - measured))
        if place is None:
            return measured, left
        matrix = every[place]
        if comm.rank == 0:
            on_progress(used_s, budget_s, matrix.name)
        options = ProductOptions(formats=matrix.formats or None, suite=matrix.suite)
        measure_on_ranks(comm, matrix.problem.specification, options)
        measured += 1


def _prepared(
    comm: Any, matrix: str | Path, options: ProductOptions, nodes: Nodes, keeps: bool
) -> tuple[Problem | None, list[Configuration]]:
    """Refuse unknown names, read the matrix on rank 0, and return it with the Configurations to measure."""
    FORMATS.require([*(options.formats or ()), *filter(None, [options.remote_format])])
    METHODS.require(filter(None, [options.partition]))
    for name in options.algorithms or ():
        check_ranks(Configuration(name, "csr", "csr", "rows", comm.size, 1), comm.size)
    if comm.rank:
        return None, []
    if keeps:
        storage.ensure_writable(storage.home() / "measurements")
    problem = Problem.named(matrix)
    if problem.matrix.nnz == 0:
        raise InputError(f"{problem.name} has no entries: expected at least one; name another")
    A = problem.matrix
    is_square = math.isqrt(comm.size) ** 2 == comm.size
    possible = [name for name in default_algorithms() if is_square or not PRODUCTS.get(name).is_2d]
    configurations = []
    for algorithm in options.algorithms or possible:
        product = PRODUCTS.get(algorithm)
        for name in options.formats or ("csr",):
            remote = options.remote_format or (name if name == "coo" else "csr")
            configurations.append(
                Configuration(
                    algorithm=algorithm,
                    format=name,
                    remote_format=remote if product.has_remote else name,
                    partition=options.partition or (GRID if product.is_2d else default_method(A.shape)[0]),
                    ranks=comm.size,
                    nodes=nodes.count(range(comm.size)),
                    dtype=options.dtype or A.dtype.name,
                    index_bits=32 if max(A.nnz, *A.shape) < 2**31 else 64,
                )
            )
    return problem, configurations


def _forecasts(
    problem: Problem, machine: Machine, configurations: Sequence[Configuration], refused: dict[str, str]
) -> dict[Configuration, ClusterForecast]:
    """Return what the default model expects, where the profile of this machine knows of ranks."""
    path = user_path(machine.name)
    profile = Profile.load_own(path, machine) if path.exists() else None
    if profile is None or not profile.microbenchmarks:
        return {}
    first = configurations[0]
    try:
        answer = cluster(
            problem,
            [first.ranks],
            profile,
            ranks_per_node=min(first.ranks_per_node, machine.cores),
            algorithms=[configuration.algorithm for configuration in configurations],
            formats=[configuration.format for configuration in configurations],
            partitions=[configuration.partition for configuration in configurations],
        )
    except InputError as error:
        refused["forecast"] = str(error)
        return {}
    forecasts = [choice.forecast for choice in answer.choices]
    return {dataclasses.replace(one.configuration, nodes=first.nodes): one for one in forecasts}
