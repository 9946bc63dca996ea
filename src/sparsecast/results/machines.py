"""What is known about machines: imported results of others, and findings of a checkup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecast.machines.profile import Profile


@dataclass(frozen=True)
class Imported:
    """A Profile of published results, and how many results were left out for which reason."""

    profile: Profile
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    what, found : str
    remedy : str
        What to do about it; empty where all is well.
    """

    what: str
    found: str
    remedy: str = ""
