"""A GPU as a device: the matrices that fill it, and what is measured of each."""

import dataclasses

import pytest

from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.features.analysis import structure
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.models.linear import LEAST_RECORDS

DEVICE = GPU("a device", 100, 64, 32, 1024, 1 << 36, 50 << 20, 1_500_000_000, 2_000_000_000, (9, 0))
MACHINE = dataclasses.replace(detect(), device="cuda", gpu=DEVICE, memory_bytes=1 << 38)
CUDA = DEVICES.get("cuda")


def test_matrices_are_distinct_of_every_suite_and_none_too_large():
    required, optional = CUDA.suites(Target("cuda", "float64", 32, 1), MACHINE)
    assert max(matrix.entries for matrix in required) <= 10_000_000
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
    assert {matrix.suite for matrix in (*required, *optional)} == suites
    assert suites == {matrix.suite for matrix in optional[:120]}
    assert max(matrix.entries for matrix in optional) <= (1 << 36) // 96
    assert sum(matrix.entries > 5_000_000 for matrix in optional) > 20
    keys = [(matrix.name, matrix.suite) for matrix in (*required, *optional)]
    assert len(set(keys)) == len(keys)


def test_every_format_is_required_of_more_matrices_than_a_fit_of_costs_needs():
    required, _ = CUDA.suites(Target("cuda", "float64", 32, 1), MACHINE)
    candidates = [
        candidate.format
        for matrix in required
        for candidate in whole_matrix(
            matrix.problem.structure, Target("cuda", "float64", 32, 1), MACHINE
        ).candidates
    ]
    counts = {name: candidates.count(name) for name in CUDA.kernels.names()}
    assert min(counts.values()) >= LEAST_RECORDS + 2, counts


def matrices(machine):
    return DEVICES.get("cuda").suites(Target("cuda", "float64", 32, 1), machine)[1]


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


def test_candidates_are_all_variants_of_the_formats_that_suit():
    target = Target("cuda", "float64", 32, 1)

    def offered(A):
        return CUDA.calibrated(whole_matrix(structure(A), target, MACHINE).candidates)

    found = offered(gallery("elasticity3d", n=4))
    assert {each.format for each in found} == set(DEVICES.get("cuda").kernels.names())
    in_csr = [each for each in found if each.format == "csr"]
    variants = list(DEVICES.get("cuda").kernels.get("csr").variants)
    assert [each.kernel for each in in_csr if not each.parameters] == variants
    # Of narrow storage, the one that the rule chooses for 45 entries a row.
    assert [(each.kernel, dict(each.parameters)) for each in in_csr if each.parameters] == [
        ("vector16", {"columns": 16})
    ]
    assert "bcsr" not in {each.format for each in offered(gallery("circuit", n=90))}
