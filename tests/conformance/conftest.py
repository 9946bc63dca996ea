"""What every format is asked, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import FormatError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.records import DTYPES


def wide_type(name: str) -> str:
    """Return the type of values that a format and its kernels are tried with in 64-bit indices, too.

    All types are tried in 32 bits. Indices and values meet in no arithmetic: so every kernel meets every type
    and both widths, and every type both widths, but no kernel all eight, each of which takes a second to
    compile.
    """
    kernels = DEVICES.get("cpu").kernels.get(name)
    taken = [dtype for dtype in DTYPES if kernels.variants_of(dtype) == kernels.variants]
    return taken[FORMATS.names().index(name) % len(taken)]


class Builder:
    """Builds matrices in formats; a refusal counts only where the format predicted it."""

    def __call__(self, name: str, A: csr_array[Any]) -> StorageFormat | None:
        """Return `A` in the format, or None where it is rightly refused."""
        storage = FORMATS.get(name)
        blocks = RowBlocks.of(structure(A, threads=1))
        stored, predicted = int(storage.stored_entries(blocks)[0]), not storage.can_hold(blocks)[0]
        try:
            built = storage.from_csr(A)
        except FormatError as error:
            assert predicted, f"{name} refuses {A!r} though it would store {stored} entries: {error}"
            return None
        assert not predicted, f"{name} takes {A!r} though it would store {stored} entries"
        return built


@pytest.fixture(scope="session")
def build() -> Builder:
    """Builder of formats."""
    return Builder()


@pytest.fixture(scope="session")
def in_pairs(
    matrices: dict[str, csr_array[Any]], in_type: Callable[..., csr_array[Any]]
) -> Callable[[str, str], Iterator[tuple[str, csr_array[Any], int]]]:
    """All matrices for a format in a type of values, each with its name and the threads it is tried with.

    Every matrix meets both widths of indices, and both numbers of threads: with one type one, with the next
    type the other.
    """

    def cases(name: str, dtype: str) -> Iterator[tuple[str, csr_array[Any], int]]:
        for number, (what, A) in enumerate(matrices.items()):
            for bits in (32, 64) if dtype == wide_type(name) else (32,):
                threads = 1 + (number + DTYPES.index(dtype) + bits // 64) % 2
                yield what, in_type(A, dtype, bits), min(threads, int(numba.config.NUMBA_NUM_THREADS))

    return cases
