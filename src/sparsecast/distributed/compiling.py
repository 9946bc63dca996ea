"""From a matrix and a Configuration to an operator on many ranks.

A file that all ranks see is read by all together, each a part of the bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.operator import DistributedOperator
from sparsecast.distributed.parts import RankPart, from_entries, scattered, transposed
from sparsecast.distributed.processes import agree, for_our_messages, in_step
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError, RanksError
from sparsecast.matrices.assembly import HERMITIAN
from sparsecast.matrices.matrix_market import is_divisible, read_triplets
from sparsecast.matrices.partitioning.methods import partition as partition_of
from sparsecast.matrices.partitioning.methods.uniform_2d import square_root
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import FILE_PREFIX, TWIN_PREFIX, Problem
from sparsecast.matrices.sources import failures_of
from sparsecast.matrices.values import require_imaginary
from sparsecast.records import DTYPES, Configuration
from sparsecast.system.parallel import equal_parts
from sparsecast.system.version import VERSION


def compile(
    A: Any, configuration: Configuration, comm: Any, partition: Partition | None = None
) -> DistributedOperator:
    """Build a matrix on the ranks of a communicator as a Configuration says; all ranks call it together.

    What is wrong anywhere is found before the first product, and raised on every rank.

    Parameters
    ----------
    A : sparse matrix, str or Path
        A matrix that rank 0 has: the others give None, or the same. Or what names it, on all ranks: a file
        or ``gallery:NAME?...``. A Matrix Market file of coordinates, not compressed, is read in parts by all
        where the rows have equal numbers. Otherwise rank 0 reads or makes the matrix, and no other rank
        holds more than its part.
    configuration : Configuration
    comm : communicator of mpi4py
        Its ranks; the messages go through a communicator of our own.
    partition : Partition, optional
        On rank 0; without it, the method of the Configuration makes one.

    Raises
    ------
    RanksError
        On all ranks, if they disagree on the version of Sparsecast, the Configuration or the matrix; if a
        rank cannot read its part of the file, or the format does not suit its part; if the Configuration is
        not for this matrix or number of ranks.
    """
    comm = for_our_messages(comm)
    agree(comm, "Sparsecast", VERSION, "install one version everywhere")
    wanted = json.dumps(dataclasses.asdict(configuration))
    agree(comm, "the configuration", wanted, "give all ranks the same")
    described = in_step(comm, lambda: _described(A, comm.rank))
    first = comm.bcast(described)
    if A is None and first.startswith("array?"):  # where rank 0 has an array, the others may give None
        described = first
    agree(comm, "the matrix", described, "give all ranks the same, or None on all but rank 0")
    in_step(comm, lambda: check_ranks(configuration, comm.size))
    part = _part(comm, A, configuration, partition)

    @cache
    def product(transposes: bool) -> DistributedProduct:
        """Return the product of the matrix or of its transpose; collective at the first use of each."""
        its = transposed(comm, part) if transposes else part
        return PRODUCTS.get(configuration.algorithm)(comm, its, configuration)

    return DistributedOperator(product)


def check_ranks(configuration: Configuration, ranks: int) -> None:
    """Refuse a Configuration that this number of ranks cannot do, or of an unknown type."""
    algorithm = PRODUCTS.get(configuration.algorithm)
    if configuration.ranks != ranks:
        raise InputError(
            f"{ranks} ranks with a configuration for {configuration.ranks}: expected as many; start "
            f"{configuration.ranks}, or choose for {ranks}"
        )
    if algorithm.is_2d:
        square_root(ranks)
    if configuration.dtype not in DTYPES:
        raise InputError(
            f"a configuration with dtype {configuration.dtype}: expected one of {', '.join(DTYPES)}; name it"
        )


def _described(A: Any, rank: int) -> str:
    if A is None and rank == 0:
        raise InputError("no matrix: expected one on this rank, or a name on all; give it")
    return str(A) if A is None or isinstance(A, str | Path) else Problem.of(A).specification


def _part(comm: Any, A: Any, configuration: Configuration, given: Partition | None) -> RankPart:
    """Return this rank's part of the matrix, by the way that suits where it comes from."""
    is_text_file = (
        isinstance(A, str | Path)
        and Path(A).suffix.lower() == ".mtx"
        and not str(A).startswith((TWIN_PREFIX, FILE_PREFIX))
    )
    is_by_rows = configuration.partition == "rows" and not comm.bcast(given is not None)
    if is_text_file and is_by_rows:
        path = Path(A)
        described = in_step(comm, lambda: _file_digest(path) if is_divisible(path) else "")
        agree(comm, "the file", described, "copy one file to all machines")
        if described:
            part = _read_in_parts(comm, path, configuration)
            in_step(comm, lambda: _check_partition(part.partition, part.partition.shape, configuration))
            return part

    def make() -> tuple[csr_array[Any] | None, Partition | None]:
        if comm.rank:
            return None, None
        problem = Problem.named(A) if isinstance(A, str | Path) else Problem.of(A)
        matrix = problem.matrix
        require_imaginary(matrix.dtype, configuration.dtype, problem.name)
        made = given or partition_of(matrix, comm.size, configuration.partition)
        _check_partition(made, matrix.shape, configuration)
        return csr_array(matrix.astype(configuration.dtype, copy=False)), made

    return scattered(comm, *in_step(comm, make))


