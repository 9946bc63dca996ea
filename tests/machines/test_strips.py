"""Strip sizes, against the numbers that the papers print."""

import dataclasses
from math import ceil

import pytest

from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import guo_strip, wang_strip
from sparsecast.papers import published

#: The Tesla C2050 of Guo et al. (2014): 14 multiprocessors of 48 warps.
C2050 = GPU("Tesla C2050", 14, 48, 32, 1024, 3 << 30, 768 << 10, 1_150_000_000, 1_500_000_000, (2, 0))
#: 120 compute units of 40 wavefronts, 64 work-items each.
MI100 = dataclasses.replace(C2050, multiprocessors=120, warps_per_multiprocessor=40, lanes=64)

#: Table 3 of Guo et al. (2014).
SOLUTIONS = published("guo_2014")["solutions"]


def test_guo_counts_672_rows_and_32_times_as_many():
    # Section 4: "672 rows (i.e., S_CSR for NVIDIA Tesla C2050)", "672 x 32 rows (i.e., S_ELL ...)".
    assert guo_strip(C2050, "csr") == 672
    assert guo_strip(C2050, "ell") == guo_strip(C2050, "coo") == 672 * 32


@pytest.mark.parametrize("solution", SOLUTIONS, ids=[solution["matrix"] for solution in SOLUTIONS])
def test_strips_of_a_matrix_are_as_many_as_table_3_says(solution):
    assert f", {ceil(solution['rows'] / guo_strip(C2050, 'csr'))}] " in solution["blocks"].rpartition("[")[2]


def test_wang_counts_half_warps_for_csr_vector_and_threads_for_the_others():
    assert wang_strip(C2050, "csr-vector") == 2 * guo_strip(C2050, "csr")
    assert {wang_strip(C2050, kernel) for kernel in ("csr-scalar", "ell", "jad")} == {14 * 1536}


def test_an_amd_device_counts_wavefronts_and_work_items():
    assert guo_strip(MI100, "csr") == 120 * 40
    assert guo_strip(MI100, "ell") == guo_strip(MI100, "coo") == 120 * 2560
