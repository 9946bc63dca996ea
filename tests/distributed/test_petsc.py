"""PETSc as an algorithm: with a PETSc that is none, because the real one is seldom installed."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.distributed import compile
from sparsecast.errors import FormatError, InputError, MissingLibraryError, RanksError
from sparsecast.formats.libraries import LIBRARIES, library
from sparsecast.matrices.gallery import gallery
from sparsecast.records import Configuration


class Vector:
    """A vector that is somebody else's array for a while."""

    def __init__(self):
        self.array = None

    def placeArray(self, array):
        assert self.array is None
        self.array = array

    def resetArray(self):
        self.array = None


class Matrix:
    """MPIAIJ on one rank."""

    def createAIJ(self, size, csr, comm):
        (rows, all_rows), (cols, all_cols) = size
        assert (rows, cols) == (all_rows, all_cols) and comm.size == 1
        indptr, indices, data = csr
        assert indptr.dtype == indices.dtype == np.int32
        self.matrix = csr_array((data, indices, indptr), shape=(rows, cols))
        return self

    def assemble(self):
        pass

    def createVecs(self):
        return Vector(), Vector()

    def mult(self, x, y):
        y.array[:] = self.matrix @ x.array


@pytest.fixture
def petsc4py(monkeypatch):
    """Let this process have a petsc4py; return its PETSc."""
    PETSc = SimpleNamespace(
        IntType=np.int32,
        ScalarType=np.float64,
        COMM_WORLD=SimpleNamespace(size=1),
        COMM_SELF=SimpleNamespace(size=1),
        Mat=Matrix,
    )
    package = ModuleType("petsc4py")
    package.init, package.PETSc = lambda arguments: None, PETSc
    monkeypatch.setitem(sys.modules, "petsc4py", package)
    monkeypatch.setitem(sys.modules, "petsc4py.PETSc", PETSc)
    monkeypatch.setattr(library, "_loaded", {})
    return PETSc


def compiled(simulated, A, ranks=1, dtype="float64", formats=("csr", "csr")):
    way = Configuration("petsc", *formats, "rows", ranks, 1, dtype)
    return simulated.on_ranks(ranks, lambda comm: compile(A if comm.rank == 0 else None, way, comm))


def test_its_product_is_ours(simulated, petsc4py):
    A = gallery("poisson2d", n=9)
    (op,) = compiled(simulated, A)
    x = np.random.default_rng(0).uniform(-1, 1, A.shape[1])
    for its, whole in ((op, A), (op.T, A.T)):
        np.testing.assert_allclose(its.matvec(x), whole @ x, rtol=1e-14, atol=1e-14)
    assert op.product.steps[0].name == "whole"


@pytest.mark.parametrize(
    ("asked", "said"),
    (
        ({"dtype": "float32"}, "petsc with float32: expected float64"),
        ({"formats": ("dia", "csr")}, "petsc in csr, dia: expected csr"),
        ({"ranks": 2}, "petsc on 2 ranks: expected 1"),
    ),
)
def test_what_it_cannot_is_said_on_all_ranks(simulated, petsc4py, asked, said):
    with pytest.raises(RanksError, match=said) as raised:
        compiled(simulated, gallery("poisson2d", n=9), **asked)
    assert isinstance(raised.value.__cause__, FormatError | InputError)


def test_it_is_missing(simulated, monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    monkeypatch.setattr(library, "_loaded", {})
    with pytest.raises(RanksError, match=r"cannot be loaded .*petsc4py") as raised:
        compiled(simulated, gallery("poisson2d", n=9))
    assert isinstance(raised.value.__cause__, MissingLibraryError)


def test_it_was_built_for_another_numpy(simulated, petsc4py, monkeypatch):
    def init(arguments):
        raise ValueError("numpy.dtype size changed")

    monkeypatch.setattr(sys.modules["petsc4py"], "init", init)
    with pytest.raises(RanksError, match=r"cannot be loaded .numpy.dtype size changed.*from source"):
        compiled(simulated, gallery("poisson2d", n=9))


def test_one_process_calls_it_as_a_library(petsc4py):
    A, out = gallery("poisson2d", n=9), np.full(81, np.nan)
    x = np.linspace(-1, 1, 81)
    LIBRARIES.get("petsc").from_csr(A).on_threads(1)(x, out)
    np.testing.assert_allclose(out, A @ x)
    with pytest.raises(FormatError, match="float32 values, it was built for float64"):
        LIBRARIES.get("petsc").from_csr(A.astype(np.float32)).on_threads(1)
