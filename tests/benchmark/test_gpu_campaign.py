"""The campaign on a GPU, without one: in the simulator to its end, and where there is nothing at all."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.machines.profile import Profile
from sparsecast.planning.placement import transfer_s
from sparsecast.records import BANDWIDTH_KINDS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda, which has the simulator, is missing"
)


#: Small, and of complex values: the one is measured beside what is generated, the other is left out.
GIVEN = {
    "real": "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 2.0\n2 3 1.5\n3 1 -1.0\n",
    "complex": "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 2.0 1.0\n",
}


def run(command, simulator="1"):
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": simulator, "CUDA_VISIBLE_DEVICES": "-1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


#: The threads of the simulator take turns. The line in braces is the test's.
CAMPAIGN = """
import sys
sys.path[:0] = ["benchmarks", "tests/devices/cuda"]
import gpu_campaign, simulator_in_turn
{}
sys.argv[1:1] = ["--tiny"]
sys.exit(gpu_campaign.main())
"""


def campaign(*arguments, first=""):
    return run([sys.executable, "-c", CAMPAIGN.format(first), *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the simulator's campaign has left."""
    out = tmp_path_factory.mktemp("campaign")
    given = [tmp_path_factory.mktemp("given") / f"{name}.mtx" for name in GIVEN]
    for path in given:
        path.write_text(GIVEN[path.stem], encoding="utf-8")
    done = campaign(out, *given, out / "absent.mtx")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (out / "errors.txt").exists()
    return out


def found(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_every_phase_leaves_its_file(folder):
    assert found(folder, "device.json")["simulated"] is True
    assert "numba-cuda" in found(folder, "device.json")["packages"]
    bandwidths = found(folder, "bandwidth.json")
    assert {row["stream"] for row in bandwidths} == set(BANDWIDTH_KINDS)
    assert {row["bytes"] for row in bandwidths} == {1 << 10, 1 << 12}
    assert all(row["bytes_per_s"] > 0 for row in bandwidths)
    checked = (folder / "correctness.txt").read_text(encoding="utf-8")
    kernels = "csr balanced", "csr vector32", "coo segmented", "bcsr blocks", "sell chunks", "sell chunks 16"
    for kernel in kernels:
        assert f"{kernel} float64 on " in checked
    lines = [line.partition(":")[0] for line in checked.splitlines() if " on " in line]
    assert len(set(lines)) == len(lines), "full and narrow storage are told apart"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_experiment_is_repeated_next_to_the_numbers_of_the_paper(folder, dtype):
    report = found(folder, f"guo-2014-{dtype}.json")
    [csr] = [row for row in report["tables"][0]["rows"] if row["format"] == "csr"]
    assert csr["matrices"] == 1 and csr["paper"] == 0.063
    assert csr["ours"] > 0 and csr["printed"] > 0
    assert "Mean errors" in (folder / f"guo-2014-{dtype}.md").read_text(encoding="utf-8")


def profile_of(folder):
    (path,) = folder.glob("*.parquet")
    return Profile.load(path), path


def test_records_are_in_the_profile_warm_and_cold(folder):
    profile, path = profile_of(folder)
    assert not path.with_suffix(".journal").exists()
    assert [stream.time_s for stream in profile.bandwidths] == [
        row["time_s"] for row in found(folder, "bandwidth.json")
    ]
    assert transfer_s(profile, 1 << 11, "to device") > 0
    assert profile.machine.gpu.name == "numba-cuda simulator" and path.stem == profile.name
    assert {(record.regime, record.candidate.format) for record in profile.records} == {
        (regime, name) for regime in ("warm", "cold") for name in ("coo", "csr")
    }
    for record in profile.records:
        assert record.candidate.device == "cuda" and record.time_s > 0
        assert record.error < (1e-14 if record.candidate.dtype == "float64" else 1e-6)
        assert record.energy_j is None and record.energy_source is None
        assert record.convert_s > 0  # CSR's too: the transfer is in it


def test_what_is_not_there_is_missing_not_measured_or_refused(folder):
    peers = found(folder, "peers.json")
    assert peers["geometric_mean"] is None
    measured = {row["matrix"]: row for row in peers["matrices"] if "left_out" not in row}
    assert set(measured) == {"gallery:poisson2d?n=6", "real"}
    for row in measured.values():
        assert row["ratio"] is None and row["best_ours"] in row["times_s"]
        assert set(row["missing"]) >= {"cuSPARSE", "CuPy", "torch"}
        assert all(why.startswith("missing: ") for why in row["missing"].values())
    left_out = [row["left_out"] for row in peers["matrices"] if "left_out" in row]
    assert len(left_out) == 2 and "real values" in left_out[0] and "absent.mtx" in left_out[1]
    assert found(folder, "energy.json")["idle_w"] == "not measured"
    assert [set(row) for row in found(folder, "graphs.json")] == [{"left_out"}]
    page = (folder / "results.md").read_text(encoding="utf-8")
    assert "## peers" in page and "## bandwidth" in page and "Mean errors" in page
    assert all("refused" in score for score in found(folder, "evaluation.json")["float64"].values())


FAILING = """
import gpu_peers
def broken(campaign, end_s):
    raise ValueError("broken on purpose")
def failing(A, x):
    calls = []
    def product():
        calls.append(1)
        if len(calls) > 2:
            raise RuntimeError("broken when repeated")
    return product, lambda: (product(), A @ x)[1]
gpu_peers.PEERS = {"good": lambda A, x: (lambda: A @ x, lambda: A @ x), "failing": failing}
gpu_campaign.PHASES = ((broken, 1), (gpu_campaign.describe, 5), (gpu_campaign.peers, 60))
"""


def test_a_phase_that_fails_is_noted_and_the_next_goes_on_as_the_others_do_beside_a_failing_peer(tmp_path):
    done = campaign(tmp_path, first=FAILING)
    assert done.returncode == 1, done.stderr
    assert "ValueError: broken on purpose" in (tmp_path / "errors.txt").read_text(encoding="utf-8")
    assert (tmp_path / "device.json").exists()
    assert "1 FAILED" in done.stdout and "describe" in done.stdout
    [row] = found(tmp_path, "peers.json")["matrices"]
    assert row["best_peer"] == "good" and "failing" not in row["times_s"]
    assert "RuntimeError" in row["missing"]["failing"]


#: Its clock is the time of this process: what other programs take meanwhile does not count.
IDLE = """
import sys, time
sys.path.insert(0, "benchmarks")
import gpu_idle
with gpu_idle.idle_device():
    from sparsecast.benchmark import run
    run.perf_counter = gpu_idle.perf_counter = time.process_time
    gpu_idle.calibrated(10.0)
"""


def test_a_budget_holds_on_a_device_that_computes_nothing():
    done = run([sys.executable, "-c", IDLE], "0")
    assert done.returncode == 0, done.stderr
    took_s, budget_s = (float(done.stdout.split()[place].strip(":")) for place in (0, 3))
    assert budget_s == 10 and took_s <= 1.5 * budget_s
    assert " records of " in done.stdout


def test_without_a_device_one_line_says_so(tmp_path):
    done = run([sys.executable, "benchmarks/gpu_campaign.py", str(tmp_path / "out")], "0")
    assert done.returncode == 2
    assert done.stderr.startswith("device 'cuda' ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
