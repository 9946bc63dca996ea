"""Labels of blocks: what adds up, what is refused, what is kept; no time is asserted."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.api import named_meter
from sparsecast.errors import DeviceError, InputError, ProfileError, StorageError
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.core_speed import Frequencies
from sparsecast.papers import published
from sparsecast.papers.barreda_2020.block_times import (
    HotBlocks,
    LabelEffort,
    _hot,
    clock_s,
    run_starts,
    run_times,
    shared_by_entries,
)
from sparsecast.papers.barreda_2020.datasets import label_set
from sparsecast.papers.barreda_2020.label_files import (
    keep_labels,
    kept_labels,
    labelled_frequencies,
    labels_path,
    read_labels,
)
from sparsecast.papers.barreda_2020.labelling import label, label_blocks

BRIEF = LabelEffort(sweeps=5, most_s=0.01, hot_blocks=4, hot_repeats=5, hot_trials=2)
NAME = "gallery:poisson2d?n=40"
POISSON = Problem.of(gallery("poisson2d", n=40), "poisson")


@pytest.fixture(scope="module")
def labels():
    return label_blocks(POISSON, detect(), effort=BRIEF)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path))


@given(st.lists(st.integers(0, 90), min_size=1, max_size=60), st.integers(1, 200))
def test_runs_have_entries_and_make_up_the_matrix(lengths, entries):
    indptr = np.append(0, np.cumsum(lengths))
    assume(indptr[-1] > 0)
    starts = run_starts(indptr, entries)
    assert starts[0] == 0 and starts[-1] == len(lengths) and (np.diff(starts) > 0).all()
    counts = np.diff(indptr[starts])
    assert (counts > 0).all() and counts.sum() == indptr[-1]
    assert (counts[:-1] < entries + 90).all()  # a run ends with the row that completes it


def test_blocks_share_the_time_of_runs_by_entries_and_lose_none():
    seconds = shared_by_entries(np.array([0, 125, 500]), np.array([1.0, 3.0]), 2)
    assert seconds.tolist() == pytest.approx([2.0, 2.0])


def test_labels_are_of_every_block_measured_twice_and_add_up_to_the_product(labels):
    assert labels.blocks == labels.nnz // 250 == len(labels.features) == len(labels.streaming_again_ns)
    assert (labels.streaming_ns > 0).all() and (labels.hot_ns > 0).all() and len(labels.hot_blocks) == 4
    assert labels.energy_source is None and labels.energy_nj.shape == (3, 0)  # no meter read it
    summed = labels.streaming_ns.sum() * 250e-9 * labels.nnz / (labels.blocks * 250)
    # The remainder, at most a block, is taken for as slow as the mean.
    assert summed == pytest.approx(labels.product_s, rel=2 / labels.blocks)


def test_a_sweep_with_clocks_times_every_run_with_every_kernel():
    assert 0 < clock_s() < 1e-5
    A = gallery("rmat", scale=8)
    x = np.random.default_rng(0).uniform(size=A.shape[1])
    starts = run_starts(A.indptr, 100)
    for variant in ("plain", "unrolled", "masked", "gathered", "vectors"):
        times = run_times((A.indptr, A.indices, A.data), variant, x, starts, 2)
        assert times.shape == (2, len(starts) - 1) and (times >= 0).all()


def test_both_loops_compute_the_products_of_their_blocks():
    A = gallery("circuit", n=200)
    rows = np.repeat(np.arange(200, dtype=np.uint32), np.diff(A.indptr))
    x = np.random.default_rng(0).uniform(size=200)
    for loop, times in (((), 3), ((0,), 1)):  # added where a row ends, or stored
        y = np.zeros(200)
        matrix = rows, A.indices.view(np.uint32), A.data
        _hot(*matrix, x, y, loop, np.array([250]), 250, 3, np.zeros(1, np.int64))
        cut = csr_array((A.data[250:500], (rows[250:500], A.indices[250:500])), shape=A.shape)
        assert np.allclose(y, times * (cut @ x))


class Speed:
    """A core that is slow in every second trial, or in all; it is watched before and after each."""

    def __init__(self, fast):
        self.patience, self.fast, self.trial = 1.0, fast, 0

    def wait(self, most_s):
        self.trial += 1
        return self.is_full(), 0.0

    def is_full(self):
        return self.fast(self.trial)


@pytest.mark.parametrize(("fast", "slow"), [(lambda trial: trial % 2, 0), (lambda trial: False, 4)])
def test_hot_blocks_are_of_trials_at_full_speed_if_there_are_any(fast, slow, monkeypatch):
    A = gallery("circuit", n=300).astype(np.float32)
    indptr = np.insert(A.indptr, 1, [0] * 7)  # empty rows, the first among them
    A = csr_array((A.data, A.indices.astype(np.int64), indptr.astype(np.int64)), shape=(307, 300))
    speed, taken = Speed(fast), []

    def seconds(hot, first, last, repeats):
        taken.append((1.0 if fast(speed.trial) else 0.5) * speed.trial)
        return np.full(last - first, taken[-1])

    hot = HotBlocks(A, np.arange(4), np.ones(300, np.float32), BRIEF, speed)
    rows, columns, values = hot._entries
    for block in range(4):
        part = slice(250 * block, 250 * block + 250)
        assert rows[part][0] == 0 and (np.diff(rows[part]) >= 0).all()
        given = np.repeat(np.arange(307), np.diff(indptr))[part]
        assert np.array_equal(rows[part], given - given[0])
        assert np.array_equal(columns[part], A.indices[part]) and np.array_equal(values[part], A.data[part])
    monkeypatch.setattr(HotBlocks, "_seconds", seconds)
    ns = hot.measure()
    assert (ns == (1.0 if not slow else 0.5) / 250 * 1e9).all() and (hot.slow, hot.tried) == (slow, 4)
    assert len(taken) == (2 * BRIEF.hot_trials - 1 if not slow else 4 * BRIEF.hot_trials)


@pytest.mark.parametrize("A", [csr_array(np.ones((2, 2))), gallery("poisson2d", n=20).astype(complex)])
def test_matrices_that_networks_do_not_forecast_are_refused(A):
    with pytest.raises(InputError):
        label_blocks(Problem.of(A, "m"), detect())


def test_labels_are_kept_and_a_damaged_file_is_refused(labels, home):
    path = keep_labels(labels)
    assert path == labels_path(labels.machine, labels.matrix, "float64")
    found = read_labels(path)
    assert all(np.array_equal(value, getattr(labels, name)) for name, value in vars(found).items())
    assert [each.name for each in kept_labels(labels.machine)] == ["poisson"]
    assert list(kept_labels(labels.machine, "float32")) == []
    whole, arrays = path.read_bytes(), dict(np.load(path))
    facts = json.loads(str(arrays.pop("facts")))
    np.savez(path, facts=np.array(json.dumps({**facts, "mispredicted_rows": 1})), **arrays)
    assert read_labels(path).nnz == labels.nnz, "a fact of an earlier release is left out"
    np.savez(path, facts=np.array(json.dumps({"labels_version": 0})))
    of_another_version = path.read_bytes()
    np.savez(path, facts=np.array([object()], dtype=object))
    for content in (whole[:100], of_another_version, path.read_bytes()):  # the last would need pickle
        path.write_bytes(content)
        with pytest.raises(StorageError):
            list(kept_labels(labels.machine))


class Counter:
    """A meter that counts one joule between two readings, or nothing."""

    source, run_s, step_s = "replay", 0.002, 1e-6

    def __init__(self, step_j=1.0):
        self.step_j, self.counted_j = step_j, 0.0

    def joules(self):
        self.counted_j += self.step_j
        return self.counted_j


def test_joules_of_blocks_are_what_the_meter_counts_over_the_repetitions():
    effort = dataclasses.replace(BRIEF, energy_s=4 * Counter.run_s)
    found = label_blocks(POISSON, detect(), effort=effort, meter=Counter())
    assert found.energy_source == "replay" and set(found.energy_blocks) <= set(found.hot_blocks)
    assert len(found.energy_blocks) == 2 and found.energy_nj.shape == (3, 2)
    assert np.isnan(found.energy_nj[1:]).all(), "package and memory are not counted apart"
    # As many repetitions as take run_s: a joule, shared by them, is 1 / run_s joules a second.
    ns = found.hot_ns[np.isin(found.hot_blocks, found.energy_blocks)]
    assert found.energy_nj[0] == pytest.approx(ns / Counter.run_s, rel=0.05)
    assert (found.energy_nj[0] == found.energy_again_nj[0]).all()
    still = label_blocks(POISSON, detect(), effort=BRIEF, meter=Counter(step_j=0.0))
    assert still.energy_source is None and still.energy_nj.shape == (3, 0) and len(still.hot_ns) > 0


def test_of_several_readings_that_with_the_fewest_joules_counts():
    meter, blocks = Counter(), HotBlocks(POISSON.matrix, np.arange(2), np.ones(1600), BRIEF)
    counts = iter(np.cumsum([0.0, 5.0, 0.0, 2.0, 0.0, 3.0]))  # before and after each reading
    meter.joules = counts.__next__
    assert blocks.joules(0, 10, 3, meter)[0] == pytest.approx(2.0 / 10)


def test_labels_are_measured_again_for_their_joules_alone(home):
    asked = {"effort": BRIEF, "dtype": "float64"}
    assert len(label([NAME], **asked).labelled) == 1
    metered = label([NAME], meter=Counter(), **asked)
    assert [each.energy_source for each in metered.labelled] == ["replay"]
    assert label([NAME], meter=Counter(), **asked).known == 1
    blocks = label_set("total").blocks
    assert len(blocks) == len(metered.labelled[0].energy_blocks) and (blocks.again == blocks.labels).all()
    assert (blocks.labels == metered.labelled[0].energy_nj[0]).all()


def test_three_energies_at_named_frequencies_are_modelled_where_nothing_can_be_set(home):
    asked = {"effort": BRIEF, "dtype": "float64", "frequencies_ghz": (1.2, 2.4)}
    if not Frequencies().mean_hz():  # a machine whose cores cannot be set
        with pytest.raises(DeviceError):
            label([NAME], meter=Counter(), **asked)
    done = label([NAME], meter=named_meter("modelled"), **asked)
    assert [each.frequency_ghz for each in done.labelled] == [1.2, 2.4]
    for each in done.labelled:
        total, package, dram = each.energy_nj
        assert each.energy_source == "modelled" and len(each.energy_blocks) == 4
        assert total == pytest.approx(package + dram, rel=1e-5)
        assert (package > dram).all() and (dram > 0).all()
    assert label([NAME], meter=named_meter("modelled"), **asked).known == 2
    machine = detect().name
    assert {each.frequency_ghz for each in kept_labels(machine, "float64", 1.2)} == {1.2}
    assert not list(kept_labels(machine, "float64")), "kept apart"
    assert labelled_frequencies(machine, "float64") == [1.2, 2.4]
    found = label_set("dram", frequency_ghz=2.4)
    assert (found.energy_source, found.frequency_ghz) == ("modelled", 2.4) and len(found.blocks) == 4
    with pytest.raises(ProfileError):
        label_set("dram", frequency_ghz=2.0)


def test_the_modelled_meter_gives_back_the_means_of_table_1():
    table = published("barreda_2020")["table_1"]
    meter = named_meter("modelled")
    for k, ghz in enumerate(table["frequency_ghz"]):
        seconds = 1e-9 * table["time"]["mean"][k] * ghz / 2.4
        for name in ("package", "dram"):
            watts, joules = meter.costs[name]
            assert 1e9 * (watts * seconds + joules) == pytest.approx(table[name]["mean"][k], rel=0.03)
