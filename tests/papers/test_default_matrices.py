"""The matrices that experiments take where none is named: each can be made, and is what the page says."""

import pytest

from sparsecast.benchmark.experiments import EXPERIMENTS
from sparsecast.matrices.atlas import atlas
from sparsecast.matrices.families import split_specification
from sparsecast.matrices.gallery import gallery_parameters
from sparsecast.papers import published

DEFAULTS = {
    name: tuple(experiment.default_matrices())
    for name in EXPERIMENTS.names()
    if hasattr(experiment := EXPERIMENTS.get(name)(), "default_matrices")
}


def structure_of(matrix):
    """The Structure of the matrix that a twin is of; None of a matrix of the gallery."""
    name, values = split_specification(matrix.removeprefix("gallery:"), "integer", "")
    if name == "atlas":
        return atlas().entries[values["name"]].structure
    assert values.keys() <= gallery_parameters(name).keys(), matrix
    return None


@pytest.mark.parametrize("name", [name for name, matrices in DEFAULTS.items() if matrices])
def test_default_matrices_differ_and_can_be_made(name):
    assert len(set(DEFAULTS[name])) == len(DEFAULTS[name]) > 20
    twins = [found for found in map(structure_of, DEFAULTS[name]) if found is not None]
    assert twins
    if name == "wang-2017":
        assert all(found.row_lengths.max <= 2 * found.row_lengths.mean for found in twins)
    if name == "barreda-2020":
        graphs = published("barreda_2020")["pagerank"]["graphs"]
        assert not [each for each in DEFAULTS[name] for graph in graphs if f"name={graph}" in each]
