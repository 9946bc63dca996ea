"""The interface of other libraries: a matrix in CSR, handed over, and the product that comes back."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import weakref
import zlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import FormatError, MissingLibraryError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.formats.narrowing import Narrow
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.operators.block_operator import Product

#: Products that libraries are asked to prepare for.
PRODUCTS = 1_000_000

#: Seconds that the threads of GNU's OpenMP look for the next work at most: 4 to 7 ms were seen.
GNU_LINGER_S = 0.01

#: Libraries that are loaded.
_loaded: dict[str, Any] = {}

#: The library whose threads were set last in this process, and their number: libraries share OpenMP and MKL.
_last: list[tuple[str, int]] = [("", 0)]

#: What all products of a library hold: once it is gone, the library gets the threads from before them.
_held: weakref.WeakValueDictionary[str, set[str]] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Library(StorageFormat):
    """A matrix that another library multiplies: the arrays of CSR that it is given.

    What it makes of them takes memory that is not known: sizes and bytes are those of CSR. Whole matrices
    are taken, not row blocks, and one vector.
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
    #: Raise it whenever the library is called in another way; older Records then no longer count.
    call_version: ClassVar[int] = 0
    dtypes: ClassVar[tuple[str, ...]] = ("float64", "float32")
    index_bits: ClassVar[tuple[int, ...]] = (32, 64)

    indptr: NDArray[Any]  # shape (rows + 1,)
    indices: NDArray[Any]  # shape (nnz,)
    data: NDArray[Any]  # shape (nnz,), or (1,) where all values are alike

    @classmethod
    def version(cls) -> str | None:
        """Return the version that is installed, without loading it; None where it is missing."""
        try:
            return metadata.version(cls.distribution)
        except metadata.PackageNotFoundError:
            return None

    @classmethod
    def kernel_version(cls) -> int:
        """Return a number that differs between versions, for Records."""
        return zlib.crc32((cls.version() or "").encode(), cls.call_version)

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

    @classmethod
    def load(cls) -> Any:
        """Load the library and return what `product` calls: by default the module of its distribution."""
        return importlib.import_module(cls.distribution)

    @classmethod
    def loaded(cls) -> Any:
        """Return the library, loaded once in a process; a MissingLibraryError says that it cannot be."""
        if cls.name not in _loaded:
            try:
                _loaded[cls.name] = cls.load()
            except (ImportError, OSError, ValueError) as error:
                raise cls.missing(f"it cannot be loaded ({error})") from error
        return _loaded[cls.name]

    @abstractmethod
    def product(self) -> Product:
        """Hand the matrix over, and return the product: y is written into the array that is given.

        A MissingLibraryError is raised where the library cannot be loaded, a FormatError where it refuses.
        """

    @classmethod
    def use_threads(cls, threads: int) -> None:
        """Have the library compute with `threads` threads from now on, in this process."""

    @classmethod
    def threads_now(cls) -> int | None:
        """Return the threads that the process uses it with; None if nothing else here uses it."""
        return None

    def on_threads(self, threads: int) -> Product:
        """Return the product with `threads` threads, whatever another had; the process gets its own back."""
        if self.is_serial:
            return self.product()
        held, own = _held.get(self.name), [(self.name, threads)]
        if held is None and (before := self.threads_now()) is not None:
            held = _held[self.name] = {self.name}
            weakref.finalize(held, self._use, before).atexit = False
        self._use(threads)
        product = self.product()

        def on_threads(x: NDArray[Any], out: NDArray[Any], held: Any = held) -> None:
            if _last != own:
                self._use(threads)
            product(x, out)

        return on_threads

    @classmethod
    def _use(cls, threads: int) -> None:
        cls.use_threads(threads)
        _last[:] = [(cls.name, threads)]

    @classmethod
    def from_csr(cls, A: csr_array[Any], values: str | None = None) -> Self:
        nnz = int(A.indptr[-1])
        indptr, indices, data = map(np.ascontiguousarray, (A.indptr, A.indices[:nnz], A.data[:nnz]))
        return cls(A.shape, nnz, indptr, indices, Narrow(values).stored_values(data), values=values)

    @property
    def matrix(self) -> csr_array[Any]:
        """The matrix as SciPy has it; nothing is copied."""
        return csr_array((self.data, self.indices, self.indptr), shape=self.shape, copy=False)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        return CSR.predicted_bytes(blocks, value_bytes, index_bytes, **how)

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


class CLibrary(Library):
    """A library of C functions, from its distribution or the system, called by ctypes.

    `kinds` are the letter of a type in names of functions, and the C type of a value, for each of `dtypes`.
    """

    #: Of the file: ``"mkl_rt"`` for ``libmkl_rt.so``.
    file: ClassVar[str]
    index_bits: ClassVar[tuple[int, ...]] = (32,)
    kinds: ClassVar[dict[str, tuple[str, Any]]] = {
        "float64": ("d", ctypes.c_double),
        "float32": ("s", ctypes.c_float),
    }

    @classmethod
    def version(cls) -> str | None:
        return super().version() or _of_system(cls.file)

    @classmethod
    def load(cls) -> Any:
        parts = metadata.files(cls.distribution) or [] if super().version() else []
        own = (str(part.locate()) for part in parts if part.name.startswith(f"lib{cls.file}.so"))
        return ctypes.CDLL(next(own, None) or _of_system(cls.file) or f"lib{cls.file}.so")

    def product_of(
        self, multiply: Callable[[Any, Any], int], destroy: Callable[[Any], Any], handle: Any
    ) -> Product:
        """Return the product of a C function of pointers to x and y that returns a status.

        The library's matrix, `handle`, is given back with the product; it may read the arrays of this one.
        """

        def product(x: NDArray[Any], out: NDArray[Any], pointer: Any = ctypes.c_void_p) -> None:
            if status := multiply(pointer(x.ctypes.data), pointer(out.ctypes.data)):
                raise self.refused(f"status {status}")

        weakref.finalize(product, lambda matrix: destroy(handle), self)
        return product


_of_system = cache(ctypes.util.find_library)
