"""A second GPU from elsewhere (toys/simulated_gpu): it shares kernels, launches and operator with CUDA."""

from __future__ import annotations

import importlib.util
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


def test_it_is_calibrated_forecast_planned_and_measured(simulated, document, data_folder):
    measured = document("measure", MATRIX, "--no-keep", *ON_IT)["measurements"]
    assert {"csr", "ell", "sell", "coo"} <= {item["format"] for item in measured}
    assert all(item["error"] < 1e-15 and item["device"] == "simulated" for item in measured)

    met = document("calibrate", "--budget", "40", "--dtype", "float64", *ON_IT)
    assert met["machine"]["device"] == "simulated"
    records = Profile.load(Path(met["path"])).records
    assert {(r.candidate.device, r.candidate.format) for r in records} == {("simulated", "ell")}
    forecast = document("predict", MATRIX, "--model", "linear", *ON_IT)["forecasts"]
    assert [item["format"] for item in forecast] == ["ell"]
    assert all(item["device"] == "simulated" and item["time_s"] > 0 for item in forecast)


def test_without_its_library_it_says_so_and_the_doctor_lists_it(install, sparsecast, document):
    install("simulated_gpu")
    done = sparsecast("measure", MATRIX, *ON_IT)
    assert done.returncode == 2 and "set NUMBA_ENABLE_CUDASIM=1" in done.stderr
    findings = [item for item in document("doctor")["findings"] if item["what"] == "GPU"]
    assert len(findings) == 2 and any("NUMBA_ENABLE_CUDASIM" in str(item["remedy"]) for item in findings)
