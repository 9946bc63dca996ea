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


@pytest.fixture(scope="module", name="A")
def rectangular_matrix():
    return gallery("random", n=60, cols=45, nnz_per_row=7)


@pytest.fixture
def x(A):
    return np.random.default_rng(3).uniform(-1, 1, A.shape[1])


@pytest.mark.parametrize("blocks", (1, 2, 7, 60))
def test_row_blocks_in_all_formats_give_the_whole_product(A, x, blocks):
    op = operator(A, blocks)
    np.testing.assert_allclose(op.matvec(x), A @ x, rtol=1e-13, atol=1e-15)
    assert len(op.blocks) == blocks and op.shape == A.shape and op.dtype == A.dtype


def test_at_sign_for_vectors_columns_and_matrices(A, x):
    op = operator(A, 2)
    assert isinstance(op, LinearOperator)
    assert np.array_equal(op @ x, op.matvec(x)) and (op @ x).shape == (60,)
    assert (op @ x[:, None]).shape == (60, 1)
    X = np.random.default_rng(4).uniform(-1, 1, (45, 3))
    np.testing.assert_allclose(op @ X, A @ X, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose((2 * op) @ x, 2 * (A @ x), rtol=1e-13, atol=1e-15)
    assert aslinearoperator(op) is op


def test_x_is_converted_as_needed(A, x):
    op = operator(A, 2)
    wide = np.zeros((45, 2))
    wide[:, 1] = x
    swapped = x.astype(x.dtype.newbyteorder())
    for same in (wide[:, 1], wide[:, 1:], x[::-1].copy()[::-1], x.tolist(), swapped):
        assert np.array_equal(np.ravel(op.matvec(same)), op.matvec(x))
    narrow = x.astype(np.float32)
    assert op.matvec(narrow).dtype == np.float64
    assert np.array_equal(op.matvec(narrow), op.matvec(narrow.astype(float)))
    whole = np.arange(45)
    assert np.array_equal(op.matvec(whole), op.matvec(whole.astype(float)))
    assert np.array_equal(op.matvec(whole % 2 == 0), op.matvec((whole % 2 == 0).astype(float)))


def test_a_float32_operator_answers_in_float32(A, x):
    op = operator(prepared(A, "float32", 32), 2)
    y = op.matvec(x)
    assert y.dtype == np.float32 and op.dtype == np.float32
    np.testing.assert_allclose(y, A @ x, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", ((45,), (45, 1)))
@pytest.mark.parametrize("dtype", (np.complex128, np.complex64))
def test_complex_x(A, x, shape, dtype):
    z = (x + 1j * x[::-1]).astype(dtype).reshape(shape)
    y = operator(A, 2).matvec(z)
    assert y.dtype.kind == "c" and y.shape == (60, *shape[1:])
    np.testing.assert_allclose(y, A @ z, rtol=1e-6, atol=1e-7)


def test_a_part_of_a_complex_result_that_is_not_finite_leaves_the_other_alone():
    A, csr = csr_array(np.eye(2)), Candidate("csr", "plain", "cpu", "float64", 32, 1)
    op = BlockOperator(A.shape, A.dtype, [RowProduct(0, 2, bind(A, csr).product)])
    y = op.matvec(np.array([complex(3, np.inf), complex(np.nan, 4)]))
    assert y.real[0] == 3 and y.imag[0] == np.inf and np.isnan(y.real[1]) and y.imag[1] == 4


@pytest.fixture(name="Z", params=("complex128", "complex64"))
def complex_matrix(A, request):
    Z = A.astype(request.param)
    Z.data.imag = A.data[::-1]
    return Z


@pytest.mark.parametrize("blocks", (1, 2, 7))
@pytest.mark.parametrize("shape", ((45,), (45, 1)))
def test_a_complex_matrix_in_all_formats(Z, x, blocks, shape):
    op, z = operator(Z, blocks), (x - 1j * x[::-1]).reshape(shape)
    y = op.matvec(z)
    assert op.dtype == y.dtype == Z.dtype and y.shape == (60, *shape[1:])
    tolerance = 50 * np.finfo(Z.dtype).eps
    np.testing.assert_allclose(y, Z.astype(complex) @ z, rtol=0, atol=tolerance)
    assert np.array_equal(op @ z, y)
    assert np.array_equal(op.matmat(z.reshape(-1, 1)), y.reshape(-1, 1))  # as SciPy 1.18 calls it
    np.testing.assert_allclose((2j * op) @ z, 2j * y, rtol=tolerance)


@pytest.mark.parametrize("dtype", (np.float64, np.float32, np.int64, np.bool_))
def test_a_real_x_is_promoted_for_a_complex_matrix(Z, x, dtype):
    op, real = operator(Z, 2), (4 * x).astype(dtype)
    out = np.empty(60, dtype=Z.dtype)
    assert np.array_equal(op.matvec(real, out), op.matvec(real.astype(complex)))
    assert op.matvec(real).dtype == Z.dtype


def test_out_of_a_complex_matrix_is_of_its_type(Z, x):
    op, z = operator(Z, 2), x + 1j
    out = np.full(60, np.nan, dtype=Z.dtype)
    assert op.matvec(z, out) is out and np.array_equal(out, op.matvec(z))
    other = np.complex64 if Z.dtype == np.complex128 else np.complex128
    for dtype in (other, np.float64, np.float32, np.clongdouble):
        with pytest.raises(InputError):
            op.matvec(z, np.empty(60, dtype=dtype))
    memory = np.ones(105, dtype=Z.dtype)
    with pytest.raises(InputError):
        op.matvec(memory[:45], memory[30:90])


@pytest.mark.parametrize("shape", ((44,), (46,), (60,), (1, 45), (45, 2), (45, 1, 1), ()))
def test_x_of_another_shape_is_refused_in_one_line(A, shape):
    with pytest.raises(InputError) as error:
        operator(A).matvec(np.ones(shape))
    assert str(shape) in str(error.value)


def unsuitable_outs():
    read_only = np.empty(60)
    read_only.flags.writeable = False
    return {
        "short": np.empty(59),
        "long": np.empty(61),
        "a column": np.empty((60, 1)),
        "float32": np.empty(60, dtype=np.float32),
        "whole numbers": np.empty(60, dtype=np.int64),
        "complex": np.empty(60, dtype=complex),
        "every other": np.empty(120)[::2],
        "backwards": np.empty(60)[::-1],
        "other byte order": np.empty(60, dtype=np.dtype(float).newbyteorder()),
        "read-only": read_only,
    }


@pytest.mark.parametrize("what", unsuitable_outs())
def test_out_of_another_kind_is_refused_in_one_line(A, x, what):
    with pytest.raises(InputError):
        operator(A).matvec(x, unsuitable_outs()[what])


def test_out_is_written_and_returned(A, x):
    op, out = operator(A, 3), np.full(60, np.nan)
    assert op.matvec(x, out) is out
    assert op.matvec(x, out=out) is out
    assert np.array_equal(out, op.matvec(x))


def test_a_result_is_not_overwritten_by_the_next(A, x):
    op = operator(A, 3)
    first = op.matvec(x)
    kept = first.copy()
    op.matvec(2 * x)
    assert np.array_equal(first, kept)


def test_out_that_shares_memory_with_x_is_refused():
    op = operator(gallery("poisson2d", n=5))
    memory = np.ones(40)
    for x, out in (
        (memory[:25], memory[:25]),
        (memory[:25], memory[15:40]),
        (memory[:25, None], memory[:25]),
    ):
        with pytest.raises(InputError):
            op.matvec(x, out)
    assert (memory == 1).all()


@pytest.mark.parametrize("shape", ((0, 0), (0, 4), (4, 0), (4, 4)))
def test_a_matrix_without_entries(shape):
    A = csr_array(shape)
    csr = Candidate("csr", "plain", "cpu", "float64", 32, 1)
    for blocks in ([RowProduct(0, shape[0], bind(A, csr).product)], [] if shape[0] == 0 else None):
        if blocks is not None:
            op = BlockOperator(shape, A.dtype, blocks)
            y = op.matvec(np.ones(shape[1]))
            assert y.shape == (shape[0],) and not y.any() and y.dtype == np.float64
            out = np.full(shape[0], np.nan)
            assert not op.matvec(np.ones(shape[1]), out).any()


@pytest.mark.parametrize("vectors", (0, 1, 2, 5, 8, 13))
@pytest.mark.parametrize("blocks", (1, 8))
def test_several_vectors_at_once_are_the_products_with_each(A, blocks, vectors):
    op = operator(A, blocks)
    X = np.random.default_rng(1).uniform(-1, 1, (A.shape[1], vectors))
    for given in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(op @ given, A @ X, rtol=1e-13, atol=1e-15)
    out = np.full((A.shape[0], vectors), np.nan)
    assert op.matmat(X, out) is out
    np.testing.assert_array_equal(out, op.matmat(X))


def test_several_vectors_of_another_shape_or_place_are_refused(A):
    op = operator(A)
    X = np.ones((A.shape[1], 3))
    for wrong in (np.ones((A.shape[1] + 1, 3)), np.ones(A.shape[1]), np.ones((A.shape[1], 3, 1))):
        with pytest.raises(InputError):
            op.matmat(wrong)
    for out in (np.ones((A.shape[0], 2)), np.ones((A.shape[0], 3), dtype=np.float32), np.ones((3, 60)).T):
        with pytest.raises(InputError):
            op.matmat(X, out)
    with pytest.raises(InputError):
        op.matmat(X * 1j, np.ones((A.shape[0], 3)))
    square = operator(gallery("poisson2d", n=6))
    X = np.ones((36, 3))
    with pytest.raises(InputError):
        square.matmat(X, X)


@pytest.mark.parametrize("out", ([0.0] * 60, memoryview(bytearray(480))))
def test_an_out_that_is_no_array_is_refused_in_one_line(A, x, out):
    with pytest.raises(InputError):
        operator(A).matvec(x, out)


@pytest.mark.parametrize("kind", ("text", "objects"))
def test_an_x_that_holds_no_numbers_is_refused_in_one_line(A, kind):
    op, wrong = operator(A), np.array(["1"] * A.shape[1], dtype=str if kind == "text" else object)
    for multiply, x in ((op.matvec, wrong), (op.matmat, wrong[:, None])):
        with pytest.raises(InputError):
            multiply(x)
