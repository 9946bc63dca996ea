"""Storage formats: one file a format, found by its file's name."""

from __future__ import annotations

from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.registry import Registry

#: Every storage format, by name.
FORMATS: Registry[type[StorageFormat]] = Registry("format", "sparsecast.formats", helpers=("storage_format",))
