"""Applications of products, on any operator and its vector space; one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.operators.applications.application import Application

#: Every application, by name.
APPLICATIONS: Registry[type[Application]] = Registry(
    "application",
    "sparsecast.operators.applications",
    helpers=("application", "defaults", "vector_loops"),
)
