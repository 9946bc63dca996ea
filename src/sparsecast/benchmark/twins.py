"""How near synthetic twins come to real matrices: products with both, sampled in turn.

Gahvari et al. 2007, Summary 8 to 13, show real matrices and their twins as dots joined by lines; here each is
a ratio of times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.errors import InputError, PaddingError
from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import BCSR, best_block
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.kernels import KERNELS
from sparsecast.kernels.binding import prepared
from sparsecast.kernels.reference import ReferenceProduct
from sparsecast.matrices.analysis import structure as structure_of
from sparsecast.matrices.reading import matrix_name, read
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.matrices.twin_synthesis import banded_twin, twin
from sparsecast.matrices.values import require_imaginary
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.planning.candidates import Target
from sparsecast.records import Candidate, Structure

#: What a matrix and its twins take.
TWIN_EFFORT = Effort(samples=40, sample_s=0.001)

_INT32_MAX, _INDEX_BYTES = 2**31 - 1, 4


@dataclass(frozen=True, slots=True)
class TwinRow:
    """One way of doing the product, on a matrix and on its twins.

    Attributes
    ----------
    matrix : str
    nnz : int
        Of the matrix and of each twin.
    candidate : Candidate
        The same for all.
    block : int
        Side of the twins' blocks, and of BCSR's; 1 where the matrix has none worth storing.
    time_s : float
        Seconds a product with the real matrix: the lowest tenth of the samples ends there.
    again, bands, structure : float
        Such a time over that of the real matrix: of the real matrix measured a second time in the same turn,
        of the paper's twin, and of ours.
    """

    matrix: str
    nnz: int
    candidate: Candidate
    block: int
    time_s: float
    again: float
    bands: float
    structure: float


@dataclass(frozen=True, slots=True)
class TwinScore:
    """How near the twins of a collection are in one format, with one number of threads.

    Attributes
    ----------
    format : str
    threads, matrices : int
    again, bands, structure : (float, float)
        Median and 90th percentile of abs(ratio - 1), of what TwinRow names so: the first is the noise floor.
    """

    format: str
    threads: int
    matrices: int
    again: tuple[float, float]
    bands: tuple[float, float]
    structure: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Twins:
    """Twins of a collection.

    Attributes
    ----------
    rows : tuple of TwinRow
        Matrix by matrix.
    scores : tuple of TwinScore
    refused : dict of str to str
        Matrices that were left out, and why.
    interrupted : bool
        Whether the user stopped it: the rows are what was measured until then.
    """

    rows: tuple[TwinRow, ...]
    scores: tuple[TwinScore, ...]
    refused: dict[str, str]
    interrupted: bool = False


def twins_of(
    paths: Sequence[str | os.PathLike[str]],
    threads: Sequence[int],
    dtype: str | None = None,
    on_matrix: Callable[[], None] = lambda: None,
    effort: Effort = TWIN_EFFORT,
) -> Twins:
    """Measure matrices and their twins, in CSR and, where it suits the matrix, in BCSR.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files.
    threads : sequence of int
        Each is measured.
    dtype : str, optional
        One of DTYPES; by default each matrix's own.
    on_matrix : callable
        Called after each matrix.
    effort : Effort
        Of each of the four measurements of a row.

    Raises
    ------
    InputError
        If `dtype` is unknown.
    WrongResultError
        If a kernel's result differs from the oracle's by more than rounding.
    """
    if dtype is not None:
        Target("cpu", dtype, 32, 1)  # refuses an unknown type once, and not every matrix for it
    rows: list[TwinRow] = []
    refused: dict[str, str] = {}
    interrupted = False
    for path in paths:
        name = matrix_name(path)
        try:
            A = read(path).matrix
            chosen = A.dtype.name if dtype is None else dtype
            require_imaginary(A.dtype, chosen, f"{name}, a {A.dtype} matrix")
            family = _Family.of(name, A, np.dtype(chosen).itemsize)
            index_bits = 32 if max(*A.shape, family.structure.nnz) <= _INT32_MAX else 64
            for count in threads:
                rows += _rows(family, Target("cpu", chosen, index_bits, count), effort)
        except InputError as error:
            refused[name] = str(error)
        except KeyboardInterrupt:
            interrupted = True
            break
        on_matrix()
    return Twins(tuple(rows), _scores(rows), refused, interrupted)


@dataclass(frozen=True, slots=True)
class _Family:
    """A matrix with its twins."""

    name: str
    structure: Structure
    block: int
    real: csr_array[Any]
    paper: csr_array[Any]
    ours: csr_array[Any]

    @classmethod
    def of(cls, name: str, A: csr_array[Any], value_bytes: int) -> _Family:
        structure = structure_of(A)
        if structure.nnz == 0:
            raise InputError(f"{name} has no entries: expected some to multiply; leave it out")
        block = _block(structure, value_bytes)
        paper, ours = banded_twin(structure, block, seed=0), twin(structure, block, seed=0)
        return cls(name, structure, block, A, paper, ours)


def _rows(family: _Family, target: Target, effort: Effort) -> list[TwinRow]:
    blocks = RowBlocks.of(family.structure)
    x = right_hand_side(family.structure.cols, target.dtype)
    rows = []
    for format_name in ("csr", "bcsr") if family.block > 1 else ("csr",):
        candidate = target.candidate(format_name, blocks)
        real, bands, own = (
            _product(each, candidate, family.block, x) for each in (family.real, family.paper, family.ours)
        )
        # The real matrix not twice in a row: the second time would find warmer caches than the twins do.
        timings = measure({"real": real, "bands": bands, "again": real, "structure": own}, effort)
        times = {kind: timing.time_s for kind, timing in timings.items()}
        time_s = times.pop("real")
        ratios = {kind: each / time_s for kind, each in times.items()}
        rows.append(TwinRow(family.name, family.structure.nnz, candidate, family.block, time_s, **ratios))
    return rows


def _block(structure: Structure, value_bytes: int) -> int:
    """Return the side of the best square blocks, 1 where they would stream as much as CSR."""
    try:
        BCSR.refuse_unsuited(RowBlocks.of(structure), value_bytes, _INDEX_BYTES)
    except PaddingError:
        return 1
    return best_block(structure.block_fill)


def _product(A: csr_array[Any], candidate: Candidate, block: int, x: np.ndarray[Any, Any]) -> Call:
    """Return a product with `A`, checked against the oracle."""
    ready = prepared(A, candidate.dtype, candidate.index_bits)
    stored: StorageFormat
    if candidate.format == "bcsr":
        stored = BCSR.from_csr(ready, block=(block, block))
    else:
        stored = FORMATS.get(candidate.format).from_csr(ready)
    kernels = KERNELS[candidate.device].get(candidate.format)
    product = kernels.bind(stored, candidate.kernel, candidate.threads)
    out = np.full(A.shape[0], np.nan, dtype=ready.dtype)
    product(x, out)
    ReferenceProduct.of(ready, x).check(out, f"{candidate.format} {candidate.kernel}")
    return lambda: product(x, out)


def _scores(rows: Sequence[TwinRow]) -> tuple[TwinScore, ...]:
    scores = []
    for key in dict.fromkeys((row.candidate.format, row.candidate.threads) for row in rows):
        own = [row for row in rows if (row.candidate.format, row.candidate.threads) == key]
        errors = np.abs(np.array([(row.again, row.bands, row.structure) for row in own]) - 1)
        medians, tails = np.quantile(errors, (0.5, 0.9), axis=0).tolist()
        scores.append(TwinScore(*key, len(own), *zip(medians, tails, strict=True)))
    return tuple(scores)
