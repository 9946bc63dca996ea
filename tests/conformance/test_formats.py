"""Every registered format: what is predicted of its size is true."""

import dataclasses

import numba
import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array, random_array

from sparsecast.devices.binding import row_slice
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import FormatError, InputError, MatrixSizeError, PaddingError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery, gallery_from_specification

from ..conftest import narrow_storages, traced_bytes

every_format = pytest.mark.parametrize("name", FORMATS.names())


def about(value, storage, permutation_bytes=0):
    """What is predicted of this value: itself, or near it where the format says that it estimates."""
    if storage.predicted_within == 0:
        return value
    return pytest.approx(value, rel=0, abs=value * storage.predicted_within + permutation_bytes)


def is_predicted(A, storage):
    """Whether the format predicts its size of this matrix: if not of all, of those whose rows ascend."""
    first_of_row = np.zeros(A.nnz + 1, dtype=bool)
    first_of_row[A.indptr] = True
    return storage.predicted_from_rows or bool((first_of_row[1:-1] | (np.diff(A.indices[: A.nnz]) > 0)).all())


@every_format
def test_is_registered_under_its_own_name_and_frozen(name, build):
    assert FORMATS.get(name).name == name
    built = build(name, gallery("poisson2d", n=9))
    with pytest.raises(dataclasses.FrozenInstanceError):
        built.nnz = 0


@every_format
def test_conversions_in_threads_make_the_same_arrays(matrices, build, name, monkeypatch):
    alone = {what: build(name, A) for what, A in matrices.items()}
    monkeypatch.setattr("sparsecast.system.parallel.ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 5)
    for what, A in matrices.items():
        together = build(name, A)
        if together is None:
            continue
        expected = {key: array.tobytes() for key, array in alone[what].arrays.items()}
        assert {key: array.tobytes() for key, array in together.arrays.items()} == expected, what


@every_format
def test_a_conversion_takes_little_memory_beside_both_formats(build, name):
    A = gallery("poisson2d", n=200)
    built = build(name, A)
    both = sum(a.nbytes for a in (A.indptr, A.indices, A.data, *built.arrays.values()))
    with traced_bytes() as traced:
        result = FORMATS.get(name).from_csr(A)
    assert result is not None
    assert traced[1] <= built.nbytes + both / 10


#: What `memory_bytes` may miss by: a tenth, and some thousands for bounds of parts and the like.
MEMORY_WITHIN, SOME_BYTES = 0.1, 20_000


@every_format
def test_memory_of_a_conversion_is_forecast_within_a_tenth(name):
    storage, taken = FORMATS.get(name), 0
    alike = gallery("poisson2d", n=150)
    alike.data[:] = 2.0
    irregular = gallery("circuit", n=20_000)
    for A in (gallery("poisson2d", n=150), alike, irregular):
        blocks = RowBlocks.of(structure(A, threads=1))
        for parameters in ({}, *narrow_storages(name, "float64")):
            try:
                built = storage.from_csr(A, **parameters)  # compiles
            except FormatError:
                continue
            with traced_bytes() as found:
                built = storage.from_csr(A, **parameters)
            forecast = [int(each[0]) for each in storage.memory_bytes(blocks, 8, 4, **parameters)]
            within = {"rel": MEMORY_WITHIN + storage.predicted_within, "abs": SOME_BYTES}
            assert found == [pytest.approx(each, **within) for each in forecast], parameters
            assert found[1] > 5 * SOME_BYTES or (name == "csr" and not parameters), "the test is void"
            assert built.nnz == A.nnz
            taken += 1
    assert taken >= 2, "the test is void"


def test_sizes_are_those_of_the_arrays(matrices, in_type, build, typed_format):
    name, dtype, bits = typed_format
    storage = FORMATS.get(name)
    for what, given in matrices.items():
        A = in_type(given, dtype, bits)
        built, value_bytes, index_bytes = build(name, A), A.data.itemsize, A.indices.itemsize
        if built is None:
            continue
        vectors = (A.shape[0] + A.shape[1]) * value_bytes
        assert built.nbytes == sum(array.nbytes for array in built.arrays.values()), what
        assert built.traffic() == built.nbytes + vectors >= A.nnz / 2 * value_bytes + vectors, what
        if what == "spare room in the arrays" or not is_predicted(A, storage):
            continue
        blocks = RowBlocks.of(structure(A, threads=1))
        predicted = storage.predicted_bytes(blocks, value_bytes, index_bytes)
        assert predicted.tolist() == [about(built.nbytes, storage, A.shape[0] * index_bytes)], what
        values = sum(a.size for a in built.arrays.values() if a.dtype == built.dtype)
        assert storage.stored_entries(blocks).tolist() == [about(values, storage)], what
        assert 2 * values >= built.nnz, what  # of a symmetric matrix a format may hold one triangle


@every_format
@pytest.mark.parametrize("strip_rows", (1, 3, 8))
def test_predicted_size_of_row_blocks_is_that_of_the_built_ones(matrices, build, name, strip_rows):
    storage = FORMATS.get(name)
    if not storage.predicted_from_rows:  # a row block is the matrix in small
        A = gallery("poisson2d", n=40)
        strips = StripStatistics.of(A.indptr, structure(A), 8 * strip_rows)
        first = np.arange(strips.strips)
        together, built = storage.stored_entries(strips.blocks(first, first + 1)).sum(), build(name, A)
        assert not storage.can_hold(strips.blocks(first, first + 1)).any() or together == pytest.approx(
            sum(a.size for a in built.arrays.values() if a.dtype == A.dtype), rel=0.01
        )
        return
    for what, A in matrices.items():
        if A.shape[0] == 0 or A.shape[0] > 500:
            continue
        assert A.indices.dtype == np.int32, what
        strips = StripStatistics.of(A.indptr, structure(A, threads=1), strip_rows)
        first, last = (index.ravel() for index in np.triu_indices(strips.strips))
        few = np.random.default_rng(0).permutation(len(first))[:10]
        first, last = first[few], last[few] + 1
        predicted = storage.predicted_bytes(strips.blocks(first, last), A.dtype.itemsize, 4)
        for i, (start, end) in enumerate(zip(strips.bounds[first], strips.bounds[last], strict=True)):
            built = build(name, row_slice(A, int(start), int(end) - 1))
            right = built is None or predicted[i] == about(built.nbytes, storage, 4 * (end - start))
            assert right, f"{what}: rows {start} to {end}"


#: Matrices that are refused: what a format takes with a megabyte of free memory, and what it would pad.
REFUSED = [
    *((name, "poisson3d?n=30&points=27", {}) for name in FORMATS.names() if FORMATS.get(name).is_converted),
    ("ell", "arrow?n=20000&dense_rows=1", {}),
    ("dia", "random?n=30000&nnz_per_row=8", {}),
    ("bcsr", "random?n=30000&nnz_per_row=4", {"block": (8, 8)}),
]


@pytest.mark.parametrize(("name", "matrix", "parameters"), REFUSED)
def test_before_a_refusal_only_some_vectors_are_allocated(monkeypatch, name, matrix, parameters):
    A, little = gallery_from_specification(matrix), psutil.virtual_memory()._replace(available=1_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)
    refusal = MatrixSizeError if matrix.startswith("poisson") else PaddingError
    with pytest.raises(refusal):
        FORMATS.get(name).from_csr(A, **parameters)  # compiles
    with traced_bytes() as traced, pytest.raises(refusal):
        FORMATS.get(name).from_csr(A, **parameters)
    assert traced[1] < 5 * 8 * A.shape[0]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *(("bcsr", {"block": block}) for block in ((5, 2), (2, 0), (2,), (2, 2, 2), (9, 1))),
        *(("symmetric_bcsr", {"block": block}) for block in ((2, 3), (1, 1), (5, 5), (2,), (3, 3, 3))),
        *(("sell", {"sigma": rows}) for rows in (0, -8, 2, 12)),
    ],
)
def test_a_parameter_that_a_format_does_not_have_is_refused(name, parameters):
    with pytest.raises(InputError):
        FORMATS.get(name).from_csr(gallery("poisson2d", n=9), **parameters)


