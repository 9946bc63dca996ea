"""Products of matrices whose rows and columns are in another order: the same results, whatever the order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array, random_array

from sparsecast.devices.binding import bind, in_first_order
from sparsecast.matrices.reordering import cuthill_mckee_order, reordered
from sparsecast.records import Candidate


def candidate(threads: int = 1, name: str = "csr", kernel: str = "plain") -> Candidate:
    return Candidate(name, kernel, "cpu", "float64", 32, threads)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.sampled_from(
        [candidate(), candidate(2), candidate(2, "sell", "vectors"), candidate(1, "jad", "blocks")]
    ),
)
def test_a_product_in_another_order_is_that_of_the_matrix(rows, seed, stored):
    generator = np.random.default_rng(seed)
    A = csr_array(random_array((rows, rows), density=0.2, rng=generator))
    A.data = generator.integers(-9, 9, A.nnz).astype(float)  # sums in any order are exact
    order = generator.permutation(rows).astype(np.int32)
    bound = in_first_order(bind(reordered(A, order), stored), order, stored)
    for shape in ((rows,), (rows, 3)):
        x, out = generator.integers(-9, 9, shape).astype(float), np.full(shape, np.nan)
        bound.of(1 if len(shape) == 1 else 3)(x, out)
        assert (out == A @ x).all()


def test_an_x_that_is_not_finite_reaches_the_rows_that_read_it():
    A = csr_array(diags_array([1.0, 2.0, 3.0]))
    order = np.array([2, 0, 1], dtype=np.int32)
    out = np.empty(3)
    bound = in_first_order(bind(reordered(A, order), candidate()), order, candidate())
    bound.product(np.array([np.nan, np.inf, 1.0]), out)
    assert np.isnan(out[0]) and out[1:].tolist() == [np.inf, 3.0]


@pytest.mark.parametrize("entries", [1, 3])
def test_the_order_of_any_pattern_is_a_permutation_and_narrows_a_shuffled_band(entries):
    empty = csr_array((entries, entries))
    assert sorted(cuthill_mckee_order(empty)) == list(range(entries))
    shuffle = np.random.default_rng(0).permutation(200)
    band = csr_array(diags_array([np.ones(199), np.ones(200)], offsets=[-1, 0]))
    shuffled = reordered(band, shuffle)  # not symmetric
    ordered = reordered(shuffled, cuthill_mckee_order(shuffled)).tocoo()
    assert abs(ordered.row - ordered.col).max() == 1
