"""Methods of partitioning, one file each, registered by the name of the file."""

from __future__ import annotations

import importlib.util
import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.system.registry import Registry

#: A method: makes a Partition of a matrix, for a number of ranks and a seed.
Method = Callable[[csr_array[Any], int, int], Partition]

#: Every method of partitioning, by name.
METHODS: Registry[Method] = Registry("partition", "sparsecast.matrices.partitioning.methods", separator="-")

#: The method of blocks; every other one is of rows.
GRID = "uniform-2d"

#: Greatest number of ranks; the arrays of a Distribution then take 130 MB.
MOST_RANKS = 2**21

_NO_METIS = (
    "METIS is not installed, so rows are partitioned by non-zeros; pip install 'sparsecast[mpi]' brings it"
)


def partition(A: csr_array[Any], ranks: int, method: str | None = None, seed: int = 0) -> Partition:
    """Partition a matrix among ranks.

    Parameters
    ----------
    A : csr_array
    ranks : int
        May exceed the rows: some ranks have no rows then.
    method : str, optional
        One of METHODS; by default that of `default_method`. A warning says if another one is used.
    seed : int
        Of the permutation of ``"uniform-2d"``, and of METIS. The same seed gives the same partition.
    """
    ranks = checked_ranks(ranks)
    method_name, notes = default_method(A.shape) if method is None else usable_method(method)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return METHODS.get(method_name)(A, ranks, seed)


def default_method(shape: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    """Return the default method for a matrix, and notes about it.

    METIS where it is installed and the matrix is square, rows by non-zeros otherwise.
    """
    return usable_method("metis") if shape[0] == shape[1] else ("nonzeros", ())


def usable_method(method: str) -> tuple[str, tuple[str, ...]]:
    """Return `method`, or the method that replaces it here with a note that says so."""
    if method == "metis" and importlib.util.find_spec("pymetis") is None:
        return "nonzeros", (_NO_METIS,)
    METHODS.get(method)
    return method, ()


def checked_ranks(ranks: int) -> int:
    """Return a number of ranks as an int; refuse anything else."""
    try:
        count = operator.index(ranks)
    except TypeError:
        count = 0
    if not 1 <= count <= MOST_RANKS:
        raise InputError(f"ranks {ranks}: expected a whole number from 1 to {MOST_RANKS:,}; give one")
    return count


def idle_ranks_note(ranks: Iterable[int], rows: int) -> str:
    """Return a sentence: these numbers of ranks exceed the rows of the matrix."""
    counts = ", ".join(f"{count:,}" for count in ranks)
    return f"On {counts} ranks some have no row, because there are {rows:,}: they only wait; take fewer"
