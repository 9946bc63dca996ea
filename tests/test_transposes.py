"""Transposes, adjoints and compositions: SciPy's solvers cannot tell our operator from SciPy's own."""

import dataclasses
import gc
import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse import linalg as solvers

import sparsecast as sc
from sparsecast.devices.binding import bind, prepared, row_slice
from sparsecast.errors import InputError
from sparsecast.formats.narrowing import LOSSY
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.block_operator import BlockOperator, LocalSpace, RowProduct, Transposed
from sparsecast.records import Candidate, Parameters

#: Row blocks take these formats in turn; the first has a kernel for several vectors, the others have none.
KERNELS = (("csr", "plain"), ("coo", "segmented"), ("sell", "chunks"))


def row_products(A, blocks):
    """The rows of `A` in so many blocks."""
    bounds = np.linspace(0, A.shape[0], blocks + 1).astype(int).tolist()
    found = []
    for (first, end), kernel in zip(itertools.pairwise(bounds), itertools.cycle(KERNELS)):
        bound = bind(row_slice(A, first, end - 1), Candidate(*kernel, "cpu", A.dtype.name, 32, 1))
        found.append(RowProduct(first, end, bound.product, bound.multivector))
    return found


def operator(A, blocks=1):
    """The operator of a matrix that stands for its own transpose where it can."""
    own = row_products(A, blocks)

    def transposed():
        is_square = A.shape[0] == A.shape[1]
        if is_square and not (A != A.T).nnz:
            return Transposed(own)
        if is_square and not (A.T.conj() != A).nnz:
            return Transposed(own, conjugated=True)
        return Transposed(row_products(csr_array(A.T), blocks))

    return BlockOperator(A.shape, A.dtype, own, transposed)


def square_matrices():
    """Well-conditioned matrices of 49 rows, without multiple eigenvalues, by what their transposes are."""
    symmetric = gallery("poisson2d", n=7) + diags_array(np.linspace(1, 2, 49))
    skew = eye_array(49, k=2) - eye_array(49, k=-2)
    mirrored = eye_array(49, k=3) + eye_array(49, k=-3)
    made = {
        "symmetric": symmetric,
        "general": symmetric + 0.7 * skew,
        "hermitian": symmetric + 0.5j * skew,
        "complex symmetric": symmetric + 0.5j * mirrored,
        "complex": symmetric + (0.4 + 0.3j) * skew + 0.2j * eye_array(49, k=1),
    }
    return {name: prepared(csr_array(A), csr_array(A).dtype.name, 32) for name, A in made.items()}


SQUARE = square_matrices()
RECTANGULAR = {"tall": gallery("random", n=60, cols=45, nnz_per_row=7)}
RECTANGULAR["wide complex"] = csr_array((RECTANGULAR["tall"] * (1 + 0.5j)).T)
RECTANGULAR["wide complex"].data.imag[::3] = 1
ALL = SQUARE | RECTANGULAR

every_kind = pytest.mark.parametrize("kind", ALL)
every_blocking = pytest.mark.parametrize("blocks", (1, 4))


def vector(size, dtype=float, seed=3):
    generator = np.random.default_rng(seed)
    values = generator.uniform(-1, 1, size)
    return values + 1j * generator.uniform(-1, 1, size) if np.dtype(dtype).kind == "c" else values


# Products with the transpose and the adjoint


