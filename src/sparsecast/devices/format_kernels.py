"""The kernels of one format on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Machine
from sparsecast.operators.block_operator import Product
from sparsecast.records import PANEL_VECTORS


@dataclass(frozen=True)
class FormatKernels:
    """The kernel variants of a format on a device."""

    variants: tuple[str, ...]  # names, for Candidates
    #: (RowBlocks, Machine, dtype) to an array of indices into `variants`: the variant for each block. The
    #: Machine is that of the question, which may be another one than the host.
    choose: Callable[[RowBlocks, Machine, str], NDArray[np.int64]]
    #: (matrix in the format, variant, threads) to a Product that can be called any number of times; on a
    #: processor the matrix has an entry. On a GPU, `threads` is ignored and the result is a DeviceProduct,
    #: for x and y on the device.
    bind: Callable[[Any, str, int], Product]
    #: (matrix in the format, threads) to a Product with several vectors: X and out are C-contiguous, of shape
    #: (cols, vectors) and (rows, vectors), with at least one vector. None: one vector at a time.
    bind_multivector: Callable[[Any, int], Product] | None = None
    #: Variants without complex values: `choose` never chooses them for complex types.
    real_only: tuple[str, ...] = ()
    #: Parameters of Candidates that give the layout of the format on this device, of those that
    #: `predicted_parameters` of the format names.
    layout: Mapping[str, int] = field(default_factory=dict)
    #: Parameters of Candidates with code of their own, which a calibration compiles beforehand.
    sizes: tuple[Mapping[str, Any], ...] = ({},)
    reads_narrow: bool = False  # whether the kernels read the narrow storage that the format takes
    #: Whether the order of sums follows from how many threads share the rows. Products with as many threads
    #: have the same bits each time in every kernel: no sum waits for whichever thread is first.
    sums_by_threads: bool = False
    #: Raise it with every change of a kernel, its rule or its layout; older Records then no longer count. On
    #: a GPU, whose Records are of every kernel, a rule alone needs no raise.
    version: int = 1

    def passes(self, vectors: int) -> int:
        """Return how often a product with so many vectors reads the matrix."""
        return vectors if self.bind_multivector is None else -(-vectors // PANEL_VECTORS)

    def variants_of(self, dtype: str) -> tuple[str, ...]:
        is_complex = np.dtype(dtype).kind == "c"
        return tuple(variant for variant in self.variants if not (is_complex and variant in self.real_only))


def only_variant(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    """Choose the first variant for every block: for formats with a single variant."""
    return np.zeros(len(blocks.rows), dtype=np.int64)
