"""The kernels of one format on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Machine
from sparsecast.operators.block_operator import Product


@dataclass(frozen=True)
class FormatKernels:
    """The kernel variants of a format on a device.

    Attributes
    ----------
    variants : tuple of str
        Names, for Candidates.
    choose : callable
        (RowBlocks, Machine, dtype) to an array of indices into `variants`: the variant for each block, by a
        stated rule. The Machine is that asked about, which need not be the one at hand.
    bind : callable
        (matrix in the format, variant, threads) to a Product that can be called any number of times. On a
        GPU, whose threads all take part whatever `threads` says, it is a DeviceProduct, for x and y
        that lie on the device.
    bind_multivector : callable, optional
        (matrix in the format, threads) to a Product with several vectors: X and out are C-contiguous, of
        shape (cols, vectors) and (rows, vectors), with at least one vector. None where the format has no
        kernel for that, and takes one vector after the other.
    real_only : tuple of str
        Variants that take no complex values: `choose` never chooses them for those, `bind` refuses them.
    layout : mapping of str to int
        How the format is laid out for this device, where it can be laid out in several ways: the parameters
        of its Candidates, which `predicted_parameters` of the format names.
    sizes : tuple of mappings
        Parameters of Candidates whose code is compiled apart, which a calibration has compiled beforehand.
    version : int
        Raise it with every change of a kernel, its rule or its layout; older Records then no longer count.
    """

    variants: tuple[str, ...]
    choose: Callable[[RowBlocks, Machine, str], NDArray[np.int64]]
    bind: Callable[[Any, str, int], Product]
    bind_multivector: Callable[[Any, int], Product] | None = None
    real_only: tuple[str, ...] = ()
    layout: Mapping[str, int] = field(default_factory=dict)
    sizes: tuple[Mapping[str, Any], ...] = ({},)
    version: int = 1

    def variants_of(self, dtype: str) -> tuple[str, ...]:
        is_complex = np.dtype(dtype).kind == "c"
        return tuple(each for each in self.variants if not (is_complex and each in self.real_only))


def only_variant(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    """Choose the first variant for every block: for formats that have one."""
    return np.zeros(len(blocks.rows), dtype=np.int64)


def refuse_complex(dtype: np.dtype[Any], variant: str, instead: str) -> None:
    """Raise an InputError if values are complex, which a variant does not take; name one that does."""
    if dtype.kind == "c":
        raise InputError(f"kernel '{variant}' with {dtype} values: expected real ones; name '{instead}'")
