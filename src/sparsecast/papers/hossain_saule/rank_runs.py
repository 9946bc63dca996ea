"""Products on the ranks of this machine: mpirun starts them, and each is kept as soon as it is measured."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from math import isqrt
from pathlib import Path

from sparsecast.api.ranks import started_ranks
from sparsecast.benchmark.experiments import Setting
from sparsecast.benchmark.journal import kept
from sparsecast.errors import InputError, MpiError
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.papers.hossain_saule import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER

#: What the models are tried on where no matrix is named: a mesh and a network, as the paper's graphs are.
MATRICES = ("gallery:poisson2d?n=500", "gallery:rmat?scale=16")

#: Shares of the budget for the calibration, and for it and the matrices; starts and fits take the rest.
CALIBRATING, MEASURING = 0.6, 0.8

LEAST_BUDGET_S = 10.0

_PAUSE_S = 0.5


def measure_here(machine: Machine, setting: Setting) -> None:
    """Measure the random matrices of the paper, then the matrices of the setting, in CSR and COO.

    One rank for each core, and the largest square of ranks, which 2D takes. The first matrix is measured in
    any case; a later run goes on with what is left.
    """
    counts = sorted({machine.cores, isqrt(machine.cores) ** 2} - {1})
    if not counts:
        raise InputError("1 core: expected two at least, for two ranks; take published figures by --from")
    if setting.budget_s < LEAST_BUDGET_S:
        raise InputError(
            f"budget {setting.budget_s:g} s: expected at least {LEAST_BUDGET_S:g} s; raise the budget"
        )
    matrices = {str(matrix): Problem.named(matrix).specification for matrix in setting.matrices or MATRICES}
    start_s, calibrating_s = time.monotonic(), CALIBRATING * setting.budget_s / len(counts)
    for ranks in counts:
        calibrate = ("calibrate", "--ranks", "--suites", "hossain", "--budget", f"{calibrating_s:g}")
        _on_ranks(ranks, calibrate, setting, start_s)
    for ranks in counts:
        before = {r.matrix for r in kept(machine).distributed if r.configuration.ranks == ranks}
        is_square = isqrt(ranks) ** 2 == ranks
        algorithms = ",".join(name for name in ALGORITHMS_OF_THE_PAPER if is_square or name != "2d")
        for place, (matrix, specification) in enumerate(matrices.items()):
            is_over = time.monotonic() - start_s > MEASURING * setting.budget_s
            if (not is_over or place == 0) and specification not in before:
                ways = ("--algorithm", algorithms, "--format", ",".join(FORMATS_OF_THE_PAPER))
                _on_ranks(ranks, ("measure", matrix, *ways), setting, start_s)


def _on_ranks(ranks: int, arguments: tuple[str, ...], setting: Setting, start_s: float) -> None:
    """Run a command of ours on ranks; what it refuses is raised here."""
    ours = [sys.executable, "-c", "from sparsecast.cli.main import main; main()", *arguments]
    with subprocess.Popen(
        [_mpirun(), "-n", str(ranks), *ours],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        complaints = None
        while complaints is None:
            used_s = time.monotonic() - start_s
            try:
                setting.on_progress(used_s, max(setting.budget_s, used_s), f"{arguments[0]} on {ranks} ranks")
                complaints = run.communicate(timeout=_PAUSE_S)[1]
            except subprocess.TimeoutExpired:
                continue
            except BaseException:
                run.terminate()  # mpirun ends its ranks
                raise
    if run.returncode:
        lines = [line for line in complaints.splitlines() if line.strip()]
        reason = lines[0] if lines else f"exit status {run.returncode}"
        raise InputError(f"mpirun -n {ranks} sparsecast {' '.join(arguments)}: {reason}")


def _mpirun() -> str:
    """Return the mpirun next to this Python, or else on the path."""
    remedy = "take published figures by --from xeon-gold-6154-edr"
    if started_ranks() > 1:
        raise MpiError(
            f"hossain-saule under mpirun, on {started_ranks()} ranks: expected one process, which starts "
            f"ranks itself; leave mpirun out, or {remedy}"
        )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    mpirun = shutil.which("mpirun", path=path)
    if mpirun is None or importlib.util.find_spec("mpi4py") is None:
        raise MpiError(
            f"{'mpi4py' if mpirun else 'mpirun'} is missing: expected it for products on ranks; pip install "
            f"'sparsecast[mpi]', or {remedy}"
        )
    return mpirun
