"""Reading Rutherford-Boeing and Harwell-Boeing files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import hb_write

from sparsecast.errors import MatrixSizeError
from sparsecast.matrices.reading import load, read_file

from . import conftest

# Sections as lines, for the 4 x 4 matrix with columns {1: rows 1 3, 2: row 2, 3: none, 4: rows 1 4}.
POINTERS = ["    1    3    4    4    6"]
INDICES = ["    1    3    2    1    4"]
VALUES = ["  1.00E+00 -2.50E+00  3.00D+00", "-4.00d-01  5.00E-100"]
DENSE = np.array([[1, 0, 0, -0.4], [0, 3, 0, 0], [-2.5, 0, 0, 0], [0, 0, 0, 5e-100]])


def cards(
    kind: str = "RUA",
    shape: tuple[int, int] = (4, 4),
    stored: int = 5,
    sections: tuple[list[str], ...] = (POINTERS, INDICES, VALUES),
    formats: tuple[str, str, str] = ("(16I5)", "(16I5)", "(3E10.2)"),
    has_right_hand_side: bool = False,
) -> list[str]:
    counts = [sum(map(len, sections)), *map(len, sections), *[0] * (3 - len(sections))]
    if has_right_hand_side:
        counts.append(1)
    head = [
        f"{'A matrix for a test':72}KEY",
        "".join(f"{count:14d}" for count in counts),
        f"{kind:14}" + "".join(f"{size:14d}" for size in (*shape, stored, 0)),
        f"{formats[0]:16}{formats[1]:16}{formats[2]:20}",
    ]
    if has_right_hand_side:
        head.append(f"{'F':14}{1:14d}{0:14d}")
    return head + [line for section in sections for line in section]


def write(folder: Path, lines: list[str], name: str = "a.rb", end: str = "\n") -> Path:
    return conftest.write(folder, "".join(line + end for line in lines), name)


@pytest.mark.parametrize("name", ["a.rb", "a.hb", "a.rua", "a.RUA", "a.rua.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_unsymmetric(tmp_path, name, end):
    held, notes, *_ = read_file(write(tmp_path, cards(), name, end))
    np.testing.assert_array_equal(held.toarray(), DENSE)
    assert notes == ()
    assert held.has_canonical_format


def test_numbers_without_blanks_and_a_right_hand_side(tmp_path):
    sections = ["13446"], ["13214"], VALUES
    lines = cards(sections=sections, formats=("(5I1)", "(16I1)", "(3E10.2)"), has_right_hand_side=True)
    np.testing.assert_array_equal(load(write(tmp_path, [*lines, "  1.00E+00"])).toarray(), DENSE)


def test_more_cards_than_the_file_has_are_not_waited_for(tmp_path):
    lines = cards()
    lines[1] = lines[1][:42] + f"{10**13:14d}"  # of values
    np.testing.assert_array_equal(load(write(tmp_path, lines)).toarray(), DENSE)


@pytest.mark.parametrize(
    ("kind", "sign"),
    [("RSA", 1), ("rza", -1), ("ISA", 1)],
)
def test_symmetric(tmp_path, kind, sign):
    sections = (["    1    3    4    4"], ["    2    3    3"], ["    7   -8    9"])
    lines = cards(kind, (3, 3), 3, sections, ("(4I5)", "(4I5)", "(4I5)" if kind == "ISA" else "(4F5.0)"))
    held = load(write(tmp_path, lines))
    lower = np.array([[0, 0, 0], [7, 0, 0], [-8, 9, 0]])
    np.testing.assert_array_equal(held.toarray(), lower + sign * lower.T)


def complex_cards(kind: str = "CUA", **changes: Any) -> list[str]:
    """The columns of the matrix above with values of real and imaginary parts, three numbers a card."""
    parts = ["1.0", "2.0", "-2.5", "0.0", "3.0D0", "-1.0", "-0.4", "Infinity", "5E-100", "7.5"]
    cells = [part.rjust(10) for part in parts]
    values = ["".join(cells[k : k + 3]) for k in range(0, 10, 3)]
    return cards(kind, sections=(POINTERS, INDICES, values), **changes)


COMPLEX_DENSE = np.zeros((4, 4), dtype=complex)
COMPLEX_DENSE[[0, 2, 1, 0, 3], [0, 0, 1, 3, 3]] = 1 + 2j, -2.5, 3 - 1j, complex(-0.4, np.inf), 5e-100 + 7.5j


@pytest.mark.parametrize("name", ["a.rb", "a.cua", "a.CUA.gz"])
def test_complex_values_are_their_parts_in_turn(tmp_path, name):
    held, notes, *_ = read_file(write(tmp_path, complex_cards(), name))
    assert notes == ("holds 1 NaN or infinite values",)
    assert held.dtype == np.complex128 and held.has_canonical_format
    np.testing.assert_array_equal(held.toarray(), COMPLEX_DENSE)
    single = load(write(tmp_path, complex_cards(), name), dtype="complex64")
    np.testing.assert_array_equal(single.toarray(), COMPLEX_DENSE.astype(np.complex64))


@pytest.mark.parametrize(
    ("kind", "mirrored"),
    [
        ("CSA", lambda lower: lower.T),
        ("cza", lambda lower: -lower.T),
        ("CHA", lambda lower: lower.conj().T),
    ],
)
def test_complex_symmetric(tmp_path, kind, mirrored):
    values = ["   7.   1.  -8.   0.", "   9.  -3."]
    sections = (["    1    3    4    4"], ["    2    3    3"], values)
    held, notes, *_ = read_file(
        write(tmp_path, cards(kind, (3, 3), 3, sections, ("(4I5)", "(4I5)", "(4F5.0)")))
    )
    lower = np.array([[0, 0, 0], [7 + 1j, 0, 0], [-8, 9 - 3j, 0]])
    np.testing.assert_array_equal(held.toarray(), lower + mirrored(lower))
    assert notes == ()


@pytest.mark.parametrize("kind", ["PUA", "PRA", "pra"])
def test_patterns(tmp_path, kind):
    lines = cards(kind, (5, 4), 5, (POINTERS, INDICES), ("(16I5)", "(16I5)", ""))
    held = load(write(tmp_path, lines))
    np.testing.assert_array_equal(held.toarray(), np.vstack([DENSE != 0, np.zeros((1, 4))]))


def test_values_that_are_not_there(tmp_path):
    for kind, called in (("RUA", "real"), ("CUA", "complex")):
        held, notes, *_ = read_file(write(tmp_path, cards(kind, sections=(POINTERS, INDICES, []))))
        assert notes == (f"is called {called} and holds no values: every entry is 1",)
        assert held.dtype == np.float64


@pytest.mark.parametrize(
    ("edit", "texts"),
    [
        ("(1P,3E12.4)", [" 1.0000E+00", "-2.5000e+00", "  3.0000+100", "-4.000-100", "5.0D+002"]),
        ("(1P3E12.4)", ["1", "-2.5", "3.", ".5", "1E5"]),
        ("(3D12.4)", [" 1.0d0", "-1.0D-3", "NaN", "Infinity", "-inf"]),
        ("(3F12.1)", ["10.5", "+3.0", "-1.0", "0.0", "-0.0"]),
        ("(1P5E16.8E3)", ["1.00000000E+100", "2.0", "3.0", "4.0", "5.0"]),
        ("(E26.18)", ["1.234567890123456789E+00", "2.0", "3.0", "4.0", "5.0"]),
        ("(4G15.7)", ["0.1000000E+01", "2.0", "3.0", "4.0", "5.0"]),
    ],
)
def test_real_formats(tmp_path, edit, texts):
    per_card, width = {
        "(1P5E16.8E3)": (5, 16),
        "(E26.18)": (1, 26),
        "(4G15.7)": (4, 15),
    }.get(edit, (3, 12))
    lines = ["".join(t.rjust(width) for t in texts[k : k + per_card]) for k in range(0, 5, per_card)]
    matrix = load(
        write(tmp_path, cards(sections=(POINTERS, INDICES, lines), formats=("(16I5)", "(16I5)", edit)))
    )
    known = {"3.0000+100": 3e100, "-4.000-100": -4e-100, "5.0D+002": 500.0, "1.0d0": 1.0, "-1.0D-3": -1e-3}
    expected = [known[t.strip()] if t.strip() in known else float(t) for t in texts]
    # By rows: entries 1 and 4, then 3, 2, 5.
    np.testing.assert_array_equal(matrix.data, [expected[k] for k in (0, 3, 2, 1, 4)])


def test_empty(tmp_path):
    lines = cards("RRA", (3, 2), 0, (["    1    1    1"], [], []))
    assert load(write(tmp_path, lines)).shape == (3, 2)
    lines = cards("RUA", (0, 0), 0, (["    1"], [], []))
    assert load(write(tmp_path, lines)).shape == (0, 0)


def changed(line: int, text: str) -> list[str]:
    lines = cards()
    lines[line] = text
    return lines


BAD = {
    "empty": [],
    "short": cards()[:3],
    "text": ["hello", "world", "this is", "no matrix", "at all"],
    "negative": cards(stored=-5),
    "real parts only": cards("CUA"),
    "complex, cut": complex_cards()[:-1],
    "complex, cut in a card": [*complex_cards()[:-2], "-4.000d-01"],
    "complex, no number": [*complex_cards()[:-1], "     7.5i "],
    "complex, elemental": complex_cards("CUE"),
    "complex, not square": complex_cards("CHA", shape=(4, 5)),
    "hermitian, real": cards("RHA"),
    "hermitian pattern": cards("PHA"),
    "elemental": cards("RUE"),
    "elsewhere": cards("QUA"),
    "kind": cards("XYZ"),
    "not square": cards("RSA", (4, 5)),
    "no room": cards("RUA", (0, 4)),
    "pointer format": cards(formats=("(hello)", "(16I5)", "(3E10.2)")),
    "index format": cards(formats=("(16I5)", "(16F5.0)", "(3E10.2)")),
    "value format": cards(formats=("(16I5)", "(16I5)", "(3A10)")),
    "wide format": cards(formats=("(99I99)", "(16I5)", "(3E10.2)")),
    "few cards": cards(stored=50),
    "cut in values": cards()[:-1],
    "cut in indices": cards()[:5],
    "last pointer": changed(4, "    1    3    4    4    9"),
    "first pointer": changed(4, "    0    3    4    4    6"),
    "falling": changed(4, "    1    5    4    4    6"),
    "row 0": changed(5, "    1    0    2    1    4"),
    "row 5": changed(5, "    1    5    2    1    4"),
    "no index": changed(5, "    1    x    2    1    4"),
    "sign alone": changed(5, "    1    -    2    1    4"),
    "sign apart in a value": changed(6, "  1.00E+00     - 2.5       -"),
    "two numbers": changed(5, "    1  1 3    2    1    4"),
    "no value": changed(6, "  1.00E+00 hello     3.00D+00 "),
    "blank value": changed(6, "  1.00E+00            3.00D+00"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("suffix", [".rb", ".rua.gz"])
def test_bad(refusal, tmp_path, name, suffix):
    refusal(write(tmp_path, BAD[name], "bad" + suffix))


def test_sizes(refusal, tmp_path, request):
    lines = cards()
    lines[2] = f"{'RUA':14}{'9' * 14}{4:14d}{5:14d}{0:14d}"
    assert "99999999999999 rows" in refusal(write(tmp_path, lines), MatrixSizeError)
    lines[1] = f"{10**9:14d}{10**9:14d}{10**9:14d}{10**9:14d}"
    lines[2] = f"{'RUA':14}{4:14d}{4:14d}{10**9:14d}{0:14d}"
    assert "1000000000 entries" in refusal(write(tmp_path, lines))
    request.getfixturevalue("little_memory")
    assert "5 stored entries" in refusal(write(tmp_path, cards()), MatrixSizeError)


@pytest.mark.parametrize("lines", [cards(), complex_cards()], ids=["real", "complex"])
def test_every_cut(refusal, tmp_path, lines):
    content = "\n".join(lines).encode()
    path = tmp_path / "a.rb"
    # Up to the last number, of which nobody can tell whether digits are missing.
    for length in range(0, len(content) - 10, 7):
        path.write_bytes(content[:length])
        refusal(path)


def test_what_scipy_writes_is_read(tmp_path):
    """Its fields are a column narrower than it declares."""
    A = sparse.random_array((40, 30), density=0.2, rng=np.random.default_rng(2), format="csc")
    A.data -= 0.5
    hb_write(tmp_path / "a.rua", A)
    np.testing.assert_array_equal(load(tmp_path / "a.rua").toarray(), A.toarray())
