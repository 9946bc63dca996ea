"""Synthetic banded matrices: exact counts, places and bands, mirrored ones, seeds, refusals."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.features.sweep import BANDS
from sparsecast.matrices.banded_synthesis import SPREADS, banded_matrix
from sparsecast.system import integers

from .conftest import check_made, rows_of, same

SHARES = st.lists(st.integers(0, 9), min_size=BANDS, max_size=BANDS).filter(any)


def bands_of(A, block=(1, 1)):
    """Return the blocks in each band, by their distance in blocks from where their row meets the diagonal."""
    r, c = block
    block_cols = A.shape[1] // c
    first = np.flatnonzero((rows_of(A) % r == 0) & (A.indices % c == 0))
    away = np.abs(A.indices[first].astype(np.int64) // c - rows_of(A)[first] // r * r // c)
    return np.bincount(away * BANDS // block_cols, minlength=BANDS)


@given(
    st.integers(1, 150),
    st.floats(0.001, 1),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    SHARES,
    st.sampled_from(sorted(SPREADS)),
    st.booleans(),
    st.integers(0, 2**70),
)
@example(55, 0.02, (1, 1), [0] * 9 + [1], "binomial", False, 0)  # half a block, but for rounding
@settings(deadline=None, max_examples=150)
def test_counts_are_exact_whatever_is_asked_for(rows, fullness, block, shares, lengths, symmetric, seed):
    block = (block[0], block[0]) if symmetric else block
    size = rows // math.lcm(*block) * math.lcm(*block)
    if size == 0:
        return
    bands = np.array(shares) / sum(shares)
    mean = size * fullness
    A = banded_matrix(rows, mean, block=block, bands=bands, lengths=lengths, symmetric=symmetric, seed=seed)
    check_made(A)
    assert A.shape == (size, size)
    assert A.nnz == max(1, round(size * mean / math.prod(block))) * math.prod(block)
    _, in_block = np.unique(rows_of(A) // block[0] * size + A.indices // block[1], return_counts=True)
    assert (in_block == math.prod(block)).all()
    if symmetric:
        mirrored = A.T.tocsr()
        mirrored.sort_indices()
        assert same(mirrored, A)


@given(SHARES, st.sampled_from([(1, 1), (2, 3), (4, 2)]), st.integers(0, 99))
@example([5, 2, 9, 9, 9, *[0] * 5], (1, 1), 0)  # remainders alike but for rounding
@settings(deadline=None, max_examples=40)
def test_bands_hold_exactly_their_shares_where_rows_admit(shares, block, seed):
    # Every row has places in bands 0 to 4 for all it has, so it can take whatever they want.
    bands = np.array([*shares[:5], 0, 0, 0, 0, 0]) + np.eye(BANDS)[0]
    bands /= bands.sum()
    A = banded_matrix(600, 7.3, block=block, bands=bands, seed=seed)
    blocks = A.nnz // math.prod(block)
    held, whole = bands_of(A, block), np.floor(bands * blocks)
    is_larger = held > whole
    np.testing.assert_array_equal(held, whole + is_larger)
    # What is left over goes to the largest remainders; nobody says which of two alike.
    remainders = bands * blocks - whole
    assert remainders[is_larger].min(initial=1) >= remainders[~is_larger].max(initial=0) - 1e-9


def test_bands_that_their_rows_cannot_hold_spill_and_keep_the_lengths():
    # The outermost band has 5 * 6 / 2 places at either corner, and one row in ten reaches it there.
    A = banded_matrix(50, 4, bands=[0] * 9 + [1], seed=0)
    assert (np.diff(A.indptr) == 4).all()
    held = bands_of(A)
    assert held[9] == 2 * (1 + 2 + 3 + 4 + 4) and held.sum() == 200


@pytest.mark.parametrize("lengths", ("normal", "uniform"))
@pytest.mark.parametrize("spread", (None, 0.125))
def test_lengths_have_their_spread(lengths, spread):
    row_lengths = np.diff(banded_matrix(4_000, 100, lengths=lengths, spread=spread, seed=5).indptr)
    assert row_lengths.mean() == 100
    assert row_lengths.std() / 100 == pytest.approx(spread or SPREADS[lengths], rel=0.12)


@pytest.mark.parametrize(
    ("options", "fingerprint"),
    [
        ({}, "775412e36f1aa744"),
        ({"lengths": "normal", "block": (2, 3)}, "8fe4b93f43e30343"),
        ({"lengths": "power", "symmetric": True}, "bcc12a65bcb6a55d"),
    ],
)
def test_a_seed_is_the_same_matrix_everywhere(options, fingerprint):
    A = banded_matrix(1_200, 11, seed=7, **options)
    arrays = (A.indptr.astype("<i8"), A.indices.astype("<i8"), A.data.astype("<f8"))
    assert hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()[:16] == fingerprint


def test_many_entries_take_wide_indices(monkeypatch):
    narrow = banded_matrix(300, 9, seed=1)
    monkeypatch.setattr(integers, "INT32_MAX", 2_699)
    wide = banded_matrix(300, 9, seed=1)
    assert (wide.indices.dtype, wide.indptr.dtype) == (np.int64, np.int64)
    assert same(narrow, wide)


@pytest.mark.parametrize(
    ("rows", "nnz_per_row", "options"),
    [
        (0, 1, {}),
        (5, 1, {"block": (2, 3)}),
        (5, 6, {}),
        (5, 0, {}),
        (5, float("nan"), {}),
        (5, 1, {"block": (0, 1)}),
        (9, 1, {"block": (2, 1), "symmetric": True}),
        (5, 1, {"seed": -1}),
        (5, 1, {"lengths": "fixd"}),
        (5, 1, {"spread": 0.5}),
        (5, 1, {"lengths": "normal", "spread": 0.0}),
        (5, 1, {"lengths": "binomial", "spread": 0.5}),
        (5, 1, {"bands": [0.5] * 10}),
        (5, 1, {"bands": [1.0]}),
        (5, 1, {"bands": [2.0, -1.0, *[0.0] * 8]}),
    ],
)
def test_refusals_are_one_line(rows, nnz_per_row, options):
    with pytest.raises(InputError):
        banded_matrix(rows, nnz_per_row, **{"seed": 0, **options})


def test_what_memory_does_not_hold_is_refused_before_allocation(little_memory):
    with pytest.raises(MatrixSizeError):
        banded_matrix(1000, 10, seed=0)
