"""What needs no second process: missing libraries, the wrong mpirun, and who says what at the end."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from sparsecast.distributed.processes import agree, in_step, together
from sparsecast.errors import InputError, RanksError


def process(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("missing", "said"),
    (
        (
            "sys.modules['mpi4py'] = None",
            "mpi4py is not installed: expected it for several ranks; pip install",
        ),
        (
            "import types; m = types.ModuleType('mpi4py'); m.__path__ = []; sys.modules['mpi4py'] = m;"
            "f = lambda name: (_ for _ in ()).throw(RuntimeError('no library\\nlibmpi.so: none'));"
            "m.__getattr__ = f",
            "mpi4py finds no MPI library (no library): expected one; pip install",
        ),
        (
            "import types; m = types.ModuleType('mpi4py'); sys.modules['mpi4py'] = m; "
            "lone = types.SimpleNamespace(size=1); m.MPI = types.SimpleNamespace(COMM_WORLD=lone, "
            "Get_library_version=lambda: 'Some MPI v5, package'); import os; os.environ['PMI_SIZE'] = '4'",
            "mpirun started 4 processes, and each is alone in Some MPI v5: expected the mpirun",
        ),
    ),
)
def test_one_line_says_what_mpi_lacks(missing, said):
    done = process(
        f"import sys\n{missing}\nfrom sparsecast.distributed import world\n"
        "from sparsecast.errors import MpiError\n"
        "try: world()\nexcept MpiError as error: print(error)"
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout and len(done.stdout.splitlines()) == 1


def test_importing_the_room_starts_no_mpi():
    done = process("import sys, sparsecast.distributed; print('mpi4py' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    (
        (InputError("x: expected y; do z"), 2, "rank 1: x: expected y; do z"),
        (ValueError("of two\nlines"), 1, "rank 1: ValueError: of two lines"),
        (KeyboardInterrupt(), 130, "rank 1: stopped from the keyboard"),
        (SystemExit(3), 3, "rank 1: left with exit status 3"),
        (SystemExit("words"), 1, "rank 1: left with exit status words"),
    ),
)
def test_a_rank_that_fails_says_so_and_ends_all(simulated, capsys, error, status, said):
    comm = simulated.Comm(simulated.Shared(2), 1)
    with pytest.raises(simulated.AbortedError), together(comm):
        raise error
    assert comm.aborted == status
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_a_rank_that_is_done_ends_nobody(simulated):
    comm = simulated.Comm(simulated.Shared(2), 1)
    with pytest.raises(SystemExit), together(comm):
        raise SystemExit(0)
    assert comm.aborted is None


def test_a_single_rank_raises_as_usual():
    with pytest.raises(ValueError, match="as usual"), together(SimpleNamespace(size=1, rank=0)):
        raise ValueError("as usual")


def test_what_all_found_is_said_once(simulated, capsys):
    def work(comm):
        with pytest.raises(SystemExit) as leaving, together(comm):
            raise RanksError("rank 2: no")
        return leaving.value.code

    assert simulated.on_ranks(3, work) == [2, 2, 2]
    assert capsys.readouterr().err == "rank 2: no\n"


def test_a_refusal_of_one_rank_is_raised_on_all(simulated):
    def work(comm):
        def refuse():
            if comm.rank in (1, 2):
                raise InputError(f"the reason of {comm.rank}")
            return comm.rank

        with pytest.raises(RanksError, match=r"^rank 1 \(and 1 more\): the reason of 1$"):
            in_step(comm, refuse)
        return in_step(comm, lambda: comm.rank)

    assert simulated.on_ranks(4, work) == [0, 1, 2, 3]


def test_the_first_rank_that_differs_is_named(simulated):
    def work(comm):
        with pytest.raises(RanksError, match=r"^rank 2 has the plan B: expected A, as rank 0 has; fix it$"):
            agree(comm, "the plan", "B" if comm.rank > 1 else "A", "fix it")

    simulated.on_ranks(4, work)
