"""Fitted models, which the tests of plans share."""

from __future__ import annotations

from typing import Any

import pytest

from sparsecast.machines.profile import Profile
from sparsecast.models import MODELS
from sparsecast.models.forecaster import Forecaster
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet


class Given(Forecaster):
    """A model of whatever `formats`, `terms` and `seconds`, of a conversion, say; without intervals."""

    name, groups, device_ = "given", ("row_lengths",), "cpu"

    @property
    def conversion_(self) -> Any:
        return self

    def interval(self, candidate: Any, value: float, matrix: Any) -> tuple[float | None, float | None]:
        return None, None

    def lacking(self, format_name: str) -> str:
        raise AssertionError("it forecasts all formats")


@pytest.fixture(scope="session")
def served_fits(recorded: Profile, served_models: list[str]) -> list[Model]:
    """The models for which the recorded profile suffices, fitted to it."""
    training = TrainingSet.of(recorded, recorded.select(dtype="float64"))
    return [MODELS.get(name)().fit(training) for name in served_models]
