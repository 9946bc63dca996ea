"""Training by `train`: a stop loses nothing, what changes is trained again; the tables of `paper`."""

import dataclasses
import shutil

import numpy as np
import pytest

from sparsecast.api import named_meter
from sparsecast.benchmark.experiments import EXPERIMENTS, ExperimentSetting
from sparsecast.errors import InputError, ProfileError
from sparsecast.papers.barreda_2020.block_times import LabelEffort
from sparsecast.papers.barreda_2020.datasets import label_set
from sparsecast.papers.barreda_2020.label_files import keep_labels, kept_labels
from sparsecast.papers.barreda_2020.labelling import label
from sparsecast.papers.barreda_2020.training import PAPER_PLAN, TrainingRequest, train_network, trained

torch = pytest.importorskip("torch", reason="the networks need the extra cnn")
pytest.importorskip("safetensors", reason="weights need the extra cnn")

MATRICES = ("gallery:poisson2d?n=60", "gallery:banded?n=1000", "gallery:rmat?scale=9")
EFFORT = LabelEffort(sweeps=5, most_s=0.01, hot_blocks=16, hot_repeats=20, hot_trials=2, energy_s=0.05)
REQUEST = TrainingRequest(quantities=("time", "total"), frequencies_ghz=(2.4,), epochs=3, blocks=16)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """A data folder with labels of three matrices at one frequency."""
    folder = tmp_path_factory.mktemp("labels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSECAST_HOME", str(folder))
        label(MATRICES, dtype="float64", effort=EFFORT, meter=named_meter("modelled"), frequencies_ghz=(2.4,))
    return folder


@pytest.fixture
def home(labels, tmp_path, monkeypatch):
    shutil.copytree(labels, tmp_path / "home")
    monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_stopped_training_goes_on_where_it_was_to_the_same_networks(home, labels, monkeypatch):
    epochs = []

    def stop(what, done, most):
        epochs.append((what, done))
        if epochs[-1] == ("total at 2.4 GHz", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(trained(REQUEST, stop))
    first_run, epochs = epochs, []
    resumed = list(trained(REQUEST, lambda what, done, most: epochs.append((what, done))))
    assert [what for what, _ in first_run].count("time at 2.4 GHz") == 3
    assert epochs == [("total at 2.4 GHz", 3)], "the time is taken over, and two epochs of the joules are"
    shutil.copytree(labels, home / "uninterrupted")
    monkeypatch.setenv("SPARSECAST_HOME", str(home / "uninterrupted"))
    for network, whole in zip(resumed, trained(REQUEST), strict=True):
        assert network.card.losses == pytest.approx(whole.card.losses, rel=1e-5)
        assert network.card.matrix_errors == pytest.approx(whole.card.matrix_errors, rel=1e-4)


def test_errors_are_of_matrices_that_were_not_learned_from(home):
    time, joules = (network.card for network in trained(REQUEST))
    assert time.matrix_errors.keys() <= set(MATRICES) and len(time.matrix_errors) == 1
    assert not set(time.groups) & {matrix.partition("?")[0] for matrix in time.matrix_errors}
    assert set(time.errors) == {"network", "always the mean", "trees", "measured again"}
    assert set(joules.errors) == {*time.errors, "power baseline"} and joules.energy_source == "modelled"
    worst = max(joules.matrix_errors.values())
    assert joules.errors["network"]["matrix_worst"] == pytest.approx(worst)


def test_other_inputs_and_another_machine_are_another_training(home, tmp_path):
    labels = label_set("time", frequency_ghz=2.4)
    plan, path = dataclasses.replace(PAPER_PLAN, epochs=1), tmp_path / "time.safetensors"
    inputs = np.roll(labels.blocks.inputs, 1, axis=2)
    others = [
        dataclasses.replace(labels, blocks=dataclasses.replace(labels.blocks, inputs=inputs)),
        dataclasses.replace(labels, machine="another"),
    ]
    first = train_network(labels, path, plan=plan)
    assert train_network(labels, path, plan=plan) == first
    digests = {first.digest, *(train_network(other, path, plan=plan).digest for other in others)}
    assert len(digests) == 3


def test_folds_are_kept_with_the_network(home):
    request = dataclasses.replace(REQUEST, quantities=("time",), epochs=1, folds=3)
    (network,) = trained(request)
    assert len(network.card.folds) == 3 and min(network.card.folds) > 0
    (again,) = trained(request)
    assert again.card == network.card


def test_the_tables_of_the_paper_come_from_what_is_kept(home, recorded):
    experiment = EXPERIMENTS.get("barreda-2020")()
    with pytest.raises(ProfileError):
        experiment.from_records(recorded, ExperimentSetting())
    for labels in list(kept_labels(label_set("time", frequency_ghz=2.4).machine, "float64", 2.4)):
        keep_labels(dataclasses.replace(labels, machine=recorded.machine.name))
    report = experiment.from_records(recorded, ExperimentSetting())
    rows = report.tables[0].records()
    assert [row["quantity"] for row in rows] == ["time", "total", "package", "dram"]
    assert {row["source"] for row in rows} == {"modelled"}
    for row in rows:
        assert row["least"] <= row["mean"] <= row["most"]
    assert [row["paper_mean"] for row in rows] == [1.42, 39.58, 37.54, 2.03]
    with pytest.raises(InputError):
        experiment.from_records(recorded, ExperimentSetting(device="cuda"))
