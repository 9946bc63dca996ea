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

from sparsecast.distributed import compile
from sparsecast.distributed.processes import in_step, together, world
from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.records import Configuration


def all_cases(comm, folder, out, *names):
    """Do the cases, by default all; where one rank fails the others would wait, so that ends all."""
    from cases import CASES  # beside this script

    outcomes = {}

    def keep(name, outcome):
        outcomes[name] = outcome
        if comm.rank == 0:
            Path(out).write_text(json.dumps(outcomes))

    for name in names or CASES:
        keep(name, "ended all ranks")
        try:
            bits = CASES[name](comm, folder)
        except BaseException:
            Path(f"{out}.{comm.rank}").write_text(f"rank {comm.rank}:\n{traceback.format_exc()}")
            comm.Abort(1)
        comm.Barrier()
        keep(name, "")
        if bits:
            keep("bits", bits)


def fault(name):
    """What goes wrong on one rank."""
    if name == "raises":
        raise ValueError("made to\nfail")
    if name == "refuses":
        raise InputError("this rank's x: expected another; give it")
    if name == "leaves":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


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


def main():
    comm, name = world(), sys.argv[1]
    with together(comm):
        if name == "cases":
            all_cases(comm, *sys.argv[2:])
        elif name in ("agrees_that_it_is_wrong", "ends_mpi_itself"):
            globals()[name](comm)
        else:
            if comm.rank == 1:
                fault(name)
            comm.Barrier()  # waits for a rank that will not come


if __name__ == "__main__":
    main()
