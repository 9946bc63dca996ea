"""What a row costs on a machine, by the model of the paper."""

from __future__ import annotations

from doe_2026.models.doe import Doe
from sparsecast.machines.profile import Profile
from sparsecast.models.training import TrainingSet


def row_cost(profile: Profile, format_name: str = "csr") -> float:
    """Return the seconds of a row in products on one thread with float64 values."""
    records = profile.select(format=format_name, dtype="float64", threads=1)
    return Doe().fit(TrainingSet.of(profile, records)).costs_[format_name][1]