def _check_partition(partition: Partition, shape: tuple[int, int], configuration: Configuration) -> None:
    """Refuse a partition that is not for this matrix, the ranks or the algorithm."""
    is_2d = partition.parts**2 == partition.ranks
    needs_2d = PRODUCTS.get(configuration.algorithm).is_2d
    fits = is_2d if needs_2d else not partition.is_2d
    if (
        partition.shape != shape
        or partition.ranks != configuration.ranks
        or not (fits and partition.is_sound)
    ):
        kind = "2D" if partition.is_2d else "1D"
        raise InputError(
            f"a {kind} partition of {partition.shape[0]:,} x {partition.shape[1]:,} for {partition.ranks} "
            f"ranks with {configuration.algorithm}: expected a {'2D' if needs_2d else '1D'} one of "
            f"{shape[0]:,} x {shape[1]:,} for {configuration.ranks}; partition it so"
        )


#: Pieces of a file that its digest looks at, and their bytes: a digest of all would have each rank read all.
_PIECES, _PIECE_BYTES = 64, 1 << 16


def _file_digest(path: Path) -> str:
    """Return the size of a file and a checksum of 64 pieces of it: of all bytes up to 4 MiB."""
    digest, size = hashlib.sha256(), path.stat().st_size
    with failures_of(path), path.open("rb") as file:
        for place in np.linspace(0, max(0, size - _PIECE_BYTES), _PIECES).astype(int).tolist():
            file.seek(place)
            digest.update(file.read(_PIECE_BYTES))
    return f"{size:,} bytes, sha256 of pieces {digest.hexdigest()[:16]}"


def _read_in_parts(comm: Any, path: Path, configuration: Configuration) -> RankPart:
    """Read a divisible Matrix Market file, each rank as many bytes, and send each entry to its rank.

    Rows are partitioned in equal numbers. Entries that a symmetric file leaves out are added by the rank that
    reads their mirror image.
    """
    dtype = np.dtype(configuration.dtype)
    header, read = in_step(comm, lambda: read_triplets(path, comm.rank, comm.size, dtype))
    stored = sum(comm.allgather(len(read.values)))
    if stored != header.stored:
        raise RanksError(
            f"{path}: holds {stored} entries, expected the {header.stored} of its header; "
            f"copy or download it again"
        )
    row_bounds, column_bounds = (equal_parts(length, comm.size) for length in header.shape)
    partition = Partition("rows", comm.size, row_bounds, column_bounds)
    rows, columns, values = read
    if header.mirror:
        off = rows != columns
        mirrored = values[off].conj() if header.mirror == HERMITIAN else values[off]
        # Negated, not multiplied: infinity times the 0 of an imaginary part would be NaN.
        values = np.append(values, -mirrored if header.mirror < 0 else mirrored)
        rows, columns = np.append(rows, columns[off]), np.append(columns, rows[off])
    return from_entries(comm, rows, columns, values, partition)
