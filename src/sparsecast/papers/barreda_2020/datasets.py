"""Labelled blocks that networks learn from: those of this machine, or the authors', and errors of estimates.

The authors' are HDF5, one file for each matrix and frequency (Zenodo record 3956057). Their driver writes MB,
the column of each entry; B_250, E_250, EPKG_250 and EDRAM_250, nanoseconds and nanojoules of an entry of each
block, the shorter last one too; FREC, kilohertz; HEAD, columns, rows and entries. Labels are taken as they
are: times are counts of a clock of constant rate, divided by FREC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices import machine_of
from sparsecast.errors import InputError, ProfileError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES, evenly_spread
from sparsecast.papers.barreda_2020.label_files import (
    ENERGIES,
    QUANTITIES,
    BlockLabels,
    LabelFacts,
    kept_labels,
    labelled_frequencies,
    sources,
)
from sparsecast.papers.barreda_2020.networks import INPUTS, required
from sparsecast.system.jit import njit

Floats = NDArray[np.float32]

#: The part of the groups, matrices or blocks that is set aside (Barreda et al., section 5.1).
SHARE = 0.2

#: The arrays of a dataset whose values are measured or seen, in their order.
_ARRAYS = ("inputs", "features", "labels", "again")

#: Arrays of the authors' files by quantity, and whose they are.
_PUBLISHED = {"time": "B", "total": "E", "package": "EPKG", "dram": "EDRAM"}
MACHINE = "xeon-e5-2630-barreda"


@dataclass(frozen=True)
class BlockDataset:
    """Blocks of several matrices with a label each."""

    #: Shape (b, 2, INPUTS): ln(|difference of columns| + 1), and the number of rows that end between the two
    #: entries.
    inputs: NDArray[np.float32]
    #: Shape (b, features): BLOCK_FEATURES, which trees see; none where ends of rows are unknown.
    features: Floats
    #: labels, again: shape (b,): nanoseconds or nanojoules an entry, measured twice.
    labels: Floats
    again: Floats
    matrices: NDArray[np.int64]  # shape (b,): which of `names` a block is of
    #: names, groups: matrices, and the group of each.
    names: tuple[str, ...]
    groups: tuple[str, ...]

    @classmethod
    def of_matrix(
        cls, name: str, group: str, inputs: Floats, features: NDArray[Any], labels: Floats, again: Floats
    ) -> BlockDataset:
        """Return blocks of one matrix."""
        numbers = np.zeros(len(labels), dtype=np.int64)
        return cls(inputs, features.astype(np.float32), labels, again, numbers, (name,), (group,))

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, chosen: NDArray[Any]) -> BlockDataset:
        return replace(self, **{name: getattr(self, name)[chosen] for name in (*_ARRAYS, "matrices")})

    def parts(self, split: str) -> tuple[BlockDataset, BlockDataset, BlockDataset]:
        """Return what is learned, what steers the training, and what tests it.

        With the split ``"groups"`` a fifth of the groups tests, a fifth of the others validates. With
        ``"paper"`` a fifth of the matrices tests, whatever their relatives, and a fifth of the blocks of the
        others validates, drawn at random (Barreda et al. take the first fifth of shuffled blocks).
        """
        generator = np.random.default_rng(0)
        if split == "groups":
            rest, test = self._apart(np.array(self.groups), generator)
            learned, validation = rest._apart(np.array(self.groups), generator)
            return learned, validation, test
        rest, test = self._apart(np.arange(len(self.names)), generator)
        shuffled = generator.permutation(len(rest))
        count = round(SHARE * len(rest))
        return rest.of(shuffled[count:]), rest.of(shuffled[:count]), test

    def _apart(self, keys: NDArray[Any], generator: np.random.Generator) -> tuple[BlockDataset, BlockDataset]:
        """Return the blocks in two parts, a SHARE of the keys of matrices in the second."""
        present = generator.permutation(np.unique(keys[self.matrices]))
        return self._without(keys, present[: max(1, round(SHARE * len(present)))])

    def _without(self, keys: NDArray[Any], chosen: NDArray[Any]) -> tuple[BlockDataset, BlockDataset]:
        """Return the blocks without those of matrices of some keys, and these."""
        second = np.isin(keys[self.matrices], chosen)
        return self.of(~second), self.of(second)

    def folds(self, count: int) -> Iterator[tuple[BlockDataset, BlockDataset]]:
        """Give pairs of parts for a cross-validation: the second have a part of the groups, each once."""
        groups = np.random.default_rng(0).permutation(sorted(set(self.groups)))
        for number in range(min(count, len(groups))):
            yield self._without(np.array(self.groups), groups[number::count])


def joined(parts: Sequence[BlockDataset]) -> BlockDataset:
    starts = np.cumsum([0, *(len(part.names) for part in parts[:-1])])
    matrices = [part.matrices + start for part, start in zip(parts, starts, strict=True)]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS
    }
    return BlockDataset(
        **arrays,
        matrices=np.concatenate(matrices),
        names=tuple(name for part in parts for name in part.names),
        groups=tuple(group for part in parts for group in part.groups),
    )


def score(estimated: NDArray[np.float32], blocks: BlockDataset, mean: float) -> dict[str, float]:
    """Return the relative errors of estimates, shape (b,), of the labels of blocks.

    ``block_mean`` and ``block_median`` are of equation 1, of each block: |estimated - measured| / measured.
    ``matrix_mean``, ``matrix_median`` and ``matrix_worst`` are of equation 2, of the sums over the blocks of
    each matrix. ``explained`` is the share of the squared deviations from `mean`, that of the labels that
    were learned, which the estimates explain: less than 0 where they are worse.
    """
    unexplained = np.mean((estimated - blocks.labels) ** 2) / np.mean((mean - blocks.labels) ** 2)
    errors = np.abs(estimated / blocks.labels - 1)
    of_matrices = np.array(list(matrix_errors(estimated, blocks).values()))
    return {
        "block_mean": float(errors.mean()),
        "block_median": float(np.quantile(errors, 0.5)),
        "matrix_mean": float(of_matrices.mean()),
        "matrix_median": float(np.median(of_matrices)),
        "matrix_worst": float(of_matrices.max()),
        "explained": float(1.0 - unexplained),
    }


def matrix_errors(estimated: NDArray[np.float32], blocks: BlockDataset) -> dict[str, float]:
    """Return the error of the sum over the blocks of each matrix (equation 2), by its name."""
    numbers = np.unique(blocks.matrices).tolist()
    sums = [np.bincount(blocks.matrices, weights=values) for values in (estimated, blocks.labels)]
    return {blocks.names[k]: float(abs(sums[0][k] / sums[1][k] - 1)) for k in numbers}


def labelled_blocks(labels: BlockLabels, quantity: str, most: int) -> BlockDataset | None:
    """Return at most `most` blocks of a matrix, evenly spread, with their labels of a quantity.

    None if the matrix cannot be made again, or has no such labels.
    """
    numbers, first, again = labels.of(quantity)
    chosen = evenly_spread(len(numbers), most)
    blocks = numbers[chosen]
    seen = _seen_again(labels.matrix, blocks.tobytes()) if len(blocks) else None
    if seen is None:
        return None
    return BlockDataset.of_matrix(*seen, labels.features[blocks], first[chosen], again[chosen])


@lru_cache(maxsize=512)
def _seen_again(matrix: str, blocks: bytes) -> tuple[str, str, Floats] | None:
    """Make a matrix again, once for the networks of all quantities and frequencies.

    Return its name, its group, and the inputs of blocks.
    """
    problem = Problem.rebuilt(matrix)
    if problem is None:
        return None
    A, numbers = problem.matrix, np.frombuffer(blocks, dtype=np.int64)
    return problem.name, problem.group, block_inputs(A.indptr, A.indices, numbers)


def block_inputs(
    indptr: NDArray[Any], indices: NDArray[Any], blocks: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the inputs of some whole blocks, shape (b, 2, INPUTS).

    First ln(|difference of the columns of consecutive entries| + 1) (Barreda et al., section 4.1), then the
    rows that end between the two. An InputError says that a block, as of a damaged file, is not there.
    """
    if blocks.size and not 0 <= blocks.min() <= blocks.max() < int(indptr[-1]) // BLOCK_ENTRIES:
        raise InputError(
            f"blocks {blocks.min()} to {blocks.max()} of {indptr[-1]:,} entries: expected whole ones of "
            f"{BLOCK_ENTRIES} entries; label it again"
        )
    inputs = np.zeros((len(blocks), 2, INPUTS), dtype=np.float32)
    _fill(indptr, indices, blocks, inputs)
    return inputs


