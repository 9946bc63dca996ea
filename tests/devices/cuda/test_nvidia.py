"""A GPU as a device: the matrices that fill it, and, in the simulator in a process of its own, measuring."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from sparsecast.devices import DEVICES
from sparsecast.devices.gpu.gpu_device import SOON_ENTRIES
from sparsecast.devices.target import Target
from sparsecast.features.analysis import structure
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import detect
from sparsecast.machines.strips import guo_strip, wang_strip
from sparsecast.matrices.gallery import gallery
from sparsecast.papers.guo_2014.suites.guo import NNZ_PER_ROW, STRIPS
from sparsecast.planning.candidates import whole_matrix

DEVICE = GPU("a device", 100, 64, 32, 1024, 1 << 36, 50 << 20, 1_500_000_000, 2_000_000_000, (9, 0))
MACHINE = dataclasses.replace(detect(), device="cuda", gpu=DEVICE, memory_bytes=1 << 38)
CUDA = DEVICES.get("cuda")


def test_matrices_are_distinct_of_every_suite_and_none_too_large():
    required, optional = CUDA.suites(Target("cuda", "float64", 32, 1), MACHINE)
    assert required == []
    suites = {
        "strips",
        "entry strips",
        "row lengths",
        "varied",
        "blocks",
        "symmetric",
        "diagonals",
        "gallery",
    }
    assert {matrix.suite for matrix in optional} == suites
    assert suites - {"symmetric"} <= {matrix.suite for matrix in optional[:120]}
    assert max(matrix.entries for matrix in optional) <= (1 << 36) // 96
    assert sum(matrix.entries > 5_000_000 for matrix in optional) > 20
    keys = [(matrix.name, matrix.suite) for matrix in optional]
    assert len(set(keys)) == len(keys)


def matrices(machine):
    return DEVICES.get("cuda").suites(Target("cuda", "float64", 32, 1), machine)[1]


def test_every_relationship_of_guo_has_the_points_that_memory_admits():
    machine = dataclasses.replace(MACHINE, gpu=dataclasses.replace(DEVICE, multiprocessors=132))
    shapes = {matrix.name: matrix.formats for matrix in matrices(machine) if matrix.suite == "strips"}
    for name, beyond in (("csr", 2048), ("ell", 64)):
        rows = guo_strip(machine.gpu, name)
        for length in (*NNZ_PER_ROW[:3], beyond):
            found = [f"strips?rows={rows * each}&nnz_per_row={length}" in shapes for each in STRIPS]
            assert all(found), f"{name} with {length} a row"


def test_what_takes_the_host_long_to_make_comes_last_and_the_smallest_of_it_first():
    entries = [matrix.entries for matrix in matrices(MACHINE)]
    soon = [each <= SOON_ENTRIES for each in entries]
    assert soon == sorted(soon, reverse=True) and not all(soon)
    later = entries[sum(soon) :]
    assert later == sorted(later)


@pytest.mark.parametrize(
    "change, most",
    [
        ({"gpu": dataclasses.replace(DEVICE, memory_bytes=1 << 30)}, (1 << 30) // 96),
        ({"memory_bytes": 1 << 32}, (1 << 30) // 60),
        ({"memory_bytes": 1 << 50, "gpu": dataclasses.replace(DEVICE, memory_bytes=1 << 50)}, 2**31 - 1),
    ],
)
def test_the_largest_matrix_follows_from_memory_and_indices(change, most):
    found = matrices(dataclasses.replace(MACHINE, **change))
    assert 0.1 * most < max(matrix.entries for matrix in found) <= most


def test_strips_are_those_of_each_kernel_on_this_device():
    for matrix in matrices(MACHINE):
        if matrix.suite == "strips":
            (name,) = matrix.formats
            rows = int(matrix.name.split("rows=")[1].split("&")[0])
            assert rows % guo_strip(DEVICE, name) == 0
    assert 2 * guo_strip(DEVICE, "csr") == wang_strip(DEVICE, "csr-vector")


def test_row_lengths_are_distributed_over_wangs_strips():
    found = [matrix for matrix in matrices(MACHINE) if matrix.suite == "row lengths"]
    small = min((matrix for matrix in found if "normal" in matrix.name), key=lambda matrix: matrix.entries)
    A = small.problem.matrix
    assert A.shape[0] % wang_strip(DEVICE, "csr-vector") == 0
    assert A.nnz == small.entries
    assert len(set(np.diff(A.indptr))) > 3
    # Uniform columns: as many in each tenth of them.
    shares = np.histogram(A.indices, 10, (0, A.shape[1]))[0] / A.nnz
    assert np.abs(shares - 0.1).max() < 0.02


def test_candidates_are_all_variants_of_the_formats_that_suit():
    target = Target("cuda", "float64", 32, 1)

    def offered(A):
        return CUDA.calibrated(whole_matrix(structure(A), target, MACHINE).candidates)

    found = offered(gallery("elasticity3d", n=4))
    assert {each.format for each in found} == set(DEVICES.get("cuda").kernels.names())
    variants = [each.kernel for each in found if each.format == "csr"]
    assert variants == list(DEVICES.get("cuda").kernels.get("csr").variants)
    assert "bcsr" not in {each.format for each in offered(gallery("circuit", n=90))}


SIMULATED = """
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from sparsecast.benchmark.measurement import Instruments, measure_candidates
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.errors import MatrixSizeError, WrongResultError
from sparsecast.devices.gpu import launching
from sparsecast.devices.binding import Bound
from sparsecast.devices.gpu.launching import DeviceProduct
from sparsecast.devices.cuda.nvidia import NvidiaGPU
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.features.analysis import structure
from sparsecast.measuring.timing import Effort
from sparsecast.devices.target import Target
from sparsecast.planning.candidates import whole_matrix

