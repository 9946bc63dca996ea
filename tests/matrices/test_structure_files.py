"""Structures without their matrices: read from JSON, checked before anything is indexed by them."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.structure_files import counted_structure, read_structure

FOUND = structure(gallery("circuit", n=300), threads=1)
DOCUMENT = json.loads(json.dumps({"matrix": {"name": "mine"}, "structure": FOUND.to_dict()}))


def read(folder, document):
    path = folder / "S.json"
    path.write_text(json.dumps(document))
    return read_structure(path)


def test_what_structure_prints_is_read_again(tmp_path):
    assert read(tmp_path, DOCUMENT) == ("mine", FOUND)
    assert read(tmp_path, DOCUMENT["structure"]) == ("S", FOUND)  # the Structure alone


def changed(group, feature, value):
    document = copy.deepcopy(DOCUMENT)
    (document["structure"][group] if group else document["structure"])[feature] = value
    return document


@pytest.mark.parametrize(
    ("group", "feature", "value"),
    [
        (None, "nnz", FOUND.nnz + 1),
        (None, "rows", -1),
        (None, "cols", 2.5),
        (None, "rows", 2**60),
        ("row_lengths", "mean", 1.0),
        ("row_lengths", "deviation", 1e9),
        ("row_lengths", "mean", float("nan")),
        ("row_lengths", "changes", "many"),
        ("locality", "line_changes", True),
    ],
)
def test_the_first_contradiction_is_named(tmp_path, group, feature, value):
    with pytest.raises(InputError):
        read(tmp_path, changed(group, feature, value))


def test_a_missing_feature_is_named_and_a_missing_group_is_unknown(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    del document["structure"]["bands"]
    assert read(tmp_path, document)[1].lacks(["bands"]) == ["bands"]
    document["structure"]["locality"]["version"] += 1
    assert read(tmp_path, document)[1].lacks(["locality"]) == ["locality"]
    del document["structure"]["row_lengths"]["mode"]
    with pytest.raises(MatrixFileError):
        read(tmp_path, document)


@pytest.mark.parametrize("text", ["[1]", "{", "{}"])
def test_what_is_no_structure_is_refused(tmp_path, text):
    path = tmp_path / "S.json"
    path.write_text(text)
    with pytest.raises(MatrixFileError) as refused:
        read_structure(path)
    assert "S.json" in str(refused.value)
    with pytest.raises(MatrixFileError):
        read_structure(tmp_path / "absent.json")


@given(st.data())
def test_no_change_of_a_structure_gets_further_than_its_reader(tmp_path_factory, data):
    document = copy.deepcopy(DOCUMENT)
    group = data.draw(st.sampled_from(sorted(FOUND.groups)))
    feature = data.draw(st.sampled_from(sorted(document["structure"][group])))
    value = document["structure"][group][feature]
    numbers = st.one_of(st.integers(-(2**65), 2**65), st.floats(), st.none(), st.text(max_size=3))
    if isinstance(value, list):
        place = data.draw(st.integers(0, len(value) - 1))
        value[place] = data.draw(numbers)
    else:
        document["structure"][group][feature] = data.draw(numbers)
    try:
        _, found = read(tmp_path_factory.getbasetemp(), document)
    except InputError:
        pass
    else:  # a change that a matrix can have: everything that is indexed by it still works
        if not found.lacks(["row_lengths"]):
            blocks = RowBlocks.of(found)
            assert blocks.rows_at_least.shape == blocks.entries_up_to.shape == (1, len(blocks.levels))


def test_counts_alone():
    found = counted_structure("counts:nnz=30&rows=10&cols=20")
    assert (found.rows, found.cols, found.nnz, dict(found.groups)) == (10, 20, 30, {})


@pytest.mark.parametrize(
    "text",
    [
        "counts:rows=10&cols=20",
        "counts:",
        "counts:rows=10&cols=20&nnz=x",
        "counts:rows=10&cols=20&nnz=-3",
        "counts:rows=10&cols=20&nnz=3&nnz=4",
        "counts:rows=10&cols=20&nnz=3&deep=4",
        "counts:rows=10&cols=20&nnz=201",
        "counts:rows=0&cols=20&nnz=1",
        "counts:rows=1.5&cols=20&nnz=1",
    ],
)
def test_counts_that_no_matrix_has_are_refused(text):
    with pytest.raises(InputError):
        counted_structure(text)
