"""The candidates of a matrix, and why other formats are none."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.narrowing import LOSSY
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.models.work import ProductWork
from sparsecast.records import Candidate, Parameters

SETTING = Target("cpu", "float64", 32, 2)


def test_an_even_matrix_has_a_candidate_in_every_format():
    choice = whole_matrix(structure(gallery("banded", n=500)), SETTING, detect())
    assert [c.format for c in choice.candidates if not c.parameters] == FORMATS.names()
    assert choice.refused == {}
    for c in choice.candidates:
        assert (c.device, c.dtype, c.index_bits, c.threads) == ("cpu", "float64", 32, 2)
        assert c.kernel


def test_one_dense_row_refuses_ell_and_says_how_large_it_would_be():
    A = gallery("arrow", n=4000, dense_rows=1)
    choice = whole_matrix(structure(A), SETTING, detect())
    assert {c.format for c in choice.candidates} == set(FORMATS.names()) - {
        "bcsr",
        "dia",
        "ell",
        "symmetric_bcsr",
    }
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


@pytest.mark.parametrize("name, of_complex", [("csr", "unrolled"), ("sell", "chunks")])
def test_kernels_are_those_of_the_machine_asked_about(name, of_complex):
    blocks = RowBlocks.of(structure(gallery("banded", n=500, half_bandwidth=15)))
    with_it = dataclasses.replace(detect(), features=("avx512_fp16",))
    without = dataclasses.replace(with_it, features=())
    assert SETTING.candidate(name, blocks, with_it).kernel == "gathered"
    assert SETTING.candidate(name, blocks, without).kernel == "vectors"
    # A vector holds no complex value: the name says what runs.
    setting = dataclasses.replace(SETTING, dtype="complex64")
    assert setting.candidate(name, blocks, with_it).kernel == of_complex


def test_a_description_without_features_is_taken_for_an_intels_with_gathers_by_its_other_sets():
    blocks = RowBlocks.of(structure(gallery("banded", n=500)))
    old = dataclasses.replace(detect(), features=None, processor="Intel(R) Xeon(R)", simd=("avx512_bf16",))
    found = {
        SETTING.candidate("sell", blocks, machine).kernel
        for machine in (dataclasses.replace(old, simd=("avx2",)), dataclasses.replace(old, processor="AMD"))
    }
    assert found == {"vectors"} and SETTING.candidate("sell", blocks, old).kernel == "gathered"


@pytest.mark.parametrize(
    ("device", "dtype"), [("vulkan", "float64"), ("cpu", "int8"), ("", "float64"), ("cpu", "")]
)
def test_an_unknown_device_or_dtype_is_refused_with_the_known_ones(device, dtype):
    with pytest.raises(InputError):
        Target(device, dtype, 32, 1)


def narrow_ones(A, dtype="float64", device="cpu", values=None):
    """The narrow candidates of a matrix, by format; each builds it so."""
    A = prepared(A, dtype, 32)
    target = Target(device, dtype, 32, 1, values=values)
    found = {c.format: c for c in whole_matrix(structure(A), target, detect()).candidates if c.parameters}
    for candidate in found.values():
        y = np.full(A.shape[0], np.nan, dtype=dtype)
        bind(A, candidate).product(np.ones(A.shape[1], dtype=dtype), y)
        # Rows that nearly cancel have the rounding of their terms, in the order of the kernel.
        assert np.allclose(y, A @ np.ones(A.shape[1], dtype=dtype), rtol=1e-4, atol=1e-5)
    return {name: dict(candidate.parameters) for name, candidate in found.items()}


def test_a_second_candidate_stores_as_little_as_the_matrix_allows():
    A = gallery("circuit", n=500).copy()
    A.data += 2.0**-40
    assert narrow_ones(A)["csr"] == narrow_ones(A)["sell"] == {"columns": 16}
    assert narrow_ones(A, "complex128") == {}
    A.data = A.data.astype(np.float32).astype(np.float64)
    assert narrow_ones(A)["csr"] == {"values": "float32", "columns": 16}
    assert narrow_ones(A, "float32")["csr"] == {"columns": 16}
    A.data[:] = 0.3
    assert narrow_ones(A)["csr"] == narrow_ones(A, "float32")["sell"] == {"values": "one", "columns": 16}


def test_values_are_rounded_on_request_alone_and_where_nothing_else_holds():
    A = gallery("circuit", n=500).copy()
    A.data += 2.0**-40
    asked = {dtype: narrow_ones(A, dtype, values="float32") for dtype in ("float64", "complex128")}
    assert asked["float64"]["csr"] == {"values": LOSSY, "columns": 16}
    assert asked["complex128"]["sell"] == {"values": LOSSY}
    assert set(asked["float64"]) == {"csr", "sell", "symmetric_csr"}
    A.data = A.data.astype(np.float32).astype(np.float64)
    assert narrow_ones(A, values="float32")["csr"] == {"values": "float32", "columns": 16}
    A.data[:] = 0.3
    assert narrow_ones(A, values="float32")["csr"] == {"values": "one", "columns": 16}
    empty = csr_array((3, 3))
    assert narrow_ones(empty, values="float32") == {}


@pytest.mark.parametrize(
    ("device", "dtype", "values"),
    [("cpu", "float32", "float32"), ("cpu", "complex64", "float32"), ("cuda", "float64", "float32")]
    + [("cpu", "float64", each) for each in ("half", LOSSY, "one", "")],
)
def test_values_that_nothing_stores_are_refused(device, dtype, values):
    with pytest.raises(InputError):
        Target(device, dtype, 32, 1, values=values)


def test_a_model_takes_rounded_values_for_exact_ones():
    blocks = RowBlocks.of(structure(gallery("circuit", n=500)))
    for name in ("csr", "sell", "symmetric_csr"):
        rounded, exact = (
            Candidate(name, "", "cpu", "float64", 32, 1, Parameters({"values": each}))
            for each in (LOSSY, "float32")
        )
        works = [ProductWork(detect()).of(each, blocks) for each in (rounded, exact)]
        assert works[0] == works[1] and "entries values=float32" in works[0]


def test_columns_too_far_apart_for_16_bits_stay_in_full():
    far = csr_array((np.full(2, 0.1), [0, 70_000], [0, 1, 2]), shape=(2, 80_000))
    near = csr_array((np.full(2, 0.1), [14_463, 79_998], [0, 1, 2]), shape=(2, 80_000))
    assert narrow_ones(far)["csr"] == {"values": "one"}
    assert narrow_ones(near)["csr"] == {"values": "one", "columns": 16}


def test_a_structure_that_does_not_know_allows_no_narrow_storage():
    found = structure(gallery("poisson2d", n=30))
    groups = {name: group for name, group in found.groups.items() if name != "narrow_storage"}
    less = dataclasses.replace(found, groups=groups)
    assert any(c.parameters for c in whole_matrix(found, SETTING, detect()).candidates)
    assert not any(c.parameters for c in whole_matrix(less, SETTING, detect()).candidates)