sys.setswitchinterval(1e-3)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

A, effort = gallery("poisson2d", n=4), Effort(1, 1e-6)
subject = Problem.of(A, "poisson2d")
target = Target("cuda", "float64", 32, 1)
offered = NvidiaGPU().calibrated(whole_matrix(subject.structure, target, detect()).candidates)
chosen = [each for each in offered if each.kernel in ("scalar", "columns")]
assert len(chosen) == 3


class ReplayMeter:
    source, run_s, step_s = "replay", 1e-6, 1e-7

    def __init__(self, readings):
        self.readings = iter(readings)

    def joules(self):
        return next(self.readings)


meter = ReplayMeter([1.0, 3.0, 5.0, 5.0, 5.0, None])
records = measure_candidates(subject, "user", chosen, effort, Instruments(NvidiaGPU(), meter))
assert [record.candidate for record in records] == chosen
assert [record.regime for record in records] == ["warm"] * 3
assert [record.energy_source for record in records] == ["replay", None, None]
assert [record.energy_j for record in records] == [2.0, None, None]

device = NvidiaGPU(cold_bytes=5000)
(record,) = measure_candidates(subject, "user", chosen[:1], effort, Instruments(device))
assert record.regime == "cold"
x = right_hand_side(16, "float64")
bound, _ = device.bind(A, chosen[0])
seen = []
launch = DeviceProduct.launch


def noted(self, x, out, stream):
    seen.append((id(self), x.__array_interface__["data"][0], out.__array_interface__["data"][0]))
    launch(self, x, out, stream)


DeviceProduct.launch = noted
call = device.call(chosen[0], bound, device.put(x), device.put(np.zeros(16)))
copies = 5000 // bound.matrix.traffic() + 1
assert copies > 2
for _ in range(2 * copies):
    call()
assert len(set(seen)) == copies and seen[:copies] == seen[copies:]
assert all(len({part[i] for part in seen}) == copies for i in range(3))  # each with arrays of its own

with pytest.MonkeyPatch.context() as patch:  # a device without a function that allocates
    freed = SimpleNamespace(clear=lambda: None)
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=3000), deallocations=freed)
    patch.setattr(launching, "cuda", SimpleNamespace(current_context=lambda: context))
    with pytest.raises(MatrixSizeError, match=rf"{copies - 1} cold copies would take .* on the device"):
        device.call(chosen[0], bound, np.zeros(16), np.zeros(16))

DeviceProduct.launch = lambda self, x, out, stream: None  # a kernel that forgets its rows
with pytest.raises(WrongResultError, match=chosen[0].format):
    measure_candidates(subject, "user", chosen[:1], effort)
"""


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is missing")
def test_measuring_in_the_simulator():
    done = subprocess.run(
        [sys.executable, "-c", SIMULATED],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
