"""What tests of partitions share: any small matrix, and the methods that serve here."""

import importlib.util

import numpy as np
from hypothesis import strategies
from scipy.sparse import csr_array

from sparsecast.matrices.partitioning.methods import METHODS

HAS_METIS = importlib.util.find_spec("pymetis") is not None

#: The methods that can be used here, those that take any shape, and those of strips of rows.
METHODS_HERE = [name for name in METHODS.names() if HAS_METIS or name != "metis"]
ANY_SHAPE = ("rows", "nonzeros")
STRIPS = [name for name in METHODS_HERE if name != "uniform-2d"]


def numbers(partition):
    """Return all that a Partition holds, comparable."""
    order = None if partition.order is None else partition.order.tolist()
    bounds = partition.row_bounds.tolist(), partition.column_bounds.tolist()
    return partition.method, partition.ranks, *bounds, order


@strategies.composite
def patterns(draw, is_square=False):
    """Return any small matrix: unsorted, with duplicates, zeros, empty rows, or none at all."""
    rows = draw(strategies.integers(0, 12))
    cols = rows if is_square else draw(strategies.integers(0, 12))
    lengths = [draw(strategies.integers(0, 6)) if cols else 0 for _ in range(rows)]
    seed = draw(strategies.integers(0, 10**6))
    generator = np.random.default_rng(seed)
    indices = generator.integers(0, max(1, cols), sum(lengths)).astype(np.int32)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(draw(strategies.sampled_from("il")))
    data = generator.integers(-1, 3, len(indices)).astype(float)
    return csr_array((data, indices.astype(indptr.dtype), indptr), shape=(rows, cols))


def suits(method, A, ranks):
    """Tell whether a method takes this shape and this number of ranks."""
    root = int(ranks**0.5)
    is_taken = A.shape[0] == A.shape[1] or method in ANY_SHAPE
    return is_taken and (method != "uniform-2d" or root * root == ranks)
