"""The benchmark matrices of a GPU: those of two papers on its strips, and some that exceed its caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby, zip_longest

import numpy as np

from sparsecast.devices.cuda.kernels import KERNELS
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine
from sparsecast.machines.strips import guo_strip, wang_strip
from sparsecast.matrices.benchmark_matrices import (
    ENTRY_STRIPS,
    NNZ_PER_ROW,
    STRIPS,
    SuiteMatrix,
    entry_strips_benchmark,
    gallery_benchmark,
    strips_benchmark,
    suite_matrix,
    suites_beside_strips,
    varied_benchmark,
    wang_matrices,
)

#: Non-zeros up to which a benchmark matrix is among the first: larger ones take the host seconds to make, and
#: come after all of these, as far as the time of a calibration lasts.
SOON_ENTRIES = 30_000_000

#: Bytes of the GPU that a non-zero takes while it is measured: all formats lie on it, each with values and
#: indices. And of the host, which builds one format after the other.
_DEVICE_BYTES_AN_ENTRY, _HOST_BYTES_AN_ENTRY = 96, 60

#: Share of the host's memory that a benchmark matrix may take.
_HOST_SHARE = 0.25

#: Non-zeros a row of the matrices for CSR: one more length than for a processor, beyond the threads of a
#: block, from where on section 3.5.1 has another line.
CSR_NNZ_PER_ROW = (*NNZ_PER_ROW, 2048)

#: Wang et al. (2017), section 3.1: strips and mean non-zeros a row of their matrices, for CSR with half a
#: warp a row, and for CSR, ELL and JAD with a thread a row. Of their values every other one or so.
_SOME_WANG_VECTOR = ((1, 3, 5, 10, 20, 30, 40, 50), (4, 16, 64, 256, 1024, 2048, 3072))
_SOME_WANG_THREAD = ((1, 3, 5, 7, 10), (4, 16, 64, 256, 1024))

#: As VARIED, BLOCKS and DIAGONALS of a processor's calibration, and gallery matrices held out of the fit,
#: larger than the caches of a device.
LARGE_VARIED = (
    (1_500_000, 6, "mixed", 0.001),
    (600_000, 30, "fixed", 0.01),
    (1_000_000, 8, "power", 0.2),
    (2_500_000, 4, "uniform", 1.0),
    (200_000, 120, "uniform", 0.02),
    (3_000_000, 8, "fixed", 0.0),
)
LARGE_BLOCKS = ((300_000, 9, 3, 0.01), (60_000, 10, 6, 0.1), (400_000, 8, 2, 0.001), (40_000, 9, 8, 0.01))
LARGE_DIAGONALS = ((1_500_000, 7, 0.005), (500_000, 27, 0.02))
LARGE_GALLERY = (
    "banded?n=1000000&half_bandwidth=8",
    "rmat?scale=19&degree=16",
    "poisson3d?n=90&points=27",
    "random?n=1000000&nnz_per_row=8",
)

#: About the non-zeros of each of them.
_LARGE_GALLERY_ENTRIES = 15_000_000


def matrices(machine: Machine) -> list[SuiteMatrix]:
    """Return the benchmark matrices of a GPU, the suites in turn, so that a short budget sees each.

    They are those of Guo et al. (2014) and of Wang et al. (2017) on the GPU's own strips, then larger ones,
    and the suites of a processor. A strip of rows is that of the kernel: Guo's CSR has a warp a row, Wang's
    half a warp or a thread, ELL and JAD a thread. Those beyond SOON_ENTRIES come last, the smallest
    of them first.
    """
    gpu = machine.gpu
    assert gpu is not None
    large = [varied_benchmark(*shape) for shape in LARGE_VARIED]
    large += [suite_matrix("blocks", *shape) for shape in LARGE_BLOCKS]
    large += [suite_matrix("diagonals", *shape) for shape in LARGE_DIAGONALS]
    large += [gallery_benchmark(specification, _LARGE_GALLERY_ENTRIES) for specification in LARGE_GALLERY]
    required, optional = suites_beside_strips()
    every = tuple(KERNELS.names())
    small = [list(suite) for _, suite in groupby(required, key=lambda matrix: matrix.suite)]
    whole = [[replace(matrix, formats=every) for matrix in suite] for suite in (*small, optional, large)]
    in_turn = chain.from_iterable(zip_longest(*_guo_suites(gpu), *_wang_suites(gpu), *whole))
    most = most_entries(machine)
    found = [matrix for matrix in in_turn if matrix and matrix.entries <= most]
    return sorted(found, key=lambda matrix: max(matrix.entries, SOON_ENTRIES))


def paper_suites(machine: Machine) -> dict[str, list[SuiteMatrix]]:
    """Return the benchmark matrices of papers, all that fit, by the name of a suite."""
    gpu = machine.gpu
    assert gpu is not None
    strips = wang_strip(gpu, "csr-scalar"), ("csr", "ell", "jad"), wang_strip(gpu, "csr-vector")
    in_turn = [matrix for turn in zip_longest(*_guo_suites(gpu)) for matrix in turn if matrix]
    found = {"guo": in_turn, "wang": wang_matrices(*strips)}
    most = most_entries(machine)
    return {name: [each for each in suite if each.entries <= most] for name, suite in found.items()}


def most_entries(machine: Machine) -> int:
    """Return the non-zeros of the largest benchmark matrix: Guo's bound is the memory of the GPU (3.2.1).

    The indices have 32 bits, and a share of the host's memory must hold the matrices that are built.
    """
    assert machine.gpu is not None
    on_gpu = machine.gpu.memory_bytes // _DEVICE_BYTES_AN_ENTRY
    here = int(_HOST_SHARE * machine.memory_bytes) // _HOST_BYTES_AN_ENTRY
    return min(on_gpu, here, int(np.iinfo(np.int32).max))


def _guo_suites(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices for CSR, for ELL and for COO, each in strips of its own kernel."""
    rows = {name: guo_strip(gpu, name) for name in ("csr", "ell", "coo")}
    # The shortest and the longest rows and the fewest and the most strips first.
    suites = [
        [
            strips_benchmark(rows[name], strips, length, (name,))
            for length in _ends_first(lengths)
            for strips in _ends_first(STRIPS)
            if length <= strips * rows[name]
        ]
        for name, lengths in (("csr", CSR_NNZ_PER_ROW), ("ell", NNZ_PER_ROW))
    ]
    return [*suites, [entry_strips_benchmark(rows["coo"], strips) for strips in _ends_first(ENTRY_STRIPS)]]


def _wang_suites(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices with normal and uniform row lengths, for half a warp and for a thread a row."""
    kinds = (
        ("csr-vector", _SOME_WANG_VECTOR, ("csr",)),
        ("csr-scalar", _SOME_WANG_THREAD, ("csr", "ell", "jad")),
    )
    return [
        [
            row_lengths_benchmark(strips * wang_strip(gpu, kernel), mean_length, lengths, formats)
            for mean_length in _ends_first(grid[1])
            for strips in _ends_first(grid[0])
            if 2 * mean_length <= strips * wang_strip(gpu, kernel)
        ]
        for lengths in ("normal", "uniform")
        for kernel, grid, formats in kinds
    ]


def row_lengths_benchmark(rows: int, mean_length: int, lengths: str, formats: tuple[str, ...]) -> SuiteMatrix:
    """Return the matrix of Wang et al. (2017) with row lengths of a distribution and uniform columns."""
    return suite_matrix("row lengths", rows, mean_length, lengths, formats=formats)


def _ends_first(values: Sequence[int]) -> list[int]:
    """Return the first, the last and the middle of some values, then the others."""
    ends = [values[0], values[-1], values[len(values) // 2]]
    return ends + [value for value in values if value not in ends]
