"""The profiles that come with the package: small, with their licence, and of matrices that can be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow.parquet
import pytest

from sparsecast.errors import ProfileError
from sparsecast.features.row_lengths import RowLengths
from sparsecast.machines.profile import _SHIPPED, MatrixEntry, Profile

PUBLISHED = sorted(path for path in _SHIPPED.glob("*.parquet") if path.stem != "xeon-gold-6154-edr")


def test_they_are_small_and_each_says_where_it_is_from():
    assert len(PUBLISHED) == 8 and sum(path.stat().st_size for path in PUBLISHED) < 2_000_000
    for path in PUBLISHED:
        profile = Profile.load(path)
        machine = profile.machine
        assert machine.name == path.stem and machine.sheet is not None and machine.made is None
        assert "CC BY 4.0" in machine.source and "ginkgo-data" in machine.source
        assert not any(record.impossible for record in profile.records)
        # As exact as a single precision number, and no more.
        assert all(np.float32(record.time_s) == record.time_s for record in profile.records)


def test_their_matrices_are_whole_although_five_lengths_stand_for_all():
    profile = Profile.load(_SHIPPED / "nvidia-a100.parquet")
    for entry in profile.matrices.values():
        found = entry.structure  # which is checked for contradictions
        assert found.row_lengths.entries_up_to[-1] == found.nnz
        assert found.row_lengths.changes is None  # nobody published the order of the rows
        assert entry.to_dict()["structure"]["row_lengths"]["five"][-1] == found.row_lengths.max


def test_a_packed_profile_is_the_same_and_smaller(tmp_path, recorded):
    plain, packed = recorded.save(tmp_path / "plain.parquet"), tmp_path / "packed.parquet"
    recorded.save(packed, is_packed=True)
    assert Profile.load(packed) == Profile.load(plain) == recorded
    assert packed.stat().st_size < plain.stat().st_size / 2
    metadata = pyarrow.parquet.read_metadata(packed).metadata
    data = packed.read_bytes()
    place = data.index(metadata[b"sparsecast_matrices"][:50])
    packed.write_bytes(data[: place + 20] + bytes([data[place + 20] ^ 1]) + data[place + 21 :])
    with pytest.raises(ProfileError):
        Profile.load(packed)


def test_five_lengths_that_no_rows_have_are_damage():
    stored = {"version": RowLengths.version, "rows": 10, "nnz": 50, "five": [6.0] * 5, "deviation": 0.0}
    entry = MatrixEntry("published:G/m", "G/m", {"rows": 10, "cols": 10, "nnz": 50, "row_lengths": stored})
    with pytest.raises(ProfileError):
        _ = entry.structure
    assert RowLengths.from_dict({**stored, "version": 0}) is None
    even = RowLengths.from_dict({**stored, "five": [5.0] * 5})
    assert even == dataclasses.replace(even, min=5, max=5, mode=5, empty_rows=0, mean=5.0)
