"""Errors of networks a block and a matrix (Barreda et al., equations 1 and 2), and what they compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset


def score(estimated: NDArray[np.float32], blocks: BlockDataset) -> dict[str, float]:
    """Return the relative errors of estimates, shape (b,), of the labels of blocks.

    ``block_mean``, ``block_median``, ``block_p90`` and ``block_worst`` are of equation 1, of each block:
    |estimated - measured| / measured. ``matrix_mean``, ``matrix_median`` and ``matrix_worst`` are of equation
    2, of the sums over the blocks of each matrix.
    """
    errors = np.abs(estimated / blocks.labels - 1)
    of_matrices = np.array(list(matrix_errors(estimated, blocks).values()))
    found = {
        "block_mean": errors.mean(),
        "block_median": np.quantile(errors, 0.5),
        "block_p90": np.quantile(errors, 0.9),
        "block_worst": errors.max(),
        "matrix_mean": of_matrices.mean(),
        "matrix_median": np.median(of_matrices),
        "matrix_worst": of_matrices.max(),
    }
    return {name: float(error) for name, error in found.items()}


def matrix_errors(estimated: NDArray[np.float32], blocks: BlockDataset) -> dict[str, float]:
    """Return the error of the sum over the blocks of each matrix (equation 2), by its name."""
    numbers = np.unique(blocks.matrices).tolist()
    sums = [np.bincount(blocks.matrices, weights=values) for values in (estimated, blocks.labels)]
    return {blocks.names[k]: float(abs(sums[0][k] / sums[1][k] - 1)) for k in numbers}


def always_the_mean(training: BlockDataset, blocks: BlockDataset) -> dict[str, float]:
    """Return the errors of forecasting the mean label of the training for every block."""
    return score(np.full(len(blocks), training.labels.mean(), dtype=np.float32), blocks)
