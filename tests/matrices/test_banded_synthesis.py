"""Synthetic banded matrices: exact counts, places and bands, mirrored ones, seeds, refusals."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.features.sweep import BANDS
from sparsecast.matrices.band_statistics import band_statistics
from sparsecast.matrices.banded_synthesis import SPREADS, banded_matrix
from sparsecast.system import integers

SHARES = st.lists(st.integers(0, 9), min_size=BANDS, max_size=BANDS).filter(any)


def rows_of(A):
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


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
    A.check_format(full_check=True)
    assert A.shape == (size, size)
    assert A.nnz == max(1, round(size * mean / math.prod(block))) * math.prod(block)
    assert (A.indices.dtype, A.indptr.dtype, A.data.dtype) == (np.int32, np.int32, np.float64)
    assert (np.diff(A.indices)[np.diff(rows_of(A)) == 0] > 0).all()
    assert (A.data != 0).all() and (np.abs(A.data) < 1).all()
    _, in_block = np.unique(rows_of(A) // block[0] * size + A.indices // block[1], return_counts=True)
    assert (in_block == math.prod(block)).all()
    if symmetric:
        mirrored = A.T.tocsr()
        mirrored.sort_indices()
        assert np.array_equal(mirrored.indices, A.indices) and np.array_equal(mirrored.data, A.data)


@given(SHARES, st.sampled_from([(1, 1), (2, 3), (4, 2)]), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_bands_hold_exactly_their_shares_where_rows_admit(shares, block, seed):
    # Every row has places in bands 0 to 4 for all it has, so it can take whatever they want.
    bands = np.array([*shares[:5], 0, 0, 0, 0, 0]) + np.eye(BANDS)[0]
    bands /= bands.sum()
    A = banded_matrix(600, 7.3, block=block, bands=bands, seed=seed)
    blocks = A.nnz // math.prod(block)
    wanted = np.floor(bands * blocks)
    wanted[np.argsort(wanted - bands * blocks, kind="stable")[: blocks - int(wanted.sum())]] += 1
    np.testing.assert_array_equal(bands_of(A, block), wanted)


def test_the_shipped_bands_are_met():
    for density in (2.0, 6.0, 12.0, 29.0, 40.0, 90.0):
        shares = np.array(band_statistics().bands(density))
        for symmetric in (False, True):
            A = banded_matrix(5_000, density, symmetric=symmetric, seed=3)
            assert np.abs(bands_of(A) - shares * A.nnz).max() < 2


def test_bands_that_their_rows_cannot_hold_spill_and_keep_the_lengths():
    # The outermost band has 5 * 6 / 2 places at either corner, and one row in ten reaches it there.
    A = banded_matrix(50, 4, bands=[0] * 9 + [1], seed=0)
    assert (np.diff(A.indptr) == 4).all()
    held = bands_of(A)
    assert held[9] == 2 * (1 + 2 + 3 + 4 + 4) and held.sum() == 200


@pytest.mark.parametrize("lengths", ("normal", "uniform"))
def test_lengths_have_their_spread(lengths):
    found = np.diff(banded_matrix(4_000, 100, lengths=lengths, seed=5).indptr)
    assert found.mean() == 100
    assert found.std() / 100 == pytest.approx(SPREADS[lengths], rel=0.12)


@pytest.mark.parametrize("mean", (4, 64))
def test_binomial_lengths_have_their_own_deviation(mean):
    found = np.diff(banded_matrix(20_000, mean, lengths="binomial", seed=3).indptr)
    assert found.mean() == mean
    assert found.std() == pytest.approx(math.sqrt(mean), rel=0.03)
    # Of 4 throws a row in the mean, exp(-4) of the rows get none.
    assert np.mean(found == 0) == pytest.approx(math.exp(-mean), abs=0.003)


def test_fixed_lengths_differ_by_at_most_one_block():
    assert set(np.diff(banded_matrix(1_000, 7.5, seed=0).indptr)) == {7, 8}
    assert set(np.diff(banded_matrix(1_000, 24.5, block=(2, 2), seed=0).indptr)) == {24, 26}


def test_places_within_a_band_are_spread_evenly():
    A = banded_matrix(20_000, 12, bands=[1] + [0] * 9, seed=1)
    away = (A.indices - rows_of(A))[(rows_of(A) > 2_000) & (rows_of(A) < 18_000)]
    counts, _ = np.histogram(away, bins=20, range=(-2_000, 2_000))
    assert counts.max() < 1.1 * counts.min()
    assert abs(A.data.mean()) < 0.01 and A.data.std() == pytest.approx(3**-0.5, rel=0.01)


def test_a_seed_is_a_matrix():
    one, same, other = (banded_matrix(500, 9, lengths="power", seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.indices, same.indices) and np.array_equal(one.data, same.data)
    assert one.nnz == other.nnz and not np.array_equal(one.indptr, other.indptr)
    assert not np.isin(one.data, other.data).any()


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
    assert np.array_equal(narrow.indices, wide.indices) and np.array_equal(narrow.data, wide.data)


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
        (5, 1, {"bands": [0.5] * 10}),
        (5, 1, {"bands": [1.0]}),
        (5, 1, {"bands": [2.0, -1.0, *[0.0] * 8]}),
    ],
)
def test_refusals_are_one_line(rows, nnz_per_row, options):
    with pytest.raises(InputError) as caught:
        banded_matrix(rows, nnz_per_row, **{"seed": 0, **options})
    assert "\n" not in str(caught.value)


def test_what_memory_does_not_hold_is_refused_before_allocation(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1000}))
    with pytest.raises(MatrixSizeError):
        banded_matrix(1000, 10, seed=0)
