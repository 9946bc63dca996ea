"""Models scored on stored Records: no matrix is on both sides, and a refusal loses nothing."""

import pytest

from sparsecast.benchmark.replay import SCORED_SUITES, replay
from sparsecast.errors import ProfileError
from sparsecast.models.linear import LinearModel
from sparsecast.models.training import TrainingSet
from sparsecast.papers.guo_2014.strip_models import GuoModel


@pytest.fixture
def training(recorded):
    whole = TrainingSet.of(recorded, recorded.select(dtype="float64", threads=1))
    return whole.where(lambda record: record.suite != "synthetic")


def test_every_model_is_scored_on_matrices_that_it_has_not_seen(training, monkeypatch):
    seen = []
    fit = LinearModel.fit

    def spied(self, known):
        seen.append({known.group(record) for record in known.records})
        return fit(self, known)

    monkeypatch.setattr(LinearModel, "fit", spied)
    found = replay(training, [LinearModel])
    scored = {training.group(r) for r in training.records if r.suite in SCORED_SUITES}
    # Each group is missing in exactly one of the fits, and every one is missed once.
    assert sorted(group for groups in seen for group in scored - groups) == sorted(scored)
    assert found.models["linear"].unforecast == 0 and found.models["linear"].mean_error < 1


def test_a_model_that_refuses_is_left_out_with_its_reason(training):
    without_strips = training.where(lambda record: "strips" not in record.suite)
    found = replay(without_strips, [GuoModel, LinearModel])
    assert "do not suffice for the guo model" in found.refused["guo"]
    assert set(found.models) == {"linear"}


def test_models_are_not_scored_on_one_group_of_matrices(training):
    with pytest.raises(ProfileError):
        replay(training.where(lambda record: record.suite not in SCORED_SUITES), [LinearModel])
