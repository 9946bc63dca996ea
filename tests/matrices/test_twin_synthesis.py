"""Twins: the counts of the Structure they are made from, in the order and with the reuse that it tells of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.features.analysis import structure
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.synthesis import block_matrix, varied_matrix
from sparsecast.matrices.twin_synthesis import banded_twin, row_lengths, twin

from .conftest import check_made, same


@st.composite
def matrices(draw):
    shape = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    density = draw(st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0]))
    full = random_array(shape, density=density, rng=np.random.default_rng(draw(st.integers(0, 99))))
    # Long rows among empty ones, and columns that every row has.
    heavy = np.zeros(shape)
    heavy[draw(st.integers(0, shape[0] - 1)), :] = draw(st.booleans())
    heavy[:, draw(st.integers(0, shape[1] - 1))] += draw(st.booleans())
    return csr_array(full + csr_array(heavy))


@given(matrices(), st.sampled_from([1, *BLOCK_SIZES]), st.integers(0, 2**70))
@settings(deadline=None, max_examples=150)
def test_both_twins_have_the_counts_of_any_matrix(A, block, seed):
    found = structure(A, threads=1)
    for made in (banded_twin(found, block, seed=seed), twin(found, block, seed=seed)):
        check_made(made)
        assert made.shape == A.shape and made.nnz == A.nnz
    # Below 64 entries a row, the lengths are known one by one.
    np.testing.assert_array_equal(np.sort(np.diff(made.indptr)), np.sort(np.diff(A.indptr)))
    assert same(made, twin(found, block, seed=seed))


def test_long_rows_keep_their_counts_and_sums():
    A = varied_matrix(20_000, 40, "power", 1.0, seed=0)
    lengths, real = row_lengths(structure(A)), np.sort(np.diff(A.indptr))
    assert lengths.sum() == A.nnz and len(lengths) == A.shape[0] and real.max() > 500
    assert np.abs(lengths - real).max() <= real.max() / 8
    np.testing.assert_array_equal(lengths[real < 64], real[real < 64])


@pytest.mark.parametrize(
    ("A", "bands_suffice"),
    [
        (varied_matrix(20_000, 6, "mixed", 0.02, seed=1), False),
        (varied_matrix(20_000, 6, "uniform", 1.0, seed=1), True),
        (varied_matrix(5_000, 30, "power", 0.1, seed=1), True),
        (gallery("poisson2d", n=100), False),
    ],
)
def test_our_twin_is_like_the_matrix_in_what_decides_its_time(A, bands_suffice):
    real = structure(A)
    ours = structure(twin(real, seed=3))
    bands = structure(banded_twin(real, seed=3))
    assert ours.row_lengths.mispredicted == pytest.approx(real.row_lengths.mispredicted, rel=0.05, abs=20)
    assert ours.locality.line_changes == pytest.approx(real.locality.line_changes, rel=0.05)
    assert _unlike(ours, real) < 0.25
    assert (_unlike(bands, real) < 0.6) == bands_suffice
    assert ours.bands.half_bandwidth < 2 * real.bands.half_bandwidth + 16


def _unlike(one, other):
    """Return the largest difference between the shares of lines read again within 2**k others."""
    ends = [np.cumsum(each.locality.reuse_histogram) for each in (one, other)]
    return np.abs(ends[0] - ends[1])[:-1].max()


@pytest.mark.parametrize("block", (2, 3, 4))
def test_blocks_keep_their_fill(block):
    A = block_matrix(2_000, 6, block, 0.2, seed=3)
    A.data[np.random.default_rng(0).random(A.nnz) < 0.1] = 0
    A.eliminate_zeros()
    real = structure(A)
    at = BLOCK_SIZES.index(block)
    ours = structure(twin(real, block, seed=3))
    assert ours.nnz == real.nnz
    assert ours.blocks.fill[at] == pytest.approx(real.blocks.fill[at], rel=0.03)
    assert structure(twin(real, seed=3)).blocks.fill[at] > 1.3 * real.blocks.fill[at]
    assert structure(banded_twin(real, block, seed=3)).blocks.fill[at] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("make", (banded_twin, twin))
@pytest.mark.parametrize(
    ("block", "seed", "error"), [(5, 0, InputError), (1, -1, InputError), (1, 0, MatrixSizeError)]
)
def test_refusals_are_one_line(make, block, seed, error, little_memory):
    with pytest.raises(error):
        make(structure(gallery("poisson2d", n=20)), block, seed=seed)
