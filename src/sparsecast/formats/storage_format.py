"""The interface of storage formats."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import MatrixSizeError, PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats.narrowing import LOSSY
from sparsecast.system.memory import aligned_empty, free_bytes

Integers = NDArray[np.int64]

#: A format that stores more than this many times the non-zeros is refused: its padding alone takes longer
#: than the whole product in another format.
MAX_PADDING_FACTOR = 10.0


@dataclass(frozen=True)
class StorageFormat(ABC):
    """A matrix in one storage format: its arrays and nothing else."""

    name: ClassVar[str]
    #: Whether another library does the product; only who asks for libraries gets it as a candidate.
    is_library: ClassVar[bool] = False
    #: Whether one thread does the product, however many are asked for: so many its Candidates have.
    is_serial: ClassVar[bool] = False
    #: Seconds that the threads of a product stay awake after it, on the cores of what is measured next.
    linger_s: ClassVar[float] = 0.0
    #: Kinds of special benchmark matrices on which a calibration measures this format: names of families with
    #: `for_some_formats`, or "mirrored" twins. Every format is measured on all others.
    benchmark_kinds: ClassVar[tuple[str, ...]] = ()
    #: Whether `from_csr` converts: not for CSR itself.
    is_converted: ClassVar[bool] = True
    #: Greatest relative error of `stored_entries` and `predicted_bytes`: above 0 if the size depends on the
    #: order of the rows, which RowBlocks do not have. The bytes may then miss by one index per row in
    #: addition, for a permutation.
    predicted_within: ClassVar[float] = 0.0
    #: Whether sizes follow from the lengths of the rows. If not, they are predicted for whole matrices with
    #: ascending columns in each row, and a row block counts as a small copy of the matrix.
    predicted_from_rows: ClassVar[bool] = True
    #: Whether padding reads x in a column of its own row, or in column 0, so that an x that is not finite
    #: affects no other rows.
    pads_with_own_columns: ClassVar[bool] = True

    #: Whether threads share the entries of one row. If not, all wait for the thread with the longest row.
    divides_rows: ClassVar[bool] = False
    #: Whether a thread computes rows in slices, each as long as its longest row.
    has_slices: ClassVar[bool] = False
    #: Whether a product reads x and adds to y at the columns of the entries, too.
    adds_at_columns: ClassVar[bool] = False
    #: Whether the ends of rows cost time on a processor. Without this cost, forecasts rank padded formats
    #: better.
    counts_row_ends: ClassVar[bool] = True

    #: Feature groups that tell whether the format takes a matrix, where the lengths of rows do not.
    relies_on: ClassVar[tuple[str, ...]] = ()

    #: Parameters of `from_csr` that `stored_entries` and `predicted_bytes` take too. The sizes of a matrix
    #: built with other parameters cannot be predicted.
    predicted_parameters: ClassVar[tuple[str, ...]] = ()

    #: Parameters of `from_csr` that store less, each with what it may be, as in Narrow: `values`, `columns`.
    #: The sizes with them are predicted too.
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    shape: tuple[int, int]
    nnz: int  # entries of the matrix, without padding
    #: As in Narrow; None where they are stored in full.
    values: str | None = dataclasses.field(default=None, kw_only=True)

    @classmethod
    def predicts(cls, parameters: Iterable[str]) -> bool:
        """Tell whether sizes with these parameters are known without building the matrix."""
        return set(parameters) <= {*cls.predicted_parameters, *cls.narrow_parameters}

    @classmethod
    def takes(cls, name: str, value: Any) -> bool:
        """Tell whether the format has one of the `narrow_parameters` with this value."""
        return value in cls.narrow_parameters.get(name, ())

    @classmethod
    def narrowed(cls, holds: Mapping[str, Any], whole: RowBlocks) -> dict[str, Any]:
        """Return those of the `narrow_parameters` that hold for a whole matrix which this format takes."""
        return {name: value for name, value in holds.items() if cls.takes(name, value)}

    @classmethod
    def narrow_kinds(cls, parameters: Mapping[str, Any]) -> list[str]:
        """Return what is narrow with these parameters, for models: rounded values are read as exact ones."""
        narrow = (f"{name}={parameters[name]}" for name in cls.narrow_parameters if name in parameters)
        return [kind.replace(LOSSY, "float32") for kind in narrow]

    @classmethod
    def compiled_for(cls, matrix: Structure) -> dict[str, Any]:
        """Return the parameters that `from_csr` finds for a matrix and code is compiled for: usually none."""
        return {}

    @classmethod
    @abstractmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` in this format.

        Raises
        ------
        FormatError, MatrixSizeError
            If the format does not suit the matrix. Until then, nothing larger than some vectors of its rows
            is allocated.
        """

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        """Return the entries stored for each block, without building it: by default nothing is padded.

        `how` are the parameters of the format, here and below.
        """
        return blocks.nnz

    @classmethod
    @abstractmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the size in bytes of each block, without building it."""

    @classmethod
    def shared_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return those of the `predicted_bytes` that are arrays of the matrix itself: none by default."""
        return np.zeros_like(blocks.rows)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the memory that `from_csr` has beside the matrix and what it returns, when it has most.

        By default nothing that grows with the matrix. Where columns do not ascend, BCSR sorts a copy of it.
        """
        return np.zeros_like(blocks.rows)

    @classmethod
    def memory_bytes(
        cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **parameters: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the memory of each block beside the matrix: once it is built, and at most until then."""
        sizes: Any = blocks, value_bytes, index_bytes
        built = cls.predicted_bytes(*sizes, **parameters) - cls.shared_bytes(*sizes, **parameters)
        return built, built + cls.working_bytes(*sizes, **parameters)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the kinds of work at the ends of rows on a processor.

        By default the mispredicted branches: rows with an unexpected length. Those that are "forgotten" count
        only as far as a processor has not learned them from the product before.
        """
        rows = blocks.mispredicted_rows
        return {"mispredicted": rows, "forgotten": rows} if cls.counts_row_ends else {}

    @classmethod
    def threads_used(cls, matrix: Structure, threads: int) -> int:
        """Return how many of a Candidate's threads do the product of a whole matrix: by default all."""
        return threads

    @classmethod
    def longest_row_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the entries of each block that one warp or thread of a GPU computes alone."""
        return {} if cls.divides_rows else {"longest row": blocks.row_length_max}

    @classmethod
    def can_hold(cls, blocks: RowBlocks) -> NDArray[np.bool_]:
        """Tell which blocks this format takes: by default those padded at most MAX_PADDING_FACTOR times."""
        return np.asarray(cls.stored_entries(blocks) <= MAX_PADDING_FACTOR * blocks.nnz)

    @classmethod  # noqa: B027 - most formats refuse nothing
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        """Raise a FormatError if this format does not suit the matrix, or is known to be slower than CSR."""

    @classmethod  # noqa: B027 - ours take all
    def refuse_types(cls, dtype: str, index_bits: int, vectors: int) -> None:
        """Raise a FormatError if products of these values, indices and vectors are not taken."""

    @classmethod
    def refuse_unless_below(
        cls, plain: type[StorageFormat], blocks: RowBlocks, value_bytes: int, index_bytes: int, how: str
    ) -> None:
        """Raise a PaddingError if a product would read at least the bytes of another format, without padding.

        `plain` is that format, and `how` describes the matrix in this format, for the message.
        """
        nnz = int(blocks.nnz.sum())
        formats: tuple[type[StorageFormat], ...] = cls, plain
        total, limit = (int(each.predicted_bytes(blocks, value_bytes, index_bytes).sum()) for each in formats)
        if nnz and total >= limit:
            raise PaddingError(
                f"{cls.name.upper()} would stream {total / nnz:.1f} bytes a non-zero {how}, padded "
                f"{cls.stored_entries(blocks).sum() / nnz:.2f} times: expected less than the "
                f"{limit / nnz:.1f} of {plain.name.upper()}; use another format"
            )

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the matrix: that of the stored values, unless these are narrower."""
        stored = self.arrays["data"].dtype
        return np.result_type(stored, np.float64) if self.values in ("float32", LOSSY) else stored

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def traffic(self) -> int:
        """Return the bytes streamed by one product: the arrays, x once, y once."""
        return self.nbytes + (self.shape[0] + self.shape[1]) * self.dtype.itemsize

    @staticmethod
    def empty(shape: int | tuple[int, ...], like: csr_array[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return new arrays for columns and values, with the types of a matrix."""
        return aligned_empty(shape, like.indices.dtype), aligned_empty(shape, like.data.dtype)

    @classmethod
    def refuse_padding(cls, nnz: int, stored: int, size_bytes: int) -> None:
        """Raise a PaddingError if the stored entries exceed MAX_PADDING_FACTOR times the non-zeros.

        `size_bytes` are those of the format's arrays, for the message.
        """
        if stored > MAX_PADDING_FACTOR * nnz:
            raise PaddingError(
                f"{cls.name.upper()} would store {stored:,} entries ({size_bytes / 1e6:,.1f} MB) for {nnz:,} "
                f"non-zeros: expected at most {MAX_PADDING_FACTOR:g} times the non-zeros; "
                f"use another format"
            )

    @classmethod
    def refuse_excess(cls, nnz: int, stored: int, size_bytes: int) -> None:
        """As `refuse_padding`, and raise a MatrixSizeError if the arrays exceed the free memory.

        For `from_csr`, before it allocates.
        """
        cls.refuse_padding(nnz, stored, size_bytes)
        available = free_bytes()
        if size_bytes > available:
            raise MatrixSizeError(
                f"{cls.name.upper()} would take {size_bytes / 1e9:,.1f} GB: expected at most the "
                f"{available / 1e9:,.1f} GB of free memory; use another format or a larger machine"
            )
