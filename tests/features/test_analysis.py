"""Structure against an oracle that counts entry by entry in plain Python."""

from __future__ import annotations

import dataclasses
import itertools
import math
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix, tril

from sparsecast.errors import InputError
from sparsecast.features import usual_groups
from sparsecast.features.analysis import structure
from sparsecast.features.bands import Bands
from sparsecast.features.blocks import BLOCK_SIZES, Blocks
from sparsecast.features.locality import Locality
from sparsecast.features.narrow_storage import GROUP_ROWS, NARROW_COLUMNS, NarrowStorage, narrowest
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS, RowLengths
from sparsecast.features.stored_values import StoredValues
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import X_REUSE_ELEMENTS
from sparsecast.features.symmetry import Symmetry
from sparsecast.matrices.gallery import gallery

from ..conftest import traced_bytes
from .oracles import drawn_matrices, mispredicted


def row_length_oracle(lengths: list[int]) -> dict:
    rows, total = len(lengths), sum(lengths)
    mean = total / rows if rows else 0.0
    counts = Counter(lengths)
    longest = max(lengths, default=0)
    levels = ROW_LENGTH_LEVELS[: sum(level < longest for level in ROW_LENGTH_LEVELS) + 1]
    return {
        "mean": mean,
        "deviation": math.sqrt(sum((each - mean) ** 2 for each in lengths) / rows) if rows else 0.0,
        "mode": min((k for k, n in counts.items() if n == max(counts.values())), default=0),
        "min": min(lengths, default=0),
        "max": longest,
        "empty_rows": counts[0],
        "changes": sum(a != b for a, b in itertools.pairwise(lengths)),
        "mispredicted": sum(mispredicted(lengths)),
        "rows_at_least": tuple(sum(each >= level for each in lengths) for level in levels),
        "entries_up_to": tuple(sum(min(each, level) for each in lengths) for level in levels),
    }


def reuse_oracle(columns: list[int]) -> tuple[int, tuple[float, ...]]:
    histogram = [0] * X_REUSE_ELEMENTS
    time, before, last_read = 0, None, {}
    for column in columns:
        line = column // 8
        if line != before:
            time += 1
            place = (time - last_read[line]).bit_length() - 1 if line in last_read else X_REUSE_ELEMENTS - 1
            histogram[place] += 1
            last_read[line] = time
        before = line
    return time, tuple(each / max(time, 1) for each in histogram)


#: The mirror image of a value, by kind; where a sign changes, a zero of any sign mirrors a zero.
IMAGES = {"symmetric": lambda v: v, "hermitian": lambda v: v.conjugate(), "skew": lambda v: -v}


