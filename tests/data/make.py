"""Makes the recorded profile that tests read; README.md says when.

Run as ``python tests/data/make.py profile FILE`` or ``python tests/data/make.py structures``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet

from sparsecast.devices import DEVICES
from sparsecast.features.analysis import structure
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile
from sparsecast.planning.candidates import Target
from sparsecast.records import Record

RECORDED = Path(__file__).with_name("recorded-profile.parquet")


def neutral(profile: Profile) -> Profile:
    """Return the single-threaded Records of a profile, on a machine without a name of its own."""
    machine = dataclasses.replace(
        profile.machine,
        processor="recorded test machine",
        cores=1,
        threads=1,
        caches=tuple(dataclasses.replace(cache, shared_by=1) for cache in profile.machine.caches),
        memory_bytes=16 << 30,
    )
    return Profile(machine, tuple(profile.select(threads=1)))


def with_structures_anew(rows: list[dict[str, Any]]) -> tuple[Record, ...]:
    """Return the Records of rows whose Structures may be of an older version, read from the matrices anew."""
    needed, optional = DEVICES.get("cpu").suites(Target("cpu", "float64", 32, 1), detect())
    builders = {matrix.name: matrix.build for matrix in (*needed, *optional)}
    found = {name: structure(builders[name]()) for name in {row["matrix"] for row in rows}}
    fields = {
        name: {f"matrix_{key}": value for key, value in dataclasses.asdict(each).items()}
        for name, each in found.items()
    }
    return tuple(Record.from_row({**row, **fields[row["matrix"]]}) for row in rows)


def main(what: str = "", *source: str) -> None:
    """Write the recorded profile, from a profile just calibrated or from itself."""
    if what == "profile" and source:
        neutral(Profile.load(Path(source[0]))).save(RECORDED)
    elif what == "structures":
        # Not by Profile.load: it refuses a file whose Structures lack a field, which is what this mends.
        table = pyarrow.parquet.read_table(RECORDED)
        machine = Machine.from_dict(json.loads(table.schema.metadata[b"sparsecast_machine"]))
        Profile(machine, with_structures_anew(table.to_pylist())).save(RECORDED)
    else:
        raise SystemExit(__doc__)
    RECORDED.chmod(0o644)


if __name__ == "__main__":
    main(*sys.argv[1:])
