"""The atlas: Structures of real matrices, from which a calibration makes twins to learn from.

The shipped file holds counts and histograms only. `python benchmarks/run.py atlas` derives it from a
collection of matrices, and orders the twins so that any number of them covers the space of features.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array, tril, triu

from sparsecast.errors import InputError
from sparsecast.features.structure import Structure
from sparsecast.matrices.synthesis import mirrored
from sparsecast.matrices.twin_synthesis import twin

#: Sizes of twins, and their entries over those of the original. Only the mirrored twins are symmetric.
MIRRORED = "mirrored"
SIZES = {"third": 1 / 3, "whole": 1.0, "triple": 3.0, MIRRORED: 1.0}


@dataclass(frozen=True, slots=True)
class AtlasEntry:
    """A matrix of the atlas."""

    structure: Structure  # of the real matrix
    block: int  # side of the blocks whose fill its twins keep
    #: Of its file, as in the specification of a file: twin and file are one group in cross-validation.
    digest: str


@dataclass(frozen=True, slots=True)
class Atlas:
    """All entries by name, and the order in which their twins are measured: names and sizes."""

    source: Mapping[str, Any]
    entries: Mapping[str, AtlasEntry]
    order: tuple[tuple[str, str], ...]

    def twins(self, suits: Callable[[Structure], bool]) -> Iterator[str]:
        """Give the specifications of whole twins, in their order, of matrices that suit."""
        for name, size in self.order:
            if size == "whole" and suits(self.entries[name].structure):
                yield f"atlas?name={name}&size={size}"


@cache
def atlas() -> Atlas:
    shipped = files("sparsecast.matrices").joinpath("atlas.json.gz").read_bytes()
    read = json.loads(gzip.decompress(shipped))
    entries = {
        name: AtlasEntry(Structure.from_dict(entry["structure"]), int(entry["block"]), entry["digest"])
        for name, entry in read["entries"].items()
    }
    return Atlas(read["source"], entries, tuple((name, size) for name, size in read["order"]))


def atlas_matrix(name: str, size: str) -> csr_array:
    """Return a twin of an entry of the atlas, in one of SIZES.

    A third has the first rows of the twin; columns beyond a third are folded back, so that rows keep their
    lengths. A triple has the twin three times on its diagonal. The mirrored one has the triangle of the twin
    with more entries, and its mirror image.
    """
    entry = _entry(name)
    if entry is None or size not in SIZES:
        raise InputError(
            f"atlas entry '{name}' of size '{size}': expected an entry that is shipped and one of "
            f"{', '.join(SIZES)}; correct the specification, or install the version that it is from"
        )
    whole = twin(entry.structure, entry.block, seed=0)
    if size == "triple":
        return csr_array(block_diag((whole, whole, whole), format="csr"))
    if size == MIRRORED:
        if entry.structure.symmetry.kind != "symmetric":
            raise InputError(
                f"atlas entry '{name}' of size '{size}': expected a symmetric matrix; take another size"
            )
        return mirrored(whole, is_upper=triu(whole, 1).nnz > tril(whole, -1).nnz)
    if size == "third":
        rows, cols = (max(1, dimension // 3) for dimension in whole.shape)
        end = whole.indptr[rows]
        indices = whole.indices[:end] % np.asarray(cols, dtype=whole.indices.dtype)
        third = csr_array((whole.data[:end], indices, whole.indptr[: rows + 1]), shape=(rows, cols))
        third.sum_duplicates()
        return third
    return whole


def _entry(name: str) -> AtlasEntry | None:
    return atlas().entries.get(str(name))  # a specification gives a name of digits as a number


def atlas_entries(name: str, size: str) -> int:
    """Return the approximate number of entries of `atlas_matrix`, 0 for an unknown one."""
    entry = _entry(name)
    return int(SIZES.get(size, 0.0) * entry.structure.nnz) if entry else 0


def atlas_group(name: str) -> str:
    """Return the group of an entry's twins in cross-validation: the digest of the original file."""
    entry = _entry(name)
    return entry.digest if entry else name
