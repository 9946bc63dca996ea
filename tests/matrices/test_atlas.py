"""The atlas: what is shipped, and the twins that are made of it."""

import numpy as np
import pytest

from sparsecast.benchmark.run import measured_formats
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.matrices.atlas import MIRRORED, SIZES, atlas, atlas_entries, atlas_matrix
from sparsecast.matrices.problem import group_of
from sparsecast.matrices.suites.general import atlas_benchmarks

SMALL = [(name, size) for name, size in atlas().order if atlas_entries(name, size) < 20_000][::8]


def test_every_entry_is_consistent_and_names_its_source():
    found = atlas()
    assert len(found.entries) > 100 and "benchmarks/run.py atlas" in found.source["command"]
    for name, entry in found.entries.items():
        entry.structure.checked()
        assert not entry.structure.lacks(["row_lengths", "locality", "bands", "blocks"]), name
        assert len(entry.digest) == 32


def test_the_order_names_each_twin_once_and_begins_with_different_ones():
    order = atlas().order
    assert len(set(order)) == len(order) and {size for _, size in order} == set(SIZES) - {MIRRORED}
    first = [atlas().entries[name].structure for name, _ in order[:20]]
    assert max(s.nnz / s.rows for s in first) > 10 * min(s.nnz / s.rows for s in first)
    assert len({name for name, _ in order[:20]}) > 12


@pytest.mark.parametrize("name, size", SMALL, ids="-".join)
def test_a_twin_is_made_from_its_specification_and_has_its_size(name, size):
    A = atlas_matrix(name, size)
    original = atlas().entries[name].structure
    assert A.has_sorted_indices and A.has_canonical_format
    if size == "whole":
        assert (A.shape, A.nnz) == ((original.rows, original.cols), original.nnz)
    if size == "triple":
        assert (A.shape, A.nnz) == ((3 * original.rows, 3 * original.cols), 3 * original.nnz)
    if size == "third":
        assert A.shape == (max(1, original.rows // 3), max(1, original.cols // 3))
        assert 0 < np.diff(A.indptr).max() <= original.row_lengths.max * 9 / 8 + 1
    assert structure(A).rows == A.shape[0]


def test_all_sizes_of_an_entry_and_the_file_that_it_is_from_are_one_group():
    name = atlas().order[0][0]
    digest = atlas().entries[name].digest
    assert {group_of(f"atlas?name={name}&size={size}") for size in SIZES} == {digest}
    assert group_of(f"file:/some/where.mtx?sha256={digest}") == digest


@pytest.mark.parametrize("name, size", [("no such matrix", "whole"), (atlas().order[0][0], "half")])
def test_what_is_not_there_is_refused_in_one_line(name, size):
    with pytest.raises(InputError):
        atlas_matrix(name, size)
    assert group_of("atlas?name=unknown&size=whole") == "unknown"


def test_a_twin_of_a_matrix_that_is_not_symmetric_is_not_mirrored():
    name = next(n for n, each in atlas().entries.items() if each.structure.rows != each.structure.cols)
    with pytest.raises(InputError):
        atlas_matrix(name, MIRRORED)


def test_twins_of_symmetric_matrices_are_mirrored_for_the_format_that_needs_it():
    mirrored = [each for each in atlas_benchmarks() if each.kind == MIRRORED]
    takers = measured_formats(mirrored[0], Target("cpu", "float64", 32, 1))
    assert len(mirrored) > 40 and takers == ["csr", "symmetric_bcsr", "symmetric_csr"]
    small = next(each for each in mirrored if each.entries < 20_000)
    found = small.problem.structure
    assert found.symmetry.triangle_nnz > 0 and found.rows == found.cols
    assert small.entries < found.nnz < 2 * small.entries
