"""What every format is asked, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import FormatError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat


def types_of(name: str) -> list[tuple[str, int]]:
    """Return the types of values and index bits that a format and its kernels are tried in.

    Indices and values meet in no arithmetic, and each combination takes a second or more to compile. So
    every kernel meets double precision, complex values, and 64-bit indices with one type of single precision.
    """
    kernels = DEVICES.get("cpu").kernels.get(name)
    single = [dtype for dtype in ("float32", "complex64") if kernels.variants_of(dtype) == kernels.variants]
    return [
        ("float64", 32),
        ("complex128", 32),
        (single[FORMATS.names().index(name) % len(single)], 64),
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with the arguments `typed_kernel` or `typed_format` each of them in its types."""
    cpu = DEVICES.get("cpu").kernels
    if "typed_kernel" in metafunc.fixturenames:
        typed = [
            (name, variant, dtype, bits)
            for name in cpu.names()
            for variant in cpu.get(name).variants
            for dtype, bits in types_of(name)
            if variant in cpu.get(name).variants_of(dtype)
        ]
        metafunc.parametrize("typed_kernel", typed, ids=lambda case: "-".join(map(str, case)))
    if "typed_format" in metafunc.fixturenames:
        typed_formats = [(name, dtype, bits) for name in FORMATS.names() for dtype, bits in types_of(name)]
        metafunc.parametrize("typed_format", typed_formats, ids=lambda case: "-".join(map(str, case)))


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
