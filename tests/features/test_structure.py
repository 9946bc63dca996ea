"""Structures as plain data, and what no matrix can have: refused before compiled loops are indexed by it."""

import copy
import dataclasses
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.errors import FeatureError, InputError
from sparsecast.features import FEATURES
from sparsecast.features.analysis import structure
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS
from sparsecast.features.structure import Structure
from sparsecast.features.symmetry import Symmetry
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.twin_synthesis import banded_twin, twin

SPECIFICATIONS = (
    "poisson2d?n=12",
    "rmat?scale=8&degree=6",
    "arrow?n=300&dense_rows=2",
    "circuit?n=400",
    "elasticity3d?n=4",
    "random?n=90&cols=400&nnz_per_row=7",
)
REAL = [
    structure(gallery_from_specification(each), threads=1, groups=FEATURES.names()) for each in SPECIFICATIONS
]
SYMMETRIC = REAL[0]

#: Counts of a structure whose longest row is beyond the last level.
LONGEST = len(ROW_LENGTH_LEVELS) + 1


def with_feature(found, group, **features):
    return found.having(dataclasses.replace(found.groups[group], **features))


@pytest.mark.parametrize("found", REAL, ids=SPECIFICATIONS)
def test_a_structure_survives_json_and_copying(found):
    assert Structure.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert copy.deepcopy(found) == found and hash(copy.deepcopy(found)) == hash(found)
    assert found.checked() is found


def test_every_group_is_stored_under_its_name_with_its_version():
    stored = SYMMETRIC.to_dict()
    assert set(stored) == {"rows", "cols", "nnz", *FEATURES.names()}
    for name in FEATURES.names():
        assert stored[name]["version"] == FEATURES.get(name).version


@pytest.mark.parametrize("name", FEATURES.names())
def test_groups_of_another_version_are_dropped_and_the_others_stay(name):
    stored = SYMMETRIC.to_dict()
    stored[name] = {"version": FEATURES.get(name).version + 1, "another feature": 3}
    found = Structure.from_dict(stored)
    assert found.lacks(FEATURES.names()) == [name]
    assert found.having(SYMMETRIC.groups[name]) == SYMMETRIC
    assert found.groups.get(name) is None
    with pytest.raises(FeatureError):
        found.require(name)


@pytest.mark.parametrize("name", FEATURES.names())
def test_a_group_without_one_of_its_features_is_refused_by_its_name(name):
    stored = SYMMETRIC.to_dict()
    missing = dataclasses.fields(SYMMETRIC.groups[name])[0].name
    del stored[name][missing]
    with pytest.raises(msgspec.ValidationError):
        Structure.from_dict(stored)


def test_only_the_groups_asked_for_are_computed():
    A = gallery_from_specification(SPECIFICATIONS[0])
    found = structure(A, threads=1, groups=("bands", "row_lengths"))
    assert list(found.groups) == ["bands", "row_lengths"]
    assert found.row_lengths == SYMMETRIC.row_lengths and found.bands == SYMMETRIC.bands


#: For each group, what no matrix of the dimensions of `SYMMETRIC` has.
CONTRADICTIONS = {
    "row_lengths": {
        "min": [6],
        "max": [10**9],
        "mode": [99],
        "mispredicted": [-1],
        "changes": [10**6],
        "empty_rows": [-2],
        "rows_at_least": [(), (144, 150, 144, 144, 140, 100)],
        "entries_up_to": [(0, 144, 288, 432, 576, 10**7)],
    },
    "bands": {
        "half_bandwidth": [144, -1],
        "diagonals": [0, 10**6],
        "histogram": [(1.0,), (0.5,) * 10, (2.0, -1.0) + (0.0,) * 8],
    },
    "blocks": {"fill": [(), (0.5,) * 7]},
    "locality": {
        "line_changes": [10**6, -1],
        "reuse_histogram": [(1.0,), (0.1,) * len(SYMMETRIC.locality.reuse_histogram)],
    },
    "entry_blocks": {"count": [10**6], "shares": [(0.5,)]},
    "narrow_storage": {"row_group_reach": [144]},
    "neighbourhood": {
        "row_bandwidth": [1e9],
        "row_bandwidth_deviation": [-1.0],
        "scatter": [-0.5],
        "neighbours": [3.0],
        "cross_row_similarity": [1.5],
    },
    "slices": {"stored": [0, 64 * 10**6, SYMMETRIC.slices.stored + 1]},
    "stored_values": {"explicit_zeros": [-1, 10**6]},
    "symmetry": {
        "triangle_nnz": [1, 10**6],
        "kind": [None, "odd"],
        "diagonal_blocks": [(1,), (10**6,) * 5],
        "mispredicted_below": [-1, 10**6],
    },
}


