"""`sparsecast label` and `sparsecast blocks`: what they keep, show and refuse; no time is asserted."""

import importlib.util
import json
import re
import sys

import numpy as np
import pytest

from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.device import Device
from sparsecast.errors import InputError
from sparsecast.papers.barreda_2020 import labelling
from sparsecast.papers.barreda_2020.networks import required

from .conftest import complains

HAS_TORCH = importlib.util.find_spec("torch") is not None
MATRICES = tuple(f"gallery:{each}" for each in ("poisson2d?n=40", "rmat?scale=9", "banded?n=800"))


@pytest.fixture(autouse=True)
def samples_count(monkeypatch):
    """All samples count, whatever runs beside: models leave out Records of slow cores."""
    monkeypatch.setattr(Processor, "core_speed", Device.core_speed)


def test_labels_are_kept_and_blocks_shows_where_a_matrix_is_slow(run, ask, exact, calibrated, tmp_path):
    first = exact(run("label", *MATRICES, "--json"), "label")
    assert (first["matrices"], first["known"], first["refused"], first["left"]) == (3, 0, {}, 0)
    assert (
        first["blocks"] > 20
        and first["blocks_per_s"] > 0
        and set(first["repeat_noise"]) == {"time", "streaming", "total", "package", "dram"}
    )
    again = ask("label", *MATRICES)
    assert (again["matrices"], again["known"], again["blocks_per_s"]) == (0, 3, None)

    figure = tmp_path / "blocks.svg"
    shown = run("blocks", MATRICES[1], "--figure", figure, "--json")
    document = exact(shown, "blocks")
    blocks = document["matrix"]["nnz"] // document["block_entries"]
    assert len(document["ns_per_entry"]) == len(document["first_rows"]) == blocks
    assert document["first_rows"] == sorted(document["first_rows"]) and min(document["ns_per_entry"]) > 0
    assert document["time_s"] > 0 and document["network"] == "blocks"
    assert "<svg" in figure.read_text(encoding="utf-8")
    page = run("blocks", MATRICES[1]).out
    assert re.search(r"first entry \|[ .:=+*#%@-]+\| last entry", page) and "slowest: rows " in page

    forecast = ask("predict", MATRICES[1], "--model", "blocks", "--threads", "1")
    assert [each["format"] for each in forecast["forecasts"]] == ["csr"]
    assert "the blocks model covers csr" in forecast["refused"]["coo"]


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_the_networks_of_the_package_answer_on_a_machine_without_a_profile(run, exact, data_folder):
    long_rows, short_rows = (
        exact(run("blocks", f"gallery:{name}", "--network", "shipped", "--json"), "blocks")
        for name in ("banded?n=4000&half_bandwidth=20", "banded?n=40000&half_bandwidth=1")
    )
    for found in (long_rows, short_rows):
        assert "modelled" in found["network"]
        assert len(found["nj_per_entry"]) == len(found["ns_per_entry"]) > 100
        assert found["energy_j"] > 0
    # Ends of rows cost time, by the network as in the labels that it learned.
    assert np.mean(short_rows["ns_per_entry"]) > 1.02 * np.mean(long_rows["ns_per_entry"])
    assert not list(data_folder.rglob("*.parquet")), "nothing was calibrated"
    for wrong in ((MATRICES[0], "--threads", 2), ("gallery:poisson2d?n=4",)):
        complains(run("blocks", *wrong, "--network", "shipped"))


def test_the_budget_leaves_matrices_for_the_next_run(run, exact, calibrated):
    done = exact(run("label", *MATRICES, "--budget", "0", "--json"), "label")
    assert (done["matrices"], done["left"], done["repeat_noise"]) == (0, 3, None)


def test_a_run_that_is_stopped_keeps_its_labels_and_says_so(run, calibrated, monkeypatch):
    measure, called = labelling.label_blocks, []

    def interrupted(*arguments):
        called.append(arguments)
        if len(called) > 1:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(labelling, "label_blocks", interrupted)
    stopped = run("label", *MATRICES, "--json")
    assert stopped.status == 130
    assert [json.loads(stopped.out)[key] for key in ("matrices", "left")] == [1, 2]


def test_what_cannot_be_labelled_is_left_out_with_its_reason(ask, calibrated):
    done = ask("label", "gallery:poisson2d?n=4", MATRICES[0])
    assert "at least one block" in done["refused"]["gallery:poisson2d?n=4"]


def test_what_cannot_be_is_one_line(run, calibrated, tmp_path):
    damaged = tmp_path / "none.safetensors"
    damaged.write_bytes(b"none")
    for arguments, wrong in (
        (("blocks", MATRICES[0]), "run sparsecast label"),
        (("blocks", "gallery:poisson2d?n=4"), "at least one block"),
        (("blocks", MATRICES[0], "--network", damaged), "none.safetensors" if HAS_TORCH else "cnn"),
    ):
        complains(run(*arguments), wrong)


@pytest.mark.parametrize("package", ["torch", "safetensors", "optuna", "h5py"])
def test_a_missing_package_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(InputError, match="pip install"):
        required(package)
