"""Narrow storage in every kernel that takes it: the bits of full storage, and SciPy's infinities."""

import dataclasses
import functools

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import FormatError, InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.narrowing import LOSSY
from sparsecast.matrices.gallery import gallery

from ..conftest import cpu_product, narrow_storages, with_lengths

CPU = DEVICES.get("cpu").kernels
NARROW = [name for name in CPU.names() if FORMATS.get(name).narrow_parameters]


def storages(name, number, dtype):
    """The storages to try: all of doubles in the first variant, and in each other one the next."""
    every = narrow_storages(name, dtype)
    return every if (number, dtype) == (0, "float64") else every[number % max(len(every), 1) :][:1]


#: Values and columns meet in no arithmetic, and each combination takes a second to compile.
CASES = [
    (name, variant, dtype, bits, parameters)
    for name in NARROW
    for number, variant in enumerate(CPU.get(name).variants)
    for dtype, bits in (("float64", 32), ("float32", 64))
    for parameters in storages(name, number, dtype)
]
every_storage = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "-".join(map(str, (*case[:4], *case[4].values())))
)
THREADS = min(2, int(numba.config.NUMBA_NUM_THREADS))


def far_groups():
    """Groups of rows at both ends of 200,000 columns that reach exactly 65,535; one group without entries."""
    generator = np.random.default_rng(3)
    lengths = np.minimum(generator.geometric(0.3, 900) - 1, 9)
    lengths[256:512] = 0
    lengths[[0, 1, 511, 512, 767, 768, 899]] = 2, 5, 0, 3, 1, 1, 2
    A = with_lengths(lengths.tolist(), 65_536, seed=4)
    first_of = np.array([134_464, 0, 70_001, 134_464])[np.repeat(np.arange(900) // 256, lengths)]
    starts = A.indptr[[0, 512, 768]]
    A.indices[starts], A.indices[A.indptr[[1, 513, 769]]] = 0, 65_535
    return csr_array((A.data, (A.indices + first_of).astype(np.int32), A.indptr), shape=(900, 200_000))


@pytest.fixture(scope="module")
def narrow_matrices(matrices):
    """The awkward matrices, and matrices with more columns than 16 bits tell apart."""
    wide = {"far groups": far_groups(), "a wide grid": gallery("poisson2d", n=260)}
    strided = with_lengths([3, 0, 7, 300, 1] * 60, 400)
    strided.data, strided.indices = np.repeat(strided.data, 2)[::2], np.repeat(strided.indices, 2)[::2]
    return {**matrices, **wide, "views": strided}


def stored_both_ways(case, A, in_type):
    """A in full and narrow, with values that can be stored so; None where the format refuses it."""
    name, _, dtype, bits, parameters = case
    given, values = in_type(A, dtype, bits), parameters.get("values")
    data = np.full_like(given.data, -1.7) if values == "one" else given.data
    data = data.astype(np.float32) if values == "float32" else data
    ready = csr_array(given.shape, dtype=dtype)
    ready.data, ready.indices, ready.indptr = data.astype(dtype), given.indices, given.indptr
    if A.data.strides != (A.data.itemsize,):
        ready.data = np.repeat(ready.data, 2)[::2]
    try:
        return ready, FORMATS.get(name).from_csr(ready), FORMATS.get(name).from_csr(ready, **parameters)
    except FormatError:
        with pytest.raises(FormatError):
            FORMATS.get(name).from_csr(ready)
        return None


def vectors(cols, dtype, seed):
    return np.random.default_rng(seed).uniform(-1, 1, cols).astype(dtype)


@every_storage
def test_products_have_the_bits_of_full_storage(narrow_matrices, in_type, case):
    name, variant, dtype, *_ = case
    taken = 0
    for number, (what, given) in enumerate(narrow_matrices.items()):
        both = stored_both_ways(case, given, in_type)
        if both is None:
            continue
        (A, *stored), taken = both, taken + 1
        assert stored[1].dtype == A.dtype and stored[1].nbytes <= stored[0].nbytes + 64, what
        threads = 1 + number % THREADS
        x = vectors(A.shape[1], dtype, 1)
        full, narrow = (cpu_product(each, variant, threads) for each in stored)
        expected, y = np.full((2, A.shape[0]), np.nan, dtype=dtype)
        full(x, expected)
        narrow(x, y)
        assert y.tobytes() == expected.tobytes(), what
        x[::3], x[1::7] = np.inf, np.nan
        narrow(x, y)
        is_alike = stored[1].values == "one" and FORMATS.get(name).pads_with_own_columns
        if name == "csr" or is_alike:  # no padding is added
            with np.errstate(invalid="ignore"):
                strange = ~np.isfinite(scipys := A @ x)
            assert np.array_equal(~np.isfinite(y), strange), what
            assert np.array_equal(y[strange], scipys[strange], equal_nan=True), what
        else:
            full(x, expected)
            assert np.array_equal(y, expected, equal_nan=True), what
    assert taken > 5


@pytest.mark.parametrize("name", [name for name in NARROW if CPU.get(name).bind_multivector])
@pytest.mark.parametrize("number", (0, 1))
def test_several_vectors_have_the_bits_of_full_storage(narrow_matrices, in_type, name, number):
    storages = narrow_storages(name, "float64")
    parameters = storages[number % len(storages)]
    for what, given in narrow_matrices.items():
        both = stored_both_ways((name, None, "float64", 32, parameters), given, in_type)
        if both is None:
            continue
        A, *stored_matrices = both
        X = vectors(A.shape[1] * 11, "float64", 2).reshape(A.shape[1], 11)
        expected, Y = np.full((2, A.shape[0], 11), np.nan)
        for each, out in zip(stored_matrices, (expected, Y), strict=True):
            CPU.get(name).bind_multivector(each, THREADS)(X, out)
        assert Y.tobytes() == expected.tobytes(), what


@pytest.mark.parametrize("name", NARROW)
def test_values_that_are_not_finite_and_signed_zeros_are_kept(in_type, name):
    A = in_type(gallery("poisson2d", n=20), "float64")
    x = vectors(400, "float64", 5)
    odd, compared = np.array([np.inf, -np.inf, np.nan, -0.0, 2.0**-149, -(2.0**127)]), 0
    for values, data in [("one", np.full(A.nnz, each)) for each in odd] + [("float32", None)]:
        tried = {
            variant: parameters
            for _, variant, dtype, _, parameters in (case for case in CASES if case[0] == name)
            if dtype == "float64" and parameters.get("values") == values
        }
        B = A.copy()
        B.data[:] = data if data is not None else np.float32(1.5)
        if data is None:
            for i, value in enumerate(odd):
                B[i, i] = value
        try:
            full = FORMATS.get(name).from_csr(B)
        except FormatError:
            continue
        expected, y = np.empty((2, 400))
        compared += len(tried)
        for variant, parameters in tried.items():
            cpu_product(full, variant, 1)(x, expected)
            cpu_product(FORMATS.get(name).from_csr(B, **parameters), variant, 1)(x, y)
            assert np.array_equal(y, expected, equal_nan=True)
            assert np.array_equal(np.signbit(y), np.signbit(expected)) or np.isnan(expected).any()
    assert compared


@pytest.mark.parametrize("dtype", ("float64", "complex128"))
@pytest.mark.parametrize("name", NARROW)
def test_rounded_values_lose_what_rounding_takes_and_sums_nothing(narrow_matrices, in_type, name, dtype):
    storage, variant, taken = FORMATS.get(name), CPU.get(name).variants_of(dtype)[-1], 0
    for what, given in narrow_matrices.items():
        A = in_type(given, dtype)
        try:
            full, lossy = storage.from_csr(A), storage.from_csr(A, values=LOSSY)
        except FormatError:
            continue
        single, taken = np.dtype("float32" if dtype == "float64" else "complex64"), taken + 1
        assert (lossy.dtype, lossy.data.dtype) == (A.dtype, single), what
        assert np.array_equal(lossy.data, full.data.astype(single), equal_nan=True), what
        # What the format stores, with the values that it keeps, in full: the sums are the same.
        exact = dataclasses.replace(full, data=lossy.data.astype(dtype))
        x, (y, expected) = vectors(A.shape[1], dtype, 3), np.full((2, A.shape[0]), np.nan, dtype=dtype)
        for each, out in ((lossy, y), (exact, expected)):
            cpu_product(each, variant, THREADS)(x, out)
        assert y.tobytes() == expected.tobytes(), what
    assert taken > 5


@pytest.mark.parametrize("name", NARROW)
def test_sizes_are_predicted(narrow_matrices, in_type, name):
    storage = FORMATS.get(name)
    for _, _, dtype, bits, parameters in (case for case in CASES if case[0] == name):
        for what, given in narrow_matrices.items():
            both = stored_both_ways((name, None, dtype, bits, parameters), given, in_type)
            if both is None or "spare" in what or what in ("unsorted", "duplicates"):
                continue
            A, full, narrow = both
            blocks = RowBlocks.of(structure(A, threads=1))
            given_to = functools.partial(storage.predicted_bytes, blocks, A.data.itemsize, A.indices.itemsize)
            asked = given_to()[0], given_to(**parameters)[0]
            if asked[0] == full.nbytes:
                within = narrow.nbytes * storage.predicted_within
                assert asked[1] == pytest.approx(narrow.nbytes, abs=within), what


@pytest.mark.parametrize("name", NARROW)
def test_what_does_not_hold_is_refused(in_type, name):
    storage, A = FORMATS.get(name), in_type(gallery("poisson2d", n=20), "float64")
    refused = []
    if "values" in storage.narrow_parameters:
        B, C = A.copy(), A.copy()
        B.data[:] = 1.5
        B[0, 1] = B[1, 0] = -1.5
        C.data += 2.0**-50
        refused += [
            (B, "one"),
            (C, "float32"),
            (A.astype(np.complex128), "one"),
            (A.astype(np.float32), "float32"),
            (A.astype(np.float32), LOSSY),
            (A.astype(np.complex64), LOSSY),
            (A * 1e300, LOSSY),
        ]
    for matrix, values in refused:
        with pytest.raises(FormatError):
            storage.from_csr(matrix, values=values)
    with pytest.raises(InputError):
        storage.from_csr(A, **{next(iter(storage.narrow_parameters)): "half"})
