"""BlockOperator: what it takes, what it refuses, and that solvers cannot tell it from SciPy."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, prepared, row_slice
from sparsecast.errors import InputError
from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.records import Candidate

ROWS, COLS = 60, 45


def operator(A, blocks=1, threads=1):
    """Compile `A` in so many row blocks, which take the formats in turn."""
    bounds = np.linspace(0, A.shape[0], blocks + 1).astype(int)
    names, parts = [name for name in FORMATS.names() if not name.startswith("symmetric")], []
    for number, (first, end) in enumerate(itertools.pairwise(bounds)):
        name = names[number % len(names)]
        variant = DEVICES.get("cpu").kernels.get(name).variants_of(A.dtype.name)[-1]
        candidate = Candidate(name, variant, "cpu", A.dtype.name, 32, threads)
        part = A if blocks == 1 else row_slice(A, int(first), int(end) - 1)
        bound = bind(part, candidate)
        parts.append(RowProduct(int(first), int(end), bound.product, bound.multivector))
    return BlockOperator(A.shape, A.dtype, parts)


def matrix(dtype="float64"):
    A = prepared(gallery("random", n=ROWS, cols=COLS, nnz_per_row=7), dtype, 32)
    if A.dtype.kind == "c":
        A.data.imag = A.data.real[::-1]
    return A


def vector(dtype=float, size=COLS):
    values = np.random.default_rng(3).uniform(-4, 4, size)
    return (values + 1j * values[::-1] if np.dtype(dtype).kind == "c" else values).astype(dtype)


@pytest.fixture(name="A")
def real_matrix():
    return matrix()


@pytest.mark.parametrize("blocks", (1, 2, 7, 60))
@pytest.mark.parametrize("dtype", ("float64", "float32", "complex128", "complex64"))
def test_row_blocks_in_all_formats_give_the_whole_product_in_the_type_of_the_matrix(dtype, blocks):
    A = matrix(dtype)
    op, tolerance = operator(A, blocks), 100 * np.finfo(dtype).eps
    assert len(op.blocks) == blocks and op.shape == A.shape and op.dtype == A.dtype
    for x_dtype in (np.float64, np.float32, np.int64, np.bool_, np.complex128, np.complex64):
        x = vector(x_dtype)
        is_complex = "c" in (A.dtype.kind, x.dtype.kind)
        expected = A.toarray().astype(complex) @ x
        y = op.matvec(x)
        assert y.shape == (ROWS,) and (y.dtype.kind == "c") == is_complex
        assert y.real.dtype == A.real.dtype, "the precision is that of the matrix"
        np.testing.assert_allclose(y, expected if is_complex else expected.real, rtol=0, atol=40 * tolerance)
        assert np.array_equal(op.matvec(x[:, None]), y[:, None])
        assert np.array_equal(op.matmat(x[:, None]), y[:, None])  # as SciPy 1.18 calls it
        assert np.array_equal(op @ x, y) and np.array_equal(op @ x[:, None], y[:, None])


def test_solvers_take_it_for_an_operator_of_scipy(A):
    op, x = operator(A, 2), vector()
    assert isinstance(op, LinearOperator) and aslinearoperator(op) is op
    np.testing.assert_allclose((2j * op) @ x, 2j * (A @ x), rtol=1e-13, atol=1e-14)


def test_x_is_converted_as_needed(A):
    op, x = operator(A, 2), vector()
    wide = np.zeros((COLS, 2))
    wide[:, 1] = x
    swapped = x.astype(x.dtype.newbyteorder())
    for same in (wide[:, 1], wide[:, 1:], x[::-1].copy()[::-1], x.tolist(), swapped):
        assert np.array_equal(np.ravel(op.matvec(same)), op.matvec(x))


def test_a_part_of_a_complex_result_that_is_not_finite_leaves_the_other_alone():
    A, csr = csr_array(np.eye(2)), Candidate("csr", "plain", "cpu", "float64", 32, 1)
    op = BlockOperator(A.shape, A.dtype, [RowProduct(0, 2, bind(A, csr).product)])
    y = op.matvec(np.array([complex(3, np.inf), complex(np.nan, 4)]))
    assert y.real[0] == 3 and y.imag[0] == np.inf and np.isnan(y.real[1]) and y.imag[1] == 4


@pytest.mark.parametrize("vectors", (0, 1, 2, 5, 8, 13))
@pytest.mark.parametrize("blocks", (1, 8))
def test_several_vectors_at_once_are_the_products_with_each(A, blocks, vectors):
    op = operator(A, blocks)
    X = np.random.default_rng(1).uniform(-1, 1, (COLS, vectors))
    for given in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(op @ given, A @ X, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", ("float64", "complex64"))
def test_out_is_written_and_returned_and_a_result_is_not_overwritten_by_the_next(dtype):
    op, x = operator(matrix(dtype), 3), vector(dtype)
    for multiply, given, shape in ((op.matvec, x, (ROWS,)), (op.matmat, np.stack((x, -x), 1), (ROWS, 2))):
        out = np.full(shape, np.nan, dtype=dtype)
        first = multiply(given)
        kept = first.copy()
        assert multiply(given, out) is out and multiply(given, out=out) is out
        assert np.array_equal(out, kept) and np.array_equal(first, kept)
        multiply(2 * given)
        assert np.array_equal(first, kept)


@pytest.mark.parametrize("shape", ((44,), (46,), (60,), (1, 45), (45, 2), (45, 1, 1), ()))
def test_x_of_another_shape_is_refused_in_one_line(A, shape):
    with pytest.raises(InputError) as error:
        operator(A).matvec(np.ones(shape))
    assert str(shape) in str(error.value)


READ_ONLY = np.empty(ROWS)
READ_ONLY.flags.writeable = False
UNSUITABLE = {
    "short": np.empty(59),
    "long": np.empty(61),
    "a column": np.empty((60, 1)),
    "float32": np.empty(60, dtype=np.float32),
    "whole numbers": np.empty(60, dtype=np.int64),
    "complex": np.empty(60, dtype=complex),
    "every other": np.empty(120)[::2],
    "backwards": np.empty(60)[::-1],
    "other byte order": np.empty(60, dtype=np.dtype(float).newbyteorder()),
    "read-only": READ_ONLY,
    "a list": [0.0] * ROWS,
    "a buffer": memoryview(bytearray(8 * ROWS)),
}


@pytest.mark.parametrize("what", UNSUITABLE)
def test_out_of_another_kind_is_refused_in_one_line(A, what):
    with pytest.raises(InputError):
        operator(A).matvec(vector(), UNSUITABLE[what])


@pytest.mark.parametrize("dtype", ("complex128", "complex64"))
def test_out_of_a_complex_matrix_is_of_its_type(dtype):
    op = operator(matrix(dtype), 2)
    for other in {np.complex64, np.complex128, np.float64, np.float32, np.clongdouble} - {op.dtype.type}:
        with pytest.raises(InputError):
            op.matvec(vector(), np.empty(ROWS, dtype=other))


@pytest.mark.parametrize(
    ("X", "out"),
    [
        (np.ones((COLS + 1, 3)), None),
        (np.ones(COLS), None),
        (np.ones((COLS, 3, 1)), None),
        (np.ones((COLS, 3)), np.ones((ROWS, 2))),
        (np.ones((COLS, 3)), np.ones((ROWS, 3), dtype=np.float32)),
        (np.ones((COLS, 3)), np.ones((3, ROWS)).T),
        (np.ones((COLS, 3)) * 1j, np.ones((ROWS, 3))),
        (np.full((COLS, 1), "1"), None),
        (np.full((COLS, 1), "1", dtype=object), None),
    ],
)
def test_several_vectors_of_another_shape_kind_or_place_are_refused(A, X, out):
    op = operator(A)
    with pytest.raises(InputError):
        op.matmat(X, out)
    if X.shape == (COLS, 1):
        with pytest.raises(InputError):
            op.matvec(X[:, 0])


def test_out_that_shares_memory_with_x_is_refused():
    op = operator(gallery("poisson2d", n=5))
    memory, X = np.ones(40), np.ones((25, 3))
    for multiply, x, out in (
        (op.matvec, memory[:25], memory[:25]),
        (op.matvec, memory[:25], memory[15:40]),
        (op.matvec, memory[:25, None], memory[:25]),
        (op.matmat, X, X),
    ):
        with pytest.raises(InputError):
            multiply(x, out)
    assert (memory == 1).all() and (X == 1).all()


@pytest.mark.parametrize("shape", ((0, 0), (0, 4), (4, 0), (4, 4)))
def test_a_matrix_without_entries(shape):
    A = csr_array(shape)
    whole = RowProduct(0, shape[0], bind(A, Candidate("csr", "plain", "cpu", "float64", 32, 1)).product)
    for blocks in ([whole], []) if shape[0] == 0 else ([whole],):
        op = BlockOperator(shape, A.dtype, blocks)
        y = op.matvec(np.ones(shape[1]))
        assert y.shape == (shape[0],) and not y.any() and y.dtype == np.float64
        assert not op.matvec(np.ones(shape[1]), np.full(shape[0], np.nan)).any()
