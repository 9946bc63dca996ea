"""Kept partitions: the same again, for the same matrix, or one line that says why not."""

import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.partitioning.storage import load, pattern_checksum, save

from .conftest import METHODS_HERE, patterns, suits

A = gallery("poisson2d", n=6)


@pytest.mark.parametrize("method", METHODS_HERE)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(patterns(), st.sampled_from((1, 4, 16)))
def test_what_is_read_is_what_was_written(tmp_path, method, matrix, ranks):
    if not suits(method, matrix, ranks):
        return
    made = partition(matrix, ranks, method)
    save(made, tmp_path / "kept.npz", matrix)
    found = load(tmp_path / "kept.npz", matrix)
    assert (found.method, found.ranks) == (method, ranks)
    assert found.row_bounds.tolist() == made.row_bounds.tolist()
    assert found.column_bounds.tolist() == made.column_bounds.tolist()
    assert (found.order is None) == (made.order is None)
    assert found.order is None or found.order.tolist() == made.order.tolist()
    assert [each.name for each in tmp_path.iterdir()] == ["kept.npz"]


@given(patterns())
def test_a_checksum_is_that_of_the_pattern_alone(matrix):
    own = pattern_checksum(matrix)
    arrays = (matrix.data * 3, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
    assert pattern_checksum(csr_array(arrays, shape=matrix.shape)) == own
    assert pattern_checksum(matrix.sorted_indices()) == own
    rows, cols = matrix.shape
    wider = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(rows, cols + 1))
    assert pattern_checksum(wider) != own


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "kept.npz"
    save(partition(A, 4, "uniform-2d"), path, A)
    return path


def test_the_partition_of_another_matrix_is_refused(kept):
    moved = A.copy()
    moved.indices[0:2] = (0, 2)
    for other in (gallery("poisson2d", n=5), moved):
        with pytest.raises(InputError):
            load(kept, other)


def with_changes(path, **changes):
    with np.load(path) as archive:
        stored = dict(archive) | changes
    np.savez(path, **{name: value for name, value in stored.items() if value is not None})


@pytest.mark.parametrize(
    "changes",
    (
        {"version": np.int64(2)},
        {"pattern": None},
        {"ranks": np.int64(5)},
        {"row_bounds": np.array([0, 20, 10])},
        {"row_bounds": np.array([1, 20, 36])},
        {"row_bounds": np.array([0.0, 20, 36])},
        {"column_bounds": np.array([0, 36])},
        {"order": np.arange(35)},
        {"order": np.zeros(36, dtype=np.int64)},
        {"order": np.arange(36) - 1},
    ),
    ids=lambda changes: next(iter(changes)),
)
def test_what_no_partition_has_is_refused(kept, changes):
    with_changes(kept, **changes)
    with pytest.raises(InputError):
        load(kept, A)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(st.data())
def test_a_damaged_file_is_refused_or_reads_the_same(kept, data):
    whole = kept.read_bytes()
    made = load(kept, A)
    place = data.draw(st.integers(0, len(whole) - 1))
    is_cut = data.draw(st.booleans())
    changed = whole[:place] if is_cut else whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]
    path = kept.with_name("damaged.npz")
    path.write_bytes(changed)
    try:
        found = load(path, A)
    except InputError as error:
        assert "damaged.npz" in str(error)
    else:
        assert found.order.tolist() == made.order.tolist()
        assert found.row_bounds.tolist() == made.row_bounds.tolist()


def test_files_of_other_kinds_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    for content in (b"", b"PK", b"\x93NUMPY", pickle.dumps({"version": 1}), bytes(range(256)) * 9):
        path.write_bytes(content)
        with pytest.raises(InputError):
            load(path, A)
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))
    with pytest.raises(InputError):
        load(path, A)
    np.savez(path, version=np.array([object()], dtype=object))
    with pytest.raises(InputError):
        load(path, A)


def test_an_order_that_is_no_array_is_refused(kept):
    with zipfile.ZipFile(kept) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(kept, "w") as archive:
        for name, content in (members | {"order.npy": b"no array"}).items():
            archive.writestr(name, content)
    with pytest.raises(InputError):
        load(kept, A)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError):
        load(tmp_path / "absent.npz", A)
    with pytest.raises(InputError):
        load(tmp_path, A)
    with pytest.raises(InputError):
        save(partition(A, 4, "rows"), tmp_path / "absent" / "kept.npz", A)


def test_an_error_while_writing_leaves_the_old_file(kept, monkeypatch):
    before = kept.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(kept), "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        save(partition(A, 9, "rows"), kept, A)
    assert kept.read_bytes() == before
    assert list(kept.parent.iterdir()) == [kept]
