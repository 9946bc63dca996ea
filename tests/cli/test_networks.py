"""`sparsecast paper barreda-2020`, small: labels, networks, and a run that goes on."""

import dataclasses
import importlib.util

import pytest
from scipy.io import mmwrite

from sparsecast.matrices.gallery import gallery
from sparsecast.papers.barreda_2020.block_times import LabelEffort
from sparsecast.papers.barreda_2020.experiments import barreda_2020

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

MATRICES = tuple(
    f"gallery:{name}" for name in ("poisson2d?n=30", "rmat?scale=8", "banded?n=600", "random?n=900")
)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(
        barreda_2020, "REQUEST", dataclasses.replace(barreda_2020.REQUEST, epochs=1, blocks=8)
    )
    effort = LabelEffort(sweeps=5, most_s=0.01, hot_blocks=8, hot_repeats=5, hot_trials=2, energy_s=0.02)
    monkeypatch.setattr(barreda_2020, "EFFORT", effort)
    # After those that are named come some by default: two here, and not all of the atlas.
    some = ("gallery:poisson3d?n=8", "gallery:circuit?n=900")
    monkeypatch.setattr(barreda_2020.Barreda2020, "default_matrices", lambda self: some)


def test_pairs_of_networks_are_trained_once_and_scored_next_to_the_paper(
    run, exact, small, data_folder, monkeypatch
):
    monkeypatch.setattr(barreda_2020, "FREQUENCIES_GHZ", (2.4, 1.2))  # of four
    first = exact(run("paper", "barreda-2020", *MATRICES, "--json"), "paper NAME")
    labels, networks, trials = (table["rows"] for table in first["tables"])
    assert len(labels) == len(networks) == 8
    assert len(trials) == 8 and all(row["ns"] > 0 and row["branchless_ns"] > 0 for row in trials)
    assert {(row["quantity"], row["frequency_ghz"]) for row in networks} == {
        (quantity, ghz) for quantity in ("time", "total", "package", "dram") for ghz in (1.2, 2.4)
    }
    for row in labels:
        assert 0 < row["least"] <= row["mean"] <= row["most"]
        assert row["source"] == "modelled"
    for row in networks:
        for which in ("paper", "ours"):
            assert row[f"{which}_network_matrix_worst"] >= row[f"{which}_network_matrix_median"] > 0
        assert row["paper_trees_block_mean"] > 0
        assert (row["paper_power_baseline_block_mean"] is None) == (row["quantity"] == "time")
    assert any("Modelled" in note for note in first["notes"]) and "modelled" in first["ours"]
    again = exact(run("paper", "barreda-2020", *MATRICES, "--json"), "paper NAME")
    assert again["tables"][:2] == first["tables"][:2], "nothing is labelled or trained twice"


def test_a_network_forecasts_the_product_of_pagerank(
    run, exact, small, streaming, data_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(barreda_2020, "FREQUENCIES_GHZ", (2.4,))  # the one that PageRank takes
    monkeypatch.setitem(barreda_2020.PRINTED["pagerank"], "alike", {"cit-HepPh": "gallery:rmat?scale=9"})
    graph = tmp_path / "wiki-Vote.mtx"  # one of the six of the paper, by its name
    mmwrite(graph, gallery("rmat", scale=14))  # its runs take more than the milliseconds that a meter needs
    paper = exact(run("paper", "barreda-2020", *MATRICES, graph, "--json"), "paper NAME")
    row, alike = paper["tables"][-1]["rows"]
    assert alike["graph"] == "like cit-HepPh (R-MAT)" and alike["time_s"] > 0
    assert row["graph"] == "wiki-Vote" and row["source"] == "modelled"
    assert row["energy_j"] == pytest.approx(row["power_w"] * row["time_s"])  # equation 4
    for error, forecast, measured in (
        ("error", "time_s", "measured_s"),
        ("energy_error", "energy_j", "measured_j"),
    ):
        assert row[error] == pytest.approx((row[forecast] - row[measured]) / row[measured])  # equation 5
    assert 0 < row["measured_share"] < 1 and row["measured_j"] > 0
    files = {path.name.partition("-")[0]: path for path in data_folder.rglob("*2.4GHz-ours*.safetensors")}
    asked = ("cost", "pagerank", MATRICES[1], "--iterations", 5)
    outcome = run(*asked, "--network", files["package"])
    assert (outcome.status, outcome.out) == (2, "") and "package" in outcome.err
    cost = exact(run(*asked, "--network", files["time"], "--network", files["total"], "--json"), "cost")
    assert cost["power_w"] > 0 and cost["energy_j"] == pytest.approx(cost["power_w"] * cost["time_s"])
    assert sum("modelled" in note for note in cost["notes"]) == 2