@njit(nogil=True, cache=True)
def _fill(indptr, indices, blocks, inputs):
    for place in range(len(blocks)):
        first = blocks[place] * BLOCK_ENTRIES
        row = np.searchsorted(indptr, first, side="right")
        for k in range(INPUTS):
            here, following = np.int64(indices[first + k]), np.int64(indices[first + k + 1])
            inputs[place, 0, k] = np.log(abs(following - here) + 1.0)
            while row < len(indptr) and indptr[row] <= first + k + 1:
                inputs[place, 1, k] += 1
                row += 1


@dataclass(frozen=True)
class LabelSet(LabelFacts):
    """Blocks with labels of one quantity."""

    blocks: BlockDataset


def label_set(quantity: str, most: int = 1024, frequency_ghz: float | None = None) -> LabelSet:
    """Return the labelled blocks of this machine, made again from the matrices' specifications.

    At most `most` blocks of one matrix are taken, evenly spread. The frequency is one that `label
    --frequencies` named; by default that of the machine.
    """
    if quantity not in QUANTITIES:
        remedy = remedy_for(quantity, QUANTITIES, "name one")
        raise InputError(f"labels '{quantity}': expected one of {', '.join(QUANTITIES)}; {remedy}")
    machine, dtype = machine_of(PROCESSOR), "float64"
    found = (
        (labels, labelled_blocks(labels, quantity, most))
        for labels in kept_labels(machine.name, dtype, frequency_ghz)
    )
    parts = [(labels, blocks) for labels, blocks in found if blocks is not None]
    if not parts:
        at = "" if frequency_ghz is None else f" at {frequency_ghz:g} GHz"
        known = ", ".join(f"{ghz:g}" for ghz in labelled_frequencies(machine.name, dtype)) or "none"
        where = " with a meter" if quantity in ENERGIES else ""
        raise ProfileError(
            f"no {quantity} labels of blocks of {dtype} values{at} on {machine.name}: expected some, GHz "
            f"with labels: {known}; run sparsecast label{where}"
        )
    used, blocks_of = zip(*parts, strict=True)
    set_by = ", ".join(sources(used, "frequency_source")) or None
    counted_by = ", ".join(sources(used, "energy_source")) or None if quantity in ENERGIES else None
    return LabelSet(quantity, machine.name, dtype, frequency_ghz, set_by, counted_by, joined(blocks_of))


