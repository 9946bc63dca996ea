"""mpirun, of mpi4py's library: beside the Python that runs, or else on the path."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")

#: Open MPI asks for these where it runs as root, or with more ranks than cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.fixture(scope="session")
def mpirun():
    """Run Python with arguments on ranks; 0 is without mpirun. A command that hangs fails."""
    if importlib.util.find_spec("mpi4py") is None or MPIRUN is None:
        pytest.skip("mpi4py or mpirun is missing: make test-mpi installs both")

    def run(ranks, *arguments, timeout=120, **environment):
        start = [MPIRUN, "-n", str(ranks)] if ranks else []
        return subprocess.run(
            [*start, sys.executable, "-W", "error", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **OPEN_MPI, **environment},
            check=False,
        )

    return run
