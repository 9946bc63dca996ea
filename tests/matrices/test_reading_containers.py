"""Reading SciPy's .npz and MATLAB's .mat files."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite, savemat

from sparsecast.errors import MatrixSizeError
from sparsecast.matrices.problem import as_csr
from sparsecast.matrices.reading import load, read_file


def sample(seed: int = 0, shape: tuple[int, int] = (13, 8)) -> sparse.csr_array:
    return sparse.random_array(shape, density=0.3, rng=np.random.default_rng(seed), format="csr")


def npz_of(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def csr_parts(**changes: Any) -> dict[str, Any]:
    parts = {"format": b"csr", "shape": [2, 3], "indptr": np.array([0, 1, 2]), "indices": np.array([0, 2])}
    return {**parts, "data": np.array([1.0, 2.0]), **changes}


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(0, 9),
    cols=st.integers(0, 9),
    kind=st.sampled_from(["csr", "csc", "coo", "bsr", "dia"]),
    compressed=st.booleans(),
    old=st.booleans(),
)
def test_npz_round_trip(tmp_path_factory, rows, cols, kind, compressed, old):
    if kind == "bsr" and not rows * cols:
        return
    matrix = sparse.random_array((rows, cols), density=0.4, rng=np.random.default_rng(rows), format="csr")
    stored = (sparse.csr_matrix(matrix) if old else matrix).asformat(kind)
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    sparse.save_npz(path, stored, compressed=compressed)
    found = load(path)
    assert isinstance(found, sparse.csr_array)
    assert found.has_canonical_format
    assert found.indices.dtype == found.indptr.dtype == np.int32
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


@pytest.mark.parametrize(
    ("stored", "asked", "found"),
    [
        (np.float64, None, np.float64),
        (np.float32, None, np.float32),
        (np.float32, np.float64, np.float64),
        (np.float64, "float32", np.float32),
        (np.int64, None, np.float64),
        (np.uint8, None, np.float64),
        (np.bool_, None, np.float64),
        (np.complex128, None, np.complex128),
        (np.complex64, None, np.complex64),
        (np.complex64, "complex128", np.complex128),
        (np.complex128, np.complex64, np.complex64),
        (np.clongdouble, None, np.complex128),
        (np.float32, "complex64", np.complex64),
        (np.bool_, "complex128", np.complex128),
    ],
)
@pytest.mark.parametrize("kind", ["csr", "coo", "csc", "sparse.mat", "dense.mat"])
def test_types_of_values(tmp_path, stored, asked, found, kind):
    if kind.endswith(".mat") and stored is np.clongdouble:  # which MATLAB does not have
        return
    array = np.array([[0, 1], [1, 1]], dtype=stored)
    if array.dtype.kind == "c":
        array[0, 1] = complex(np.inf, -3)
    path = tmp_path / ("a.mat" if kind.endswith(".mat") else "a.npz")
    if kind.endswith(".mat"):
        savemat(path, {"A": array if kind == "dense.mat" else sparse.csr_array(array)})
    else:
        sparse.save_npz(path, sparse.coo_array(array).asformat(kind))
    held = load(path, dtype=asked)
    assert held.dtype.isnative
    np.testing.assert_array_equal(held.toarray(), array)
    # MATLAB has double and logical sparse matrices alone.
    if asked or kind != "sparse.mat" or stored in (np.float64, np.bool_, np.complex128):
        assert held.dtype == found


@pytest.mark.parametrize("name", ["a.mtx", "a.npz", "a.mat"])
def test_integers_that_a_double_does_not_hold_are_said(tmp_path, name):
    path, A = tmp_path / name, np.array([[2**53 + 3, 5]])
    {
        "a.mtx": lambda: mmwrite(path, sparse.coo_array(A)),
        "a.npz": lambda: sparse.save_npz(path, sparse.csr_array(A)),
        "a.mat": lambda: savemat(path, {"A": A}),
    }[name]()
    assert read_file(path).notes[-1] == "holds 1 integers beyond 2**53, rounded to floating point"


def element(kind: int, content: bytes) -> bytes:
    return struct.pack(">II", kind, len(content)) + content.ljust(-(-len(content) // 8) * 8, b"\0")


def sparse_mat(path: Path, *parts: bytes, flags: int = 5) -> Path:
    """A file, most significant bytes first, of a 3 x 2 matrix with entries in rows 2 and 0."""
    body = element(6, struct.pack(">II", flags, 2)) + element(5, struct.pack(">ii", 3, 2)) + element(1, b"A")
    body += element(5, struct.pack(">ii", 2, 0)) + element(5, struct.pack(">iii", 0, 1, 2)) + b"".join(parts)
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI" + element(14, body))
    return path


def test_mat_of_the_other_byte_order(tmp_path):
    path = sparse_mat(tmp_path / "a.mat", element(9, struct.pack(">dd", 1.5, -2.0)))
    np.testing.assert_array_equal(load(path).toarray(), [[0, -2], [0, 0], [1.5, 0]])


@pytest.mark.parametrize(
    ("imaginary", "words"),
    [
        ((), "ends where another element is expected"),
        ((element(9, struct.pack(">d", 1.0)),), "2 real parts have 1 imaginary ones"),
        ((element(9, struct.pack(">ddd", 1, 2, 3)),), "2 real parts have 3 imaginary ones"),
        ((element(1, b"ab"),), ""),
        ((element(14, b""),), "type 14"),
    ],
)
def test_mat_with_damaged_imaginary_parts(refusal, tmp_path, imaginary, words):
    real = element(9, struct.pack(">dd", 1.5, -2.0))
    path = sparse_mat(tmp_path / "a.mat", real, *imaginary, flags=0x805)
    if words:
        assert words in refusal(path)
    else:  # characters are numbers of one byte
        assert load(path).data.imag.tolist() == [98, 97]


@pytest.mark.parametrize(
    "changes",
    [
        {"data": np.array([1j, 2], dtype=object)},
        {"data": np.array([1j])},
        {"data": np.array([1j, 2]), "indices": np.array([0, 3])},
        {"indices": np.array([0, 3])},
        {"indices": np.array([0, -1])},
        {"indptr": np.array([0, 5, 2])},
        {"indptr": np.array([0, 2])},
        {"indptr": np.array([0, 1, 9])},
        {"shape": [-2, 3]},
        {"shape": [2, 3, 4]},
        {"shape": [2.5, 3]},
        {"format": b"xyz"},
        {"format": b"lil"},
        {"data": np.array(["a", "b"])},
        {"data": np.array([[1.0, 2.0]])},
        {"data": np.array([1.0])},
    ],
)
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_bad_npz(refusal, tmp_path, changes, kind):
    parts = csr_parts(**{"format": kind.encode(), **changes})
    if kind == "csc" and "shape" not in changes:
        parts["shape"] = [3, 2]
    refusal(npz_of(tmp_path / "bad.npz", **parts))


def test_npz_that_is_no_matrix(refusal, tmp_path):
    assert "save_npz" in refusal(npz_of(tmp_path / "a.npz", x=np.ones(3)))
    parts = csr_parts(format=b"coo", row=np.array([0, 9]), col=np.array([0, 0]))
    refusal(npz_of(tmp_path / "b.npz", **parts))
    missing = csr_parts()
    del missing["indices"]
    refusal(npz_of(tmp_path / "c.npz", **missing))


@pytest.mark.parametrize("offset", [3, -3, 2**31 - 1, -(2**31)])
def test_npz_with_diagonals_outside_of_the_matrix(refusal, tmp_path, offset):
    diagonals = {"offsets": np.array([offset]), "data": np.ones((1, 3))}
    refusal(npz_of(tmp_path / "bad.npz", format=b"dia", shape=[2, 3], **diagonals))


@pytest.mark.parametrize("values", [">i8", ">f8"])
@pytest.mark.parametrize("index", ["<i4", ">i4", "<c16"])
def test_npz_of_other_byte_orders_is_read_and_indices_are_no_complex_numbers(
    refusal, tmp_path, values, index
):
    arrays = {"indptr": np.array([0, 1, 2], dtype=index), "indices": np.array([0, 2], dtype=index)}
    path = npz_of(tmp_path / "a.npz", **csr_parts(**arrays, data=np.array([1, 2], dtype=values)))
    if index[1] == "i":
        assert load(path).toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    else:
        refusal(path)


@pytest.mark.parametrize("values", [">f4", ">i8"])
@pytest.mark.parametrize("kind", ["dia", "csr", "csc"])
def test_values_of_other_byte_orders_keep_their_precision_in_files_and_in_memory(tmp_path, values, kind):
    matrix = sparse.diags_array(np.array([1.0, 2, 3])).asformat(kind)
    matrix.data = matrix.data.astype(values)
    path = tmp_path / "a.npz"
    sparse.save_npz(path, matrix)
    for read in (load(path), as_csr(matrix)):
        assert read.toarray().tolist() == np.diag([1, 2, 3]).tolist()
        assert read.dtype == ("float32" if values == ">f4" else "float64")


def test_npz_objects_are_never_loaded(refusal, tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    path = tmp_path / "a.npz"
    trap = np.empty(1, dtype=object)
    trap[0] = Trap()
    np.savez(path, **csr_parts(data=trap), allow_pickle=True)
    refusal(path)
    assert not (tmp_path / "sprung").exists()


def npy_claiming(shape: tuple[int, ...], content: bytes = b"", kind: str = "<f8") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


def test_npz_sizes(refusal, tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    parts = csr_parts()
    del parts["data"]
    for kind in ("<f8", "|S0"):  # of strings without bytes, SciPy makes numbers
        with zipfile.ZipFile(npz_of(path, **parts), "a") as archive:
            archive.writestr("data.npy", npy_claiming((10**15,), kind=kind))
        assert "declares" in refusal(path)
    # Few entries, and columns to be turned into more rows than there is memory for.
    parts = csr_parts(format=b"coo", row=np.array([0, 1]), col=np.array([0, 0]), shape=[10**15, 3])
    assert str(10**15) in refusal(npz_of(path, **parts), MatrixSizeError)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("format.npy", npy_claiming((4_000_000,), b"\0" * 32_000_000))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**20))
    sparse.save_npz(path, sparse.csr_array((300_000, 3)))
    refusal(path, MatrixSizeError)


@pytest.mark.parametrize("compressed", [True, False])
def test_mat_round_trip(tmp_path, compressed):
    matrix = sample()
    path = tmp_path / "a.mat"
    savemat(path, {"B": matrix, "x": np.ones(3), "title": "text"}, do_compression=compressed)
    held, notes, *_ = read_file(path)
    np.testing.assert_array_equal(held.toarray(), matrix.toarray())
    assert held.has_canonical_format
    assert notes == ()


def test_mat_dense(tmp_path):
    dense = np.array([[0, 1.5, 0], [2, 0, 0]])
    savemat(tmp_path / "a.mat", {"A": dense})
    held, notes, *_ = read_file(tmp_path / "a.mat")
    np.testing.assert_array_equal(held.toarray(), dense)
    assert held.nnz == 2
    assert notes == ("holds 'A' as a dense matrix: its zeros are not stored",)


@pytest.mark.parametrize(
    "variables",
    [
        {"A": sample(), "B": sample()},
        {"A": np.ones((2, 2)), "B": np.ones((2, 2))},
        {"A": "text"},
        {},
        {"Problem": {"name": "none"}},
    ],
)
def test_mat_without_one_matrix(refusal, tmp_path, variables):
    savemat(tmp_path / "a.mat", variables)
    refusal(tmp_path / "a.mat")


def test_a_value_beyond_its_type_is_infinite_and_a_note_says_so(tmp_path):
    savemat(tmp_path / "a.mat", {"A": np.array([[1.0, 1e300]])})
    held, notes, *_ = read_file(tmp_path / "a.mat", dtype="float32")
    assert held.data.tolist() == [1.0, np.inf] and "1 NaN or infinite" in notes[-1]


def test_mat_versions(refusal, tmp_path):
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + b"\0" * 384 + b"\x89HDF\r\n\x1a\n")
    message = refusal(path)
    assert "7.3" in message
    assert "-v7" in message
    savemat(path, {"A": np.ones((2, 2))}, format="4")
    assert "version 5 or 7" in refusal(path)
    for content in (b"", b"junk", b"\xff" * 500):
        path.write_bytes(content)
        assert "version 5 or 7" in refusal(path)


def test_mat_bomb(refusal, tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
    packed = zlib.compress(struct.pack("<II", 14, 2**32 - 8) + b"\0" * 2**20)
    path.write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**31))
    assert "4294967288 bytes" in refusal(path, MatrixSizeError)
