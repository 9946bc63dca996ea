"""PyTorch: the product of a CSR tensor, which shares the arrays of the matrix. It is MKL's, not optimised."""

from __future__ import annotations

import warnings
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
        cls.loaded().set_num_threads(threads)

    @classmethod
    def threads_now(cls) -> int | None:
        return int(cls.loaded().get_num_threads())

    def product(self) -> Product:
        torch = self.loaded()
        parts = map(_tensor, (self.indptr, self.indices, self.data))
        with warnings.catch_warnings():
            # torch says at the first CSR tensor of a process that they are in beta state.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
            matrix = torch.sparse_csr_tensor(*parts, size=self.shape, check_invariants=False)

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            torch.mv(matrix, _tensor(x), out=torch.from_numpy(out))

        return product


def _tensor(array: NDArray[Any]) -> Any:
    """Return a tensor with the memory of an array; torch warns of memory that may not be written."""
    return PyTorch.loaded().from_numpy(array if array.flags.writeable else array.copy())
