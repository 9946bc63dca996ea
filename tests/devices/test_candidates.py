"""The candidates of a matrix, and why other formats are none."""

from __future__ import annotations

import dataclasses
import re

import pytest

from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.records import DTYPES

SETTING = Target("cpu", "float64", 32, 2)


def test_an_even_matrix_has_a_candidate_in_every_format():
    choice = whole_matrix(structure(gallery("banded", n=500)), SETTING, detect())
    assert [c.format for c in choice.candidates] == FORMATS.names()
    assert choice.refused == {}
    for c in choice.candidates:
        assert (c.device, c.dtype, c.index_bits, c.threads) == ("cpu", "float64", 32, 2)
        assert c.kernel


def test_one_dense_row_refuses_ell_and_says_how_large_it_would_be():
    A = gallery("arrow", n=4000, dense_rows=1)
    choice = whole_matrix(structure(A), SETTING, detect())
    assert {c.format for c in choice.candidates} == set(FORMATS.names()) - {"bcsr", "dia", "ell"}
    assert "bytes a non-zero" in choice.refused["bcsr"]  # no blocks to be had: dearer than CSR
    reason = choice.refused["ell"]
    padded = 4000 * int((A.indptr[1:] - A.indptr[:-1]).max())
    assert f"{padded:,} entries" in reason
    assert f"{A.nnz:,} non-zeros" in reason
    assert re.search(r"expected at most 10 times .*; use another format$", reason)


def test_a_format_beyond_the_memory_of_the_machine_asked_about_is_refused_with_both_sizes(monkeypatch):
    found = structure(gallery("banded", n=500))
    small = dataclasses.replace(detect(), memory_bytes=10_000)
    reason = whole_matrix(found, SETTING, small).refused["ell"]
    assert reason.startswith("ELL would take 0.00 GB with x and y: expected at most the 0.00 GB of ")
    # What is free here at the moment is not asked.
    memory = type("Memory", (), {"available": 0})
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    assert whole_matrix(found, SETTING, dataclasses.replace(small, memory_bytes=1 << 40)).refused == {}


@pytest.mark.parametrize("name, elsewhere", [("csr", "unrolled"), ("sell", "chunks")])
def test_kernels_are_those_of_the_machine_asked_about(name, elsewhere):
    blocks = RowBlocks.of(structure(gallery("banded", n=500, half_bandwidth=15)))
    with_it = dataclasses.replace(detect(), features=("avx512_fp16",))
    without = dataclasses.replace(with_it, features=())
    assert SETTING.candidate(name, blocks, with_it).kernel == "gathered"
    assert SETTING.candidate(name, blocks, without).kernel == elsewhere
    # A gather reads no complex value: the name says what runs.
    of_complex = dataclasses.replace(SETTING, dtype="complex64")
    assert of_complex.candidate(name, blocks, with_it).kernel == elsewhere


def test_a_description_without_features_is_taken_for_an_intels_with_gathers_by_its_other_sets():
    blocks = RowBlocks.of(structure(gallery("banded", n=500)))
    old = dataclasses.replace(detect(), features=None, processor="Intel(R) Xeon(R)", simd=("avx512_bf16",))
    found = {
        SETTING.candidate("sell", blocks, machine).kernel
        for machine in (dataclasses.replace(old, simd=("avx2",)), dataclasses.replace(old, processor="AMD"))
    }
    assert found == {"chunks"} and SETTING.candidate("sell", blocks, old).kernel == "gathered"


@pytest.mark.parametrize(
    ("device", "dtype"), [("vulkan", "float64"), ("cpu", "int8"), ("", "float64"), ("cpu", "")]
)
def test_an_unknown_device_or_dtype_is_refused_with_the_known_ones(device, dtype):
    with pytest.raises(InputError, match=r"known are cpu, cuda; name one|expected one of float64, float32"):
        Target(device, dtype, 32, 1)


def test_the_size_of_a_value_follows_from_the_dtype():
    assert {dtype: Target("cpu", dtype, 32, 1).value_bytes for dtype in DTYPES} == {
        "float64": 8,
        "float32": 4,
        "complex128": 16,
        "complex64": 8,
    }
