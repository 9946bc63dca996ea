"""The oracle itself, against fractions, and what it finds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.errors import WrongResultError
from sparsecast.matrices.gallery import gallery
from sparsecast.records import DTYPES
from sparsecast.system import parallel

reals = st.floats(-1e6, 1e6, allow_subnormal=False, width=32)
NUMBERS = {"float64": reals, "complex128": st.builds(complex, reals, reals)}
#: Of double precision, and of twice that.
EPS, TWICE = 2.0**-52, 2.0**-104


@st.composite
def products(draw, dtype):
    values = NUMBERS[dtype]
    cols = draw(st.integers(1, 8))
    rows = draw(st.lists(st.lists(st.tuples(st.integers(0, cols - 1), values), max_size=9), max_size=8))
    x = np.array(draw(st.lists(values, min_size=cols, max_size=cols)), dtype=dtype)
    entries = [entry for row in rows for entry in row]
    data = np.array([value for _, value in entries], dtype=dtype)
    indices = np.array([column for column, _ in entries], dtype=np.int32)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return csr_array((data, indices, indptr), shape=(len(rows), cols)), x


def parts_of(number):
    return np.array([Fraction(float(number.real)), Fraction(float(number.imag))])


def exact_rows(A, x):
    """The real and the imaginary part of each row of A x, as fractions: shape (rows, 2)."""
    sums = np.full((A.shape[0], 2), Fraction(0))
    for i in range(A.shape[0]):
        for k in range(A.indptr[i], A.indptr[i + 1]):
            (a, b), (c, d) = parts_of(A.data[k]), parts_of(x[A.indices[k]])
            sums[i] += a * c - b * d, a * d + b * c
    return sums


@pytest.mark.parametrize("dtype", NUMBERS)
@given(data=st.data())
def test_is_exact_in_twice_the_precision(dtype, data):
    A, x = data.draw(products(dtype))
    found = ReferenceProduct.of(A, x)
    assert found.y.dtype == dtype and found.magnitude.dtype == np.float64
    assert found.row_lengths.tolist() == np.diff(A.indptr).tolist()
    magnitudes = np.zeros(A.shape[0])
    np.add.at(
        magnitudes, np.repeat(np.arange(A.shape[0]), found.row_lengths), abs(A.data) * abs(x[A.indices])
    )
    np.testing.assert_allclose(found.magnitude, magnitudes, rtol=1e-14)
    roundings = 100 if dtype == "float64" else 400
    for i, exact in enumerate(exact_rows(A, x)):
        error = abs(parts_of(found.y[i]) + parts_of(found.y_low[i]) - exact)
        assert error.max() <= Fraction(roundings * TWICE) * Fraction(magnitudes[i])


@pytest.fixture
def complex_case():
    A = gallery("circuit", n=300).astype(complex)
    A.data.imag = A.data.real[::-1]
    generator = np.random.default_rng(0)
    x = generator.uniform(0.5, 1.0, 300) + 1j * generator.uniform(0.5, 1.0, 300)
    return A, x, ReferenceProduct.of(A, x)


def test_what_complex_kernels_get_wrong_is_found(complex_case):
    A, x, reference = complex_case
    y = reference.y.astype(complex)
    assert reference.check(y, "right") < 1e-15
    spoiled = np.tile(y, (6, 1))
    spoiled[0, 42] = np.conj(y[42])
    spoiled[1, 42] = y[42].real
    spoiled[2, 42] = complex(y[42].real, np.nan)
    spoiled[3, 42] = complex(np.inf, np.nan)
    spoiled[4, 42] *= 1j
    spoiled[5] = A.conj() @ x
    for wrong in spoiled:
        with pytest.raises(WrongResultError):
            reference.check(wrong, "kernel")


@pytest.mark.parametrize("strange", (complex(np.inf, 1), complex(1, np.inf), complex(np.nan, 1)), ids=str)
def test_complex_rows_that_are_not_finite_must_not_be_finite(complex_case, strange):
    A, x, _ = complex_case
    A.data[A.indptr[7]] = strange
    reference = ReferenceProduct.of(A, x)
    y = reference.y.astype(complex)
    reference.check(y, "right")
    for parts in ((np.nan, np.nan), (np.inf, 0.0), (0.0, -np.inf)):
        y[7] = complex(*parts)
        reference.check(y, "not finite in another way")
    y[7] = 1 + 1j
    with pytest.raises(WrongResultError):
        reference.check(y, "finite")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entries_per_thread", (1, 10**9))
def test_does_not_depend_on_threads(dtype, entries_per_thread, monkeypatch):
    A = gallery("circuit", n=300).astype(dtype)
    x = np.random.default_rng(0).uniform(0.5, 1.0, 300).astype(dtype)
    monkeypatch.setattr(parallel, "ENTRIES_PER_THREAD", entries_per_thread)
    found = ReferenceProduct.of(A, x)
    plain = A.astype(np.clongdouble) @ x
    assert np.all(np.abs(found.y + found.y_low - plain) <= 1e-15 * found.magnitude)
    assert np.all(np.abs(found.y - plain) <= EPS * np.abs(plain) + 1e-17 * found.magnitude)


def right(A, x):
    return ReferenceProduct.of(A, x).y.astype(float)


@pytest.fixture
def case():
    A = gallery("circuit", n=300)
    return A, np.random.default_rng(0).uniform(0.5, 1.0, 300)


@pytest.mark.parametrize("row", (0, 150, 299))
@pytest.mark.parametrize("wrong", (np.nan, np.inf, -np.inf, 0.0, 1e9), ids=str)
def test_one_wrong_row_is_found(case, row, wrong):
    A, x = case
    y = right(A, x)
    y[row] = wrong
    with pytest.raises(WrongResultError):
        ReferenceProduct.of(A, x).check(y, "circuit kernel")


@pytest.mark.parametrize("wrong", (1e-300, np.nan, -1.0), ids=str)
def test_an_empty_row_must_be_zero(wrong):
    A = csr_array((np.ones(2), [0, 1], [0, 1, 1, 2]), shape=(3, 2))
    reference = ReferenceProduct.of(A, np.ones(2))
    assert reference.check(np.array([1.0, -0.0, 1.0]), "fine") == 0
    assert reference.errors(np.array([1.0, wrong, 1.0])).max() == np.inf


def test_a_wrong_row_beside_infinite_ones_is_found(case):
    A, x = case
    A.data[A.indptr[7]], A.data[A.indptr[8]] = np.inf, np.nan
    y, reference = right(A, x), ReferenceProduct.of(A, x)
    assert not np.isfinite(y[[7, 8]]).any()
    reference.check(y, "right")
    for row, wrong in ((9, 0.0), (9, np.inf), (7, 1.0), (8, 0.0)):
        spoiled = y.copy()
        spoiled[row] = wrong
        assert reference.errors(spoiled).max() > 1e-3, f"row {row} = {wrong} is not found"


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_near_the_least_ones_may_round_as_the_type_does(dtype):
    tiny = np.finfo(dtype).tiny
    A = csr_array(np.diag([tiny / 8, tiny, 1.0]).astype(dtype))
    x = np.array([0.3, 0.3, 0.3], dtype=dtype)
    y = A.diagonal() * x
    ReferenceProduct.of(A, x).check(y, "product of tiny values")
    y[0] *= 2
    with pytest.raises(WrongResultError):
        ReferenceProduct.of(A, x).check(y, "twice a tiny value")


@pytest.mark.parametrize("dtype", ("float64", "complex128"))
def test_huge_values_are_no_reason_to_refuse(dtype):
    A = csr_array(np.array([[1e308, 1e308, -1e308], [1e302, -1e302, 1.0], [1.0, 2.0, 3.0]]).astype(dtype))
    reference, x = ReferenceProduct.of(A, np.array([1.0, 1.0, 1.0])), np.ones(3)
    assert reference.errors(A @ x).max() < 1e-15
    assert np.isinf(reference.magnitude[0]) and reference.y[1] == 1.0
    assert reference.errors(np.array([0.0, 1.0, 6.1], dtype=dtype)).max() > 1e-3


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 3)])
def test_a_matrix_without_entries(shape):
    reference = ReferenceProduct.of(csr_array(shape), np.ones(shape[1]))
    assert reference.check(np.zeros(shape[0]), "nothing") == 0
