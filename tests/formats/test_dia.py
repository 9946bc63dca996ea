"""What DIA stores, how it counts diagonals, and what it refuses."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array

from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import InputError, MatrixSizeError, PaddingError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import StripStatistics
from sparsecast.formats.dia import CHUNKS, DIA
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery

from ..conftest import traced_bytes


def dense(values):
    return csr_array(np.array(values, dtype=float))


def mixed_up(A):
    """The same matrix with the entries of each row in some other order."""
    mixed = A.copy()
    generator = np.random.default_rng(0)
    for start, end in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        order = start + generator.permutation(end - start)
        mixed.indices[start:end], mixed.data[start:end] = A.indices[order], A.data[order]
    mixed.has_sorted_indices = False
    return mixed


def test_a_small_matrix_by_hand():
    D = DIA.from_csr(dense([[1, 0, 2], [3, 4, 0], [0, 0, 5]]))
    assert D.offsets.tolist() == [-1, 0, 2]
    assert D.data.reshape(3, 3).tolist() == [[0, 3, 0], [1, 4, 5], [2, 0, 0]]


@pytest.mark.parametrize("chunk_rows", CHUNKS)
@pytest.mark.parametrize("rows", (1, 7, 8, 9, 16, 63, 64, 65, 200))
def test_chunks_hold_one_diagonal_after_the_other(chunk_rows, rows):
    A = gallery("banded", n=rows, half_bandwidth=2)
    A.data[:] = np.arange(1.0, A.nnz + 1)
    D, plain = DIA.from_csr(A, chunk_rows), A.toarray()
    start = 0
    for first in range(0, rows, chunk_rows):
        height = min(chunk_rows, rows - first)
        chunk = D.data[start : start + height * len(D.offsets)].reshape(len(D.offsets), height)
        for offset, values in zip(D.offsets.tolist(), chunk, strict=True):
            columns = np.arange(first, first + height) + offset
            inside = (columns >= 0) & (columns < rows)
            expected = np.where(
                inside, plain[np.arange(first, first + height), np.clip(columns, 0, rows - 1)], 0
            )
            assert values.tolist() == expected.tolist()
        start += chunk.size
    assert start == len(D.data)


@pytest.mark.parametrize("chunk_rows", (0, -8, 1, 12, 128, 16.5))
def test_another_chunk_is_refused_with_those_there_are(chunk_rows):
    with pytest.raises(InputError):
        DIA.from_csr(dense([[1]]), chunk_rows)


def test_unsorted_rows_are_stored_as_sorted_ones():
    A = gallery("poisson3d", n=7)
    mixed = mixed_up(A)
    of_sorted, of_mixed = DIA.from_csr(A), DIA.from_csr(mixed)
    assert of_mixed.data.tobytes() == of_sorted.data.tobytes()
    assert of_mixed.offsets.tolist() == of_sorted.offsets.tolist()


def test_entries_of_one_column_are_summed():
    A = csr_array(
        (np.array([1.0, 2, 4, 8, 16]), np.array([2, 2, 2, 1, 1]), np.array([0, 3, 5])), shape=(2, 4)
    )
    D = DIA.from_csr(A)
    assert D.offsets.tolist() == [0, 2] and D.data.reshape(2, 2).tolist() == [[0, 24], [7, 0]]


@pytest.mark.parametrize("rows", (10, 11))
def test_one_entry_in_many_rows_is_refused_just_beyond_the_largest_padding(rows):
    A = csr_array((np.ones(1), np.zeros(1, dtype=int), np.array([0] * rows + [1])), shape=(rows, 5))
    if rows <= MAX_PADDING_FACTOR:
        assert DIA.from_csr(A).data.tolist() == [0] * (rows - 1) + [1]
    else:
        with pytest.raises(PaddingError):
            DIA.from_csr(A)


def test_scattered_entries_are_refused_before_anything_large_is_allocated():
    A = gallery("random", n=30_000, nnz_per_row=8)
    with pytest.raises(PaddingError):
        DIA.from_csr(gallery("random", n=300, nnz_per_row=8))  # compiled
    with traced_bytes() as traced, pytest.raises(PaddingError) as refusal:
        DIA.from_csr(A)
    message = str(refusal.value)
    assert "240,000 non-zeros" in message and "at most 10 times" in message and "\n" not in message
    assert message.endswith("use another format")
    assert traced[1] < 100_000


def test_what_exceeds_memory_is_refused_before_it_is_allocated(monkeypatch):
    A = gallery("banded", n=50_000)
    DIA.from_csr(gallery("banded", n=50))  # compiled
    little = psutil.virtual_memory()._replace(available=1_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)
    with traced_bytes() as traced, pytest.raises(MatrixSizeError):
        DIA.from_csr(A)
    assert traced[1] < 400_000


def test_a_row_block_is_the_matrix_in_small():
    A = gallery("poisson2d", n=40)
    strips = StripStatistics.of(A.indptr, structure(A), 64)
    first = np.arange(strips.strips)
    parts = DIA.stored_entries(strips.blocks(first, first + 1))
    assert parts.sum() == len(DIA.from_csr(A).data)


@pytest.mark.parametrize("dtype", ("float64", "float32"))
def test_a_matrix_of_thin_diagonals_has_no_candidate_and_hears_the_bytes(dtype):
    found = structure(gallery("random", n=50, nnz_per_row=12))
    choice = whole_matrix(found, Target("cpu", dtype, 32, 1), detect())
    reason = choice.refused["dia"]
    assert f"{found.bands.diagonals} diagonals" in reason and "bytes a non-zero" in reason and "CSR" in reason
    assert reason.endswith("use another format") and "\n" not in reason
