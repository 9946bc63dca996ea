"""Every kernel of every format, found in the registries, against the oracle."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.errors import FormatError, InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.reading import load

from ..conftest import cpu_product, exact_product

KERNEL_NAMES = [
    (name, variant)
    for name in DEVICES.get("cpu").kernels.names()
    for variant in DEVICES.get("cpu").kernels.get(name).variants
]
LIMIT = int(numba.config.NUMBA_NUM_THREADS)
#: What LIMIT leaves out is tried in a process of its own, below.
MANY_THREADS = (3, 7)
THREADS = [count for count in (1, 2) if count <= LIMIT]
GUARD = 7.0

every_kernel = pytest.mark.parametrize("kernel", KERNEL_NAMES, ids="-".join)
every_count = pytest.mark.parametrize("threads", [count for count in (1, 2, *MANY_THREADS) if count <= LIMIT])


def bound(build, kernel, A, threads):
    name, variant = kernel
    kernels = DEVICES.get("cpu").kernels.get(name)
    built = build(name, A) if variant in kernels.variants_of(A.dtype.name) else None
    return None if built is None else cpu_product(built, variant, threads)


def product_of(product, rows, x):
    """Return A x, having looked for forgotten rows and for writes beyond the rows."""
    buffer = np.full(rows + 16, GUARD, dtype=x.dtype)
    out = buffer[8 : 8 + rows]
    out[:] = np.nan
    asked = x.copy()
    product(x, out)
    assert np.array_equal(x, asked, equal_nan=True), "x was written to"
    assert (buffer[:8] == GUARD).all() and (buffer[8 + rows :] == GUARD).all(), "written beyond the rows"
    return out


def uniform(cols, dtype, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 1.0, cols).astype(dtype)
    return x if x.dtype.kind != "c" else x + x.dtype.type(1j) * generator.uniform(-1, 1, cols).astype(dtype)


def whole_numbers(cols, dtype):
    return np.round(9 * uniform(cols, dtype, seed=2))


#: Whole numbers, and complex ones with whole parts: their products and sums are exact.
INTEGERS = st.integers(-50, 50)
NUMBERS = {"float64": INTEGERS, "complex128": st.builds(complex, INTEGERS, INTEGERS)}


@st.composite
def products_of_whole_numbers(draw, dtype):
    """Any CSR, with rows of any length in any order, empty ones, duplicates and explicit zeros; and an x."""
    cols = draw(st.integers(1, 15))
    row = st.lists(st.tuples(st.integers(0, cols - 1), NUMBERS[dtype]), max_size=20)
    rows = draw(st.lists(st.one_of(st.just([]), row), max_size=12))
    entries = [entry for row in rows for entry in row]
    indices = np.array([column for column, _ in entries], dtype=np.int32)
    data = np.array([value for _, value in entries], dtype=dtype)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    x = np.array(draw(st.lists(NUMBERS[dtype], min_size=cols, max_size=cols)), dtype=dtype)
    return csr_array((data, indices, indptr), shape=(len(rows), cols)), x


def some_matrix_of(build, kernel):
    """Return a matrix of some hundred rows, as irregular as the format takes them."""
    irregular = gallery("circuit", n=400)
    return irregular if build(kernel[0], irregular) is not None else gallery("poisson2d", n=20)


@pytest.mark.parametrize("device", DEVICES.names())
def test_no_kernel_lacks_a_format_and_processors_have_them_all(device):
    assert set(DEVICES.get(device).kernels.names()) <= set(FORMATS.names())
    assert DEVICES.get("cpu").kernels.names() == FORMATS.names()
    for name in DEVICES.get(device).kernels.names():
        variants = DEVICES.get(device).kernels.get(name).variants
        assert variants and len(set(variants)) == len(variants)


def check(products, A, x, what):
    """Compare products with the oracle, with each other and, where all numbers are whole, with exact ones.

    Return the bits of the result.
    """
    results = [product_of(product, A.shape[0], x) for product in products * 2]
    assert len({y.tobytes() for y in results}) == 1, f"{what}: products differ in their bits"
    ReferenceProduct.of(A, x).check(results[0], what)
    if is_whole(A):
        x = whole_numbers(A.shape[1], A.dtype)
        wrong = np.flatnonzero(product_of(products[0], A.shape[0], x) != exact_product(A, x))
        assert not wrong.size, f"{what}: rows {wrong}"
    return results[0].tobytes()


def is_whole(A):
    return A.nnz <= 5000 and np.array_equal(A.data, np.round(A.data)) and abs(A.data).max(initial=0) <= 1000


def test_equals_oracle(matrices, in_type, build, typed_kernel):
    *kernel, dtype, bits = typed_kernel
    for number, (what, matrix) in enumerate(matrices.items()):
        A, threads = in_type(matrix, dtype, bits), THREADS[(number + bits // 64) % len(THREADS)]
        products = [bound(build, kernel, A, threads) for _ in range(2)]
        if None not in products:
            x = uniform(A.shape[1], dtype)
            check(products, A, x, f"{'-'.join(kernel)} on '{what}' with {threads} threads")


@every_kernel
@pytest.mark.parametrize("dtype", NUMBERS)
@settings(max_examples=40)
@given(data=st.data(), threads=st.sampled_from(THREADS))
def test_products_of_whole_numbers_are_exact(kernel, dtype, data, threads):
    A, x = data.draw(products_of_whole_numbers(dtype))
    name, variant = kernel
    if variant not in DEVICES.get("cpu").kernels.get(name).variants_of(dtype):
        return
    try:
        built = FORMATS.get(name).from_csr(A)
    except FormatError:
        return
    y = product_of(cpu_product(built, variant, threads), A.shape[0], x)
    assert np.array_equal(y, exact_product(A, x))


@every_kernel
@pytest.mark.skipif(max(MANY_THREADS) > LIMIT, reason="is tried in a process of its own with more threads")
def test_bits_follow_from_the_kernel_and_where_it_says_so_the_number_of_many_threads(
    matrices, in_type, build, kernel
):
    """A number of threads has its bits, twice bound and often called; another one has them, or not."""
    differing = []
    for what, A in {**matrices, "irregular": some_matrix_of(build, kernel)}.items():
        ready, x, bits = in_type(A, "float64"), uniform(A.shape[1], "float64"), set()
        for threads in (1, 2, *MANY_THREADS):
            products = [bound(build, kernel, ready, threads) for _ in range(2)]
            if None in products:
                break
            bits.add(check(products, ready, x, f"{'-'.join(kernel)} on '{what}' with {threads} threads"))
        if len(bits) > 1:
            differing.append(what)
    assert bool(differing) == DEVICES.get("cpu").kernels.get(kernel[0]).sums_by_threads, differing


@pytest.mark.skipif(max(MANY_THREADS) <= LIMIT, reason="this process has that many threads already")
def test_more_threads_than_this_machine_has_cores():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [str(Path(__file__)), "-k", "many_threads or at_once and (3- or 7-)"]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(max(MANY_THREADS))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout and "skipped" not in done.stdout, done.stdout


def test_every_format_takes_many_of_the_matrices(matrices, build):
    for name in FORMATS.names():
        taken = sum(build(name, A) is not None for A in matrices.values())
        assert taken > len(matrices) / 4, f"{name} takes {taken} of {len(matrices)}: the tests above are void"


def test_values_that_are_not_finite_stay_in_their_rows(in_type, build, typed_kernel):
    *kernel, dtype, bits = typed_kernel
    A = in_type(some_matrix_of(build, kernel), dtype, bits).copy()
    values = [np.nan, np.inf, -np.inf, -np.inf]
    if A.dtype.kind == "c":
        values[:2] = complex(np.nan, 2.0), complex(np.inf, np.nan)
    for i, value in zip((2, 30, 77, 200), values, strict=True):
        j = A.indices[A.indptr[i]]
        A[i, j] = A[j, i] = value
    x = np.abs(uniform(400, dtype)) + np.dtype(dtype).type(1)
    y = product_of(bound(build, kernel, A, LIMIT if bits == 32 else 1), 400, x)
    with np.errstate(invalid="ignore"):
        expected = A @ x
    strange = ~np.isfinite(expected)
    assert 4 <= strange.sum() <= 8
    assert np.array_equal(~np.isfinite(y), strange)
    if A.dtype.kind != "c":  # which parts are infinite and which NaN depends on the order of the sums
        assert np.array_equal(y[strange], expected[strange], equal_nan=True)
    ReferenceProduct.of(A, x).check(y, "-".join(kernel))


@every_kernel
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("strange", (np.nan, np.inf))
def test_x_that_is_not_finite_reaches_only_the_rows_that_read_it(build, kernel, threads, strange):
    # Padding reads a column of its own row, or column 0, which stays finite here.
    A, x = some_matrix_of(build, kernel), uniform(400, "float64")
    x[[17, 200]] = strange
    y = product_of(bound(build, kernel, A, threads), 400, x)
    pattern = csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    readers = pattern @ (~np.isfinite(x)).astype(float) > 0
    assert 2 <= readers.sum() < 200
    assert not np.isfinite(y[readers]).any()
    if FORMATS.get(kernel[0]).pads_with_own_columns:
        assert np.array_equal(~np.isfinite(y), readers)
        ReferenceProduct.of(A, x).check(y, "-".join(kernel))


@every_kernel
@every_count
def test_products_called_from_several_python_threads_at_once(build, kernel, threads):
    A = gallery("poisson3d", n=14, points=27)
    rows = A.shape[0]
    product = bound(build, kernel, A, threads)
    xs = [uniform(rows, "float64", seed) for seed in range(4)]
    alone = [product_of(product, rows, x).tobytes() for x in xs]

    def many(x):
        return {product_of(product, rows, x).tobytes() for _ in range(60)}

    with ThreadPoolExecutor(len(xs)) as pool:
        together = list(pool.map(many, xs))
    assert together == [{result} for result in alone]
    for x, result in zip(xs, alone, strict=True):
        ReferenceProduct.of(A, x).check(np.frombuffer(result), "-".join(kernel))


@every_kernel
def test_more_threads_than_numba_has_are_refused(build, kernel):
    with pytest.raises(InputError):
        bound(build, kernel, gallery("poisson2d", n=40), LIMIT + 1)


SEVERAL = [
    name
    for name in DEVICES.get("cpu").kernels.names()
    if DEVICES.get("cpu").kernels.get(name).bind_multivector
]


#: Types, vectors (one panel, or two that overlap), index bits, threads.
SEVERAL_CASES = [("float64", 13, 32, 2), ("complex128", 3, 32, 1)]


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dtype, vectors, bits, threads", SEVERAL_CASES)
def test_several_vectors_equal_the_oracle(matrices, in_type, build, name, dtype, vectors, bits, threads):
    for what, A in matrices.items():
        ready = in_type(A, dtype, bits)
        built = build(name, ready)
        if built is None:
            continue
        product = DEVICES.get("cpu").kernels.get(name).bind_multivector(built, min(threads, LIMIT))
        X = uniform(A.shape[1] * vectors, dtype).reshape(A.shape[1], vectors)
        rows = A.shape[0]
        buffer = np.full((rows + 16, vectors), GUARD, dtype=dtype)
        buffer[8 : 8 + rows] = np.nan
        product(X, buffer[8 : 8 + rows])
        assert (buffer[:8] == GUARD).all() and (buffer[8 + rows :] == GUARD).all(), what
        again = np.empty((rows, vectors), dtype=dtype)
        product(X, again)
        assert again.tobytes() == buffer[8 : 8 + rows].tobytes(), f"{what}: other bits"
        for vector in range(vectors):
            reference = ReferenceProduct.of(ready, X[:, vector])
            reference.check(again[:, vector], f"{name} with {vectors} vectors on '{what}'")


@pytest.mark.parametrize(
    ("device", "name"),
    [(device, name) for device in DEVICES.names() for name in DEVICES.get(device).kernels.names()],
)
def test_the_rule_chooses_a_variant_for_every_block(matrices, device, name):
    kernels = DEVICES.get(device).kernels.get(name)
    for what, A in matrices.items():
        strips = StripStatistics.of(A.indptr, structure(A, threads=1), 4)
        first = np.arange(strips.strips)
        for blocks in (RowBlocks.of(structure(A, threads=1)), strips.blocks(first, first + 1)):
            chosen = np.asarray(kernels.choose(blocks, detect(), A.dtype.name))
            assert chosen.shape == blocks.rows.shape, what
            assert np.issubdtype(chosen.dtype, np.integer), what
            assert ((chosen >= 0) & (chosen < len(kernels.variants))).all(), what


#: Bytes of the largest file of the corpus that is read here.
SMALL_FILE = 40_000


@pytest.fixture(scope="module")
def real_matrices(corpus):
    paths = sorted(path for path in corpus.glob("*.mtx.gz") if path.stat().st_size < SMALL_FILE)
    found = {}
    for path in paths:
        found[path.name] = load(path)
    kinds = {A.dtype.kind for A in found.values()}
    assert kinds == {"f", "c"}, f"no small matrices, real and complex, in {corpus}"
    return found


@every_kernel
@pytest.mark.parametrize("dtype, threads", [("float64", LIMIT), ("complex128", 1)])
def test_equals_oracle_on_real_matrices(real_matrices, build, kernel, dtype, threads):
    for what, A in real_matrices.items():
        if A.dtype.kind != np.dtype(dtype).kind:
            continue
        ready, x = A.astype(dtype), uniform(A.shape[1], dtype)
        product = bound(build, kernel, ready, threads)
        if product is not None:
            y = product_of(product, A.shape[0], x)
            ReferenceProduct.of(ready, x).check(y, f"{'-'.join(kernel)} on {what}")
