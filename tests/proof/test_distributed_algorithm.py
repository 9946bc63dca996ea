"""A distributed algorithm from elsewhere (toys/bcast_1d): partitioned, forecast, compiled and measured."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DISTRIBUTED = Path(__file__).parents[1] / "distributed"
PUBLISHED = ("--profile", "xeon-gold-6154-edr")
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")

#: On threads as ranks: its product and that of its transpose, in a process that knows the plug-in.
ON_THREADS = """
import numpy as np
from scipy.sparse import random_array
import simulated
from sparsecast.distributed import compile
from sparsecast.distributed.products import default_algorithms
from sparsecast.records import Configuration

assert "bcast-1d" in default_algorithms()
A = random_array((30, 21), density=0.2, format="csr", rng=np.random.default_rng(1))

def work(comm):
    op = compile(A, Configuration("bcast-1d", "csr", "csr", "nonzeros", comm.size, 1), comm)
    for its, dense in ((op, A.toarray()), (op.T, A.toarray().T)):
        x = np.arange(1.0, dense.shape[1] + 1)
        y = its.gather(its @ its.scatter(x if comm.rank == 0 else None))
        if comm.rank == 0:
            np.testing.assert_allclose(y, dense @ x, rtol=1e-13)

simulated.on_ranks(3, work)
"""


def test_it_is_forecast_beside_the_others(install, document):
    install("bcast_1d")
    choices = document("cluster", "gallery:poisson2d?n=40", *PUBLISHED, "--ranks", "4,36")["choices"]
    forecasts = {(item["algorithm"], item["ranks"], item["format"]): item for item in choices}
    for ranks in (4, 36):
        item = forecasts["bcast-1d", ranks, "csr"]
        gathered = forecasts["global-1d", ranks, "csr"]
        assert set(item["why"]) >= {"streams", "bcast"} and item["communication_s"] > 0
        assert item["memory_bytes"] == gathered["memory_bytes"]
        assert item["computation_s"] == pytest.approx(gathered["computation_s"])


def test_its_products_are_right_on_threads(install, monkeypatch):
    install("bcast_1d")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ["PYTHONPATH"], str(DISTRIBUTED)]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ON_THREADS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or MPIRUN is None, reason="mpi4py or mpirun is missing"
)
def test_it_is_measured_and_kept(install, data_folder):
    install("bcast_1d")
    code = "from sparsecast.cli.main import main; main()"
    line = [MPIRUN, "-n", "2", sys.executable, "-c", code, "measure", "gallery:poisson2d?n=30", "--json"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["measurements"]
    (item,) = (item for item in measured if item["algorithm"] == "bcast-1d")
    assert item["error"] <= 1e-15 and set(item["parts_s"]) == {"local", "communication"}
    assert "bcast-1d" in next(data_folder.glob("measurements/*/*.jsonl")).read_text()
