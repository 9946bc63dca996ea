"""Matrices beyond the last cache: as large as the cache asks for, and soon, but rare."""

import itertools

import pytest

from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.suites.general import BEYOND, General, beyond_benchmarks

MIB = 1 << 20


def machine(last_mib):
    caches = (Cache(1, 1 << 15, 1), Cache(2, MIB, 1), Cache(3, last_mib * MIB, 8))
    return Machine("a processor", "x86_64", 16, 16, caches, (), 1 << 36, "Linux")


@pytest.mark.parametrize(("last_mib", "threads"), [(32, 1), (32, 8), (16, 16)])
def test_they_are_some_times_larger_than_the_cache_of_their_threads(last_mib, threads):
    cache_bytes = last_mib * MIB * max(1, threads // 8)
    for matrix in beyond_benchmarks(machine(last_mib), threads):
        assert 2 * cache_bytes < 12 * matrix.entries < 3 * cache_bytes
        assert set(matrix.formats) <= set(FORMATS.names())


@pytest.mark.parametrize("last_mib", (1, 1024))
def test_small_and_huge_caches_have_matrices_that_a_calibration_can_make(last_mib):
    assert all(1_500_000 < m.entries < 9_000_000 for m in beyond_benchmarks(machine(last_mib), 1))


def test_a_calibration_of_a_minute_has_the_first_ones_and_all_are_a_small_part():
    required = General().usual(machine(32), 1)[0].matrices
    large = [m.problem.specification for m in beyond_benchmarks(machine(32), 1)]
    places = [place for place, matrix in enumerate(required) if matrix.problem.specification in large]
    assert len(places) == len(BEYOND) and places[0] < 5
    assert all(later - place == 5 for place, later in itertools.pairwise(places))
    assert len(places) < len(required) / 5
