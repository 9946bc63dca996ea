"""Names that a shell completes, without importing what a command needs; files it completes by itself."""

from __future__ import annotations

from pathlib import Path


def profiles(incomplete: str) -> list[str]:
    """Return the profiles whose names begin with what was typed, shipped ones and the user's."""
    from sparsecast.machines.storage import home

    folders = Path(__file__).parent.parent / "machines" / "profiles", home() / "profiles"
    names = {path.stem for folder in folders for path in folder.glob("*.parquet")}
    return sorted(name for name in names if name.startswith(incomplete))


def models(incomplete: str) -> list[str]:
    """Return the models whose names begin with what was typed."""
    from sparsecast.models import MODELS

    return [name for name in MODELS.names() if name.startswith(incomplete)]
