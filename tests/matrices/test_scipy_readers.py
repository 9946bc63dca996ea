"""Why we do not leave files to SciPy's readers: what these do with damaged ones, each in its own process.

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
from scipy.io import hb_read, hb_write, loadmat, mmread, savemat

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
    [(f"{COORDINATE}3 3 2\n1 1 1.0\n2 2 1\0\n", "bytes 0"), (f"{ARRAY}0 3\n1\n", "expected 0 lines")],
    ids=["a byte 0", "an array without rows"],
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


@pytest.mark.parametrize("kind", ["RSA", "RZA", "RRA", "PUA"])
def test_hb_read_takes_real_square_unsymmetric_matrices_only(tmp_path, kind):
    path = tmp_path / "a.rua"
    hb_write(path, sparse.csc_array(np.diag([1.0, 2.0, 3.0, 4.0])))
    path.write_text(path.read_text().replace("RUA", kind))
    with pytest.raises(ValueError, match="Only"):
        hb_read(path, spmatrix=False)
    assert load(path).shape == (4, 4)
