"""What the comparison with other libraries compares: random values that flatter nobody, rows that stay."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from peers import Kept, in_turn, randomised, verdicts


def matrix(is_symmetric: bool) -> csr_array:
    A = csr_array(random_array((40, 40), density=0.1, rng=np.random.default_rng(1)))
    A.data[:] = 1.0
    return csr_array(A + A.T) if is_symmetric else A


@pytest.mark.parametrize("is_symmetric", [True, False])
def test_random_values_keep_the_pattern_and_its_symmetry(is_symmetric):
    A = matrix(is_symmetric)
    R = randomised(A)
    assert np.array_equal(R.indptr, A.indptr) and np.array_equal(R.indices, A.indices)
    assert np.unique(R.data).size > A.nnz / 3
    assert ((R != R.T).nnz == 0) == is_symmetric


def test_a_row_that_was_kept_is_not_measured_again(tmp_path):
    file, key = tmp_path / "rows", {"matrix": "a", "threads": 2}
    Kept(file).add(key, lambda: key | {"ratio": 2.0})
    again = Kept(file)
    again.add(key, lambda: pytest.fail("measured again"))
    assert again.rows == [key | {"ratio": 2.0}]


def test_verdicts_count_short_products_of_several_threads_alone():
    row = {"matrix": "a", "values": "random", "threads": 2, "ours_s": 2e-4, "ratio": 0.5, "missing": {}}
    rows = [
        row | {"seconds": {"PyTorch": 1e-4}},
        row | {"threads": 1, "ratio": 2.0, "seconds": {"PyTorch": 1e-4}},
        row | {"ours_s": 3e-4, "ratio": 2.0, "seconds": {"PyTorch": 9e-4}},
    ]
    one, two, short = verdicts(rows)
    assert "mean 2.00 over 1 " in one and "mean 1.00 over 2 " in two and "1 below" in two
    assert "mean 0.50 over 1 " in short


def test_each_call_is_timed_in_each_round():
    counts = {"a": 0, "b": 0}

    def call(name: str) -> None:
        counts[name] += 1

    timings = in_turn({name: lambda name=name: call(name) for name in counts}, 2, 0.0)
    assert all(len(timing.samples_s) == 8 for timing in timings.values()) and min(counts.values()) > 8
