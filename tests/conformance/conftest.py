"""What every format is asked, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import pytest
from scipy.sparse import csr_array

from sparsecast.errors import FormatError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat

#: For each type of values, two choices of index bits and threads: every type meets both widths and both
#: numbers of threads, in half of the product. A matrix takes one choice of each type and the next matrix the
#: other one, so that it, too, meets every type, both widths, both numbers and all four pairs of the last two.
PAIRED = {
    "float64": ((32, 2), (64, 1)),
    "float32": ((64, 2), (32, 1)),
    "complex128": ((32, 1), (64, 2)),
    "complex64": ((64, 1), (32, 2)),
}


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
) -> Callable[[str], Iterator[tuple[str, csr_array[Any], int]]]:
    """All matrices in a type of values, each with its name and the threads that it is tried with."""

    def cases(dtype: str) -> Iterator[tuple[str, csr_array[Any], int]]:
        for number, (what, A) in enumerate(matrices.items()):
            bits, threads = PAIRED[dtype][number % 2]
            yield what, in_type(A, dtype, bits), min(threads, int(numba.config.NUMBA_NUM_THREADS))

    return cases
