"""Our distributed products beside PETSc's MatMult, on the same ranks and the same rows, measured in turn.

python benchmarks/petsc.py [--mpirun PATH] [--ranks 1,2] [MATRIX ...]

petsc4py and mpi4py must load the MPI library that PETSc was built with, and PATH must be its mpirun. Where a
distribution's petsc4py was built for another NumPy than ours, build it from source against the PETSc of the
distribution:

    pip install setuptools wheel 'cython<3'
    PETSC_DIR=... PETSC_ARCH= CC=mpicc pip install --no-build-isolation --no-deps petsc4py==VERSION

VERSION is that of the PETSc, and CC the compiler of its MPI library. Build it in an environment without the
wheel of mpich, whose mpi.h would be found first (`pip wheel` makes a file to install). With the wheel of
mpi4py, MPI4PY_MPIABI=openmpi or mpich names the library.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

#: Meshes of a million rows.
MESHES = "gallery:poisson2d?n=1000", "gallery:poisson3d?n=100"

#: Our products, and the local formats: CSR, as PETSc has, and what is planned for meshes.
ALGORITHMS, FORMATS = ("local-1d", "local-1d-overlap", "petsc"), ("csr", "dia")


def measured(mpirun: str, ranks: int, matrix: str) -> list[dict]:
    """Return the measurements of a matrix, fastest first; all were sampled in turn."""
    code = "from sparsecast.cli.main import main; main()"
    asked = ["--algorithm", ",".join(ALGORITHMS), "--format", ",".join(FORMATS), "--partition", "rows"]
    command = [mpirun, "-n", str(ranks), sys.executable, "-c", code, "measure", matrix, *asked]
    # Open MPI asks for these where the root user of a container runs it.
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **os.environ}
    done = subprocess.run(
        [*command, "--no-keep", "--json"], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)["measurements"]


def main() -> None:
    """Print the time of each way, and how many times PETSc's time is it."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--mpirun", default="mpirun")
    arguments.add_argument("--ranks", default="1,2")
    arguments.add_argument("matrices", nargs="*", default=MESHES, metavar="MATRIX")
    asked = arguments.parse_args()
    print("| matrix | ranks | product | time | noise | PETSc's time over it |")
    print("|---|---|---|---|---|---|")
    for matrix in asked.matrices:
        for ranks in map(int, asked.ranks.split(",")):
            found = measured(asked.mpirun, ranks, matrix)
            petsc = [each["time_s"] for each in found if each["algorithm"] == "petsc"]
            if not petsc:
                sys.exit(f"{matrix}: PETSc did not run; sparsecast measure --algorithm petsc says why")
            for each in found:
                way = each["algorithm"], each["format"].upper() if each["algorithm"] != "petsc" else ""
                ratio = petsc[0] / each["time_s"]
                print(
                    f"| {matrix} | {ranks} | {' '.join(way).strip()} | {1e3 * each['time_s']:.2f} ms | "
                    f"{100 * (each['noise'] or 0):.1f} % | {ratio:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
