"""Datasets of blocks: inputs, labels, the group of each block, and errors of what is estimated of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.papers.barreda_2020.features.entry_blocks import BLOCK_ENTRIES, evenly_spread
from sparsecast.papers.barreda_2020.label_files import BlockLabels
from sparsecast.papers.barreda_2020.networks.architectures import INPUTS
from sparsecast.system.jit import njit

Floats = NDArray[np.float32]

#: The part of the groups, matrices or blocks that is set aside (Barreda et al., section 5.1).
SHARE = 0.2

#: The arrays of a dataset whose values are measured or seen, in their order.
_ARRAYS = ("inputs", "features", "labels", "again")


@dataclass(frozen=True)
class BlockDataset:
    """Blocks of several matrices with a label each."""

    #: Shape (b, 2, INPUTS): ln(|difference of columns| + 1), and the number of rows that end between the two
    #: entries.
    inputs: NDArray[np.float32]
    features: (
        Floats  # shape (b, features): BLOCK_FEATURES, which trees see; none where ends of rows are unknown
    )
    #: labels, again: shape (b,): nanoseconds or nanojoules an entry, measured twice.
    labels: Floats
    again: Floats
    matrices: NDArray[np.int64]  # shape (b,): which of `names` a block is of
    #: names, groups: matrices, and the group of each.
    names: tuple[str, ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, chosen: NDArray[Any]) -> BlockDataset:
        return replace(self, **{name: getattr(self, name)[chosen] for name in (*_ARRAYS, "matrices")})

    def parts(self, split: str, seed: int = 0) -> tuple[BlockDataset, BlockDataset, BlockDataset]:
        """Return what is learned, what steers the training, and what tests it.

        With the split ``"groups"`` a fifth of the groups tests, a fifth of the others validates. With
        ``"paper"`` a fifth of the matrices tests, whatever their relatives, and a fifth of the blocks of the
        others validates, drawn at random (Barreda et al. take the first fifth of shuffled blocks).
        """
        generator = np.random.default_rng(seed)
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

    def folds(self, count: int, seed: int = 0) -> Iterator[tuple[BlockDataset, BlockDataset]]:
        """Give pairs of parts for a cross-validation: the second have a part of the groups, each once."""
        groups = np.random.default_rng(seed).permutation(sorted(set(self.groups)))
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

    ``block_mean``, ``block_median``, ``block_p90`` and ``block_worst`` are of equation 1, of each block:
    |estimated - measured| / measured. ``matrix_mean``, ``matrix_median`` and ``matrix_worst`` are of equation
    2, of the sums over the blocks of each matrix. ``explained`` is the share of the squared deviations from
    `mean`, that of the labels that were learned, which the estimates explain: less than 0 where they are
    worse.
    """
    unexplained = np.mean((estimated - blocks.labels) ** 2) / np.mean((mean - blocks.labels) ** 2)
    errors = np.abs(estimated / blocks.labels - 1)
    of_matrices = np.array(list(matrix_errors(estimated, blocks).values()))
    block_median, block_p90, block_worst = np.quantile(errors, (0.5, 0.9, 1.0)).tolist()
    return {
        "block_mean": float(errors.mean()),
        "block_median": block_median,
        "block_p90": block_p90,
        "block_worst": block_worst,
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
    return None if seen is None else _dataset(seen, labels.features[blocks], first[chosen], again[chosen])


class _Seen(NamedTuple):
    """What networks see of a matrix, whatever is measured of it."""

    name: str
    group: str
    inputs: Floats


def _seen(problem: Problem, blocks: NDArray[np.int64]) -> _Seen:
    inputs = block_inputs(problem.matrix.indptr, problem.matrix.indices, blocks)
    return _Seen(problem.name, problem.group, inputs)


@lru_cache(maxsize=512)
def _seen_again(matrix: str, blocks: bytes) -> _Seen | None:
    """Make a matrix again, once for the networks of all quantities and frequencies."""
    problem = Problem.rebuilt(matrix)
    return None if problem is None else _seen(problem, np.frombuffer(blocks, dtype=np.int64))


def asked_blocks(problem: Problem) -> BlockDataset:
    """Return all whole blocks of a matrix to ask a network about, without features: their labels are NaN."""
    blocks = np.arange(int(problem.matrix.nnz) // BLOCK_ENTRIES)
    unknown = np.full(len(blocks), np.nan, dtype=np.float32)
    return _dataset(_seen(problem, blocks), np.zeros((len(blocks), 0)), unknown, unknown)


def _dataset(seen: _Seen, features: NDArray[Any], labels: Floats, again: Floats) -> BlockDataset:
    numbers = np.zeros(len(labels), dtype=np.int64)
    arrays = seen.inputs, features.astype(np.float32), labels, again
    return BlockDataset(*arrays, numbers, (seen.name,), (seen.group,))


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
def _fill(indptr, indices, blocks, inputs):  # type: ignore[no-untyped-def]
    for place in range(len(blocks)):
        first = blocks[place] * BLOCK_ENTRIES
        row = np.searchsorted(indptr, first, side="right")
        for k in range(INPUTS):
            here, following = np.int64(indices[first + k]), np.int64(indices[first + k + 1])
            inputs[place, 0, k] = np.log(abs(following - here) + 1.0)
            while row < len(indptr) and indptr[row] <= first + k + 1:
                inputs[place, 1, k] += 1
                row += 1
