"""Distributed products on real ranks: `make test-mpi` runs these, and sets up what they need.

One mpirun for each number of ranks does all cases, because starting nine processes on two cores takes
longer than the cases.
"""

import json
import re
import time
from pathlib import Path

import pytest

from .cases import CASES, write_files

HERE = Path(__file__).parent

RANKS = (1, 2, 9)  # and 3 and 4 by threads, in tests/distributed

#: Seconds within which all ranks have to end when one fails.
END_S = 10

#: Each rank has one thread.
ALONE = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def done(mpirun, tmp_path_factory):
    """Return what became of all cases on a number of ranks, each run once; of some cases in another run."""
    folder, kept = tmp_path_factory.mktemp("mpi"), {}

    def on(ranks, *again):
        if (ranks, *again) not in kept:
            if not kept:
                write_files(folder)
            out = folder / f"{ranks}-{len(again)}.json"
            run = mpirun(ranks, HERE / "on_ranks.py", "cases", folder, out, *again, **ALONE)
            problems = [path.read_text() for path in sorted(folder.glob(f"{out.name}.*"))]
            outcomes = json.loads(out.read_text()) if out.exists() else {}
            kept[ranks, *again] = outcomes, "\n".join(problems) or f"{run.returncode}: {run.stderr[-3000:]}"
        return kept[ranks, *again]

    return on


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ranks", RANKS)
def test_on_ranks(done, ranks, case):
    outcomes, problems = done(ranks)
    assert case in outcomes, f"not reached on {ranks} ranks: {problems}"
    assert not outcomes[case], f"{outcomes[case]} on {ranks} ranks: {problems}"


def test_the_bits_of_another_run_are_the_same(done):
    assert done(2)[0]["bits"] == done(2, "bits_repeat")[0]["bits"]


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
def test_all_ranks_end_when_one_fails(mpirun, fault, status, said):
    begin = time.monotonic()
    run = mpirun(3, HERE / "on_ranks.py", fault, timeout=END_S, **ALONE)
    assert time.monotonic() - begin < END_S
    assert run.returncode == status or (status is None and run.returncode != 0), run.stderr
    assert said in run.stdout + run.stderr
    if status == 2:
        assert "Traceback" not in run.stderr
    assert (run.stdout + run.stderr).count(said) == 1 or status is None


def test_a_program_may_end_mpi_itself(mpirun):
    run = mpirun(1, HERE / "on_ranks.py", "ends_mpi_itself", **ALONE)
    assert run.returncode == 0 and "after finalizing" not in run.stderr, run.stderr


def test_the_example_solves_on_two_ranks(mpirun):
    script = HERE.parents[1] / "examples" / "distributed_cg.py"
    run = mpirun(2, script, "gallery:poisson2d?n=20", **ALONE)
    assert (run.returncode, run.stderr) == (0, "")
    said = re.fullmatch(r"400 rows on 2 ranks: ([0-9]+) iterations, relative residual (.*)\n", run.stdout)
    assert said and int(said[1]) < 100 and float(said[2]) < 2e-8, run.stdout
