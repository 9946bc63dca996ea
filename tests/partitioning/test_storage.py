"""Kept partitions: the same again, for the same matrix, or one line that says why not."""

import io
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

from .conftest import METHODS_HERE, numbers, patterns, suits

A = gallery("poisson2d", n=6)


@pytest.mark.parametrize("method", METHODS_HERE)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(patterns(), st.sampled_from((1, 4, 16)))
def test_what_is_read_is_what_was_written(tmp_path, method, matrix, ranks):
    if not suits(method, matrix, ranks):
        return
    made = partition(matrix, ranks, method)
    save(made, tmp_path / "kept.npz", matrix)
    assert numbers(load(tmp_path / "kept.npz", matrix)) == numbers(made)
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
    with np.load(kept) as archive:
        stored = dict(archive) | changes
    np.savez(kept, **{name: value for name, value in stored.items() if value is not None})
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
        assert numbers(found) == numbers(made)


def of_array(array):
    """Return the bytes of a NumPy file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


OTHERS = (
    b"",
    b"PK",
    b"\x93NUMPY",
    pickle.dumps({"version": 1}),
    bytes(range(256)) * 9,
    of_array(np.arange(3)),
)


@pytest.mark.parametrize("content", OTHERS)
def test_files_of_other_kinds_are_refused(tmp_path, content):
    (tmp_path / "other.npz").write_bytes(content)
    with pytest.raises(InputError):
        load(tmp_path / "other.npz", A)


@pytest.mark.parametrize(
    ("member", "content"),
    (("order.npy", b"no array"), ("version.npy", of_array(np.array([object()], dtype=object)))),
)
def test_a_member_that_is_no_array_of_numbers_is_refused(kept, member, content):
    with zipfile.ZipFile(kept) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | {member: content}
    with zipfile.ZipFile(kept, "w") as archive:
        for name, each in members.items():
            archive.writestr(name, each)
    with pytest.raises(InputError):
        load(kept, A)


def test_other_matrices_missing_files_and_folders_are_refused(kept, tmp_path):
    moved = A.copy()
    moved.indices[0:2] = (0, 2)
    for path, matrix in (
        *((kept, other) for other in (gallery("poisson2d", n=5), moved)),
        *((place, A) for place in (tmp_path / "absent.npz", tmp_path)),
    ):
        with pytest.raises(InputError):
            load(path, matrix)
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