SOME_BLOCKS = (1, 1), (1, 8), (2, 2), (3, 6), (4, 3), (6, 4), (8, 1), (8, 8)


@pytest.mark.parametrize(("name", "block"), [("dia", None), *(("bcsr", block) for block in SOME_BLOCKS)])
def test_unsorted_rows_are_stored_as_sorted_ones(name, block):
    A, how = csr_array(random_array((70, 75), density=0.25, rng=0)), {"block": block} if block else {}
    mixed, generator = A.copy(), np.random.default_rng(0)
    for start, end in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        order = start + generator.permutation(end - start)
        mixed.indices[start:end], mixed.data[start:end] = A.indices[order], A.data[order]
    mixed.has_sorted_indices = True  # as SciPy believes of what it found before
    of_sorted, of_mixed = (FORMATS.get(name).from_csr(matrix, **how).arrays for matrix in (A, mixed))
    assert {key: each.tobytes() for key, each in of_mixed.items()} == {
        key: each.tobytes() for key, each in of_sorted.items()
    }


@pytest.mark.parametrize("dtype", ("float64", "float32"))
def test_what_would_read_more_than_csr_is_no_candidate(dtype):
    found = structure(gallery("random", n=50, nnz_per_row=12))
    choice = whole_matrix(found, Target("cpu", dtype, 32, 1), detect())
    assert {"dia", "bcsr", "symmetric_bcsr", "symmetric_csr"} <= set(choice.refused)
