"""Errors of networks a block and a matrix (Barreda et al., equations 1 and 2), and what they compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset


@dataclass(frozen=True, slots=True)
class BlockScore:
    """Relative errors of forecasts of labels.

    Attributes
    ----------
    block_mean, block_median : float
        Of equation 1: |estimated - measured| / measured of each block.
    matrix_mean, matrix_median, matrix_worst : float
        Of equation 2: of the sums over the blocks of each matrix.
    """

    block_mean: float
    block_median: float
    matrix_mean: float
    matrix_median: float
    matrix_worst: float


def score(estimated: NDArray[np.float32], blocks: BlockDataset) -> BlockScore:
    """Return the errors of estimates, shape (b,), of the labels of blocks."""
    errors = np.abs(estimated / blocks.labels - 1)
    count = len(blocks.names)
    sums = [
        np.bincount(blocks.matrices, weights=values, minlength=count) for values in (estimated, blocks.labels)
    ]
    present = np.bincount(blocks.matrices, minlength=count) > 0
    of_matrices = np.abs(sums[0][present] / sums[1][present] - 1)
    return BlockScore(
        float(errors.mean()),
        float(np.median(errors)),
        float(of_matrices.mean()),
        float(np.median(of_matrices)),
        float(of_matrices.max()),
    )


def always_the_mean(training: BlockDataset, blocks: BlockDataset) -> BlockScore:
    """Return the errors of forecasting the mean label of the training for every block."""
    return score(np.full(len(blocks), training.labels.mean(), dtype=np.float32), blocks)
