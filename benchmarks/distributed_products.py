"""Distributed products on the ranks of one mpirun, sampled in turn.

    mpirun -n 2 python benchmarks/distributed_products.py [--rounds N] [--json] [--ways WAY,...] MATRIX...

A way is ALGORITHM/FORMAT/REMOTE_FORMAT/PARTITION, such as local-1d/dia/csr/rows. A sample is one product:
from a barrier until the last rank is done. The time is the low quantile of the samples, as in
`sparsecast.measuring`; the median stands beside it. "communication" is the share of a product in which a rank
exchanges or waits, the mean of all ranks, from samples of their own whose steps are timed one by one. Each
rank computes with one thread. Results are compared with SciPy's on rank 0 first.

Ways that are sampled in turn drive each other's matrices out of a shared cache. Name one way at a time where
the time of a solver that has one matrix is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from time import perf_counter

# Before the libraries are loaded: a rank has one thread.
os.environ.update(dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import numpy as np

from sparsecast.distributed import DistributedOperator, compile, together, world
from sparsecast.distributed.distributed_product import COMMUNICATION
from sparsecast.errors import WrongResultError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import LOW_SHARE
from sparsecast.records import Configuration

WAYS = (
    "local-1d/csr/csr/rows",
    "local-1d-overlap/csr/csr/rows",
    "local-1d/dia/csr/rows",
    "local-1d-overlap/dia/csr/rows",
    "global-1d/csr/csr/rows",
    "global-1d/dia/dia/rows",
    "2d/csr/csr/uniform-2d",
    "2d/coo/coo/uniform-2d",
)


def built(comm, problem: Problem | None, way: str) -> DistributedOperator:
    """Return the operator of a way, once its product is known to be right."""
    algorithm, local, remote, method = way.split("/")
    asked = Configuration(algorithm, local, remote, method, comm.size, 1)
    A = problem.matrix if problem else None
    op = compile(A, asked, comm)
    x = np.random.default_rng(0).uniform(-1, 1, op.shape[1]) if A is not None else None
    y = op.gather(op @ op.scatter(x))
    if A is not None:
        error = np.max(np.abs(y - A @ x)) / np.max(abs(A) @ np.abs(x))
        if error > 1e-13:
            raise WrongResultError(f"{way}: wrong by {error:.1e}, expected rounding alone; report it")
    return op


def samples(comm, operators: dict[str, DistributedOperator], rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds of each product until the last rank is done, for each round."""
    vectors = {way: (np.ones(op.domain.size), op.range.zeros()) for way, op in operators.items()}
    own = np.empty((len(operators), rounds))
    for sample in range(rounds):
        for row, (way, op) in enumerate(operators.items()):
            x, y = vectors[way]
            op.matvec(x, y)  # its own data in the caches, as in a solver
            comm.Barrier()
            start = perf_counter()
            op.matvec(x, y)
            own[row, sample] = perf_counter() - start
    everyone = np.empty((comm.size, *own.shape))
    comm.Allgather(own, everyone)
    return dict(zip(operators, everyone.max(axis=0), strict=True))


def communication_share(comm, op: DistributedOperator, rounds: int) -> float:
    """Return the share of a product in which a rank exchanges or waits, the mean of all ranks."""
    x, y = np.ones(op.domain.size), op.range.zeros()
    spent: dict[str, float] = {}
    for _ in range(rounds):
        comm.Barrier()
        for step in op.product.steps:
            start = perf_counter()
            step.run(x, y)
            spent[step.name] = spent.get(step.name, 0.0) + perf_counter() - start
    shares = np.empty(comm.size)
    comm.Allgather(np.array([spent.get(COMMUNICATION, 0.0) / sum(spent.values())]), shares)
    return float(shares.mean())


def main() -> None:
    """Measure, and print from rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("matrices", nargs="+", metavar="MATRIX")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ways", default=",".join(WAYS))
    asked = parser.parse_args()
    comm = world()
    with together(comm):
        for name in asked.matrices:
            problem = Problem.named(name) if comm.rank == 0 else None
            is_square = int(comm.size**0.5) ** 2 == comm.size
            ways = [way for way in asked.ways.split(",") if is_square or not way.startswith("2d/")]
            operators = {way: built(comm, problem, way) for way in ways}
            found = samples(comm, operators, asked.rounds)
            shares = {way: communication_share(comm, op, asked.rounds // 3) for way, op in operators.items()}
            if comm.rank == 0:
                show(name, comm.size, found, shares, asked.json)


def show(
    name: str, ranks: int, found: dict[str, np.ndarray], shares: dict[str, float], as_json: bool
) -> None:
    """Print the times of one matrix."""
    rows = [
        {
            "matrix": name,
            "ranks": ranks,
            "way": way,
            "time_s": float(np.quantile(times, LOW_SHARE)),
            "median_s": float(np.median(times)),
            "communication": shares[way],
            "is_oversubscribed": ranks > len(os.sched_getaffinity(0)),
        }
        for way, times in found.items()
    ]
    if as_json:
        json.dump(rows, sys.stdout)
        print(flush=True)
        return
    for row in rows:
        print(
            f"{name:28} {ranks} ranks  {row['way']:32} {row['time_s'] * 1e3:8.3f} ms  median "
            f"{row['median_s'] * 1e3:8.3f} ms  communication {row['communication']:5.1%}"
            + ("  (oversubscribed)" if row["is_oversubscribed"] else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
