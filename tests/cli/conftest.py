"""Fixtures of the tests of cli: a profile, and a data folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecast.machines.profile import Profile

RECORDED = Path(__file__).parents[1] / "data" / "recorded-profile.parquet"


@pytest.fixture(scope="session")
def recorded() -> Profile:
    """The profile recorded on a real machine."""
    return Profile.load(RECORDED)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for profiles and journals, instead of the user's."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SPARSECAST_HOME", str(folder))
    return folder
