"""A library that multiplies by counting: NumPy's bincount sums the terms of each row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import Library
from sparsecast.operators.block_operator import Product


@LIBRARIES.register("counted")
class Counted(Library):
    name: ClassVar[str] = "counted"
    title: ClassVar[str] = "NumPy's bincount"
    kernel: ClassVar[str] = "bincount"
    distribution: ClassVar[str] = "counted"
    remedy: ClassVar[str] = "pip install ./tests/proof/toys/counted"
    dtypes: ClassVar[tuple[str, ...]] = ("float64",)

    def product(self) -> Product:
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            out[:] = np.bincount(rows, self.data * x[self.indices], self.shape[0])

        return product
