"""What merged files hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsecast.system.addresses import shown
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys
from sparsecast.system.texts import counted


@dataclass(frozen=True)
class Merged(Tabular):
    """A merged file of Records.

    Attributes
    ----------
    path : Path or str
        Where it is; a text for an address.
    rows : sequence of dict
        For each machine and host the number of matrices and of Records.
    records, files, repeated : int
        Records in it, files that they are from, and Records of these that others have, too.
    notes : sequence of str
        What of the files does not count, and why.
    """

    path: Path | str
    rows: Sequence[dict[str, Any]]
    records: int
    files: int
    repeated: int
    notes: Sequence[str]

    def table(self) -> Table:
        """Return a row for each machine and host."""
        title = f"{counted(self.records, 'record')} of {counted(self.files, 'file')} in {shown(self.path)}"
        below = f"{counted(self.repeated, 'record')} that several files have stand in it once"
        return Table(title, MERGED, self.rows, (below,) if self.repeated else ())


#: Of the Records of a host.
MERGED: Columns = tuple(Column(name, name) for name in ("machine", "host", "matrices", "records"))

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "merge": (
        Column("path", value=lambda merged: shown(merged.path)),
        Column("hosts", value="rows", columns=MERGED, about="host is null where a file does not name it"),
        *keys("records", "files", "repeated", "notes"),
    ),
}
