"""From the matrix of a rank to a product in the format that a Configuration names."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.operators.block_operator import Product
from sparsecast.records import Configuration


def bound(A: csr_array[Any], format_name: str, configuration: Configuration) -> Product:
    """Build a matrix of this rank in a format, with the kernel that its rule chooses for one thread.

    A matrix without entries is nothing to store: its product sets y to zero, whatever the format.
    """
    from sparsecast.devices.binding import bind, prepared
    from sparsecast.devices.target import Target
    from sparsecast.features.analysis import structure
    from sparsecast.features.row_blocks import RowBlocks
    from sparsecast.machines.machine import PROCESSOR, detect

    if A.nnz == 0:
        return lambda x, out: out.fill(0)
    ready = prepared(A, configuration.dtype, configuration.index_bits)
    target = Target(PROCESSOR, configuration.dtype, configuration.index_bits, threads=1)
    blocks = RowBlocks.of(structure(ready, threads=1, is_sampled=True))
    return bind(ready, target.candidate(format_name, blocks, detect())).product
