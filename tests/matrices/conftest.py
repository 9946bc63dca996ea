"""What the tests of matrices share: their form, files, and refusals of these."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.matrices.reading import load


def check_canonical(A: csr_array, dtype: DTypeLike = np.float64) -> None:
    """Check that rows are sorted and free of duplicates, indices sound and narrow, and values of a type."""
    assert isinstance(A, csr_array)
    assert (A.dtype, A.indices.dtype, A.indptr.dtype) == (dtype, np.int32, np.int32)
    A.check_format(full_check=True)
    assert A.has_canonical_format
    assert csr_array((A.data, A.indices, A.indptr), shape=A.shape).has_canonical_format  # as SciPy finds it


def check_made(A: csr_array) -> None:
    """Check the form of a synthetic matrix: canonical, with values in (-1, 1) without zeros."""
    check_canonical(A)
    assert (A.data != 0).all() and (np.abs(A.data) < 1).all()


def same(one: csr_array, other: csr_array) -> bool:
    """Tell whether all arrays of two matrices are equal."""
    arrays = ((getattr(one, name), getattr(other, name)) for name in ("indptr", "indices", "data"))
    return one.shape == other.shape and all(np.array_equal(*pair) for pair in arrays)


def rows_of(A: csr_array) -> np.ndarray:
    """Return the row of each entry."""
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def write(folder: Path, content: str | bytes, name: str) -> Path:
    """Write a file, compressed if its name ends in .gz."""
    path = folder / name
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 100 free bytes."""
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=100))


@pytest.fixture(scope="session")
def refusal():
    """Return the message with which a file is refused: of exactly that class, one line, naming the file."""

    def message(path: Path, kind: type[InputError] = MatrixFileError) -> str:
        with pytest.raises(InputError) as caught:
            load(path)
        assert caught.type is kind
        text = str(caught.value)
        assert "\n" not in text and path.name in text
        return text

    return message
