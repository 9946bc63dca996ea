"""How far the models are off on the recorded profile, on matrices that they have not seen."""

import pytest

import sparsecast as sc
from sparsecast import api
from sparsecast.models.sparsecast import FOREST

#: The median of the absolute relative errors, with a tenth for other versions of NumPy and scikit-learn.
LIMITS = {"guo": 0.47, "guo (as printed)": 0.5, "linear": 0.145, "sparsecast": 0.1}


@pytest.mark.parametrize("name", ("guo", "linear", "sparsecast"))
def test_the_replayed_error_of_a_model_stays_within_its_limit(recorded, data_folder, name, monkeypatch):
    monkeypatch.setitem(FOREST, "n_estimators", 60)  # the median of a few trees varies with each new feature
    evaluation = api.replay(sc.session(recorded, threads=1), models=[name])
    assert evaluation.models and not evaluation.refused
    for title, score in evaluation.models.items():
        assert score.forecasts >= 30 and score.median_error < LIMITS[title]
