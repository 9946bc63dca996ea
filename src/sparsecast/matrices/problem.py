"""Problem: a matrix with its name, its specification and its Structure, each computed at most once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from sparsecast.errors import InputError, remedy_for
from sparsecast.features.analysis import structure
from sparsecast.features.structure import Structure
from sparsecast.matrices import suitesparse
from sparsecast.matrices.assembly import Contents
from sparsecast.matrices.atlas import atlas_group
from sparsecast.matrices.families import FAMILIES, VALUES, built, expected_entries, parse_specification
from sparsecast.matrices.gallery import gallery_from_specification, gallery_names
from sparsecast.matrices.npz import CHECKED_FORMATS, index_fault, native
from sparsecast.matrices.reading import matrix_name, read_file
from sparsecast.matrices.reordering import cuthill_mckee_order, reordered
from sparsecast.matrices.sources import damaged
from sparsecast.matrices.structure_files import COUNTS_PREFIX
from sparsecast.matrices.twin_synthesis import banded_twin, twin
from sparsecast.matrices.values import computed_dtype
from sparsecast.system.integers import index_dtype

GALLERY_PREFIX, FILE_PREFIX, TWIN_PREFIX, ATLAS_PREFIX = "gallery:", "file:", "twin:", "atlas?"
TRANSPOSE_PREFIX = "transpose:of="

#: Begins the specification of a matrix of published results: ``published:GROUP/MATRIX``. Only what was
#: published of it is known, so it cannot be made again.
PUBLISHED_PREFIX = "published:"

#: Kinds of twins, by name.
TWINS = {"ours": twin, "banded": banded_twin}

# Before the checksum of a file in its specification.
_DIGEST = "?sha256="

#: Entries that are expected of a matrix when it is unknown.
_USUAL_ENTRIES = 1_000_000


class Problem:
    """A matrix to forecast or to measure, built when it is first needed. Use the class methods to get one.

    Parameters
    ----------
    name : str
        For people.
    make : callable
        Returns the matrix, and what is to be said of its file.
    specification : str or callable
        Text in Records from which `rebuilt` makes the matrix again; a callable is called when it is needed.
    group : str, optional
        Matrices of one group are never on both sides of a split for cross-validation. By default, each
        specification is a group.
    expected_nnz : int
        Estimate of its number of entries, before it is made.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Contents],
        specification: str | Callable[[], str],
        group: str | None = None,
        expected_nnz: int = _USUAL_ENTRIES,
    ) -> None:
        self.name, self.expected_nnz = name, expected_nnz
        self._make, self._specification, self._group = make, specification, group
        #: By Candidate, the matrix as trials built it: who needs it takes it out, in place of a conversion.
        self.built: dict[Any, Any] = {}
        self.order: NDArray[Any] | None = None  # of rows and columns, where it is `in_other_order`
        self.spent_s = 0.0  # seconds spent on trials of it in its first order, and on the other one

    @classmethod
    def of(cls, A: Any, name: str = "matrix") -> Problem:
        """Return the problem of a SciPy sparse matrix; a Problem is returned as it is."""
        if isinstance(A, Problem):
            return A
        matrix = as_csr(A)
        nnz = int(matrix.nnz)
        return cls(name, lambda: Contents(matrix), lambda: f"array{_DIGEST}{_digest(matrix)}", None, nnz)

    @classmethod
    def named(cls, text: str | Path) -> Problem:
        """Return the problem of a file, ``gallery:NAME?...``, ``suitesparse:GROUP/NAME`` or a specification.

        Nothing is read, made or downloaded yet.
        """
        text = str(text)
        family = text.partition("?")[0]
        if text.startswith(GALLERY_PREFIX):
            short = text.removeprefix(GALLERY_PREFIX)
            return cls(text, lambda: Contents(gallery_from_specification(short)), text, family)
        if text.startswith(suitesparse.PREFIX):
            return cls._downloaded(suitesparse.Downloaded.named(text.partition(_DIGEST)[0]))
        if text.startswith(TWIN_PREFIX):
            head, _, original = text.removeprefix(TWIN_PREFIX).partition("&of=")
            kind, parameters = parse_specification(head)
            if kind not in TWINS or set(parameters) != {"block"}:
                raise InputError(
                    f"specification '{text}': expected twin:ours or twin:banded?block=B&of=...; correct it"
                )
            return cls.named(original).twin(kind, int(parameters["block"]))
        if text.startswith(TRANSPOSE_PREFIX):
            return cls.named(text.removeprefix(TRANSPOSE_PREFIX))._transpose()
        if text.startswith(FILE_PREFIX):
            return cls._file(Path(text.removeprefix(FILE_PREFIX).rpartition("?")[0]))
        if "?" in text and family in FAMILIES and not Path(text).exists():
            _, parameters = parse_specification(text)
            entries = expected_entries(family, parameters)
            return cls(text, lambda: Contents(built(family, parameters)), text, group_of(text), entries)
        known = GALLERY_PREFIX, suitesparse.PREFIX, COUNTS_PREFIX
        remedy = remedy_for(text.partition(":")[0] + ":", known, "", likeness=0.75) if ":" in text else ""
        if family in gallery_names():
            remedy = f"did you mean '{GALLERY_PREFIX}{text}'?"
        if remedy and not Path(text).exists():  # no file, and nearly the name of a matrix that is none
            raise damaged(Path(text), "there is no such file", remedy)
        return cls._file(Path(text))

    @classmethod
    def _file(cls, path: Path) -> Problem:
        def specified() -> str:
            return f"{FILE_PREFIX}{path.resolve()}{_DIGEST}{suitesparse.short_digest(path)}"

        return cls(matrix_name(path), lambda: read_file(path), specified)

    @classmethod
    def _downloaded(cls, matrix: suitesparse.Downloaded) -> Problem:
        fetched = cache(matrix.fetched)  # its checksum is computed once

        def specified() -> str:
            fetched()
            return f"{matrix}{_DIGEST}{matrix.kept_digest()}"

        return cls(f"{matrix.group}/{matrix.name}", lambda: read_file(fetched()), specified)

    def twin(self, kind: str = "ours", block: int = 1) -> Problem:
        """Return a problem whose matrix is made from this one's Structure alone, by a function of TWINS."""
        head = f"{TWIN_PREFIX}{kind}?block={block}&of="
        return self._derived(f"{kind} twin", head, lambda: TWINS[kind](self.structure, block, seed=0))

    def transposed(self) -> Problem:
        """Return the problem of A^T; this one where the matrix equals it."""
        return self if self.proven(["symmetry"]).symmetry.kind == "symmetric" else self._transpose()

    def _transpose(self) -> Problem:
        return self._derived("transpose", TRANSPOSE_PREFIX, lambda: csr_array(self.matrix.T))

    def _derived(self, what: str, prefix: str, make: Callable[[], csr_array[Any]]) -> Problem:
        """Return the problem of a matrix that is made from this one, and is in its group."""
        return Problem(
            f"{what} of {self.name}",
            lambda: Contents(make()),
            lambda: f"{prefix}{self.specification}",
            self.group,
            self.expected_nnz,
        )

    @classmethod
    def rebuilt(cls, specification: str) -> Problem | None:
        """Return the problem of a specification, or None if its matrix cannot be made again.

        That is so where a file is missing or has changed, and where the matrix was an array.
        """
        original = specification
        if specification.startswith((TWIN_PREFIX, TRANSPOSE_PREFIX)):
            original = specification.rpartition("of=")[2]
        if original.startswith(FILE_PREFIX):
            path, _, digest = original.removeprefix(FILE_PREFIX).rpartition(_DIGEST)
            if not Path(path).is_file() or suitesparse.short_digest(Path(path)) != digest:
                return None
        elif original.startswith(suitesparse.PREFIX):
            name, _, digest = original.partition(_DIGEST)
            if suitesparse.Downloaded.named(name).kept_digest() != digest:
                return None
        elif not original.startswith(GALLERY_PREFIX) and original.partition("?")[0] not in FAMILIES:
            return None
        return cls.named(specification)

    @cached_property
    def _contents(self) -> Contents:
        return self._make()

    @property
    def matrix(self) -> csr_array[Any]:
        """The matrix, with values of one of DTYPES."""
        return self._contents.matrix

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user: summed duplicates, stored zeros, values that are not finite."""
        return self._contents.notes

    def in_other_order(self) -> Problem:
        """Return a square matrix in the order of reverse Cuthill-McKee."""
        order = cuthill_mckee_order(self.matrix)
        other = Problem.of(reordered(self.matrix, order), self.name)
        other.order = order
        return other

    @cached_property
    def structure(self) -> Structure:
        """Features of the whole matrix, for measurements."""
        return structure(self.matrix)

    @cached_property
    def sampled_structure(self) -> Structure:
        """Features for a forecast: of a sample where the matrix is large."""
        return structure(self.matrix, is_sampled=True, triangle_nnz=self._contents.triangle_nnz)

    def proven(self, groups: Iterable[str]) -> Structure:
        """Return the `sampled_structure`, from now on with these groups as all entries tell them."""
        if unproven := set(groups) & set(self.sampled_structure.unproven):
            exact = structure(self.matrix, groups=sorted(unproven)).groups.values()
            self.sampled_structure = self.sampled_structure.having(*exact)
        return self.sampled_structure

    @cached_property
    def specification(self) -> str:
        """The text that names the matrix in Records, and from which `rebuilt` makes it again."""
        return self._specification if isinstance(self._specification, str) else self._specification()

    @property
    def group(self) -> str:
        return group_of(self.specification) if self._group is None else self._group

    def released(self) -> Problem:
        """Return the same problem without its matrix, which is made again on demand; the Structure stays."""
        released = copy(self)
        released.__dict__.pop("_contents", None)
        released.built = {}
        return released


def group_of(specification: str) -> str:
    """Return the group of a matrix in cross-validation, from its specification alone.

    A twin belongs to its original, a file to its content, a matrix of the atlas to the file of its Structure,
    one with other values to that with its own.
    Gallery matrices of one name are one group, and so are published matrices of one group of the collection.
    """
    if specification.startswith(PUBLISHED_PREFIX):
        return specification.partition("/")[0]
    if specification.startswith(TWIN_PREFIX):
        return group_of(specification.partition("&of=")[2])
    if specification.startswith(TRANSPOSE_PREFIX):
        return group_of(specification.removeprefix(TRANSPOSE_PREFIX))
    if specification.startswith(GALLERY_PREFIX):
        return specification.partition("?")[0]
    if specification.startswith(ATLAS_PREFIX):
        return atlas_group(str(parse_specification(specification)[1]["name"]))
    if _DIGEST in specification:
        return specification.rpartition(_DIGEST)[2]
    return specification.partition(f"&{VALUES}=")[0]


def sound(A: Any) -> Any:
    """Return a SciPy sparse matrix in one of CHECKED_FORMATS, as it is if it has one.

    Every matrix that a user hands over comes through here: conversions and kernels trust its indices. An
    InputError refuses unsound ones, and what is no sparse matrix.
    """
    is_sparse: bool = issparse(A)
    if not is_sparse or len(A.shape) != 2:
        raise InputError(f"{type(A).__name__} is no sparse matrix: expected one of SciPy's; convert it")
    fault = index_fault(A)
    if not fault and A.format not in CHECKED_FORMATS:
        A = native(A).tocoo()
        fault = index_fault(A)
    if fault:
        raise InputError(f"a {type(A).__name__} whose {fault}: expected sound indices; build it anew")
    return A


def as_csr(A: Any) -> csr_array[Any]:
    """Return a `sound` matrix as a csr_array of types that are computed with, without room at its end."""
    A = sound(A)
    matrix: csr_array[Any] = A if isinstance(A, csr_array) else csr_array(A)
    values, nnz, index = computed_dtype(matrix.dtype), int(matrix.indptr[-1]), matrix.indices.dtype
    if not {index, matrix.indptr.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}:
        index = index_dtype(*matrix.shape, nnz)
    elif matrix.dtype == values and len(matrix.data) == len(matrix.indices) == nnz:
        return matrix
    starts = matrix.indptr.astype(np.promote_types(index, matrix.indptr.dtype), copy=False)
    arrays = (
        matrix.data[:nnz].astype(values, copy=False),
        matrix.indices[:nnz].astype(index, copy=False),
        starts,
    )
    return csr_array(arrays, shape=matrix.shape)


def _digest(A: csr_array[Any]) -> str:
    digest = hashlib.sha256(repr((A.shape, A.dtype.str)).encode())
    for array in (A.indptr, A.indices, A.data):
        digest.update(array.tobytes())
    return digest.hexdigest()[: suitesparse.DIGITS]
