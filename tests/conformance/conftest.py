"""What every format is asked, whatever it is."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.errors import FormatError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system import memory


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

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], RowBlocks] = {}

    def _blocks(self, A: csr_array[Any]) -> RowBlocks:
        """Return a matrix as one row block: the same matrices, and parts of them, come for every format."""
        arrays = (A.indptr, A.indices, A.data)
        key = (A.shape, *(array.dtype for array in arrays), *(array.tobytes() for array in arrays))
        if key not in self._known:
            self._known[key] = RowBlocks.of(structure(A, threads=1))
        return self._known[key]

    def __call__(self, name: str, A: csr_array[Any]) -> StorageFormat | None:
        """Return `A` in the format, or None where it is rightly refused."""
        storage, blocks = FORMATS.get(name), self._blocks(A)
        stored, predicted = int(storage.stored_entries(blocks)[0]), not storage.can_hold(blocks)[0]
        try:
            built = storage.from_csr(A)
        except FormatError as error:
            assert predicted, f"{name} refuses {A!r} though it would store {stored} entries: {error}"
            return None
        assert not predicted, f"{name} takes {A!r} though it would store {stored} entries"
        return built


@pytest.fixture(scope="module", autouse=True)
def memory_of_groups_read_once() -> Iterator[None]:
    """Read once what the groups of this process leave of the memory, instead of for every conversion."""
    left_in_groups = memory._left_in_groups
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            memory, "_left_in_groups", functools.cache(lambda *groups: tuple(left_in_groups(*groups)))
        )
        yield


@pytest.fixture(scope="session")
def build() -> Builder:
    """Builder of formats."""
    return Builder()
