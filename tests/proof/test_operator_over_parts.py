"""An operator in two parts, each with its rows, its x and its y: conjugate gradients run on it unchanged.

Processes would exchange what lies in other parts by messages; here it is handed over in plain Python. A
vector is a list of its parts, and a solver never looks into it.
"""

import itertools

import numpy as np
import pytest

from sparsecast.devices.binding import bind, prepared, row_slice
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.applications import cg
from sparsecast.operators.applications.pagerank import links, pagerank
from sparsecast.operators.block_operator import BlockOperator, LocalSpace, RowProduct
from sparsecast.records import Candidate

CSR = Candidate("csr", "plain", "cpu", "float64", 32, 1)


class Parts(list):
    """A vector in parts: sums and multiples are those of the parts."""

    __array_ufunc__ = None  # a NumPy number times a vector is our product, not an array made of the parts

    def __add__(self, other):
        return Parts(mine + its for mine, its in zip(self, other, strict=True))

    def __rmul__(self, factor):
        return Parts(factor * part for part in self)


class SpaceOverParts:
    """Vectors in parts: every part adds what it has to the inner product of all."""

    def __init__(self, spaces):
        self.spaces = spaces

    def zeros(self):
        return Parts(space.zeros() for space in self.spaces)

    host_zeros = zeros

    def arrays(self, x):
        return x

    def total(self, own):
        return own

    def dot(self, x, y):
        return sum(space.dot(*parts) for space, *parts in zip(self.spaces, x, y, strict=True))

    def norm(self, x):
        return float(np.sqrt(self.dot(x, x).real))


class OperatorOverParts:
    """A matrix whose parts have some rows each, as a BlockOperator of the columns that they need."""

    def __init__(self, A, bounds):
        self.shape, self.dtype, self.bounds = A.shape, A.dtype, bounds
        parts = list(itertools.pairwise(bounds))
        self.domain = self.range = SpaceOverParts([LocalSpace(end - first, A.dtype) for first, end in parts])
        self.needed, self.parts = [], []
        for first, end in parts:
            rows = row_slice(A, first, end - 1)
            needed = np.unique(rows.indices)
            self.needed.append(needed)
            self.parts.append(local(rows[:, needed]))

    def matvec(self, x, out=None):
        out = self.range.zeros() if out is None else out
        for part, needed, y in zip(self.parts, self.needed, out, strict=True):
            part.matvec(self.exchange(x, needed), out=y)
        return out

    def exchange(self, x, needed):
        """Return these entries of x, each from the part that has it."""
        owners = np.searchsorted(self.bounds, needed, side="right") - 1
        return np.array([x[part][i - self.bounds[part]] for i, part in zip(needed, owners, strict=True)])


def local(A):
    """The operator of a matrix in this process."""
    product = bind(prepared(A, "float64", 32), CSR).product
    return BlockOperator(A.shape, A.dtype, [RowProduct(0, A.shape[0], product)])


@pytest.fixture
def problem():
    A = gallery("poisson2d", n=16)
    return A, np.random.default_rng(1).uniform(-1, 1, A.shape[0])


@pytest.mark.parametrize("is_preconditioned", (False, True))
def test_the_shipped_solver_takes_vectors_in_parts(problem, is_preconditioned):
    A, b = problem
    op, inverse = OperatorOverParts(A, [0, 101, 256]), np.linspace(0.1, 1.0, 256)
    parts = [Parts([whole[:101], whole[101:]]) for whole in (b, inverse)]
    spread = cg.conjugate_gradients(op, *parts[: 1 + is_preconditioned], tolerance=1e-10)
    here = cg.conjugate_gradients(local(A), b, inverse if is_preconditioned else None, tolerance=1e-10)
    assert isinstance(spread.x, Parts) and spread.stop == here.stop == "converged"
    np.testing.assert_allclose(np.concatenate(spread.x), here.x, rtol=1e-7, atol=1e-10)


def test_pagerank_takes_vectors_in_parts():
    graph = gallery("rmat", scale=6)
    graph.data[:] = 1.0
    made = links(graph)
    assert made.dangling.size
    here = pagerank(local(made.matrix), made.dangling, made.inverse_weight)
    op = OperatorOverParts(made.matrix, [0, 20, 64])
    dangling = Parts([made.dangling[made.dangling < 20], made.dangling[made.dangling >= 20] - 20])
    inverse = Parts([made.inverse_weight[:20], made.inverse_weight[20:]])
    spread = pagerank(op, dangling, inverse)
    assert spread.iterations == here.iterations
    np.testing.assert_allclose(np.concatenate(spread.ranks), here.ranks, rtol=1e-12)
