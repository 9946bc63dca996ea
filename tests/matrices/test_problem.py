"""Problems: one matrix under one name, made once, and made again from its specification."""

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, csr_array

from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.narrow_storage import narrowest
from sparsecast.matrices import problem as problem_module
from sparsecast.matrices.atlas import atlas_group
from sparsecast.matrices.families import FAMILIES, parse_specification, specification
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.problem import TWINS, Problem, group_of

from .conftest import same

#: A small matrix of every family.
SPECIFICATIONS = {
    "strips": "strips?rows=40&nnz_per_row=4",
    "varied": "varied?rows=90&mean_length=4&lengths=power&reach=0.5",
    "symmetric": "symmetric?rows=60&mean_length=3&lengths=fixed&reach=0.3",
    "blocks": "blocks?block_rows=12&blocks_per_row=3&block=2&reach=0.5",
    "symmetric blocks": "symmetric blocks?block_rows=40&blocks_per_row=4&block=3&reach=0.3",
    "diagonals": "diagonals?rows=70&diagonals=3&reach=0.1",
    "row lengths": "row lengths?rows=80&mean_length=5&lengths=normal&spread=0.125",
    "synthetic": "synthetic?rows=60&nnz_per_row=6&kind=2x3",
    "atlas": "atlas?name=494_bus&size=triple",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.mtx"
    mmwrite(path, coo_array(np.array([[1.0, 0.0], [2.0, 3.0]])))
    return path


def test_every_family_has_a_matrix_here():
    assert set(SPECIFICATIONS) == set(FAMILIES.names())


@pytest.mark.parametrize("family", SPECIFICATIONS)
def test_a_matrix_of_a_family_is_made_again_from_its_specification(family):
    text = SPECIFICATIONS[family]
    one = Problem.named(text)
    assert (one.name, one.specification) == (text, text)
    assert one.group == (atlas_group("494_bus") if family == "atlas" else text)
    again = Problem.rebuilt(one.specification)
    assert same(one.matrix, again.matrix)
    assert one.expected_nnz == pytest.approx(one.matrix.nnz, rel=0.35)
    assert one.structure == structure(one.matrix)


@pytest.mark.parametrize("family", SPECIFICATIONS)
def test_a_family_has_other_values_in_the_same_places_and_group(family):
    own = Problem.named(SPECIFICATIONS[family])
    one, rounded = (Problem.rebuilt(f"{own.specification}&values={each}") for each in ("one", "float32"))
    assert {own.group} == {one.group, rounded.group} and own.expected_nnz == one.expected_nnz
    assert "values" not in narrowest(own.structure)
    for other, values in ((one, "one"), (rounded, "float32")):
        assert narrowest(other.structure)["values"] == values
        np.testing.assert_array_equal(other.matrix.indices, own.matrix.indices)
        assert other.structure.symmetry == own.structure.symmetry
    np.testing.assert_allclose(rounded.matrix.data, own.matrix.data, rtol=1e-7)


def test_values_of_another_kind_are_refused_in_one_line():
    with pytest.raises(InputError, match="'strips"):
        Problem.named("strips?rows=40&nnz_per_row=4&values=two").structure  # noqa: B018


@pytest.mark.parametrize("family", SPECIFICATIONS)
def test_a_specification_says_its_parameters_and_takes_them_back(family):
    name, parameters = parse_specification(SPECIFICATIONS[family])
    assert name == family and specification(name, **parameters) == SPECIFICATIONS[family]


@pytest.mark.parametrize("text", ["varied?rows", "varied?rows=1&rows=2", "varied?=3"])
def test_a_damaged_specification_is_refused_in_one_line(text):
    with pytest.raises(InputError):
        Problem.named(text)


def test_a_gallery_matrix_is_named_and_made_again():
    one = Problem.named("gallery:poisson2d?n=9")
    assert one.specification == one.name == "gallery:poisson2d?n=9"
    assert same(one.matrix, gallery_from_specification("poisson2d?n=9"))
    assert same(Problem.rebuilt(one.specification).matrix, one.matrix)
    assert one.group == Problem.named("gallery:poisson2d?n=30").group != Problem.named("gallery:arrow").group


def test_a_file_is_its_place_and_its_content(file):
    one = Problem.named(file)
    assert one.name == "small" and one.specification.startswith(f"file:{file}?sha256=")
    assert one.notes == ()
    assert same(Problem.rebuilt(one.specification).matrix, one.matrix)
    assert one.group == group_of(one.specification) and str(file.parent) not in one.group


def test_a_file_that_changed_or_is_gone_is_not_made_again(file):
    known = Problem.named(file).specification
    twin = Problem.named(file).twin().specification
    assert Problem.rebuilt(known) is not None and Problem.rebuilt(twin) is not None
    file.write_text(file.read_text().replace("3", "4"))
    assert Problem.rebuilt(known) is None and Problem.rebuilt(twin) is None
    file.unlink()
    assert Problem.rebuilt(known) is None and Problem.rebuilt(twin) is None


def test_the_same_file_elsewhere_is_in_the_same_group(file, tmp_path):
    other = tmp_path / "other.mtx"
    other.write_bytes(file.read_bytes())
    one, copy = Problem.named(file), Problem.named(other)
    assert one.specification != copy.specification and one.group == copy.group


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("original", ["gallery:circuit?n=200", SPECIFICATIONS["varied"]])
def test_a_twin_is_made_again_and_in_the_group_of_its_original(kind, original):
    one = Problem.named(original)
    twin = one.twin(kind, block=2)
    assert (twin.matrix.shape, twin.matrix.nnz) == (one.matrix.shape, one.matrix.nnz)
    assert twin.group == one.group == group_of(twin.specification)
    assert same(Problem.rebuilt(twin.specification).matrix, twin.matrix)
    assert kind in twin.name


@pytest.mark.parametrize(
    "text", ["twin:nobody?block=1&of=gallery:arrow", "twin:ours?side=1&of=gallery:arrow", "twin:ours"]
)
def test_a_damaged_twin_is_refused(text):
    with pytest.raises(InputError):
        Problem.named(text)


def test_an_array_has_a_specification_and_cannot_be_made_again():
    A = csr_array(np.array([[0.0, 2.0], [1.0, 0.0]]))
    one, equal, other = Problem.of(A), Problem.of(A.copy(), "copy"), Problem.of(csr_array(2 * A))
    assert one.specification == equal.specification != other.specification
    assert one.group == equal.group != other.group
    assert Problem.rebuilt(one.specification) is None
    assert Problem.of(one) is one
    assert one.matrix is A and one.notes == ()


def test_other_sparse_matrices_become_csr_and_others_are_refused():
    assert Problem.of(coo_array(np.eye(3, dtype=np.int8))).matrix.dtype == np.float64
    with pytest.raises(InputError):
        Problem.of(np.eye(3))


@pytest.fixture
def counted(monkeypatch):
    """Names of what was made, in turn."""
    calls = []
    made, found = problem_module.gallery_from_specification, problem_module.structure
    monkeypatch.setattr(
        problem_module, "gallery_from_specification", lambda text: calls.append("matrix") or made(text)
    )
    monkeypatch.setattr(problem_module, "structure", lambda A: calls.append("structure") or found(A))
    return calls


def test_nothing_is_made_before_it_is_needed_and_nothing_twice(counted):
    one = Problem.named("gallery:poisson2d?n=9")
    _ = one.name, one.specification, one.group, one.expected_nnz
    assert counted == []
    assert one.matrix is one.matrix and one.structure is one.structure
    _ = one.notes, one.specification
    assert counted == ["matrix", "structure"]


def test_a_released_problem_makes_the_matrix_again_and_keeps_the_structure(counted):
    one = Problem.named("gallery:poisson2d?n=9")
    found = one.structure
    left = one.released()
    assert counted == ["matrix", "structure"]
    assert (left.name, left.specification, left.group) == (one.name, one.specification, one.group)
    assert left.structure is found
    assert same(left.matrix, one.matrix)
    assert counted == ["matrix", "structure", "matrix"]
