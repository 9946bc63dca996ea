"""The five-minute benchmark's search space: its matrices, their names and sizes."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.errors import InputError
from sparsecast.machines.machine import Cache
from sparsecast.papers.gahvari_2007.search_space import (
    NNZ_PER_ROW,
    SYMMETRIC,
    UNBLOCKED,
    Point,
    Series,
    all_series,
    dimensions,
    last_cache_bytes,
    size_class,
)

TWO, FOUR = Series((2, 2)), Series((4, 1))
WHOLE = tuple(2**exponent for exponent in range(9, 21))


def test_the_series_are_the_papers_36_block_sizes_and_the_symmetric_matrices():
    found = all_series()
    assert len(found) == len(set(found)) == 37
    assert {series.block for series in found} == {
        (r, c) for r in (1, 2, 3, 4, 6, 8) for c in (1, 2, 3, 4, 6, 8)
    }
    assert [series.format for series in found].count("bcsr") == 35
    assert found[0] == UNBLOCKED
    assert found[1] == SYMMETRIC, "so that a short run has a figure of them"
    assert all_series(["1x1", "4x1", "1x1"]) == (UNBLOCKED, SYMMETRIC, FOUR)


@pytest.mark.parametrize("name", ["5x5", "4", "x", "4x", "", "4x4x4", "symmetric", "04x4", "-1x2"])
def test_an_unknown_block_size_is_refused(name):
    with pytest.raises(InputError):
        all_series(["1x1", name])


@given(st.sampled_from(all_series()), st.sampled_from(WHOLE), st.sampled_from(NNZ_PER_ROW))
def test_a_point_is_found_by_its_name(series, dimension, nnz_per_row):
    point = Point(series, dimension, nnz_per_row)
    assert Point.named(point.name) == point


@pytest.mark.parametrize("cache_bytes", [0, 32 << 20, 480 << 20, 2 << 30, 3 << 30])
def test_the_range_is_the_papers_and_grows_until_a_problem_is_out_of_cache(cache_bytes):
    found = dimensions(cache_bytes, 8, float("inf"))
    assert found[: len(WHOLE)] == WHOLE
    if found != WHOLE:
        sizes = [size_class(dimension, NNZ_PER_ROW[-1], 8, cache_bytes) for dimension in found[-2:]]
        assert sizes == ["small", "medium"]
    assert (found == WHOLE) == (cache_bytes <= 32 << 20)


@pytest.mark.parametrize(("entries", "count"), [(34 * 4096, 4), (34 * 4096 - 1, 3), (100, 0)])
def test_the_range_ends_where_memory_does(entries, count):
    assert dimensions(1 << 30, 8, entries) == WHOLE[:count]


def test_sizes_are_told_by_what_fits_in_the_cache():
    whole = 1000 * (30 * 12 + 4 + 16)
    assert size_class(1000, 30, 8, whole) == "small"
    assert size_class(1000, 30, 8, whole - 1) == size_class(1000, 30, 8, 8000) == "medium"
    assert size_class(1000, 30, 8, 7999) == "large"
    assert size_class(1000, 30, 8, 0) is None


def test_the_last_cache_is_what_the_threads_have_together(recorded):
    machine = dataclasses.replace(recorded.machine, caches=(Cache(1, 100, 1), Cache(2, 1000, 2)))
    assert [last_cache_bytes(machine, threads) for threads in (1, 2, 3, 4)] == [1000, 1000, 2000, 2000]
    assert last_cache_bytes(dataclasses.replace(machine, caches=()), 1) == 0
