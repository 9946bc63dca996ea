"""Band statistics: averages by class, what ships, and the way through JSON."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from scipy.sparse import csr_array, eye_array

from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.features.sweep import BANDS
from sparsecast.matrices.banded_synthesis import BandStatistics, band_statistics, banded_matrix


@pytest.fixture
def shipped_data(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import shipped_data

    return shipped_data


def test_each_matrix_of_a_class_weighs_the_same(shipped_data):
    near = structure(csr_array(eye_array(500)), threads=1)
    far = structure(banded_matrix(100, 2, bands=[0] * 4 + [1] + [0] * 5, seed=0), threads=1)
    dense = structure(banded_matrix(100, 20, bands=[0.5, 0.5] + [0] * 8, seed=0), threads=1)
    found = shipped_data.derive([near, far, dense], {"command": "this test"})
    assert found.density == pytest.approx((1 + 2 + 20) / 3)
    assert [(each.least_density, each.matrices, each.density) for each in found.classes] == [
        (0.0, 2, 1.5),
        (16.0, 1, 20.0),
    ]
    assert found.classes[0].bands == pytest.approx((0.5, 0, 0, 0, 0.5, 0, 0, 0, 0, 0))
    assert found.bands(3.9) == found.bands(15.9) == found.classes[0].bands
    assert found.bands(16) == found.bands(1e9) == found.classes[1].bands
    assert msgspec.json.decode(json.dumps(asdict(found)), type=BandStatistics) == found


def test_below_the_first_class_its_bands_are_taken(shipped_data):
    dense = structure(banded_matrix(100, 20, seed=0), threads=1)
    found = shipped_data.derive([dense], {})
    assert found.bands(1) == found.classes[0].bands


def test_what_ships_is_whole_and_names_its_source(shipped_data):
    found = band_statistics()
    assert [each.least_density for each in found.classes] == list(shipped_data.DENSITY_CLASSES)
    for each in found.classes:
        assert len(each.bands) == BANDS and math.fsum(each.bands) == pytest.approx(1)
        assert each.matrices >= 5 and min(each.bands) > 0
        assert each.density >= each.least_density
    assert sum(each.matrices for each in found.classes) == found.source["matrices"]
    assert len(set(found.source["names"])) == found.source["matrices"]
    assert {"command", "date", "note", "left_out"} < set(found.source)
    mean = sum(each.matrices * each.density for each in found.classes) / found.source["matrices"]
    assert found.density == pytest.approx(mean)


@pytest.mark.parametrize(
    "matrices",
    [
        [],
        [csr_array((3, 4))],
        [csr_array((4, 4))],
    ],
)
def test_refusals_are_one_line(matrices, shipped_data):
    with pytest.raises(InputError):
        shipped_data.derive([structure(each, threads=1) for each in matrices], {})
