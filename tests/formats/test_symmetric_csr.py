"""Symmetric CSR: what is held, what is refused, of which kind."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, tril

from sparsecast.devices import DEVICES
from sparsecast.errors import PaddingError, SymmetryError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.matrices.gallery import gallery

KERNELS_OF_FORMAT = DEVICES.get("cpu").kernels.get("symmetric_csr")


def altered(place, value):
    """A Laplacian with one other value."""
    A = gallery("poisson2d", n=12).tolil()
    A[place] = value
    return csr_array(A)


@st.composite
def symmetric_matrices(draw):
    rows = draw(st.integers(1, 20))
    entry = st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1), st.integers(-5, 5))
    dense = np.zeros((rows, rows))
    for i, j, value in draw(st.lists(entry, min_size=1, max_size=60)):
        dense[i, j] = dense[j, i] = value
    dense[0, 0] = 1
    return csr_array(dense)


@given(A=symmetric_matrices())
@settings(max_examples=150)
def test_the_triangle_is_that_of_scipy(A):
    try:
        built = SymmetricCSR.from_csr(A)
    except PaddingError:
        assert A.nnz < A.shape[0]
        return
    below = csr_array(tril(A, -1, format="csr"))
    assert built.data.tolist() == below.data.tolist() and built.indices.tolist() == below.indices.tolist()
    assert built.diagonal.tolist() == A.diagonal().tolist()
    assert structure(A, threads=1).symmetry.triangle_nnz == tril(A).nnz


@given(A=symmetric_matrices(), data=st.data())
@settings(max_examples=150)
def test_one_changed_value_is_noticed_by_structure_and_conversion(A, data):
    off_diagonal = np.flatnonzero(np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)) != A.indices)
    if not len(off_diagonal):
        return
    entry = data.draw(st.sampled_from(off_diagonal.tolist()))
    A.data[entry] += data.draw(st.sampled_from((1e-15, 1.0, -7.0)))
    if (A != A.T).nnz == 0:
        return  # the sum was rounded away
    assert structure(A, threads=1).symmetry.triangle_nnz is None
    with pytest.raises(SymmetryError):
        SymmetricCSR.from_csr(A)


@pytest.mark.parametrize("threads", (1, 2, 3, 16))
def test_structure_finds_symmetry_with_any_number_of_threads(threads):
    A = gallery("poisson3d", n=48, points=27)
    assert structure(A, threads=threads).symmetry.triangle_nnz == tril(A).nnz
    A.data[-2] *= 2
    assert structure(A, threads=threads).symmetry.triangle_nnz is None


@pytest.mark.parametrize("dtype", ("float32", "complex64", "complex128", "int32", "int8", "bool"))
def test_symmetry_is_found_for_any_type_of_values(dtype):
    A = gallery("poisson2d", n=12)
    A = csr_array((np.abs(A.data).astype(dtype), A.indices, A.indptr), shape=A.shape)
    assert structure(A, threads=1).symmetry.triangle_nnz == tril(A).nnz


def of_two(first, second, diagonal=0.0, dtype=complex):
    """A matrix of two rows: two mirrored values, and a value on the diagonal if it is not 0."""
    return csr_array(
        (np.array([diagonal, first, second], dtype=dtype), np.array([0, 1, 0]), np.array([0, 2, 3])),
        shape=(2, 2),
    )


NAN = float("nan")


@pytest.mark.parametrize(
    ("A", "kind"),
    [
        (of_two(2 + 1j, 2 - 1j, 3), "hermitian"),
        (of_two(complex(2, 0.0), complex(2, -0.0), complex(1, -0.0)), "hermitian"),
        (of_two(2 + 1j, 2 - 1j, 1j), None),
        (of_two(2 + 1j, -2 + 1j), None),
        (of_two(complex(NAN, 1), complex(NAN, -1)), "hermitian"),
        (of_two(complex(NAN, 1), complex(2, -1)), None),
        (of_two(complex(0.0, 1), complex(-0.0, -1)), "skew"),
        (of_two(2 + 1j, -2 - 1j), "skew"),
        (of_two(2 + 1j, -2 - 1j, 1), None),
        (of_two(2.0, -2.0, dtype=float), "skew"),
        (of_two(2.0, -2.0, -0.0, dtype=np.float32), "skew"),
        (of_two(2.0, -2.0, NAN, dtype=float), None),
        (of_two(2.0, -2.0, 5.0, dtype=float), None),
        (of_two(2.0, -2.0 - 1e-15, dtype=float), None),
        (of_two(NAN, NAN, dtype=float), "symmetric"),
        (of_two(NAN, -NAN, dtype=float), "skew"),
        (of_two(NAN, 1.0, dtype=float), None),
        (of_two(0.0, -0.0, dtype=float), "skew"),
        (of_two(0.0, -0.0, 1.0, dtype=float), None),
        (of_two(-0.0, -0.0, dtype=float), "symmetric"),
    ],
)
def test_structure_and_conversion_agree_on_the_kind(A, kind):
    assert structure(A, threads=1).symmetry.kind == kind
    if kind is None:
        with pytest.raises(SymmetryError):
            SymmetricCSR.from_csr(A)
    else:
        assert SymmetricCSR.from_csr(A).kind == kind


@pytest.mark.parametrize(
    "A",
    [
        csr_array(np.ones((5, 9))),
        altered((3, 4), 7.5),
        altered((3, 77), 2.0),
        altered((77, 3), 2.0),
    ],
)
def test_what_is_not_symmetric_is_refused(A):
    with pytest.raises(SymmetryError):
        SymmetricCSR.from_csr(A)


def test_unsorted_rows_and_duplicates_are_refused():
    A = gallery("poisson2d", n=9)
    start, end = A.indptr[4], A.indptr[5]
    A.indices[start:end] = A.indices[start:end][::-1]
    A.data[start:end] = A.data[start:end][::-1]
    assert structure(A, threads=1).symmetry.triangle_nnz is None
    with pytest.raises(SymmetryError):
        SymmetricCSR.from_csr(A)
    twice = csr_array((np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    assert structure(twice, threads=1).symmetry.triangle_nnz is None
    with pytest.raises(SymmetryError):
        SymmetricCSR.from_csr(twice)


def test_a_row_block_is_never_symmetric():
    A = gallery("poisson2d", n=30)
    found = structure(A)
    strips = StripStatistics.of(A.indptr, found, 100)
    blocks = strips.blocks(np.array([0, 0, 4]), np.array([9, 4, 9]))
    assert SymmetricCSR.can_hold(blocks).tolist() == [True, False, False]
    assert SymmetricCSR.can_hold(RowBlocks.of(found)).tolist() == [True]


@pytest.mark.parametrize("variant", KERNELS_OF_FORMAT.variants)
@pytest.mark.parametrize("threads", (1, 2))
def test_far_entries_cross_every_part(variant, threads):
    rows = 501
    dense = np.zeros((rows, rows))
    dense[np.arange(rows), np.arange(rows)[::-1]] = 1.0
    dense[:, 0] = dense[0, :] = 2.0
    A = csr_array(dense)
    x, out = np.arange(rows, dtype=float), np.full(rows, np.nan)
    KERNELS_OF_FORMAT.bind(SymmetricCSR.from_csr(A), variant, threads)(x, out)
    assert np.array_equal(out, A @ x)


def test_what_is_not_finite_reaches_the_rows_that_read_it_and_those_without_a_diagonal():
    A = csr_array(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 3]]))
    assert not SymmetricCSR.pads_with_own_columns
    out = np.empty(3)
    KERNELS_OF_FORMAT.bind(SymmetricCSR.from_csr(A), "single", 1)(np.array([np.inf, 1.0, 2.0]), out)
    assert np.isnan(out[0]) and np.isinf(out[1]) and out[2] == 6.0


def test_the_mispredicted_rows_are_those_below_the_diagonal_where_these_are_known():
    found = structure(gallery("circuit", n=2000), threads=1)
    older = found.having(dataclasses.replace(found.symmetry, mispredicted_below=None))
    below, whole = (SymmetricCSR.row_end_work(RowBlocks.of(each))["mispredicted"] for each in (found, older))
    assert below.tolist() == [found.symmetry.mispredicted_below]
    assert whole.tolist() == [found.row_lengths.mispredicted] and below < whole
