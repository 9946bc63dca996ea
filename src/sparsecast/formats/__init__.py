"""Storage formats, one file each, registered by the name of the file."""

from __future__ import annotations

from sparsecast.formats.libraries import library_called
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.registry import Registry

#: Every storage format, by name; libraries are found by name, too, and not listed.
FORMATS: Registry[type[StorageFormat]] = Registry(
    "format",
    "sparsecast.formats",
    helpers=("libraries", "mirrored", "narrowing", "storage_format"),
    unlisted=library_called,
)
