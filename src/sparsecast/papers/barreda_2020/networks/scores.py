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
    block_mean, block_median, block_p90, block_worst : float
        Of equation 1: |estimated - measured| / measured of each block; nine in ten are below `block_p90`.
    matrix_mean, matrix_median, matrix_worst : float
        Of equation 2: of the sums over the blocks of each matrix.
    """

    block_mean: float
    block_median: float
    block_p90: float
    block_worst: float
    matrix_mean: float
    matrix_median: float
    matrix_worst: float


def score(estimated: NDArray[np.float32], blocks: BlockDataset) -> BlockScore:
    """Return the errors of estimates, shape (b,), of the labels of blocks."""
    errors = np.abs(estimated / blocks.labels - 1)
    of_matrices = np.array(list(matrix_errors(estimated, blocks).values()))
    block_median, block_p90, block_worst = np.quantile(errors, (0.5, 0.9, 1.0)).tolist()
    return BlockScore(
        float(errors.mean()),
        block_median,
        block_p90,
        block_worst,
        float(of_matrices.mean()),
        float(np.median(of_matrices)),
        float(of_matrices.max()),
    )


def matrix_errors(estimated: NDArray[np.float32], blocks: BlockDataset) -> dict[str, float]:
    """Return the error of the sum over the blocks of each matrix (equation 2), by its name."""
    numbers = np.unique(blocks.matrices).tolist()
    sums = [np.bincount(blocks.matrices, weights=values) for values in (estimated, blocks.labels)]
    return {blocks.names[k]: float(abs(sums[0][k] / sums[1][k] - 1)) for k in numbers}


def always_the_mean(training: BlockDataset, blocks: BlockDataset) -> BlockScore:
    """Return the errors of forecasting the mean label of the training for every block."""
    return score(np.full(len(blocks), training.labels.mean(), dtype=np.float32), blocks)