def symmetry_oracle(A: csr_array, entries: list[tuple[int, int]]) -> Symmetry:
    values = dict(zip(entries, A.data[: len(entries)].tolist(), strict=True))
    if A.shape[0] != A.shape[1] or entries != sorted(values):
        return Symmetry(None)
    for kind, image in IMAGES.items():
        if all(values.get((j, i)) == image(each) for (i, j), each in values.items()):
            blocks = (len({i // b for i, j in entries if i // b == j // b}) for b in BLOCK_SIZES)
            below = Counter(i for i, j in entries if j < i)
            irregular = sum(mispredicted(below[i] for i in range(A.shape[0])))
            return Symmetry(sum(j <= i for i, j in entries), kind, tuple(blocks), irregular)
    return Symmetry(None)


def test_mispredicted_rows_below_the_diagonal_of_many_rows_are_estimated():
    A = gallery("circuit", n=100_000)
    expected = sum(mispredicted(np.diff(tril(A, -1, format="csr").indptr)))
    assert structure(A).symmetry.mispredicted_below == pytest.approx(expected, rel=0.02)


def narrow_storage_oracle(A: csr_array, columns: list[int]) -> NarrowStorage:
    values = A.data[: len(columns)]
    reach = max(A.shape[1] - 1, 0)
    if A.shape[1] > NARROW_COLUMNS:
        groups = [
            columns[A.indptr[r] : A.indptr[r : r + GROUP_ROWS + 1][-1]]
            for r in range(0, A.shape[0], GROUP_ROWS)
        ]
        reach = max((max(group) - min(group) for group in groups if group), default=0)
    bits = {value.tobytes() for value in values}
    return NarrowStorage(
        all_alike=len(bits) == 1,
        float32_exact=all(struct.pack("d", np.float32(v)) == struct.pack("d", v) for v in values.tolist()),
        row_group_reach=min(reach, NARROW_COLUMNS),
    )


def oracle(A: csr_array) -> Structure:
    rows, cols = A.shape
    lengths = np.diff(A.indptr).tolist()
    nnz = sum(lengths)
    of_row = [row for row, length in enumerate(lengths) for _ in range(length)]
    columns = A.indices[:nnz].tolist()
    entries = list(zip(of_row, columns, strict=True))
    bands = [0] * 10
    for i, j in entries:
        bands[10 * abs(i * cols - j * rows) // (rows * cols)] += 1
    blocks = [len({(i // size, j // size) for i, j in entries}) for size in BLOCK_SIZES]
    changes, reuse = reuse_oracle(columns)
    fill = tuple(n * b * b / nnz if nnz else 1.0 for n, b in zip(blocks, BLOCK_SIZES, strict=True))
    groups = (
        RowLengths(**row_length_oracle(lengths)),
        Locality(line_changes=changes, reuse_histogram=reuse),
        Bands(
            half_bandwidth=max((abs(i - j) for i, j in entries), default=0),
            histogram=tuple(each / max(nnz, 1) for each in bands),
            diagonals=len({j - i for i, j in entries}),
        ),
        Blocks(fill=fill),
        symmetry_oracle(A, entries),
        StoredValues(explicit_zeros=sum(value == 0 for value in A.data[:nnz].tolist())),
        narrow_storage_oracle(A, columns),
    )
    return Structure(rows, cols, nnz).having(*groups)


#: Features that are rounded: sums and ratios of floating-point numbers.
ROUNDED = ("mean", "deviation", "histogram", "fill", "reuse_histogram")


def assert_same(found: Structure, expected: Structure) -> None:
    assert list(found.groups) == list(expected.groups) == usual_groups()
    for key in ("rows", "cols", "nnz"):
        assert getattr(found, key) == getattr(expected, key), key
        assert type(getattr(found, key)) is int, key
    for name, group in expected.groups.items():
        for key, value in dataclasses.asdict(group).items():
            feature = getattr(found.groups[name], key)
            if key in ROUNDED:
                assert feature == pytest.approx(value, rel=1e-12, abs=1e-12), key
            else:
                assert feature == value, key
                assert type(feature) is type(value), key


@given(drawn_matrices())
@settings(deadline=None, max_examples=150)
def test_random_matrices_agree_with_the_oracle(A):
    before = (A.data.copy(), A.indices.copy(), A.indptr.copy())
    assert_same(structure(A, threads=1), oracle(A))
    for array, kept in zip((A.data, A.indices, A.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("poisson2d", {"n": 25}),
        ("elasticity3d", {"n": 5}),
        ("random", {"n": 300, "cols": 900, "nnz_per_row": 7}),
        ("rmat", {"scale": 9, "degree": 8}),
        ("arrow", {"n": 3000, "dense_rows": 2}),
        ("circuit", {"n": 2000}),
    ],
)
def test_gallery_agrees_with_the_oracle(name, parameters):
    A = gallery(name, **parameters)
    assert_same(structure(A), oracle(A))


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (7, 3), (3, 1000)])
def test_matrices_without_entries(shape):
    found = structure(csr_array(shape))
    assert_same(found, oracle(csr_array(shape)))
    assert found.blocks.fill == (1.0,) * len(BLOCK_SIZES)
    assert sum(found.locality.reuse_histogram) == 0.0


def test_arrays_longer_than_the_entries_and_csr_matrix():
    A = csr_matrix(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    A.indices = np.append(A.indices, np.int32(0))
    A.data = np.append(A.data, 0.0)
    assert_same(structure(A), oracle(A))


#: Values, and whether they are alike, and each one of float32.
VALUES = [
    ([1 / 3] * 4, (True, False)),
    ([-0.0] * 3, (True, True)),
    ([0.0, -0.0], (False, True)),
    ([np.inf, 1e-45, -2.5], (False, False)),
    ([float(np.float32(1e-45)), -np.inf, float(np.float32(0.1))], (False, True)),
    ([1e39], (True, False)),
    ([1.0] * 70_000 + [1 + 2**-24], (False, False)),
    ([np.nan, np.nan], (True, False)),
    ([], (False, True)),
    ([1j, 1j], (True, False)),
    ([1j, complex(-0.0, 1)], (False, False)),
    (np.array([1, 3], dtype=np.int8), (False, True)),
    (np.array([2**24 + 1, 3], dtype=np.int64), (False, False)),
    (np.array([0.1] * 3, dtype=np.float32), (True, True)),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("values", "expected"), VALUES)
def test_what_values_need(values, expected, threads, monkeypatch):
    monkeypatch.setattr("sparsecast.features.analysis.ENTRIES_PER_THREAD", 2)
    values = np.asarray(values, dtype=None if len(values) else float)
    A = csr_array((values, np.zeros(len(values), dtype=np.int32), [0, len(values)]), shape=(1, 1))
    found = structure(A, threads=threads, groups=("narrow_storage",)).narrow_storage
    assert (found.all_alike, found.float32_exact) == expected


@given(st.integers(1, 600), st.integers(0, 2**32), st.sampled_from([65_535, 65_536, 65_537, 200_000]))
@settings(deadline=None, max_examples=60)
def test_columns_fit_16_bits_if_no_group_of_rows_reaches_farther(rows, seed, width):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, 3, rows)
    first = generator.integers(0, 10**6, -(-rows // GROUP_ROWS)).repeat(GROUP_ROWS)[:rows].repeat(lengths)
    # Unsorted, and the ends of the widest range are more likely than what is between them.
    indices = first + generator.integers(-9, width + 9, len(first)).clip(0, width - 1)
    indptr = np.append(0, np.cumsum(lengths))
    A = csr_array((np.ones(len(first)), indices, indptr), shape=(rows, 2 * 10**6))
    expected = narrow_storage_oracle(A, indices.tolist())
    found = structure(A, groups=("narrow_storage",), threads=2)
    assert found.narrow_storage == expected
    assert ("columns" in narrowest(found)) == (expected.row_group_reach < 2**16 and len(first) > 0)


def test_the_narrowest_storage_of_what_is_not_known_is_none():
    A = csr_array(np.ones((3, 3)))
    assert narrowest(structure(A)) == {"values": "one", "columns": 16}
    assert narrowest(structure(A, groups=("stored_values",))) == narrowest(structure(csr_array((3, 3)))) == {}
    A.data[1] = 0.5
    assert narrowest(structure(A)) == {"values": "float32", "columns": 16}
    A.data[1] = 0.1
    assert narrowest(structure(A)) == {"columns": 16}


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float32", np.int8, np.longdouble])
def test_a_value_is_zero_where_all_its_parts_are(dtype):
    parts = (
        [1, 0, 1j, complex(0, np.nan), complex(-0.0, 0.0)] if "complex" in str(dtype) else [1, 0, 1, 1, -0.0]
    )
    A = csr_array((np.array(parts, dtype=dtype), [0, 1, 2, 0, 1], [0, 3, 5]), shape=(2, 3))
    assert structure(A).stored_values.explicit_zeros == 2


@pytest.mark.parametrize(
    "name, size", [("rmat", {"scale": 16}), ("arrow", {"n": 200_000}), ("poisson3d", {"n": 55})]
)
def test_threads_change_nothing(name, size):
    A = gallery(name, **size)
    one = structure(A, threads=1)
    assert all(structure(A, threads=threads) == one for threads in (2, 3, 4))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("poisson2d", {"n": 460}),
        ("random", {"n": 520_000, "nnz_per_row": 2}),
        ("random", {"n": 110, "cols": 100_000, "nnz_per_row": 10_000}),
    ],
)
def test_work_arrays_stay_below_a_tenth_of_the_matrix(name, parameters):
    A = gallery(name, **parameters)
    assert A.nnz > 1_000_000
    structure(A, threads=4)  # compiles
    with traced_bytes() as traced:
        found = structure(A, threads=4)
    assert traced[1] <= 0.1 * (A.data.nbytes + A.indices.nbytes + A.indptr.nbytes)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    assert found.bands.diagonals == np.unique(A.indices - rows).size
    assert found.locality.line_changes == 1 + np.count_nonzero(np.diff(A.indices // 8))
    assert sum(found.locality.reuse_histogram) == pytest.approx(1.0)


def test_far_more_columns_than_memory_for_maps():
    rows, cols = [0, 1, 1, 2, 2], [0, 2**31 - 9, 2**31 - 2, 2**30, 0]
    A = coo_array((np.ones(5), (rows, cols)), shape=(3, 2**31 - 1)).tocsr()
    A = csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
    found = structure(A)
    assert found.bands.diagonals == len({c - r for r, c in zip(rows, cols, strict=True)})
    assert found.bands.half_bandwidth == max(abs(c - r) for r, c in zip(rows, cols, strict=True))
    assert found.locality.line_changes == 5
    assert sum(found.locality.reuse_histogram) == pytest.approx(1.0)
    assert found.locality.reuse_histogram[-1] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "name, size", [("circuit", {"n": 100_000}), ("rmat", {"scale": 15}), ("elasticity3d", {"n": 16})]
)
def test_estimates_are_near_the_truth(name, size, monkeypatch):
    A = gallery(name, **size)
    estimated = structure(A)
    monkeypatch.setattr("sparsecast.features.sweep._MAX_REUSE_SHIFT", 0)
    monkeypatch.setattr("sparsecast.features.blocks._EXACT_FILL_NNZ", 2**21)
    exact = structure(A)
    assert estimated.blocks.fill != exact.blocks.fill
    assert estimated.locality.reuse_histogram != exact.locality.reuse_histogram
    np.testing.assert_allclose(estimated.blocks.fill, exact.blocks.fill, rtol=0.08)
    np.testing.assert_allclose(estimated.locality.reuse_histogram, exact.locality.reuse_histogram, atol=0.03)


@pytest.mark.parametrize(
    "wrong, threads", [(coo_array((2, 2)), 1), (np.zeros((2, 2)), 1), ("matrix", 1), (csr_array((2, 2)), 0)]
)
def test_other_than_csr_and_no_threads_are_refused(wrong, threads):
    with pytest.raises(InputError):
        structure(wrong, threads=threads)
