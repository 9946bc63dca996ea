"""The campaign on a GPU, without one: in the simulator to its end, and where there is nothing at all."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.benchmark.journal import journal
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.planning.transfer import transfer_s
from sparsecast.records import BANDWIDTH_KINDS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None or shutil.which("make") is None,
    reason="numba-cuda, which has the simulator, or make is missing",
)


#: Small, and of complex values: the one is measured beside what is generated, the other is left out.
GIVEN = {
    "real": "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 2.0\n2 3 1.5\n3 1 -1.0\n",
    "complex": "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 2.0 1.0\n",
}


def run(command, simulator="1"):
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": simulator, "CUDA_VISIBLE_DEVICES": "-1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def campaign(out, given=()):
    make = ["make", "--no-print-directory", "gpu-campaign", f"PYTHON={sys.executable}", f"OUT={out}"]
    return run([*make, "GPU_FLAGS=--tiny", f"MATRICES={' '.join(map(str, given))}"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the simulator's campaign has left."""
    out = tmp_path_factory.mktemp("campaign")
    given = [tmp_path_factory.mktemp("given") / f"{name}.mtx" for name in GIVEN]
    for path in given:
        path.write_text(GIVEN[path.stem], encoding="utf-8")
    done = campaign(out, [*given, out / "absent.mtx"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (out / "errors.txt").exists()
    return out


def found(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_phase_leaves_its_file(folder):
    assert found(folder, "device.json")["simulated"] is True
    assert "numba-cuda" in found(folder, "device.json")["packages"]
    bandwidths = found(folder, "bandwidth.json")
    assert {row["stream"] for row in bandwidths} == set(BANDWIDTH_KINDS)
    assert {row["bytes"] for row in bandwidths} == {1 << 10, 1 << 12}
    assert all(row["bytes_per_s"] > 0 for row in bandwidths)
    checked = (folder / "correctness.txt").read_text(encoding="utf-8")
    for kernel in ("csr balanced", "csr vector32", "coo segmented", "bcsr blocks", "sell chunks"):
        assert f"{kernel} float64 on " in checked


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
        assert record.candidate.device == "cuda" and record.time_s > 0 and record.error < 1e-14
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
    assert all("refused" in score for score in found(folder, "evaluation.json")["float64"].values())


def test_a_run_that_was_killed_is_taken_up(folder, tmp_path):
    out = tmp_path / "again"
    shutil.copytree(folder, out)
    whole, path = profile_of(out)
    path.unlink()
    first = [record for record in whole.records if record.matrix == whole.records[0].matrix]
    with journal(path.with_suffix(".journal")) as add:
        add(Problem.rebuilt(first[0].matrix), first)
    with path.with_suffix(".journal").open("a", encoding="utf-8") as stream:
        stream.write('{"schema": 4, "rec')  # the last line is cut short
    done = run([sys.executable, "-c", PHASES.format("calibration"), str(out)])
    assert done.returncode == 0, done.stdout + done.stderr
    again, _ = profile_of(out)
    assert again.records[: len(first)] == tuple(first), "what the journal held was not measured again"
    warm = [record.identity for record in whole.records if record.regime == "warm"]
    assert {record.identity for record in again.records} >= set(warm)


PHASES = """
import sys
sys.path.insert(0, "benchmarks")
import gpu_campaign

gpu_campaign.PHASES = ((gpu_campaign.{}, 150),)
sys.argv = ["gpu_campaign.py", "--tiny", sys.argv[1]]
sys.exit(gpu_campaign.main())
"""


WRONG = """
import sys
sys.path.insert(0, "benchmarks")
import gpu_campaign

def wrong(A, candidate, what):
    if candidate.format == "csr":
        raise ValueError("wrong on purpose")
    return 0.0

gpu_campaign._checked = wrong
gpu_campaign.PHASES = ((gpu_campaign.correctness, 1), (gpu_campaign.calibration, 150))
sys.argv = ["gpu_campaign.py", "--tiny", sys.argv[1]]
sys.exit(gpu_campaign.main())
"""


def test_a_kernel_whose_result_is_wrong_is_not_measured(tmp_path):
    done = run([sys.executable, "-c", WRONG, str(tmp_path)])
    assert done.returncode == 1 and "ValueError: wrong on purpose" in (tmp_path / "errors.txt").read_text()
    profile, _ = profile_of(tmp_path)
    assert {record.candidate.format for record in profile.records} == {"coo"}


FAILING = """
import sys
sys.path.insert(0, "benchmarks")
import gpu_campaign

def broken(campaign, end_s):
    raise ValueError("broken on purpose")

gpu_campaign.PHASES = ((broken, 1), (gpu_campaign.describe, 5))
sys.argv = ["gpu_campaign.py", "--tiny", sys.argv[1]]
sys.exit(gpu_campaign.main())
"""


PEERS = """
import sys
sys.path.insert(0, "benchmarks")
import gpu_campaign
import gpu_peers

def broken(A, x):
    raise ValueError("broken on purpose")

gpu_peers.PEERS = {
    "broken": broken,
    "wrong": lambda A, x: (lambda: None, lambda: 2 * (A @ x) + 1),
    "right": lambda A, x: (lambda: A @ x, lambda: A @ x),
}
gpu_campaign.PHASES = ((gpu_campaign.peers, 60),)
sys.argv = ["gpu_campaign.py", "--tiny", sys.argv[1]]
sys.exit(gpu_campaign.main())
"""


def test_a_peer_that_fails_is_noted_and_the_others_are_measured(tmp_path):
    done = run([sys.executable, "-c", PEERS, str(tmp_path)])
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = found(tmp_path, "peers.json")["matrices"]
    assert set(row["missing"]) == {"broken", "wrong"} and row["best_peer"] == "right"
    assert row["missing"]["broken"] == "failed: ValueError: broken on purpose"
    errors = (tmp_path / "errors.txt").read_text(encoding="utf-8")
    assert "peer broken on gallery:poisson2d?n=6" in errors and "WrongResultError" in errors


GRAPHS = """
import sys
sys.path.insert(0, "benchmarks")
from types import SimpleNamespace

import gpu_campaign
import gpu_graphs
from sparsecast.devices.gpu.launching import DeviceProduct

gpu_graphs.GRAPHED = 2
queued, launched = [], []
launch = DeviceProduct.launch
DeviceProduct.launch = lambda self, x, y, stream: (queued.append(stream), launch(self, x, y, stream))
graph = SimpleNamespace(launch=launched.append)
builder = SimpleNamespace(complete=lambda: graph)
builder.begin_building = builder.end_building = lambda: builder
device = SimpleNamespace(set_current=lambda: None, create_graph_builder=lambda: builder)
core = SimpleNamespace(Device=lambda: device, Stream=SimpleNamespace(from_handle=lambda handle: handle))

def graphs(campaign, end_s):
    row = gpu_graphs.beside_graph(campaign, "poisson2d?n=4", core)
    assert queued[: gpu_graphs.GRAPHED] == [builder] * gpu_graphs.GRAPHED and set(launched) == {0}
    assert builder not in queued[gpu_graphs.GRAPHED :]
    campaign.write("graphs.json", row)

gpu_campaign.PHASES = ((graphs, 60),)
sys.argv = ["gpu_campaign.py", "--tiny", sys.argv[1]]
sys.exit(gpu_campaign.main())
"""


def test_products_are_captured_checked_and_measured_beside_their_graph(tmp_path):
    done = run([sys.executable, "-c", GRAPHS, str(tmp_path)])
    assert done.returncode == 0, (tmp_path / "errors.txt").read_text(encoding="utf-8")
    row = found(tmp_path, "graphs.json")
    assert row["launched_s"] > row["graph_s"] > 0 and row["error"] < 1e-14


def test_cuda_core_has_what_a_graph_is_made_with():
    core = pytest.importorskip("cuda.core", reason="cuda.core is missing: it comes with numba-cuda's extras")
    assert callable(core.Device.create_graph_builder) and callable(core.Stream.from_handle)
    graph = importlib.import_module("cuda.core.graph")
    for name in ("begin_building", "end_building", "complete"):
        assert callable(getattr(graph.GraphBuilder, name))
    assert callable(graph.Graph.launch)


def test_a_phase_that_fails_is_noted_and_the_next_goes_on(tmp_path):
    done = run([sys.executable, "-c", FAILING, str(tmp_path)])
    assert done.returncode == 1, done.stderr
    assert "ValueError: broken on purpose" in (tmp_path / "errors.txt").read_text(encoding="utf-8")
    assert (tmp_path / "device.json").exists()
    assert "1 FAILED" in done.stdout and "describe" in done.stdout


@pytest.mark.parametrize("simulator, flags", [("0", ""), ("0", "--tiny"), ("1", "")])
def test_without_a_device_one_line_says_so(tmp_path, simulator, flags):
    script = [sys.executable, "benchmarks/gpu_campaign.py", *flags.split(), str(tmp_path / "out")]
    done = run(script, simulator)
    assert done.returncode == 2
    assert done.stderr.startswith("device 'cuda' ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_make_asks_for_the_folder():
    done = run(["make", "--no-print-directory", "gpu-campaign", f"PYTHON={sys.executable}"])
    assert done.returncode == 2 and "OUT: expected a folder" in done.stdout


def test_models_are_scored_on_matrices_that_they_have_not_seen(gpu_profile, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    scores = importlib.import_module("gpu_campaign").scores
    as_made_up = scores(TrainingSet.of(gpu_profile))["linear"]
    assert as_made_up["mean_error"] < 0.05
    monkeypatch.setattr(MODELS, "names", lambda: ["linear"])
    gallery = list(dict.fromkeys(record.matrix for record in gpu_profile.select(suite="gallery")))
    slow = [
        dataclasses.replace(record, time_s=2 * record.time_s) if record.matrix in gallery[1::2] else record
        for record in gpu_profile.records
    ]
    assert scores(TrainingSet.of(gpu_profile, slow))["linear"]["mean_error"] > 0.2
    strips = TrainingSet.of(gpu_profile, gpu_profile.select(suite="strips"))
    assert "0 groups of matrices" in scores(strips)["linear"]["refused"]
