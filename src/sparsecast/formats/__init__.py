"""Storage formats, one file each, registered by the name of the file."""

from __future__ import annotations

from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.registry import Registry

#: Every storage format, by name.
FORMATS: Registry[type[StorageFormat]] = Registry(
    "format", "sparsecast.formats", helpers=("mirrored", "narrowing", "storage_format")
)
