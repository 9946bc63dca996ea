"""PyTorch: the product of a CSR tensor, which shares the arrays of the matrix."""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import Any, ClassVar

from numpy.typing import NDArray

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, Library
from sparsecast.operators.block_operator import Product
from sparsecast.records import DTYPES


@LIBRARIES.register("pytorch")
class PyTorch(Library):
    name: ClassVar[str] = "pytorch"
    title: ClassVar[str] = "PyTorch"
    kernel: ClassVar[str] = "mv"
    distribution: ClassVar[str] = "torch"
    remedy: ClassVar[str] = "pip install torch"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    linger_s: ClassVar[float] = GNU_LINGER_S

    @classmethod
    def use_threads(cls, threads: int) -> None:
        _torch().set_num_threads(threads)

    @classmethod
    def threads_now(cls) -> int | None:
        return int(_torch().get_num_threads())

    def product(self) -> Product:
        torch = _torch()
        parts = map(_tensor, (self.indptr, self.indices, self.data))
        with warnings.catch_warnings():
            # torch says at the first CSR tensor of a process that they are in beta state.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
            matrix = torch.sparse_csr_tensor(*parts, size=self.shape, check_invariants=False)

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            torch.mv(matrix, _tensor(x), out=torch.from_numpy(out))

        return product


@cache
def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise PyTorch.missing(error) from error


def _tensor(array: NDArray[Any]) -> Any:
    """Return a tensor with the memory of an array; torch warns of memory that may not be written."""
    return _torch().from_numpy(array if array.flags.writeable else array.copy())
