"""What every format is asked, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.sparse import csr_array

from sparsecast.errors import PaddingError
from sparsecast.formats import FORMATS
from sparsecast.formats.base import MAX_PADDING_FACTOR, StorageFormat
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.matrices.structure import structure


class Builder:
    """Builds matrices in formats; a refusal counts only where the format foretold its padding."""

    def __call__(self, name: str, A: csr_array[Any]) -> StorageFormat | None:
        """Return `A` in the format, or None where it is rightly refused."""
        storage = FORMATS.get(name)
        stored = int(storage.stored_entries(RowBlocks.of(structure(A, threads=1)))[0])
        foretold = stored > MAX_PADDING_FACTOR * A.nnz
        try:
            built = storage.from_csr(A)
        except PaddingError as error:
            assert foretold, f"{name} refuses {A!r} though it would store {stored} entries: {error}"
            return None
        assert not foretold, f"{name} takes {A!r} though it would store {stored} entries"
        return built


@pytest.fixture(scope="session")
def build() -> Builder:
    """Builder of formats."""
    return Builder()
