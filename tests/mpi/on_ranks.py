"""Run by mpirun on every rank: all cases or some, or one fault; rank 0 writes what became of them.

mpirun -n 4 python tests/mpi/on_ranks.py cases FOLDER OUT [CASE ...]
mpirun -n 4 python tests/mpi/on_ranks.py FAULT
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

import numpy as np

from sparsecast.distributed import compile
from sparsecast.distributed.processes import in_step, together, world
from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.records import Configuration


def all_cases(comm, folder, out, *names):
    """Do the cases, by default all; where one rank fails the others would wait, so that ends all."""
    from cases import CASES  # beside this script

    outcomes = {}
    for name in names or CASES:
        outcomes[name] = "ended all ranks"
        keep(comm, out, outcomes)
        problem = ""
        try:
            bits = CASES[name](comm, folder)
        except BaseException:
            problem = f"rank {comm.rank}:\n{traceback.format_exc()}"
            # A failure of one rank would leave the others waiting for it.
            Path(f"{out}.{comm.rank}").write_text(problem)
            comm.Abort(1)
        outcomes[name] = "\n".join(filter(None, comm.allgather(problem)))
        if bits:
            outcomes["bits"] = bits
    keep(comm, out, outcomes)


def keep(comm, out, outcomes):
    if comm.rank == 0:
        Path(out).write_text(json.dumps(outcomes))


def raises(comm):
    if comm.rank == 1:
        raise ValueError("made to\nfail")
    wait(comm)


def refuses(comm):
    if comm.rank == 1:
        raise InputError("this rank's x: expected another; give it")
    wait(comm)


def is_killed(comm):
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    wait(comm)


def leaves(comm):
    if comm.rank == 1:
        sys.exit(3)
    wait(comm)


def agrees_that_it_is_wrong(comm):
    def work():
        if comm.rank == 1:
            raise InputError("no such file; check the path")

    in_step(comm, work)


def ends_mpi_itself(comm):
    """Ends MPI while an operator is alive, whose communicators are gone then."""
    from mpi4py import MPI

    asked = Configuration("2d", "csr", "csr", "uniform-2d", comm.size, 1)
    alive.append(compile(gallery("poisson2d", n=5), asked, comm))
    MPI.Finalize()


alive = []


def wait(comm):
    """Wait for a rank that will not come."""
    comm.Allreduce(np.ones(1), np.zeros(1))
    comm.Barrier()


def main():
    comm = world()
    with together(comm):
        if sys.argv[1] == "cases":
            all_cases(comm, *sys.argv[2:])
        else:
            globals()[sys.argv[1]](comm)


if __name__ == "__main__":
    main()
