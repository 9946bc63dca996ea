"""What values of float32 lose: measured exactly, bounded, and refused where a finite one becomes infinite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices.product_timer import Rounding
from sparsecast.errors import FormatError
from sparsecast.formats.csr import CSR
from sparsecast.formats.narrowing import LOSSY

MOST = float(np.finfo(np.float32).max)
#: The largest double that is rounded to it, and not to infinity.
STILL_FINITE = float(np.nextafter(MOST + 2.0**103, 0))
UNIT = 2.0**-24


def row_of(values):
    values = np.array(values)
    return csr_array((values, np.arange(len(values)), [0, len(values)]), shape=(1, len(values)))


@pytest.mark.parametrize(
    ("values", "value_error"),
    [
        ([1.5, -0.0, 0.0, 2.0**-149, MOST, -MOST], 0.0),
        ([np.nan, np.inf, -np.inf, 1.0], 0.0),
        ([np.nan, 0.1], abs(np.float64(np.float32(0.1)) - 0.1) / 0.1),
        ([2.0**24 + 1], 1 / (2**24 + 1)),
        ([2.0**53 - 1], 1 / (2**53 - 1)),
        ([1 + UNIT], UNIT / (1 + UNIT)),
        ([STILL_FINITE], (STILL_FINITE - MOST) / STILL_FINITE),
        ([1.0, 2.0**-150], 1.0),  # below half of the least float32: nothing is left of it
        ([1.0, 1.5 * 2.0**-149], 1 / 3),
        ([1.0, 5e-324], 1.0),
        ([], 0.0),
        ([1e-30 + 0.1j, 1 + 2j], abs(np.complex128(np.complex64(1e-30 + 0.1j)) - 0.1j) / 0.1),
        ([complex(np.nan, 1), complex(1, -np.inf), 3j], 0.0),
    ],
)
def test_the_error_of_values(values, value_error):
    A = row_of(values)
    found = Rounding.of(A, "complex128" if A.dtype.kind == "c" else "float64")
    assert found.value_error == pytest.approx(value_error, rel=1e-9, abs=0)
    assert 0 <= found.y_error <= found.value_error * (1 + 1e-15)
    if np.isfinite(A.data).all() and value_error == 1:
        assert found.y_error < 1e-30, "what is lost of tiny values is little of the row"


@pytest.mark.parametrize(
    "value", [np.nextafter(STILL_FINITE, np.inf), -1e39, 1e308, 1 + 1e39j, complex(-1e300, 0)]
)
def test_a_finite_value_beyond_the_range_is_refused(value):
    A = row_of([1.0, value, np.inf])
    for refusing in (lambda: Rounding.of(A, A.dtype.name), lambda: CSR.from_csr(A, values=LOSSY)):
        with pytest.raises(FormatError):
            refusing()


@given(st.lists(st.floats(-1e37, 1e37).filter(lambda v: v == 0 or abs(v) > 1e-37), max_size=8))
def test_the_errors_are_bounded(values):
    A = row_of(np.array(values, dtype=float))
    found = Rounding.of(A, "float64")
    assert found.y_error <= found.value_error * (1 + 1e-15) and found.value_error <= UNIT
    stored = CSR.from_csr(A, values=LOSSY)
    assert (stored.data.dtype, stored.dtype) == (np.float32, np.float64)
    assert np.array_equal(stored.data, A.data.astype(np.float32))


def test_integers_and_a_real_matrix_asked_for_as_complex():
    A = row_of([2**24 + 1, 3])
    real, as_complex = Rounding.of(A, "float64"), Rounding.of(A, "complex128")
    assert real.value_error == as_complex.value_error == 1 / (2**24 + 1)
