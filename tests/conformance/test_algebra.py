"""What is true of products in every format: whole numbers, so that equal means equal."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import FormatError
from sparsecast.formats import FORMATS

from ..conftest import cpu_product

KERNEL_NAMES = [
    (name, variant)
    for name in DEVICES.get("cpu").kernels.names()
    for variant in DEVICES.get("cpu").kernels.get(name).variants
]
every_kernel = pytest.mark.parametrize("kernel", KERNEL_NAMES, ids="-".join)
whole_numbers = st.integers(-50, 50)
#: Whole numbers, and complex ones with whole parts: their products and sums are exact.
NUMBERS = {"float64": whole_numbers, "complex128": st.builds(complex, whole_numbers, whole_numbers)}
every_number = pytest.mark.parametrize("dtype", NUMBERS)
MOST_THREADS = min(2, int(numba.config.NUMBA_NUM_THREADS))


@st.composite
def matrices(draw, dtype):
    """Any CSR: rows of any length in any order, with empty ones, duplicates and explicit zeros."""
    cols = draw(st.integers(1, 15))
    row = st.lists(st.tuples(st.integers(0, cols - 1), NUMBERS[dtype]), max_size=20)
    rows = draw(st.lists(st.one_of(st.just([]), row), max_size=12))
    entries = [entry for row in rows for entry in row]
    indices = np.array([column for column, _ in entries], dtype=np.int32)
    data = np.array([value for _, value in entries], dtype=dtype)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return csr_array((data, indices, indptr), shape=(len(rows), cols))


def multiply(kernel, A, x, threads=1):
    """A x by a kernel, or None where its format refuses the padding, or the kernel the values."""
    name, variant = kernel
    kernels = DEVICES.get("cpu").kernels.get(name)
    if variant not in kernels.variants_of(A.dtype.name):
        return None
    try:
        built = FORMATS.get(name).from_csr(A)
    except FormatError:
        return None
    out = np.full(A.shape[0], np.nan, dtype=A.dtype)
    cpu_product(built, variant, threads)(x, out)
    return out


def plainly(A, x):
    y = np.zeros(A.shape[0], dtype=A.dtype)
    np.add.at(y, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.data * x[A.indices])
    return y


@every_kernel
@every_number
@settings(max_examples=40)
@given(data=st.data(), threads=st.sampled_from((1, MOST_THREADS)))
def test_products_are_exact(kernel, dtype, data, threads):
    A = data.draw(matrices(dtype))
    numbers = st.lists(NUMBERS[dtype], min_size=A.shape[1], max_size=A.shape[1])
    x = np.array(data.draw(numbers), dtype=dtype)
    y = multiply(kernel, A, x, threads)
    assert y is None or np.array_equal(y, plainly(A, x))
