"""The benchmark matrices of a processor, on strips of that processor."""

from __future__ import annotations

from sparsecast.machines.strips import strip_rows
from sparsecast.matrices.benchmark_matrices import (
    ENTRY_STRIPS,
    NNZ_PER_ROW,
    STRIPS,
    SuiteMatrix,
    atlas_benchmarks,
    entry_strips_benchmark,
    hossain_matrices,
    strips_benchmark,
    suites_beside_strips,
    wang_matrices,
)

_COARSE_STRIPS = (1, 5, 10)
_COARSE_NNZ_PER_ROW = (4, 16, 64)
_COARSE_ENTRY_STRIPS = (10, 50, 100)


def suites(threads: int) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
    """Return the required matrices for so many threads, and the optional ones."""
    needed, entries, rest = _guo_matrices(threads)
    required_suites, optional_suites = suites_beside_strips()
    return needed + required_suites, atlas_benchmarks() + entries + optional_suites + rest


def paper_suites(threads: int) -> dict[str, list[SuiteMatrix]]:
    """Return the benchmark matrices of papers for so many threads, by the name of a suite."""
    needed, entries, rest = _guo_matrices(threads)
    return {
        "guo": needed + entries + rest,
        "wang": wang_matrices(strip_rows(None, threads), ("csr", "ell", "jad")),
        "hossain": hossain_matrices(),
    }


def _guo_matrices(threads: int) -> tuple[list[SuiteMatrix], list[SuiteMatrix], list[SuiteMatrix]]:
    """Return the required matrices of Guo et al. (2014), and the other ones for COO and for CSR and ELL."""
    rows = strip_rows(None, threads)
    grid = [(strips, length) for length in NNZ_PER_ROW for strips in STRIPS if length < strips * rows]

    def coarse(strips: int, length: int) -> bool:
        return strips in _COARSE_STRIPS and length in _COARSE_NNZ_PER_ROW

    # All formats on these: it gives the models that see more than strips a first look at each.
    needed = [strips_benchmark(rows, *point, ()) for point in grid if coarse(*point)]
    needed += [entry_strips_benchmark(rows, strips) for strips in _COARSE_ENTRY_STRIPS]
    entries = [
        entry_strips_benchmark(rows, strips) for strips in ENTRY_STRIPS if strips not in _COARSE_ENTRY_STRIPS
    ]
    # Long rows first: they carry the fixed-strips relationships furthest.
    rest = [point for point in grid if not coarse(*point)]
    rest.sort(key=lambda point: point[0] not in _COARSE_STRIPS)
    return needed, entries, [strips_benchmark(rows, *point) for point in rest]