def published_labels(folder: Path, quantity: str, most: int = 1024) -> LabelSet:
    """Return the labels of all files `output_MATRIX_KILOHERTZ.h5` of a folder, which are of one frequency.

    At most `most` blocks of one matrix are taken, evenly spread.
    """
    if quantity not in _PUBLISHED:
        remedy = remedy_for(quantity, _PUBLISHED, "name one")
        raise InputError(f"published labels '{quantity}': expected {', '.join(_PUBLISHED)}; {remedy}")
    paths = sorted(folder.glob("*.h5"))
    if not paths:
        raise InputError(f"{folder}: expected files MATRIX.h5 of published labels, found none; name another")
    parts, frequencies = [], set()
    for path in paths:
        blocks, kilohertz = _read(path, _PUBLISHED[quantity], most)
        parts.append(blocks)
        frequencies.add(kilohertz)
    if len(frequencies) > 1:
        raise InputError(
            f"{folder} has labels at {len(frequencies)} frequencies: expected one; name a folder of one"
        )
    ghz = frequencies.pop() / 1e6
    source = None if quantity == "time" else "rapl"
    return LabelSet(quantity, MACHINE, "float64", ghz, "set", source, joined(parts))


def _read(path: Path, name: str, most: int) -> tuple[BlockDataset, int]:
    h5py: Any = required("h5py")
    try:
        with h5py.File(path) as file:
            columns, frequency = np.asarray(file["MB"]), int(np.ravel(file["FREC"])[0])
            labels = np.asarray(file[f"{name}_{BLOCK_ENTRIES}"], dtype=np.float32)
    except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"{path} cannot be read as published labels ({error}): expected HDF5 with "
            f"MB, FREC and {name}_{BLOCK_ENTRIES}; name others"
        ) from error
    whole = len(columns) // BLOCK_ENTRIES if columns.ndim == 1 else 0
    if columns.dtype.kind not in "iu" or labels.ndim != 1 or not 0 < whole <= len(labels):
        raise InputError(
            f"{path} has {columns.shape} {columns.dtype} columns and {labels.shape} labels: expected "
            f"integers, and a label for each {BLOCK_ENTRIES}; name others"
        )
    if not (np.isfinite(labels[:whole]).all() and (labels[:whole] > 0).all()):
        raise InputError(f"{path} has a label that is not above 0: expected one for each block; leave it out")
    chosen = evenly_spread(whole, most)
    cut = columns[: whole * BLOCK_ENTRIES].reshape(whole, BLOCK_ENTRIES)[chosen].astype(float)
    inputs = np.zeros((len(chosen), 2, INPUTS), dtype=np.float32)
    inputs[:, 0] = np.log(np.abs(np.diff(cut, axis=1)) + 1)
    matrix = path.stem.removeprefix("output_").removesuffix(f"_{frequency}")
    unseen, unrepeated = np.zeros((len(chosen), 0)), np.full(len(chosen), np.nan, dtype=np.float32)
    return BlockDataset.of_matrix(matrix, matrix, inputs, unseen, labels[chosen], unrepeated), frequency