@pytest.mark.parametrize("group", FEATURES.names())
def test_what_no_matrix_can_have_is_refused(group):
    for feature, values in CONTRADICTIONS[group].items():
        for value in values:
            with pytest.raises(InputError):
                with_feature(SYMMETRIC, group, **{feature: value}).checked()


@pytest.mark.parametrize(
    "features",
    [
        {"max": 2**70},
        {"max": 2**32, **dict.fromkeys(("rows_at_least", "entries_up_to"), (1,) * LONGEST)},
        {"max": 2**31, "rows_at_least": (2**62,) * (LONGEST - 1), "entries_up_to": (0,) * (LONGEST - 1)},
    ],
)
def test_row_lengths_beyond_all_levels_are_refused(features):
    with pytest.raises(InputError):
        with_feature(SYMMETRIC, "row_lengths", **features).checked()


def test_the_symmetry_of_older_profiles_is_still_read():
    stored = SYMMETRIC.to_dict()
    del stored["symmetry"]["mispredicted_below"]
    stored["symmetry"]["version"] = 2
    second = Structure.from_dict(stored).checked().symmetry
    assert second == dataclasses.replace(SYMMETRIC.symmetry, mispredicted_below=None)
    stored["symmetry"] = {"version": 1, "triangle_nnz": SYMMETRIC.symmetry.triangle_nnz}
    read = Structure.from_dict(stored).checked().symmetry
    assert (read.kind, read.triangle_nnz, read.diagonal_blocks) == (
        "symmetric",
        SYMMETRIC.symmetry.triangle_nnz,
        None,
    )
    stored["symmetry"]["triangle_nnz"] = None
    assert Structure.from_dict(stored).symmetry == Symmetry(None)


def test_a_symmetric_rectangle_is_refused():
    rectangle = REAL[5]
    with pytest.raises(InputError):
        with_feature(rectangle, "symmetry", triangle_nnz=rectangle.nnz).checked()


#: Integers that are features, by group: each is changed by itself.
COUNTS = [
    (group, field.name)
    for group in FEATURES.names()
    for field in dataclasses.fields(SYMMETRIC.groups[group])
    if isinstance(getattr(SYMMETRIC.groups[group], field.name), int)
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(REAL), st.sampled_from(COUNTS), st.integers(-(2**40), 2**40), st.booleans())
def test_a_changed_feature_is_refused_or_gives_a_matrix(found, place, value, is_small):
    group, feature = place
    changed = with_feature(found, group, **{feature: value % 50 if is_small else value})
    try:
        changed.checked()
    except InputError:
        with pytest.raises(InputError):
            twin(changed, seed=0)
        with pytest.raises(InputError):
            banded_twin(changed, seed=0)
    else:
        for made in (twin(changed, seed=0), banded_twin(changed, seed=0)):
            made.check_format(full_check=True)
            assert (*made.shape, made.nnz) == (changed.rows, changed.cols, changed.nnz)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(REAL), st.floats(0.01, 30.0), st.sampled_from((1, 2, 3)))
def test_scaled_and_rounded_counts_are_refused_before_a_compiled_loop_is_indexed(found, factor, block):
    # As somebody would make the structure of a larger matrix: sums of what was rounded no longer agree.
    lengths = found.row_lengths
    scaled = dataclasses.replace(
        found, rows=round(found.rows * factor), cols=round(found.cols * factor), nnz=round(found.nnz * factor)
    ).having(
        dataclasses.replace(
            lengths,
            rows_at_least=tuple(round(each * factor) for each in lengths.rows_at_least),
            entries_up_to=tuple(round(each * factor) for each in lengths.entries_up_to),
        )
    )
    try:
        scaled.checked()
    except InputError:
        for make in (twin, banded_twin):
            with pytest.raises(InputError):
                make(scaled, block, seed=0)
    else:
        twin(scaled, block, seed=0).check_format(full_check=True)
