"""A second GPU from elsewhere (toys/simulated_gpu): it shares kernels, launches and operator with CUDA."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.machines.profile import Profile

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda, which has the simulator, is missing"
)

MATRIX = "gallery:poisson2d?n=4"
ON_IT = ("--device", "simulated")


@pytest.fixture
def simulated(install, monkeypatch):
    install("simulated_gpu")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")


#: Prints what was measured with one sample: those of the command take minutes in the simulator.
MEASURE = f"""
import json, sys
sys.path.append({str(Path(__file__).parents[1] / "devices" / "cuda")!r})
import simulator_in_turn
from sparsecast.benchmark.measurement import measure_candidates
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort
from sparsecast.devices.target import whole_matrix

matrix = Problem.named({MATRIX!r})
machine = DEVICES.get("simulated").describe()
chosen = whole_matrix(matrix.structure, Target("simulated", "float64", 32, 1), machine).candidates
records = measure_candidates(matrix, "user", chosen, Effort(samples=1, sample_s=1e-9))
print(json.dumps([[record.candidate.device, record.candidate.format, record.error] for record in records]))
"""


def test_all_formats_are_measured_on_it(simulated):
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, timeout=300, check=True)
    measured = json.loads(done.stdout)
    assert {"csr", "ell", "sell", "coo"} <= {name for _, name, _ in measured}
    assert all(device == "simulated" and error < 1e-15 for device, _, error in measured)


def test_it_is_calibrated_and_forecast(simulated, documents, data_folder):
    calibrate = ("calibrate", "--budget", "29", "--dtype", "float64", *ON_IT)
    calibrated, predicted = documents(calibrate, ("predict", MATRIX, "--model", "linear", *ON_IT))
    assert calibrated["machine"]["device"] == "simulated"
    records = Profile.load(Path(calibrated["path"])).records
    assert {(r.candidate.device, r.candidate.format) for r in records} == {("simulated", "ell")}
    forecast = predicted["forecasts"]
    assert [item["format"] for item in forecast] == ["ell"]
    assert all(item["device"] == "simulated" and item["time_s"] > 0 for item in forecast)


def test_without_its_library_it_says_so_and_the_doctor_lists_it(install, sparsecast):
    install("simulated_gpu")
    refused, doctor = sparsecast(("measure", MATRIX, *ON_IT), ("doctor", "--json"))
    assert refused.status == 2 and "NUMBA_ENABLE_CUDASIM=1" in refused.err
    findings = [item for item in json.loads(doctor.out)["findings"] if item["what"] == "GPU"]
    assert len(findings) == 2 and any("NUMBA_ENABLE_CUDASIM" in str(item["remedy"]) for item in findings)
