"""The networks of blocks: Table 2's shapes, training that goes on, weights that are refused."""

import dataclasses

import numpy as np
import pytest

from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.papers.barreda_2020.datasets import BlockDataset, block_inputs, joined, score
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.networks import (
    ENERGY,
    FILE_VERSION,
    INPUTS,
    SEEING_ROWS,
    TIME,
    Architecture,
    ModelCard,
    built,
    load_network,
    save_network,
    write_tensors,
)
from sparsecast.papers.barreda_2020.training import PAPER_PLAN, forecasts, train

torch = pytest.importorskip("torch", reason="the networks need the extra cnn")
pytest.importorskip("safetensors", reason="weights need the extra cnn")

SMALL = Architecture((4, 4), (3, 3), (7, 7), (8,), (0.1,))
ERRORS, CURVES = {"network": {"block_mean": 0.1}}, ((2.0, 1.0), (3.0, 2.5))
LABELS = ("time", "here", "float64", 2.4, "set", None)
CARD = ModelCard(*LABELS, 2, 300, "groups", ERRORS, {}, "2026", "0", "abc", 1.5, ("a",), *CURVES)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made_up(blocks=300, seed=0, law=lambda inputs: 1 + inputs[:, 0].mean(axis=1)):
    """Blocks of two matrices whose label follows a law of the inputs."""
    generator = np.random.default_rng(seed)
    inputs = generator.uniform(0, 1, (blocks, 2, INPUTS)).astype(np.float32)
    inputs[:, 0] *= generator.uniform(0, 4, (blocks, 1))
    features = inputs.mean(axis=2)
    labels = law(inputs).astype(np.float32)
    matrices = np.sort(generator.integers(0, 2, blocks))
    return BlockDataset(inputs, features, labels, labels * 1.02, matrices, ("m", "n"), ("a", "b"))


def scored(training, network, blocks):
    return score(forecasts(network, blocks.inputs), blocks, float(training.labels.mean()))


@pytest.mark.parametrize(("architecture", "parameters"), [(TIME, 340_625), (ENERGY, 134_101)])
def test_the_paper_s_networks_have_as_many_parameters_as_table_2_gives(architecture, parameters):
    assert sum(weights.numel() for weights in built(architecture).parts.parameters()) == parameters


def test_layers_are_in_the_paper_s_order():
    """Convolution, ReLU, pool, twice; dropout after every hidden dense layer; the output is linear."""
    parts = built(ENERGY).parts
    assert [type(layer).__name__ for layer in parts["blocks"]] == [
        *["Conv1d", "ReLU", "MaxPool1d"] * 2,
        "Flatten",
    ]
    dense = [type(layer).__name__ for layer in parts["dense"]]
    assert dense == [*["Linear", "ReLU", "Dropout"] * 2, "Linear"]
    assert [layer.p for layer in parts["dense"] if isinstance(layer, torch.nn.Dropout)] == [0.47, 0.59]


def test_kernels_and_pools_that_leave_nothing_are_refused():
    built(Architecture((16, 32), (9, 9), (9, 9), (), ()))
    with pytest.raises(ValueError, match="249"):
        built(Architecture((16, 32), (9, 200), (9, 9), (), ()))


def test_the_rate_falls_after_five_epochs_without_gain_and_the_training_ends_after_fifteen():
    still = dataclasses.replace(PAPER_PLAN, optimizer="SGD", rate=1e-12, least_rate=1e-13)
    progress = train(built(SMALL), made_up(40), made_up(40, seed=1), still)
    assert progress.rates[:7] == [1e-12] * 7
    assert progress.rates[7:] == pytest.approx([1e-13] * 9)


def test_training_beats_always_the_mean_and_keeps_the_best_weights():
    training, validation = made_up(600), made_up(200, seed=1)
    network = built(SMALL)
    progress = train(network, training, validation, dataclasses.replace(PAPER_PLAN, epochs=12, rate=1e-2))
    found = forecasts(network, validation.inputs)
    assert np.mean((found - validation.labels) ** 2) == pytest.approx(progress.best, rel=1e-5)
    assert scored(training, network, validation)["explained"] > 0.75


def test_an_interrupted_training_goes_on_to_the_same_weights(tmp_path):
    training, validation = made_up(300), made_up(100, seed=1)
    plan = dataclasses.replace(PAPER_PLAN, epochs=4)
    whole, parted, path = built(SMALL), built(SMALL), tmp_path / "run.checkpoint"
    uninterrupted = train(whole, training, validation, plan)

    def stop(progress):
        if len(progress.losses) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(parted, training, validation, plan, path, stop)
    parted = built(SMALL, seed=9)  # whatever it begins with, the checkpoint counts
    resumed = train(parted, training, validation, plan, path)
    assert resumed.validation == pytest.approx(uninterrupted.validation, rel=1e-6)
    assert np.allclose(forecasts(parted, validation.inputs), forecasts(whole, validation.inputs))


def test_a_checkpoint_of_another_training_or_a_damaged_one_is_refused(tmp_path):
    training, validation, path = made_up(300), made_up(100, seed=1), tmp_path / "run.checkpoint"
    plan = dataclasses.replace(PAPER_PLAN, epochs=1)
    train(built(SMALL), training, validation, plan, path)
    with pytest.raises(InputError):
        train(built(SMALL), training, made_up(50, seed=2), plan, path)
    with pytest.raises(InputError):
        train(built(SMALL), training.of(np.zeros(0, dtype=int)), validation, plan)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError):
        train(built(SMALL), training, validation, plan, path)


