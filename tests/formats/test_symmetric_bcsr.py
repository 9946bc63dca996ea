"""Symmetric BCSR: which blocks it stores, how many are predicted, and what it refuses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import PaddingError, SymmetryError
from sparsecast.features.analysis import structure
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.bcsr import BCSR
from sparsecast.formats.symmetric_bcsr import SymmetricBCSR
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery

IMAGES = {"symmetric": lambda A: A.T, "hermitian": lambda A: A.conj().T, "skew": lambda A: -A.T}


@st.composite
def mirrored_matrices(draw):
    """A matrix of whole numbers, and its kind."""
    kind = draw(st.sampled_from(sorted(IMAGES)))
    rows = draw(st.integers(1, 26))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    dense = generator.integers(-4, 5, (rows, rows)) * (generator.random((rows, rows)) < 0.3)
    half = np.tril(dense, -1) * (1 + 2j if kind == "hermitian" else 1.0)
    diagonal = 0 if kind == "skew" else np.diag(np.diag(dense))
    return csr_array(half + IMAGES[kind](half) + diagonal), kind


@given(case=mirrored_matrices(), side=st.sampled_from(BLOCK_SIZES), threads=st.sampled_from((1, 2)))
@settings(max_examples=100, deadline=None)
def test_blocks_are_those_of_bcsr_up_to_the_diagonal_and_products_are_exact(case, side, threads):
    A, kind = case
    try:
        built = SymmetricBCSR.from_csr(A, (side, side))
        whole = BCSR.from_csr(A, (side, side))
    except PaddingError:
        return
    assert built.kind == structure(A, threads=1).symmetry.kind
    assert built.kind == kind or abs(A - A.T).nnz == 0  # a diagonal alone is symmetric
    row = np.repeat(np.arange(len(whole.starts) - 1), np.diff(whole.starts))
    kept = -(-whole.columns // side) <= row  # rounded up: the last column of blocks is shifted left
    assert built.columns.tolist() == whole.columns[kept].tolist()
    assert built.data.reshape(-1, side**2).tolist() == whole.data.reshape(-1, side**2)[kept].tolist()
    x, out = np.arange(1, A.shape[0] + 1).astype(A.dtype), np.empty(A.shape[0], dtype=A.dtype)
    DEVICES.get("cpu").kernels.get("symmetric_bcsr").bind(built, "vectors", threads)(x, out)
    assert np.array_equal(out, A @ x)


def test_what_is_not_mirrored_is_refused():
    A = gallery("elasticity3d", n=4)
    A.data[5] += 1
    with pytest.raises(SymmetryError):
        SymmetricBCSR.from_csr(A)
    choice = whole_matrix(structure(A), Target("cpu", "float64", 32, 1), detect())
    assert "symmetric bcsr" in choice.refused["symmetric_bcsr"]


def test_a_matrix_without_blocks_hears_that_symmetric_csr_reads_less():
    choice = whole_matrix(structure(gallery("poisson2d", n=30)), Target("cpu", "float64", 32, 1), detect())
    assert "symmetric_csr" in {each.format for each in choice.candidates}
    assert "SYMMETRIC_CSR" in choice.refused["symmetric_bcsr"]


def test_half_of_the_bytes_of_bcsr_and_less_than_symmetric_csr():
    found = structure(gallery("elasticity3d", n=14))
    blocks = RowBlocks.of(found)
    mine, whole, plain = (
        int(each.predicted_bytes(blocks, 8, 4)[0]) for each in (SymmetricBCSR, BCSR, SymmetricCSR)
    )
    assert 0.5 < mine / whole < 0.55 and mine < plain
    assert mine == pytest.approx(SymmetricBCSR.from_csr(gallery("elasticity3d", n=14)).nbytes, rel=0.05)


def test_without_the_count_of_older_profiles_the_diagonal_is_taken_for_full():
    A = gallery("elasticity3d", n=6)
    found = structure(A, threads=1)
    older = found.having(dataclasses.replace(found.symmetry, diagonal_blocks=None))
    assert SymmetricBCSR.stored_blocks(RowBlocks.of(older)) == len(SymmetricBCSR.from_csr(A).columns)
