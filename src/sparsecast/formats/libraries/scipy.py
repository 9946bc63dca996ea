"""SciPy: what ``A @ x`` calls, on one thread."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray
from scipy.sparse import _sparsetools

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import Library
from sparsecast.operators.block_operator import Product
from sparsecast.records import DTYPES


@LIBRARIES.register("scipy")
class SciPy(Library):
    """SciPy's compiled loop, which adds to zeros; ``A @ x`` takes new memory for y in addition."""

    name: ClassVar[str] = "scipy"
    title: ClassVar[str] = "SciPy"
    kernel: ClassVar[str] = "csr_matvec"
    distribution: ClassVar[str] = "scipy"
    remedy: ClassVar[str] = "pip install scipy"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    is_converted: ClassVar[bool] = False
    is_serial: ClassVar[bool] = True

    def product(self) -> Product:
        (rows, cols), arrays = self.shape, (self.indptr, self.indices, self.data)

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            out.fill(0)
            _sparsetools.csr_matvec(rows, cols, *arrays, x, out)

        return product
