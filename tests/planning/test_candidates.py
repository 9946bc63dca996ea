"""The candidates of a matrix, and why other formats are none."""

from __future__ import annotations

import re

import pytest

from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery
from sparsecast.planning.candidates import Target, whole_matrix
from sparsecast.records import DTYPES

SETTING = Target("cpu", "float64", 32, 2)


def test_an_even_matrix_has_a_candidate_in_every_format():
    choice = whole_matrix(structure(gallery("banded", n=500)), SETTING)
    assert [c.format for c in choice.candidates] == FORMATS.names()
    assert choice.refused == {}
    for c in choice.candidates:
        assert (c.device, c.dtype, c.index_bits, c.threads) == ("cpu", "float64", 32, 2)
        assert c.kernel


def test_one_dense_row_refuses_ell_and_says_how_large_it_would_be():
    A = gallery("arrow", n=4000, dense_rows=1)
    choice = whole_matrix(structure(A), SETTING)
    assert {c.format for c in choice.candidates} == set(FORMATS.names()) - {"bcsr", "dia", "ell"}
    assert "bytes a non-zero" in choice.refused["bcsr"]  # no blocks to be had: dearer than CSR
    reason = choice.refused["ell"]
    padded = 4000 * int((A.indptr[1:] - A.indptr[:-1]).max())
    assert f"{padded:,} entries" in reason
    assert f"{A.nnz:,} non-zeros" in reason
    assert re.search(r"expected at most 10 times .*; use another format$", reason)


def test_a_format_beyond_memory_is_refused_with_both_sizes(monkeypatch):
    found = structure(gallery("banded", n=500))
    memory = type("Memory", (), {"available": 10_000})
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    choice = whole_matrix(found, SETTING)
    assert "ell" in choice.refused
    assert "GB" in choice.refused["ell"]


@pytest.mark.parametrize(
    ("device", "dtype"), [("vulkan", "float64"), ("cpu", "int8"), ("", "float64"), ("cpu", "")]
)
def test_an_unknown_device_or_dtype_is_refused_with_the_known_ones(device, dtype):
    with pytest.raises(InputError, match=r"expected one of (cpu|float64, float32)"):
        Target(device, dtype, 32, 1)


def test_the_size_of_a_value_follows_from_the_dtype():
    assert {dtype: Target("cpu", dtype, 32, 1).value_bytes for dtype in DTYPES} == {
        "float64": 8,
        "float32": 4,
        "complex128": 16,
        "complex64": 8,
    }