@every_kind
@every_blocking
def test_products_with_transpose_adjoint_and_conjugate(kind, blocks):
    A = ALL[kind]
    op, dense = operator(A, blocks), A.toarray()
    for found, expected in (
        (op.T, dense.T),
        (op.H, dense.conj().T),
        (op.conjugate(), dense.conj()),
        (op.T.T, dense),
        (op.H.H, dense),
        (op.H.T, dense.conj()),
        (op.T.H, dense.conj()),
        (op.T.conjugate().T.H, dense.T),
    ):
        assert isinstance(found, BlockOperator) and found.shape == expected.shape and found.dtype == A.dtype
        for dtype in (float, complex):
            x = vector(expected.shape[1], dtype)
            X = np.stack((x, 2 * x[::-1], x**2), axis=1)
            np.testing.assert_allclose(found.matvec(x), expected @ x, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(found @ X, expected @ X, rtol=1e-12, atol=1e-13)
            y = vector(expected.shape[0], dtype)
            Y = np.stack((y, 1 - y), axis=1)
            np.testing.assert_allclose(found.rmatvec(y), expected.conj().T @ y, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(found.rmatmat(Y), expected.conj().T @ Y, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(y @ found, y @ expected, rtol=1e-12, atol=1e-13)


def test_a_matrix_that_is_its_own_transpose_costs_nothing():
    symmetric, hermitian = operator(SQUARE["symmetric"]), operator(SQUARE["hermitian"])
    assert symmetric.T is symmetric.H is symmetric.conjugate() is symmetric
    assert hermitian.H is hermitian and hermitian.T.blocks is hermitian.blocks
    mirrored = operator(SQUARE["complex symmetric"])
    assert mirrored.T is mirrored and mirrored.H.blocks is mirrored.blocks


@every_kind
def test_the_transpose_is_made_once_at_first_use(kind):
    A, calls = ALL[kind], []
    barrier = threading.Barrier(4)

    def transposed():
        calls.append(1)
        return operator(A)._transposed()

    op = BlockOperator(A.shape, A.dtype, row_products(A, 1), transposed)

    def use(_):
        barrier.wait()
        return op.rmatvec(np.ones(A.shape[0]))

    op.matvec(np.ones(A.shape[1]))
    assert not calls
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(use, range(4)))
    assert len(calls) == 1 and all(np.array_equal(each, results[0]) for each in results)
    assert op.T.T.T.blocks is op.T.blocks and op.T.T.blocks is op.blocks and len(calls) == 1


def test_a_transpose_that_failed_is_tried_again():
    A, outcomes = SQUARE["general"], [MemoryError(), None]

    def transposed():
        if failure := outcomes.pop(0):
            raise failure
        return Transposed(row_products(csr_array(A.T), 1))

    op = BlockOperator(A.shape, A.dtype, row_products(A, 1), transposed)
    with pytest.raises(MemoryError):
        op.transpose()
    assert np.allclose(op.T @ np.ones(49), A.T @ np.ones(49))


def test_an_operator_and_its_transposes_are_gone_after_their_last_use():
    op = operator(SQUARE["complex"])
    views = [op, op.T, op.H, op.T.T, op.conjugate()]
    gone = [weakref.ref(view) for view in views]
    gc.disable()
    try:
        del op, views
        assert not any(each() for each in gone)
    finally:
        gc.enable()


def test_an_operator_without_a_transpose_says_so_in_one_line():
    A = SQUARE["general"]
    op = BlockOperator(A.shape, A.dtype, row_products(A, 1))
    for ask in (op.transpose, op.adjoint, lambda: op.rmatvec(np.ones(49)), lambda: op.rmatmat(np.eye(49))):
        with pytest.raises(InputError):
            ask()


@pytest.mark.parametrize(
    ("call", "x", "out"),
    [
        ("rmatvec", np.ones(45), None),
        ("rmatvec", np.ones(60), np.ones(60)),
        ("rmatmat", np.ones((45, 2)), None),
        ("rmatmat", np.ones((60, 2)), np.ones((60, 2))),
    ],
)
def test_what_does_not_fit_the_adjoint_is_refused_in_one_line(call, x, out):
    with pytest.raises(InputError):
        getattr(operator(RECTANGULAR["tall"]), call)(x, out)


def test_memory_shared_with_x_is_refused_for_conjugated_products_too():
    op, x = operator(SQUARE["complex symmetric"]), np.ones(49, complex)
    with pytest.raises(InputError):
        op.rmatvec(x, x)
    assert (x == 1).all()


whole = st.integers(-9, 9)
NUMBERS = {"float64": whole, "complex128": st.builds(complex, whole, whole)}


@st.composite
def operators(draw):
    """Any small matrix of whole numbers, often its own transpose, with vectors x, x2 and y."""
    dtype = draw(st.sampled_from(list(NUMBERS)))
    rows, cols = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    array = np.array(
        draw(st.lists(NUMBERS[dtype], min_size=rows * cols, max_size=rows * cols)), dtype
    ).reshape(rows, cols)
    if mirror := draw(st.sampled_from((None, np.transpose, lambda B: B.conj().T))):
        rows = cols
        array = array.T @ array
        array = array + mirror(array)
    x, x2, y = (
        np.array(draw(st.lists(NUMBERS["complex128"], min_size=size, max_size=size)))
        for size in (cols, cols, rows)
    )
    A = prepared(csr_array(array), dtype, 32)
    return operator(A, draw(st.integers(1, rows))), array, (x, x2, y)


@given(operators(), NUMBERS["complex128"])
def test_adjoints_are_adjoint_and_linear_exactly(found, factor):
    op, array, (x, x2, y) = found
    assert op.range.dot(op.matvec(x), y) == op.domain.dot(x, op.rmatvec(y))
    assert np.array_equal(op.H @ y, array.conj().T @ y) and np.array_equal(op.T @ y, array.T @ y)
    assert np.array_equal(op.matvec(factor * x + x2), factor * op.matvec(x) + op.matvec(x2))
    z = op.matvec(x)
    assert np.array_equal(op.rmatvec(factor * y + z), factor * op.rmatvec(y) + op.rmatvec(z))
    for same in (op.T.T, op.H.H, op.conjugate().conjugate(), op.T.conjugate().H):
        assert np.array_equal(same @ x, z)
    assert np.array_equal(op.T @ y, op.H.conjugate() @ y)


# SciPy's solvers


SYSTEMS = ("cg", "bicg", "gmres", "minres", "qmr")
#: Of solvers that do not take every matrix, the kinds that they take.
TAKEN = {"cg": ("symmetric", "hermitian"), "minres": ("symmetric",)}


@pytest.mark.parametrize(
    ("solver", "kind"), [(s, k) for s in SYSTEMS for k in SQUARE if k in TAKEN.get(s, SQUARE)]
)
@every_blocking
def test_linear_systems(solver, kind, blocks):
    A, solve = SQUARE[kind], getattr(solvers, solver)
    b = vector(49, A.dtype)
    x, info = solve(operator(A, blocks), b, rtol=1e-10)
    expected, expected_info = solve(A, b, rtol=1e-10)
    assert info == expected_info == 0
    np.testing.assert_allclose(x, expected, rtol=1e-7, atol=1e-8)
    assert np.linalg.norm(A @ x - b) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("solver", ("lsqr", "lsmr"))
@every_kind
@every_blocking
def test_least_squares(solver, kind, blocks):
    A, solve = ALL[kind], getattr(solvers, solver)
    b = vector(A.shape[0], A.dtype)
    limit = "iter_lim" if solver == "lsqr" else "maxiter"
    x = solve(operator(A, blocks), b, atol=1e-13, btol=1e-13, **{limit: 1000})[0]
    expected = np.linalg.lstsq(A.toarray(), b)[0]
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-7)


# Spaces


def test_the_spaces_of_an_operator_hold_x_and_y():
    A = RECTANGULAR["wide complex"]
    op = operator(A)
    assert op.domain == op.T.range == op.H.range == LocalSpace(60, A.dtype)
    assert op.range == op.T.domain == LocalSpace(45, A.dtype)
    x = op.domain.zeros()
    assert x.shape == (60,) and x.dtype == A.dtype and not x.any() and op.domain.zeros() is not x


def test_dot_is_conjugate_linear_in_x_and_gives_the_norm():
    space, x, y = LocalSpace(9, np.dtype(complex)), vector(9, complex), vector(9, complex, 4)
    assert space.dot(2j * x, y) == pytest.approx(-2j * space.dot(x, y))
    assert space.dot(x, 2j * y) == pytest.approx(2j * space.dot(x, y))
    assert space.dot(x, y) == pytest.approx(np.sum(x.conj() * y))
    assert space.norm(x) == pytest.approx(np.sqrt(space.dot(x, x).real))
    assert isinstance(space.norm(x), float)


# Compiled matrices


@every_kind
@pytest.mark.parametrize("transpose", (False, True))
def test_compile_plans_the_transpose_at_first_use_or_at_once(own_complex, kind, transpose):
    A = ALL[kind]
    op = sc.compile(A, threads=1, transpose=transpose)
    y = vector(A.shape[0], A.dtype)
    np.testing.assert_allclose(op.rmatvec(y), A.T.conj() @ y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(op.T @ y, A.T @ y, rtol=1e-12, atol=1e-13)
    if kind in ("symmetric", "hermitian"):
        assert op.H is op
    assert (op.T is op) == (kind in ("symmetric", "complex symmetric"))


def test_the_matrix_is_kept_until_the_transpose_is_built(own_complex):
    A = RECTANGULAR["tall"].copy()
    kept, op = weakref.ref(A), sc.compile(A, threads=1)
    del A
    gc.collect(1)
    assert kept() is not None
    op.transpose()
    gc.collect(1)
    assert kept() is None


def test_compile_builds_the_transpose_by_a_plan_for_it(recorded_complex):
    A = RECTANGULAR["tall"]
    made = sc.plan(A, recorded_complex, threads=1)
    of_transpose = sc.plan(csr_array(A.T), recorded_complex, threads=1)
    halves = [
        dataclasses.replace(of_transpose.baseline, **rows) for rows in ({"last_row": 19}, {"first_row": 20})
    ]
    op = sc.compile(A, made, transpose=dataclasses.replace(of_transpose, blocks=tuple(halves)))
    assert [(block.first, block.end) for block in op.T.blocks] == [(0, 20), (20, 45)]
    np.testing.assert_allclose(op.rmatvec(np.ones(60)), A.T @ np.ones(60), rtol=1e-13)
    with pytest.raises(InputError):
        sc.compile(A, made, transpose=made)
    single = sc.plan(csr_array(A.T), recorded_complex, threads=1, dtype="complex128")
    with pytest.raises(InputError):
        sc.compile(A, made, transpose=single)


@every_kind
def test_new_values_reach_an_operator_and_what_was_taken_of_it(own_complex, kind):
    A = ALL[kind]
    op = sc.compile(A, threads=1)
    taken = op.T, op.H, op.conjugate()
    x, y = vector(A.shape[1], A.dtype), vector(A.shape[0], A.dtype)
    assert all(view.shape for view in taken)
    changed = 2.5 * A
    op.update(changed)
    for view, expected, z in zip(
        taken, (changed.T, changed.T.conj(), changed.conj()), (y, y, x), strict=True
    ):
        np.testing.assert_allclose(view @ z, expected @ z, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(op @ x, changed @ x, rtol=1e-12, atol=1e-13)


def with_one_other(A):
    changed = A.copy()
    changed.data[1] = 0.1
    return changed


@pytest.mark.parametrize(
    ("name", "kernel", "parameters"),
    [
        ("csr", "plain", {"values": "one"}),
        ("sell", "vectors", {"values": "float32"}),
        ("symmetric_csr", "single", {}),
    ],
)
def test_values_that_a_format_cannot_hold_change_nothing(own_complex, name, kernel, parameters):
    A = csr_array(abs(gallery("poisson2d", n=9)).sign())
    made = sc.plan(A, threads=1, probe_s=0)
    candidate = Candidate(name, kernel, "cpu", "float64", 32, 1, Parameters(parameters))
    block = dataclasses.replace(made.baseline, candidate=candidate)
    op = sc.compile(A, dataclasses.replace(made, blocks=(block,)))
    x = vector(81, float)
    before = op @ x
    with pytest.raises(InputError):
        op.update(with_one_other(A))
    np.testing.assert_array_equal(op @ x, before)
    np.testing.assert_allclose(before, A @ x, rtol=1e-12)
    op.update(3 * A)
    np.testing.assert_allclose(op @ x, 3 * (A @ x), rtol=1e-12)


def test_new_values_are_rounded_as_planned(own_complex):
    A = RECTANGULAR["tall"] * 0.1
    made = sc.plan(A, threads=1, probe_s=0, values="float32")
    block = dataclasses.replace(
        made.baseline,
        candidate=dataclasses.replace(made.baseline.candidate, parameters=Parameters({"values": LOSSY})),
    )
    op = sc.compile(A, dataclasses.replace(made, blocks=(block,)), values="float32")
    x, y = vector(A.shape[1], float), vector(A.shape[0], float)
    for matrix in (A, A * np.pi):
        op.update(matrix)
        rounded = matrix.astype(np.float32).astype(float)
        np.testing.assert_allclose(op @ x, rounded @ x, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(op.T @ y, matrix.T @ y, rtol=1e-4, atol=1e-6)
    before = op @ x
    with pytest.raises(InputError):
        op.update(A * 1e300)
    np.testing.assert_array_equal(op @ x, before)
    for refused in ({"plan": dataclasses.replace(made, rounding=None)}, {"adapt": True}):
        with pytest.raises(InputError):
            sc.compile(A, **refused, values="float32")


def test_a_transpose_in_use_keeps_its_symmetry(own_complex):
    A = SQUARE["symmetric"]
    changed, x = with_one_other(A), vector(49, float)
    made = sc.plan(A, threads=1, probe_s=0)
    made = dataclasses.replace(made, blocks=(made.baseline,))
    unused, used = sc.compile(A, made), sc.compile(A, made, transpose=True)
    unused.update(changed)
    np.testing.assert_allclose(unused.T @ x, changed.T @ x, rtol=1e-12, atol=1e-13)
    with pytest.raises(InputError):
        used.update(changed)
    np.testing.assert_allclose(used @ x, A @ x, rtol=1e-12, atol=1e-13)


def test_operators_that_cannot_take_other_values_say_so(own_complex):
    A = SQUARE["general"]
    op = sc.compile(A, threads=1)
    for refusing in (op.T, operator(A), sc.compile(A, threads=1, adapt=True)):
        with pytest.raises(InputError):
            refusing.update(A)
    with pytest.raises(InputError):
        op.update(csr_array((49, 50)))
