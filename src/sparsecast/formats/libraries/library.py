"""The interface of other libraries: a matrix in CSR, handed over, and the product that comes back."""

from __future__ import annotations

import weakref
import zlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import FormatError, MissingLibraryError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.operators.block_operator import Product

#: Products that libraries are asked to prepare for.
PRODUCTS = 1_000_000

#: Seconds that the threads of GNU's OpenMP look for the next work at most: 4 to 7 ms were seen.
GNU_LINGER_S = 0.01

#: Threads that each library was last set to use, in this process.
_threads: dict[str, int] = {}

#: What all products of a library hold: once it is gone, the library gets the threads from before them.
_held: weakref.WeakValueDictionary[str, set[str]] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Library(StorageFormat):
    """A matrix that another library multiplies: the arrays of CSR that it is given.

    What it makes of them takes memory that is not known: sizes and bytes are those of CSR. Whole matrices
    are taken, not row blocks, and one vector.

    Attributes
    ----------
    indptr, indices : integer arrays of shape (rows + 1,) and (nnz,)
    data : array of shape (nnz,)
    """

    is_library: ClassVar[bool] = True
    #: Its own name for itself.
    title: ClassVar[str]
    #: What is called of it, the kernel of its Candidates.
    kernel: ClassVar[str]
    #: The distribution whose version tells that it is installed.
    distribution: ClassVar[str]
    #: How to install it.
    remedy: ClassVar[str]
    dtypes: ClassVar[tuple[str, ...]] = ("float64", "float32")
    index_bits: ClassVar[tuple[int, ...]] = (32, 64)

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def version(cls) -> str | None:
        """Return the version that is installed, without loading it; None where it is missing."""
        try:
            return metadata.version(cls.distribution)
        except metadata.PackageNotFoundError:
            return None

    @classmethod
    def kernel_version(cls) -> int:
        """Return a number that differs between versions, for Records; 0 where it is missing."""
        return zlib.crc32((cls.version() or "").encode())

    @classmethod
    def refuse_missing(cls) -> None:
        """Raise a MissingLibraryError where the library is not installed."""
        if cls.version() is None:
            raise cls.missing("it is not installed")

    @classmethod
    def missing(cls, why: object) -> MissingLibraryError:
        """Return the error of a library that cannot be loaded."""
        reason = " ".join(str(why).split())
        return MissingLibraryError(
            f"library '{cls.name}': expected {cls.title}, but {reason}; {cls.remedy}, or leave it out"
        )

    @classmethod
    def refused(cls, why: object) -> FormatError:
        """Return the error of a matrix that the library does not take."""
        return FormatError(
            f"{cls.title} refused the matrix ({why}): expected that it takes it; use another format"
        )

    @abstractmethod
    def product(self) -> Product:
        """Hand the matrix over, and return the product: y is written into the array that is given.

        Raises
        ------
        MissingLibraryError
            If the library cannot be loaded.
        FormatError
            If it refuses the matrix.
        """

    @classmethod
    def use_threads(cls, threads: int) -> None:
        """Have the library compute with so many threads from now on, in this process."""

    @classmethod
    def threads_now(cls) -> int | None:
        """Return the threads that the process uses it with; None if nothing else here uses it."""
        return None

    def on_threads(self, threads: int) -> Product:
        """Return the product with so many threads, whatever another had; the process gets its own back."""
        last, held = _threads, _held.get(self.name)
        if held is None and (before := self.threads_now()) is not None:
            held = _held[self.name] = {self.name}
            weakref.finalize(held, self._use, before).atexit = False
        self._use(threads)
        product = self.product()

        def on_threads(x: NDArray[Any], out: NDArray[Any], held: Any = held) -> None:
            if last[self.name] != threads:
                self._use(threads)
            product(x, out)

        return on_threads

    @classmethod
    def _use(cls, threads: int) -> None:
        cls.use_threads(threads)
        _threads[cls.name] = threads

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        nnz = int(A.indptr[-1])
        arrays = A.indptr, A.indices[:nnz], A.data[:nnz]
        return cls(A.shape, nnz, *map(np.ascontiguousarray, arrays))

    @property
    def matrix(self) -> csr_array[Any]:
        """The matrix as SciPy has it; nothing is copied."""
        return csr_array((self.data, self.indices, self.indptr), shape=self.shape, copy=False)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        return np.asarray(blocks.nnz * (value_bytes + index_bytes) + (blocks.rows + 1) * index_bytes)

    @classmethod
    def can_hold(cls, blocks: RowBlocks) -> NDArray[np.bool_]:
        """Tell which blocks are whole matrices."""
        return np.asarray(blocks.rows == blocks.matrix.rows)

    @classmethod
    def refuse_types(cls, dtype: str, index_bits: int, vectors: int) -> None:
        widths = " or ".join(f"{bits}-bit" for bits in cls.index_bits)
        for what, is_taken, expected in (
            (f"{dtype} values", dtype in cls.dtypes, " or ".join(cls.dtypes)),
            (f"{index_bits}-bit indices", index_bits in cls.index_bits, widths),
            (f"{vectors} vectors", vectors == 1, "one"),
        ):
            if not is_taken:
                raise FormatError(
                    f"{cls.title} with {what}: expected {expected}, as it is called here; use another one"
                )


def release(destroy: Callable[[Any], Any], handle: Any, *held: Any) -> None:
    """Give a library's matrix back; the arrays that it reads are held until then."""
    destroy(handle)
