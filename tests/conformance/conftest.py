"""What every format is asked, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.sparse import csr_array

from sparsecast.errors import FormatError
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks


class Builder:
    """Builds matrices in formats; a refusal counts only where the format foretold it."""

    def __call__(self, name: str, A: csr_array[Any]) -> StorageFormat | None:
        """Return `A` in the format, or None where it is rightly refused."""
        storage = FORMATS.get(name)
        blocks = RowBlocks.of(structure(A, threads=1))
        stored, foretold = int(storage.stored_entries(blocks)[0]), not storage.can_hold(blocks)[0]
        try:
            built = storage.from_csr(A)
        except FormatError as error:
            assert foretold, f"{name} refuses {A!r} though it would store {stored} entries: {error}"
            return None
        assert not foretold, f"{name} takes {A!r} though it would store {stored} entries"
        return built


@pytest.fixture(scope="session")
def build() -> Builder:
    """Builder of formats."""
    return Builder()
