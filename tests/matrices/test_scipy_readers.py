"""Why some files are not left to SciPy's readers: those that they refuse, misread, or end the process at.

Each test is the reason for code of ours. It passes over a SciPy that does better, for which that code may go.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy import sparse
from scipy.io import hb_read, loadmat, mmread, savemat

from sparsecast.matrices.reading import load

COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


def require_death(reader: str, path: Path) -> None:
    """Check that SciPy's reader ends the process by a signal; skip where it does not."""
    command = f"import sys, scipy.io; scipy.io.{reader}(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", command, str(path)], capture_output=True, timeout=600)
    if done.returncode >= 0:
        pytest.skip(f"SciPy {scipy.__version__}'s {reader} survives this: our check may go")


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no signals")
@pytest.mark.parametrize("code", [8, 200])
def test_loadmat_dies_of_an_unknown_type_of_numbers(refusal, tmp_path, code):
    stream = io.BytesIO()
    savemat(stream, {"A": sparse.eye_array(3, format="csc")})
    content = stream.getvalue()
    tag = content.rfind(struct.pack("<II", 9, 24))  # the values: three of type 9, double
    path = tmp_path / "a.mat"
    path.write_bytes(content[:tag] + struct.pack("<I", code) + content[tag + 4 :])
    assert f"type {code}" in refusal(path)
    require_death("loadmat", path)


def test_loadmat_loses_imaginary_parts(tmp_path):
    path, dense = tmp_path / "a.mat", np.array([[1 + 2j, 3 - 1j]])
    savemat(path, {"A": dense})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = loadmat(path, mat_dtype=True)["A"]
    if np.iscomplexobj(found):
        pytest.skip(f"SciPy {scipy.__version__} keeps them")
    np.testing.assert_array_equal(load(path).toarray(), dense)


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no signals")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{COORDINATE}3 3 2\n1 1 1.0\n2 2 1\0\n", "bytes 0"),
        (f"{COORDINATE}2 2 2\n1 1 1.0\n2 2 1e", "holds the line '2 2 1e'"),
        (f"{ARRAY}0 3\n1\n", "expected 0 lines"),
    ],
    ids=["a byte 0", "a file cut within a number", "an array without rows"],
)
def test_mmread_dies(refusal, tmp_path, text, words):
    path = tmp_path / "a.mtx"
    path.write_text(text)
    assert words in refusal(path)
    require_death("mmread", path)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"{COORDINATE}1 1 1\n1 1 1.0D3\n", [[1.0]]),
        (f"{ARRAY.replace('general', 'symmetric')}2 2\n1\n2\n", [[1.0, 2.0], [2.0, 0.0]]),
        (f"{COORDINATE}1 1 1\n1 1 12", [[12.0]]),
    ],
    ids=["an exponent with D", "an array cut short", "a last line cut short"],
)
def test_mmread_is_silently_wrong(tmp_path, text, wrong):
    path = tmp_path / "a.mtx"
    path.write_text(text)
    try:
        found = mmread(path, spmatrix=False)
    except ValueError:
        pytest.skip(f"SciPy {scipy.__version__} refuses this: our check may go")
    dense = found.toarray() if sparse.issparse(found) else found
    assert dense.tolist() == wrong


CARDS = f"""{"A title":72}{"KEY":8}
{3:14d}{1:14d}{1:14d}{1:14d}{0:14d}
{"RUA":14}{2:14d}{2:14d}{2:14d}{0:14d}
{"(3I2)":16}{"(2I2)":16}{"(2E9.1)":20}
 1 2 3
 1 2
  1.0E+00 -2.5E+00
"""


@pytest.mark.parametrize(
    "changes",
    [
        {"RUA": "RSA"},
        {"RUA": "RZA"},
        {"RUA": "RRA"},
        {"RUA": "PUA"},
        {"E+00": "D+00"},
        {"(2E9.1)": "(1P,2E9.1)"},
        {"(2E9.1)": "(2F9.1)"},
        {"(3I2)": "(3I1)", " 1 2 3\n": "123\n"},
        {f"{0:14d}\nRUA": f"{1:14d}\nRUA", "\n 1 2 3": f"\n{'F':14}{1:14d}{0:14d}\n 1 2 3"},
    ],
    ids=["symmetric", "skew", "rectangular", "pattern", "D", "1P", "F", "no blanks", "right-hand side"],
)
def test_hb_read_refuses_what_the_format_allows(tmp_path, changes):
    path, text = tmp_path / "a.rua", CARDS
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    assert load(path).diagonal().tolist() == ([1.0, 1.0] if "PUA" in text else [1.0, -2.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, SyntaxError)):
            hb_read(path, spmatrix=False)
