"""What the kernels of one format on one device offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.operators import Product


@dataclass(frozen=True)
class FormatKernels:
    """The kernel variants of a format on a device.

    Attributes
    ----------
    variants : tuple of str
        Names, for Candidates.
    choose : callable
        RowBlocks to an array of indices into `variants`: the variant for each block, by a stated rule.
    bind : callable
        (matrix in the format, variant, threads) to a Product that can be called any number of times. On a
        CUDA device, whose threads all take part whatever `threads` says, it is a DeviceProduct, for x and y
        that lie on the device.
    bind_multivector : callable, optional
        (matrix in the format, threads) to a Product with several vectors: X and out are C-contiguous, of
        shape (cols, vectors) and (rows, vectors), with at least one vector. None where the format has no
        kernel for that, and takes one vector after the other.
    version : int
        Raised whenever a kernel takes another time on the same matrix: Records of earlier ones count no
        longer.
    """

    variants: tuple[str, ...]
    choose: Callable[[RowBlocks], NDArray[np.int64]]
    bind: Callable[[Any, str, int], Product]
    bind_multivector: Callable[[Any, int], Product] | None = None
    version: int = 1


def only_variant(blocks: RowBlocks) -> NDArray[np.int64]:
    """Choose the first variant for every block: for formats that have one."""
    return np.zeros(len(blocks.rows), dtype=np.int64)
