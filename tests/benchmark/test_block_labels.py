"""Labels of blocks: what adds up, what is refused, what is kept; no time is asserted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.benchmark.block_labels import LabelEffort, label_blocks, run_starts, shared_by_entries
from sparsecast.devices.cpu.block_times import clock_s, hot_times, run_times
from sparsecast.errors import InputError, StorageError
from sparsecast.machines.block_labels import keep_labels, kept_labels, labels_path, read_labels
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem

BRIEF = LabelEffort(sweeps=5, most_s=0.01, hot_blocks=4, hot_repeats=5, hot_trials=2)


@pytest.fixture(scope="module")
def labels():
    return label_blocks(Problem.of(gallery("poisson2d", n=40), "poisson"), detect(), effort=BRIEF)


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


def test_streaming_labels_add_up_to_the_product(labels):
    summed = labels.streaming_ns.sum() * 250e-9 * labels.nnz / (labels.blocks * 250)
    # The remainder, at most a block, is taken for as slow as the mean.
    assert summed == pytest.approx(labels.product_s, rel=2 / labels.blocks)


def test_labels_are_of_every_block_and_measured_twice(labels):
    assert labels.blocks == labels.nnz // 250 == len(labels.features) == len(labels.streaming_again_ns)
    assert (labels.streaming_ns > 0).all() and (labels.hot_ns > 0).all() and len(labels.hot_blocks) == 4
    assert labels.energy_nj is None  # no meter read it


def test_a_sweep_with_clocks_computes_the_product_of_every_kernel():
    A = gallery("rmat", scale=8)
    x = np.random.default_rng(0).uniform(size=A.shape[1])
    starts = run_starts(A.indptr, 100)
    for variant in ("plain", "unrolled", "masked", "gathered"):
        times = run_times((A.indptr, A.indices, A.data), variant, x, starts, 2)
        assert times.shape == (2, len(starts) - 1) and (times >= 0).all()


def test_the_clock_moves_and_hot_blocks_take_time():
    assert 0 < clock_s() < 1e-5
    A = gallery("poisson2d", n=20)
    rows = np.repeat(np.arange(400, dtype=np.int32), np.diff(A.indptr))
    taken = hot_times(rows, A.indices, A.data, np.ones(400), np.array([0, 250]), 250, 20, 3)
    assert taken.shape == (2, 3) and (taken > 0).all()


def test_matrices_that_networks_do_not_forecast_are_refused():
    with pytest.raises(InputError, match=r"has 4 entries: expected at least one block of 250"):
        label_blocks(Problem.of(csr_array(np.ones((2, 2))), "small"), detect())
    with pytest.raises(InputError, match=r"complex128 values: expected real ones"):
        label_blocks(Problem.of(gallery("poisson2d", n=20).astype(complex), "c"), detect())


def test_labels_are_kept_and_a_damaged_file_is_refused(labels, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path))
    path = keep_labels(labels)
    assert path == labels_path(labels.machine, labels.matrix, "float64")
    found = read_labels(path)
    assert found.facts() == labels.facts() and np.array_equal(found.streaming_ns, labels.streaming_ns)
    assert [each.name for each in kept_labels(labels.machine)] == ["poisson"]
    assert list(kept_labels(labels.machine, "float32")) == []
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StorageError, match=r"expected labels of blocks, .*; delete it and label again"):
        list(kept_labels(labels.machine))


def test_a_file_that_asks_for_pickle_is_refused(labels, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", str(tmp_path))
    path = keep_labels(dataclasses.replace(labels))
    np.savez(path, facts=np.array([object()], dtype=object))
    with pytest.raises(StorageError, match="expected labels"):
        read_labels(path)
