"""Fitted models, which the tests of plans share."""

from __future__ import annotations

import pytest

from sparsecast.machines.profile import Profile
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet


@pytest.fixture(scope="session")
def served_fits(recorded: Profile, served_models: list[str]) -> list[Model]:
    """The models for which the recorded profile suffices, fitted to it."""
    training = TrainingSet.of(recorded, recorded.select(dtype="float64"))
    return [MODELS.get(name)().fit(training) for name in served_models]
