"""Distributed products on real ranks: `make test-mpi` runs these, and sets up what they need.

One mpirun for each number of ranks does all cases, because starting nine processes on two cores takes
longer than the cases.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: Of mpi4py's library: beside the Python that runs, or else on the path.
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIRUN is None,
    reason="mpi4py or mpirun is missing: make test-mpi installs both",
)

RANKS = (1, 2, 4, 9)
NAMES = [
    name.id for name in ast.parse((HERE / "cases.py").read_text()).body[-1].value.generators[0].iter.elts
]

#: Seconds within which all ranks have to end when one fails, and in which the cases have to be done.
END_S, CASES_S = 10, 120


def mpirun(ranks, *arguments, timeout=CASES_S):
    """Run a program on ranks; a command that hangs fails here with what it has said."""
    command = [MPIRUN, "-n", str(ranks), sys.executable, "-W", "error", str(HERE / "on_ranks.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    # Open MPI asks for these where it runs as root, or with more ranks than cores.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    environment |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
        check=False,
    )


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """Return what became of the cases on a number of ranks, each run once."""
    folder, kept = tmp_path_factory.mktemp("mpi"), {}

    def on(ranks, again=0):
        if (ranks, again) not in kept:
            if not kept:
                specification = importlib.util.spec_from_file_location("cases", HERE / "cases.py")
                cases = importlib.util.module_from_spec(specification)
                specification.loader.exec_module(cases)
                cases.write_files(folder)
            out = folder / f"{ranks}-{again}.json"
            run = mpirun(ranks, "cases", folder, out)
            problems = [path.read_text() for path in sorted(folder.glob(f"{out.name}.*"))]
            outcomes = json.loads(out.read_text()) if out.exists() else {}
            kept[ranks, again] = outcomes, "\n".join(problems) or f"{run.returncode}: {run.stderr[-3000:]}"
        return kept[ranks, again]

    return on


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("ranks", RANKS)
def test_on_ranks(done, ranks, case):
    outcomes, problems = done(ranks)
    assert case in outcomes, f"not reached on {ranks} ranks: {problems}"
    assert not outcomes[case], f"{outcomes[case]} on {ranks} ranks: {problems}"


def test_the_bits_of_another_run_are_the_same(done):
    assert done(2)[0]["bits"] == done(2, again=1)[0]["bits"]


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    (
        ("raises", 1, "rank 1: ValueError: made to fail\n"),
        ("refuses", 2, "rank 1: this rank's x: expected another; give it\n"),
        ("leaves", 3, "rank 1: left with exit status 3\n"),
        ("agrees_that_it_is_wrong", 2, "rank 1: no such file; check the path\n"),
        ("is_killed", None, "9"),
    ),
)
def test_all_ranks_end_when_one_fails(fault, status, said):
    begin = time.monotonic()
    run = mpirun(3, fault, timeout=END_S)
    assert time.monotonic() - begin < END_S
    assert run.returncode == status or (status is None and run.returncode != 0), run.stderr
    assert said in run.stdout + run.stderr
    if status == 2:
        assert "Traceback" not in run.stderr
    assert (run.stdout + run.stderr).count(said) == 1 or status is None
