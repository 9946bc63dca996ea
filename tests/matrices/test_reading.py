"""Reading Matrix Market files, and what all kinds of files share: paths, suffixes, counts, the corpus."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmread, mmwrite, savemat

from sparsecast.errors import InputError, MatrixFileError, MatrixSizeError
from sparsecast.features import symmetry as symmetry_module
from sparsecast.features.analysis import structure
from sparsecast.matrices import matrix_market, sources
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import load, matrix_name, read_file
from sparsecast.system.progress_events import watched

from . import conftest
from .conftest import check_canonical

REAL = "%%MatrixMarket matrix coordinate real general\n"
COMPLEX = REAL.replace("real", "complex")
#: A Harwell-Boeing file of one column, one entry: 1 + 2i.
COMPLEX_CARDS = f"""{"A title":72}KEY
{3:14d}{1:14d}{1:14d}{1:14d}
{"CUA":14}{1:14d}{1:14d}{1:14d}{0:14d}
{"(2I4)":16}{"(1I4)":16}{"(2F8.3)":20}
   1   2
   1
   1.000   2.000
"""


def write(folder: Path, text: str | bytes, name: str = "a.mtx") -> Path:
    return conftest.write(folder, text, name)


def assert_same(matrix: sparse.csr_array, oracle: sparse.sparray) -> None:
    """Compare every stored entry, explicit zeros included, and the form."""
    check_canonical(matrix, matrix.dtype)
    expected = oracle.tocsr().astype(np.complex128 if oracle.dtype.kind == "c" else np.float64)
    expected.sum_duplicates()
    assert (matrix.shape, matrix.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(matrix.indptr, expected.indptr)
    np.testing.assert_array_equal(matrix.indices, expected.indices)
    np.testing.assert_allclose(matrix.data, expected.data, rtol=1e-15, atol=0)


@st.composite
def triplets(draw, square=False, dtype=np.float64):
    rows = draw(st.integers(1, 12))
    cols = rows if square else draw(st.integers(1, 12))
    value = st.sampled_from([0.0, 1.0, -2.5, 2.0**-40, 3.0])  # their sums are exact in any order
    entry = st.tuples(st.integers(0, rows - 1), st.integers(0, cols - 1), value, value)
    entries = draw(st.lists(entry, max_size=150))
    i, j, *v = np.array(entries).reshape(-1, 4).T
    values = v[0] if dtype == np.float64 else v[0] + 1j * v[1]
    return sparse.coo_array((values, (i.astype(np.int32), j.astype(np.int32))), shape=(rows, cols))


def text_of(coo: sparse.coo_array, field: str, symmetry: str) -> str:
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", "% a comment", ""]
    lines.append(f"{coo.shape[0]} {coo.shape[1]} {len(coo.data)}")
    for i, j, v in zip(*coo.coords, coo.data, strict=True):
        parts = {"pattern": (), "complex": (v.real, v.imag)}.get(field, (v,))
        lines.append(" ".join((str(i + 1), str(j + 1), *(repr(float(part)) for part in parts))))
    return "\n".join(lines) + "\n"


@settings(max_examples=60, deadline=None)
@given(coo=triplets(), field=st.sampled_from(["real", "pattern"]))
def test_general_equals_scipy(tmp_path_factory, coo, field):
    path = write(tmp_path_factory.mktemp("mtx"), text_of(coo, field, "general"))
    matrix = load(path)
    assert_same(matrix, mmread(path, spmatrix=False))


@settings(max_examples=60, deadline=None)
@given(coo=triplets(square=True), symmetry=st.sampled_from(["symmetric", "skew-symmetric"]))
def test_symmetric_equals_scipy(tmp_path_factory, coo, symmetry):
    # Entries of both triangles and duplicates, more than the format asks for.
    path = write(tmp_path_factory.mktemp("mtx"), text_of(coo, "real", symmetry), "a.mtx.gz")
    held, notes, triangle_nnz, _ = read_file(path)
    oracle = mmread(path, spmatrix=False)
    assert_same(held, oracle)
    duplicates = oracle.nnz - held.nnz
    assert (f"holds {duplicates} duplicate entries, summed" in notes) == (duplicates > 0)
    if symmetry == "symmetric" and not duplicates:
        assert triangle_nnz == structure(held).symmetry.triangle_nnz is not None
    else:
        assert triangle_nnz is None


def test_a_forecast_takes_the_symmetry_that_the_file_was_read_with(tmp_path, monkeypatch):
    path = write(tmp_path, text_of(sparse.coo_array([[2.0, 0.0], [1.0, 0.0]]), "real", "symmetric"))
    problem = Problem.named(path)
    assert problem.structure.symmetry.triangle_nnz == 2
    monkeypatch.setattr(symmetry_module, "mirroring", lambda *given: pytest.fail("it was looked for"))
    assert problem.sampled_structure.symmetry.triangle_nnz == 2


@settings(max_examples=100, deadline=None)
@given(
    coo=triplets(square=True, dtype=np.complex128),
    symmetry=st.sampled_from(["general", "symmetric", "skew-symmetric", "hermitian"]),
)
def test_complex_equals_scipy(tmp_path_factory, coo, symmetry):
    path = write(tmp_path_factory.mktemp("mtx"), text_of(coo, "complex", symmetry))
    held, notes, *_ = read_file(path)
    assert_same(held, mmread(path, spmatrix=False))
    diagonal = coo.data[coo.coords[0] == coo.coords[1]]
    strange = {"skew-symmetric": diagonal.any(), "hermitian": diagonal.imag.any()}
    assert any("diagonal" in note for note in notes) == strange.get(symmetry, False)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("size", [1, 2, 3, 40])
def test_array_equals_scipy(tmp_path, symmetry, size):
    dense = np.random.default_rng(size).integers(-2, 3, (size, size)).astype(float)
    sign = {"general": 0, "symmetric": 1, "skew-symmetric": -1}[symmetry]
    if sign:
        dense = np.tril(dense) + sign * np.tril(dense).T
    path = tmp_path / "a.mtx"
    mmwrite(path, dense, symmetry=symmetry)
    held, notes, *_ = read_file(path)
    assert_same(held, sparse.coo_array(dense))
    assert notes == ("is a dense array: its zeros are not stored",)


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_text_beyond_one_block(tmp_path, suffix):
    coo = sparse.random_array((20_000, 15_000), density=5e-4, rng=np.random.default_rng(0), format="coo")
    plain = tmp_path / "plain.mtx"
    mmwrite(plain, coo, symmetry="general")
    assert plain.stat().st_size > 3 * sources.BLOCK_BYTES
    path = write(tmp_path, plain.read_bytes(), f"a{suffix}")
    assert_same(load(path), coo)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 7), (7, 3)])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_empty_matrices(tmp_path, shape, layout):
    text = f"%%MatrixMarket matrix {layout} real general\n{shape[0]} {shape[1]}"
    text += " 0\n" if layout == "coordinate" else "\n" + "0\n" * (shape[0] * shape[1])
    matrix = load(write(tmp_path, text))
    check_canonical(matrix)
    assert matrix.shape == shape
    assert matrix.nnz == 0


def test_counts_and_notes(tmp_path):
    text = "%%MatrixMarket MATRIX Coordinate Integer General\n3 3 6\n1 1 2\n1 1 -2\n2 2 0\n3 3 7\n3 1 4\n"
    held, notes, *_ = read_file(write(tmp_path, text + "3 2 5\n", "some.thing.mtx"))
    assert notes == ("holds 1 duplicate entries, summed", "holds 2 explicit zeros, kept")
    assert held.nnz == 5


def test_nan_and_infinity_are_said(tmp_path):
    held, notes, *_ = read_file(write(tmp_path, REAL + "2 2 3\n1 1 nan\n1 2 -Infinity\n2 2 INF\n"))
    assert notes == ("holds 3 NaN or infinite values",)
    np.testing.assert_array_equal(held.data, [np.nan, -np.inf, np.inf])


def test_fortran_exponents_and_other_line_ends(tmp_path):
    matrix = load(write(tmp_path, REAL + "2 2 2\r\n1 1 1.0D3\r\n\r\n 2\t2  -2.5d-1 \r\n"))
    np.testing.assert_array_equal(matrix.toarray(), [[1000, 0], [0, -0.25]])


@pytest.mark.parametrize("end", ["", "\n", "\n\n  \n", " "])
def test_ends_of_the_last_line(tmp_path, end):
    assert load(write(tmp_path, REAL + "1 1 1\n1 1 2.5" + end)).data == [2.5]


def test_dtype(tmp_path):
    path = write(tmp_path, REAL + "1 1 1\n1 1 0.1\n")
    assert load(path).dtype == np.float64
    assert load(path, dtype="float32").data == np.float32([0.1])
    for dtype in ("complex64", np.complex128, complex):
        promoted = load(path, dtype=dtype)
        assert promoted.dtype == dtype
        assert promoted.data == np.array([0.1], dtype=dtype)
    for dtype in ("int32", "nonsense", "", ">f8", np.clongdouble, "float64 ", object()):
        with pytest.raises(InputError):
            load(path, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float64, "float32", float])
@pytest.mark.parametrize("name", ["a.mtx", "a.rb", "a.npz", "sparse.mat", "dense.mat"])
def test_a_real_type_for_a_complex_file_is_refused_in_one_line(tmp_path, dtype, name):
    path, matrix = tmp_path / name, sparse.csr_array(np.diag([1.0, 2j]))
    {
        "a.mtx": lambda: write(tmp_path, COMPLEX + "1 1 1\n1 1 1 0\n"),
        "a.rb": lambda: write(tmp_path, COMPLEX_CARDS, name),
        "a.npz": lambda: sparse.save_npz(path, matrix),
        "sparse.mat": lambda: savemat(path, {"A": matrix}),
        "dense.mat": lambda: savemat(path, {"A": matrix.toarray()}),
    }[name]()
    assert load(path, dtype="complex64").dtype == np.complex64
    with pytest.raises(InputError) as error:
        load(path, dtype=dtype)
    assert name in str(error.value)


def test_indices_are_64_bit_where_they_must_be(tmp_path):
    matrix = load(write(tmp_path, REAL + "2 3000000000 1\n2 3000000000 1\n"))
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int64
    assert matrix.indices == [2999999999]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("x/cant.mtx.gz", "cant"),
        ("a.b.mtx", "a.b"),
        ("c.RUA", "c"),
        ("d.npz", "d"),
        ("e.mat", "e"),
        ("f", "f"),
    ],
)
def test_matrix_name(path, name):
    assert matrix_name(path) == name


BAD = {
    "empty": "",
    "blank": "\n\n",
    "text": "hello world\n1 1 1\n",
    "json": '{"rows": 3}',
    "vector": "%%MatrixMarket vector coordinate real general\n1 1\n",
    "layout": REAL.replace("coordinate", "elemental") + "1 1 0\n",
    "field": REAL.replace("real", "quaternion") + "1 1 0\n",
    "symmetry": REAL.replace("general", "triangular") + "1 1 0\n",
    "hermitian": REAL.replace("general", "hermitian") + "1 1 0\n",
    "hermitian pattern": REAL.replace("real general", "pattern hermitian") + "1 1 0\n",
    "hermitian, not square": COMPLEX.replace("general", "hermitian") + "3 2 0\n",
    "one part": COMPLEX + "2 2 2\n1 1 1.0\n2 2 1 2\n",
    "one part at the end": COMPLEX + "2 2 2\n1 1 1 1\n2 1 3",
    "three parts": COMPLEX + "2 2 1\n1 1 1 2 3\n",
    "a word for a part": COMPLEX + "2 2 1\n1 1 1 2i\n",
    "a complex number": COMPLEX + "2 2 1\n1 1 (1,2)\n",
    "complex array": "%%MatrixMarket matrix array complex general\n2 1\n1 2\n3\n",
    "array pattern": "%%MatrixMarket matrix array pattern general\n1 1\n",
    "no sizes": REAL + "% only comments\n",
    "two sizes": REAL + "3 3\n",
    "words": REAL + "3 three 1\n",
    "real sizes": REAL + "3.0 3 1\n",
    "negative": REAL + "3 3 -1\n",
    "not square": REAL.replace("general", "symmetric") + "3 2 0\n",
    "no room": REAL + "0 5 1\n1 1 1.0\n",
    "row 0": REAL + "2 2 1\n0 1 1.0\n",
    "row 3": REAL + "% c\n2 2 1\n3 1 1.0\n",
    "column 9": REAL + "2 2 1\n1 9 1.0\n",
    "column -1": REAL + "2 2 1\n1 -1 1.0\n",
    "huge index": REAL + "2 2 1\n1 99999999999999999999 1.0\n",
    "real index": REAL + "2 2 1\n1 1.5 1.0\n",
    "no value": REAL + "2 2 2\n1 1\n2 2 1.0\n",
    "two values": REAL + "2 2 1\n1 1 1.0 2.0\n",
    "no number": REAL + "2 2 1\n1 1 abc\n",
    "too few": REAL + "2 2 3\n1 1 1.0\n2 2 1.0\n",
    "too many": REAL + "2 2 1\n1 1 1.0\n2 2 1.0\n",
    "half a line": REAL + "2 2 2\n1 1 1.0\n2 2",
    "half a number": REAL + "2 2 2\n1 1 1.0\n2 2 1e",
    "zero byte": REAL.encode() + b"2 2 1\n1 1 1.0\0\n",
    "array short": "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n",
    "array long": "%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n",
    "array row": "%%MatrixMarket matrix array real general\n2 2\n1 2\n3 4\n",
    "array empty": "%%MatrixMarket matrix array real general\n0 5\n1\n",
    "more than it holds": REAL + "9 9 100000\n1 1 1.0\n",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text(refusal, tmp_path, name):
    refusal(write(tmp_path, BAD[name]))


@pytest.mark.parametrize("size", ["9223372036854775808", "1" * 30, str(2**53)])
def test_sizes_beyond_what_doubles_count(refusal, tmp_path, size):
    refusal(write(tmp_path, f"{REAL}{size} 1 0\n"), MatrixSizeError)


def test_matrix_beyond_memory_is_refused_before_it_is_read(refusal, tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**20))
    monkeypatch.setattr(matrix_market, "mmread", None)
    path = write(tmp_path, REAL + "9 9 100000\n" + "1 1 1.0\n" * 100_000)
    message = refusal(path, MatrixSizeError)
    assert "100000 stored entries" in message
    assert "GiB" in message


@pytest.mark.parametrize(
    ("head", "filling", "words"),
    [
        (REAL + "9 9 3\n1 1 1.0\n", b"\n", "more than the sizes it declares can need"),
        (REAL + "9 9 3\n1 1 1.0\n", b"1", "does not end within"),
        (REAL + "9 9 3\n1 1 1.0\n", b"% comment\n", "more than the sizes it declares can need"),
        (REAL, b"%\n", "more than the sizes it declares can need"),
        (REAL, b"% ", "does not end within"),
        ("", b"%", "does not end within"),
        (REAL, b"\n", "more than the sizes it declares can need"),
    ],
)
def test_gzip_bombs_end_early(refusal, tmp_path, head, filling, words):
    path = tmp_path / "bomb.mtx.gz"
    with gzip.open(path, "wb", compresslevel=9) as sink:
        sink.write(head.encode())
        for _ in range(64):
            sink.write(filling * (2**20 // len(filling)))
    assert path.stat().st_size < 2**18
    assert words in refusal(path)


def test_cut_gzip(refusal, tmp_path):
    whole = gzip.compress((REAL + "99 99 99\n" + "".join(f"{k} {k} 0.{k}\n" for k in range(1, 100))).encode())
    path = tmp_path / "cut.mtx.gz"
    for length in (0, 1, 5, 12, 40, len(whole) // 2, len(whole) - 9, len(whole) - 4, len(whole) - 1):
        path.write_bytes(whole[:length])
        refusal(path)


def test_paths(refusal, tmp_path):
    assert "no such file" in refusal(tmp_path / "missing.mtx")
    folder = tmp_path / "folder.mtx"
    folder.mkdir()
    assert "is a directory" in refusal(folder)
    inside = write(tmp_path, REAL + "0 0 0\n", "file.mtx") / "more.mtx"
    assert "cannot be read" in refusal(inside)
    with pytest.raises(MatrixFileError):
        load("a\0b.mtx")
    os.mkfifo(tmp_path / "pipe.mtx")
    assert "not a regular file" in refusal(tmp_path / "pipe.mtx")


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.npz.gz", "a.gz", "a.mtx.bz2"])
def test_unknown_suffix_lists_the_known(refusal, tmp_path, name):
    message = refusal(write(tmp_path, REAL, name))
    for known in (".mtx", ".rb", ".rua", ".npz", ".mat", ".txt"):
        assert known in message


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.txt"])
def test_whoever_watches_is_told_of_the_bytes_up_to_the_last(tmp_path, name):
    lines = "".join(f"{i + 1} {i % 7 + 1} {i}.5\n" for i in range(150_000))
    head = "" if name == "a.txt" else f"{REAL}150000 7 150000\n"
    path, told = write(tmp_path, head + lines, name), []
    with watched(lambda *seen: told.append(seen)):
        load(path)
    load(path)
    assert len(told) >= 3
    assert {seen[::2] for seen in told} == {(f"reading {name}", path.stat().st_size)}
    read = [seen[1] for seen in told]
    assert read == sorted(read) and read[-1] == path.stat().st_size
