"""A Matrix Market file that several readers share: every line is read by exactly one of them."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.matrices import matrix_market
from sparsecast.matrices.matrix_market import is_divisible, read_triplets

HEADER = "%%MatrixMarket matrix coordinate real general\n% a comment\n90 90 {}\n"


def read(path, parts, dtype="float64"):
    """Return the entries of all parts, in their order."""
    found = [read_triplets(path, part, parts, np.dtype(dtype)) for part in range(parts)]
    header = found[0][0]
    entries = [
        (int(i), int(j), value)
        for _, triplets in found
        for i, j, value in zip(triplets.rows, triplets.columns, triplets.values, strict=True)
    ]
    return header, entries


@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90), st.integers(-999, 999)), max_size=12),
    st.integers(1, 7),
    st.sampled_from(("\n", "\r\n", "\n\n", "  \n")),
    st.booleans(),
    st.integers(1, 40),
)
@settings(max_examples=120)
def test_each_line_is_read_once(tmp_path_factory, entries, parts, end, ends_with_line, piece_bytes):
    path = tmp_path_factory.mktemp("parts") / "a.mtx"
    body = end.join(f"{i} {j} {value}" for i, j, value in entries)
    path.write_bytes((HEADER.format(len(entries)) + body + end * ends_with_line).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix_market, "_PART_BYTES", piece_bytes)
        header, found = read(path, parts)
    assert found == [(i - 1, j - 1, float(value)) for i, j, value in entries]
    assert header.stored == len(entries)


@pytest.mark.parametrize(
    "line",
    ("1 x 3.0", "91 1 3.0", "1 2", "1 2 3\0"),
)
def test_a_damaged_line_is_refused_by_its_reader_alone(tmp_path, line):
    path = tmp_path / "a.mtx"
    path.write_text(HEADER.format(20) + "5 5 1.0\n" * 15 + line + "\n" + "6 6 1.0\n" * 4)
    assert len(read_triplets(path, 0, 2, np.dtype("float64"))[1].values) > 5
    with pytest.raises(MatrixFileError):
        read_triplets(path, 1, 2, np.dtype("float64"))


def test_complex_values_need_a_complex_type(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 3 4\n")
    assert read(path, 2, "complex128")[1] == [(0, 1, 3 + 4j)]
    with pytest.raises(InputError):
        read(path, 2)


def test_only_plain_coordinates_are_divisible(tmp_path):
    plain, dense, packed = (tmp_path / name for name in ("a.mtx", "b.mtx", "c.mtx.gz"))
    plain.write_text(HEADER.format(0))
    dense.write_text("%%MatrixMarket matrix array real general\n1 1\n2.0\n")
    packed.write_bytes(gzip.compress(HEADER.format(0).encode()))
    assert [is_divisible(path) for path in (plain, dense, packed)] == [True, False, False]
    with pytest.raises(MatrixFileError):
        is_divisible(tmp_path / "none.mtx")
