"""What is said to be unusual about a matrix."""

import pytest

import sparsecast as sc
from sparsecast.results.reports import rarities, traits


@pytest.fixture(scope="module")
def others():
    return [sc.structure(sc.gallery("random", n=200 + 10 * k, nnz_per_row=4 + k % 5)) for k in range(20)]


def test_what_lies_outside_of_all_others_comes_first(others):
    found = rarities(sc.structure(sc.gallery("arrow", n=300)), others)
    assert found[0].beyond == 0 and found[0].distance == max(each.distance for each in found) > 0
    longest = next(each for each in found if each.trait == "longest row over the mean")
    assert longest.is_large and longest.beyond == 0 and longest.others == 20
    assert longest.end == max(traits(each)[longest.trait] for each in others) < longest.value
    fill = next(each for each in found if "2x2" in each.trait)
    assert not fill.is_large and fill.value < fill.end == min(traits(each)[fill.trait] for each in others)


def test_one_of_the_others_is_not_unusual_and_few_others_tell_nothing(others):
    assert rarities(others[9], others) == ()
    assert rarities(sc.structure(sc.gallery("arrow", n=300)), others[:9]) == ()