def test_ours_learns_what_ends_of_rows_add_wherever_they_are():
    def law(inputs):
        return 0.9 + 0.1 * (inputs[:, 1] > inputs[:, 0]).mean(axis=1)  # as little as in measured labels

    training, validation = made_up(1200, law=law), made_up(200, seed=1, law=law)
    network = built(SEEING_ROWS)
    train(network, training, validation, dataclasses.replace(PAPER_PLAN, epochs=8))
    turned = dataclasses.replace(validation, inputs=np.roll(validation.inputs, 100, axis=2))
    for blocks in (validation, turned):
        assert scored(training, network, blocks)["explained"] > 0.8


def test_weights_come_back_with_their_card(tmp_path):
    network, path = built(SMALL), tmp_path / "network.safetensors"
    save_network(network, CARD, path)
    found, card = load_network(path, "here")
    assert card == CARD and found.architecture == SMALL
    blocks = made_up(20)
    assert np.array_equal(forecasts(found, blocks.inputs), forecasts(network, blocks.inputs))
    with pytest.raises(InputError, match="elsewhere"):
        load_network(path, "elsewhere")


def test_a_damaged_or_missing_network_is_refused(tmp_path):
    path = tmp_path / "n.safetensors"
    for content in (None, b"", b"not a network", b"\xff" * 64):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError):
            load_network(path)


def test_weights_of_other_shapes_than_the_architecture_says_are_refused(tmp_path):
    path = tmp_path / "n.safetensors"
    tensors = {**built(SMALL).parts.state_dict(), "dense.0.bias": torch.zeros(3)}
    facts = {"architecture": dataclasses.asdict(SMALL), "card": dataclasses.asdict(CARD)}
    write_tensors(path, tensors, {"version": FILE_VERSION, **facts})
    with pytest.raises(InputError, match="dense"):
        load_network(path)


def test_an_interrupted_search_goes_on_with_the_trials_that_it_has(tmp_path):
    pytest.importorskip("optuna", reason="the search needs the extra cnn")
    from sparsecast.papers.barreda_2020.training import search

    training, validation, seen = made_up(64), made_up(32, seed=1), []

    def stop(number, error):
        seen.append(number)
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(training, validation, tmp_path / "s.sqlite", 3, stop)
    found = search(training, validation, tmp_path / "s.sqlite", 3, lambda number, error: seen.append(number))
    assert found.trials == 3 and found.plan.epochs == 1 and found.plan.clip == 1.0
    again = search(training, validation, tmp_path / "s.sqlite", 3, lambda number, error: seen.append(-1))
    assert again == found and -1 not in seen


def test_no_group_stands_on_both_sides_of_a_split():
    blocks = joined([made_up(40), dataclasses.replace(made_up(30, seed=1), groups=("c", "d"))])
    groups = [
        {blocks.groups[number] for number in set(part.matrices.tolist())} for part in blocks.parts("groups")
    ]
    assert sorted(group for part in groups for group in part) == ["a", "b", "c", "d"]
    assert sum(map(len, blocks.parts("groups"))) == 70


def test_the_paper_s_split_tests_on_other_matrices_and_validates_on_blocks_of_all_that_are_learned():
    blocks = joined([dataclasses.replace(made_up(100, seed=k), groups=("a", "a")) for k in range(5)])
    learned, validation, test = blocks.parts("paper")
    assert len(set(test.matrices.tolist())) == 2 and not set(test.matrices) & set(learned.matrices)
    assert set(validation.matrices) == set(learned.matrices)
    assert len(validation) == round(0.2 * (len(learned) + len(validation)))


def test_every_group_is_left_out_once_in_a_cross_validation():
    blocks = joined([dataclasses.replace(made_up(30, seed=k), groups=(f"{k}", f"{k}")) for k in range(6)])
    folds = list(blocks.folds(5))
    assert len(folds) == 5 and all(not set(one.matrices) & set(other.matrices) for one, other in folds)
    assert sorted(number for _, other in folds for number in set(other.matrices.tolist())) == list(range(12))


def test_inputs_have_all_that_networks_see_of_a_block():
    A = Problem.named("gallery:rmat?scale=9").matrix
    inputs = block_inputs(A.indptr, A.indices, np.arange(A.nnz // BLOCK_ENTRIES))
    assert len(inputs) > 10 and inputs.shape[1] == SEEING_ROWS.channels
    assert np.isfinite(inputs).all()


def test_the_mean_explains_nothing_and_the_labels_all():
    blocks = made_up(100)
    mean = float(blocks.labels.mean())
    assert score(np.full(100, mean, dtype=np.float32), blocks, mean)["explained"] == pytest.approx(0.0)
    assert score(blocks.labels, blocks, mean)["explained"] == 1.0


def test_a_network_of_logarithms_forecasts_labels_and_is_scored_by_ratios():
    training, validation = made_up(600), made_up(150, seed=1)
    network = built(dataclasses.replace(SMALL, logarithm=True))
    progress = train(network, training, validation, dataclasses.replace(PAPER_PLAN, epochs=12, rate=5e-3))
    found = forecasts(network, validation.inputs)
    assert (found > 0).all() and scored(training, network, validation)["explained"] > 0.75
    assert progress.best == pytest.approx(np.mean(np.log(found / validation.labels) ** 2), rel=1e-3)
