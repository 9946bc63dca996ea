"""Matrices and solvers that other libraries take as they are: results, and which products are planned."""

import copy
import pickle

import numpy as np
import pyamg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, issparse, random_array
from scipy.sparse.linalg import svds
from sklearn.decomposition import TruncatedSVD

import sparsecast as sc
from sparsecast.api import accelerating
from sparsecast.api.executing import in_csr
from sparsecast.errors import InputError
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.operators.sparse_arrays import with_operator


class Counting:
    """An operator that counts its products, and those with its transpose."""

    def __init__(self, A):
        self.A, self.products, self.transposed = A, 0, 0
        self.matmat = self.matvec

    def matvec(self, x):
        self.products += 1
        return np.asarray(self.A @ x)

    @property
    def T(self):  # noqa: N802
        return Transposed(self)

    def conjugate(self):
        return self


class Transposed(Counting):
    def __init__(self, op):
        super().__init__(op.A.T)
        self.op = op

    def matvec(self, x):
        self.op.transposed += 1
        return np.asarray(self.A @ x)

    @property
    def T(self):  # noqa: N802
        return self.op


def counted(A):
    op = Counting(A)
    return with_operator(A, lambda: op), op


@pytest.fixture
def terms():
    return random_array((90, 60), density=0.1, rng=1, format="csr")


@pytest.fixture
def planned(monkeypatch):
    """Let no matrix be too small for a plan, which is CSR; return what plans are asked for."""
    asked = []

    def compiled(self, A, *, products):
        asked.append({"products": products, "threads": self.setting.threads})
        return in_csr(csr_array(A), 1)

    monkeypatch.setattr(accelerating, "PLANNING_S", 0.0)
    monkeypatch.setattr(accelerating, "SHORT_S", 0.0)
    monkeypatch.setattr(sc.Session, "compile", compiled)
    return asked


@pytest.mark.parametrize("kind", (csr_array, csc_array, csr_matrix))
def test_products_of_every_spelling_are_the_operators(kind, terms):
    A = kind(terms)
    B, op = counted(A)
    x, y, X = np.arange(60.0), np.arange(90.0), np.ones((60, 3))
    products = [(B @ x, A @ x), (B.dot(x), A.dot(x)), (B @ X, A @ X), (B @ x[:, None], A @ x[:, None])]
    assert op.products == 4
    products += [(B.T @ y, A.T @ y), (y @ B, y @ A), (B.T.conj() @ y, A.T.conj() @ y), (B.T.T @ x, A @ x)]
    assert (op.products, op.transposed) == (5, 3)
    if kind is csr_matrix:
        products.append((B * x, A * x))
        assert op.products == 6
    for ours, scipys in products:
        np.testing.assert_array_equal(ours, scipys, strict=True)
    assert issparse(B) and isinstance(B, kind) and B.format == A.format


def test_what_is_made_of_it_is_scipys_again(terms):
    B, op = counted(terms)
    x = np.ones(60)
    made = {"2 * B": 2 * B, "B.copy()": B.copy(), "B + B": B + B, "B[:9]": B[:9], "B.tocsc()": B.tocsc()}
    made |= {"copied": copy.copy(B), "deepcopied": copy.deepcopy(B), "pickled": pickle.loads(pickle.dumps(B))}  # noqa: S301
    for name, each in made.items():
        assert each @ x == pytest.approx(csr_array(each.toarray()) @ x), name
    assert op.products == 0


def test_the_type_of_a_result_is_scipys(terms):
    for A, x in ((terms.astype("float32"), np.ones(60)), (terms, np.full(60, 1j)), (terms, np.ones(60, int))):
        B, op = counted(A)
        assert (B @ x).dtype == (A @ x).dtype
        assert op.products == (x.dtype.kind == "i")


def test_values_cannot_change_behind_the_operator(terms):
    A = terms.copy()
    B, op = counted(A)
    row, column = A.nonzero()[0][0], A.nonzero()[1][0]
    with pytest.raises(ValueError):
        B.data *= 2
    with pytest.raises(ValueError):
        B[row, column] = 3.0
    assert A.data.flags.writeable
    B.data = 2 * A.data
    np.testing.assert_array_equal(B @ np.ones(60), 2 * A @ np.ones(60))
    assert op.products == 0


def test_what_changes_the_matrix_in_place_has_scipys_products(terms):
    unsorted = csr_array(terms)
    unsorted.indices, unsorted.data = unsorted.indices.copy(), unsorted.data.copy()
    first = slice(*unsorted.indptr[:2])
    unsorted.indices[first], unsorted.data[first] = unsorted.indices[first][::-1], unsorted.data[first][::-1]
    unsorted.data[::3] = 0.0
    unsorted.has_sorted_indices = False
    for change in (
        lambda B: B.resize(90, 65),
        lambda B: B.resize(80, 50),
        lambda B: B.resize(95, 60),
        lambda B: B.eliminate_zeros(),
        lambda B: B.sort_indices(),
        lambda B: B.sum_duplicates(),
    ):
        A, given = unsorted.copy(), unsorted.copy()
        A.has_sorted_indices = given.has_sorted_indices = False
        B, op = counted(A)
        change(B)
        change(given)
        assert (B.shape, B.nnz) == (given.shape, given.nnz)
        x = np.arange(1.0, B.shape[1] + 1)
        np.testing.assert_array_equal(B @ x, given @ x)
        np.testing.assert_array_equal(A.data, unsorted.data)
        np.testing.assert_array_equal(A.indices, unsorted.indices)
        assert op.products == 0 and A.shape == unsorted.shape
    sorted_one, op = counted(terms)
    sorted_one.sum_duplicates()
    assert (sorted_one @ np.ones(60)).shape == (90,) and op.products == 1


