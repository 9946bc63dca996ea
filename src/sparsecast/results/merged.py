"""What merged files hold."""

from __future__ import annotations

from sparsecast.system.addresses import shown
from sparsecast.system.tabular import Column, Columns, keys

#: Of the Records of a host.
MERGED: Columns = tuple(Column(name, name) for name in ("machine", "host", "matrices", "records"))

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "merge": (
        Column("path", value=lambda merged: shown(merged.path)),
        Column("hosts", value="rows", columns=MERGED, about="host is null where a file does not name it"),
        Column("records", value=lambda merged: len(merged.records)),
        *keys("files", "repeated", "notes"),
    ),
}
