"""Features that models read of a matrix, in groups that are computed, versioned and stored separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.features.feature_group import FeatureGroup

#: Every feature group, by name.
FEATURES: Registry[type[FeatureGroup]] = Registry(
    "feature group",
    "sparsecast.features",
    helpers=("analysis", "feature_group", "row_blocks", "structure", "sweep", "value_scan"),
)


def usual_groups() -> list[str]:
    """Return the names of the groups that are computed for every matrix; others only on request."""
    return [name for name in FEATURES.names() if FEATURES.get(name).is_usual]