@pytest.mark.parametrize("algorithm", ("arpack", "randomized"))
def test_truncated_svd_takes_it_and_many_vectors_are_scipys(terms, algorithm):
    B, op = counted(terms)
    ours, scipys = (TruncatedSVD(5, algorithm=algorithm, random_state=0).fit(M) for M in (B, terms))
    np.testing.assert_allclose(ours.components_, scipys.components_, atol=1e-12)
    assert (op.products > 0 and op.transposed > 0) == (algorithm == "arpack")


@pytest.mark.parametrize("smoother", ("gauss_seidel", "jacobi", "chebyshev"))
@pytest.mark.parametrize("made", (pyamg.ruge_stuben_solver, pyamg.smoothed_aggregation_solver))
def test_a_solver_of_pyamg_takes_the_same_steps(planned, smoother, made, monkeypatch):
    monkeypatch.setattr(sc.Session, "compile", lambda self, A, products: Counting(A))
    A = csr_array(pyamg.gallery.poisson((30, 30), format="csr"))
    plain = made(A, presmoother=smoother, postsmoother=smoother)
    levels = [(level.A, level.P, level.R) for level in plain.levels[:-1]]
    solver, b = sc.accelerate(plain), np.sin(np.arange(900.0))
    assert [(level.A, level.P, level.R) for level in plain.levels[:-1]] == levels
    ours, theirs = [], []
    np.testing.assert_array_equal(
        solver.solve(b, tol=1e-8, residuals=ours), plain.solve(b, tol=1e-8, residuals=theirs)
    )
    assert ours == theirs and len(ours) > 3
    for cycle in ("W", "F", "AMLI"):
        np.testing.assert_array_equal(
            solver.solve(b, tol=1e-8, cycle=cycle), plain.solve(b, tol=1e-8, cycle=cycle)
        )
    for level in solver.levels[:-1]:
        assert all(M._operator().products > 0 for M in (level.A, level.P, level.R))
    np.testing.assert_array_equal(solver.aspreconditioner() @ b, plain.aspreconditioner() @ b)


@pytest.mark.parametrize("dtype", ("float64", "complex128"))
def test_a_matrix_is_planned_for_its_products(planned, dtype):
    A = sc.gallery("circuit", n=400).astype(dtype)
    if dtype == "complex128":
        A.data *= np.exp(1j * np.arange(A.nnz))
    B = sc.accelerate(A, products=77, threads=1)
    assert planned == [{"products": 77, "threads": 1}]
    assert isinstance(B._operator(), BlockOperator)
    ours, scipys = (svds(M, k=3, v0=np.ones(400), return_singular_vectors=False) for M in (B, A))
    np.testing.assert_allclose(ours, scipys, rtol=1e-10)


def test_where_no_plan_pays_this_machine_need_not_be_calibrated(monkeypatch):
    A = sc.gallery("poisson2d", n=9)
    monkeypatch.setattr(accelerating, "SHORT_S", np.inf)
    assert sc.accelerate(A) is A
    monkeypatch.setattr(accelerating, "SHORT_S", 0.0)
    for made in (A, A.tocsc(), A.tobsr((3, 3)), A.tocoo(), A.todia()):
        B = sc.accelerate(made, products=1)
        assert isinstance(B._operator(), BlockOperator)
        assert B.format == (made.format if made.format in ("csr", "csc", "bsr") else "csr")
        x = np.arange(81.0)
        for ours in (B @ x, B.T @ x, x @ B):
            np.testing.assert_allclose(ours, A @ x)


@pytest.mark.parametrize("wrong", (np.ones((3, 3)), "matrix.mtx", csr_array(np.eye(3, dtype=int)), None))
def test_what_is_no_matrix_of_numbers_with_a_point_is_refused(wrong):
    with pytest.raises(InputError):
        sc.accelerate(wrong)
    with pytest.raises(InputError):
        sc.accelerate(sc.gallery("poisson2d", n=9), products=0)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**16))
def test_any_small_matrix(rows, cols, seed):
    generator = np.random.default_rng(seed)
    A = csr_array(coo_array(generator.integers(-1, 2, (rows, cols)).astype(float)))
    B, _ = counted(A)
    x, X = generator.normal(size=cols), generator.normal(size=(cols, 2))
    np.testing.assert_array_equal(B @ x, A @ x, strict=True)
    np.testing.assert_array_equal(B @ X, A @ X, strict=True)
    np.testing.assert_array_equal(B.T @ (B @ X), A.T @ (A @ X), strict=True)
