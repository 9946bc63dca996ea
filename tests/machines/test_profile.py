"""Profiles on disk: what is saved comes back, and nothing that is no profile is taken for one."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from sparsecast import machines as machines_package
from sparsecast.errors import ProfileError, StorageError, UnknownNameError
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile, find_profile, known_profiles, user_path
from sparsecast.records import Bandwidth, MicroBenchmark

#: Those that come with the package; the data folder of the tests has none.
_FOLDER = Path(machines_package.__file__).parent / "profiles"
SHIPPED = {path.stem: path for path in sorted(_FOLDER.glob("*.parquet"))}

STREAM = Bandwidth("copy", "cuda", 1, 2 << 30, 5e-4, 0.01, "2025-01-01T00:00:00+00:00", "1.0")


SPEEDS = [
    MicroBenchmark("fma", 1, 1, 0, None, 1e-11, 0.01, False, "2026-01-01T00:00:00Z", "0.1"),
    MicroBenchmark("neighbour exchange", 4, 2, 64, 3, 1e-6, None, True, "2026-01-01T00:00:00Z", "0.1"),
]


@pytest.fixture
def saved(recorded, tmp_path) -> Path:
    return recorded.with_bandwidths([STREAM]).save(tmp_path / "saved.parquet")


def checksummed(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return metadata with a checksum that fits."""
    parts = (b"schema", b"machine", b"matrices", b"bandwidths", b"microbenchmarks")
    digest = hashlib.sha256(b"".join(metadata.get(b"sparsecast_" + part, b"") for part in parts))
    return {**metadata, b"sparsecast_checksum": digest.hexdigest().encode()}


def with_part(part: str, content: bytes):
    """Return what changes a part of the metadata, with a checksum that fits: else that finds the change."""
    key = f"sparsecast_{part}".encode()
    return lambda table: table.replace_schema_metadata(checksummed({**table.schema.metadata, key: content}))


def with_bytes(before: bytes, after: bytes):
    """Return what changes some bytes of the metadata, of which the checksum tells."""

    def change(table: pyarrow.Table) -> pyarrow.Table:
        changed = {key: text.replace(before, after, 1) for key, text in table.schema.metadata.items()}
        assert changed != table.schema.metadata
        return table.replace_schema_metadata(changed)

    return change


@pytest.mark.parametrize("has_records", (False, True))
def test_a_profile_survives_its_file(recorded, tmp_path, has_records):
    before = recorded if has_records else Profile(recorded.machine, ())
    profile = before.with_bandwidths([STREAM]).with_microbenchmarks(SPEEDS)
    assert Profile.load(profile.save(tmp_path / "p.parquet")) == profile
    assert profile.microbenchmarks == tuple(SPEEDS)


def test_a_profile_is_saved_to_its_place_and_found_by_name_and_path(recorded):
    path = recorded.save()
    assert path == user_path(recorded.name)
    assert all(find_profile(place) == recorded for place in (recorded.name, path, str(path)))
    assert {**SHIPPED, recorded.name: path} == known_profiles()
    own = Profile(detect(), recorded.records, recorded.matrices)
    own.save()
    assert find_profile() == own


def test_new_records_replace_old_ones_of_the_same_thing(recorded):
    first, *rest = recorded.records
    again = dataclasses.replace(first, time_s=2 * first.time_s)
    merged = recorded.with_records([again], [])
    assert len(merged.records) == len(recorded.records)
    assert again in merged.records
    assert first not in merged.records
    assert set(rest) <= set(merged.records)


NO_JSON = (b"null", b"[]", b"not json", b"{}")

DAMAGES = {
    **{f"schema {version}": with_part("schema", version) for version in (b"0", b"999", b"one", b"\xff")},
    **{f"machine {text}": with_part("machine", text) for text in (*NO_JSON, b'{"caches": [{}], "simd": []}')},
    **{
        f"bandwidths {text}": with_part("bandwidths", text)
        for text in (b"null", b"not json", b"[1]", b"[{}]", b'[{"kind": "read", "moon": 1}]')
    },
    "no matrices": with_part("matrices", b"[]"),
    "bytes of the machine": with_bytes(b'"cores": ', b'"coreS": '),
    "bytes of the matrices": with_bytes(b'"nnz": ', b'"nnz": 9'),
    "bytes of the bandwidths": with_bytes(b'"bytes": 2', b'"bytes": 3'),
    "no checksum": lambda table: table.replace_schema_metadata(
        {key: text for key, text in table.schema.metadata.items() if not key.endswith(b"checksum")}
    ),
    **{
        f"no {column}": lambda table, column=column: table.drop_columns([column])
        for column in ("time_s", "format", "nnz", "parameters")
    },
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_refused(saved, damage):
    pyarrow.parquet.write_table(DAMAGES[damage](pyarrow.parquet.read_table(saved)), saved)
    with pytest.raises(ProfileError):
        Profile.load(saved)


def test_select_asks_for_suite_and_candidate(recorded):
    chosen = recorded.select(suite="strips", format="csr", dtype="float32")
    assert chosen
    for record in chosen:
        assert (record.suite, record.candidate.format, record.candidate.dtype) == ("strips", "csr", "float32")
    assert recorded.select() == list(recorded.records)
    assert recorded.select(threads=-1) == []


def test_a_failing_write_leaves_the_old_file_and_nothing_else(recorded, saved, monkeypatch):
    before = saved.read_bytes()

    def half(path, schema, **options):
        Path(path).write_bytes(b"PAR1 half a")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "ParquetWriter", half)
    with pytest.raises(StorageError):
        recorded.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir() if path.is_file()] == [saved.name]


@pytest.mark.parametrize("tenths", range(10))
def test_a_truncated_profile_is_refused(saved, tenths):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) * tenths // 10])
    with pytest.raises(ProfileError):
        Profile.load(saved)


def test_a_changed_byte_is_noticed_or_harmless(recorded, saved):
    whole = saved.read_bytes()
    generator = np.random.default_rng(0)
    refused = 0
    for position in generator.integers(0, len(whole), 60):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        saved.write_bytes(bytes(damaged))
        try:
            found = Profile.load(saved)
        except ProfileError:
            refused += 1
        else:  # in a field that says nothing of the measurements, such as the statistics of a column
            assert found.records == recorded.records
    assert refused > 30


@pytest.mark.parametrize("holds_a_profile", [False, True])
def test_a_folder_is_no_profile(saved, tmp_path, holds_a_profile):
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    if holds_a_profile:
        shutil.copy(saved, folder / "part.parquet")
    with pytest.raises(ProfileError):
        find_profile(folder)


def test_what_is_not_there_is_refused(recorded):
    with pytest.raises(UnknownNameError):
        find_profile("nope")
    with pytest.raises(ProfileError, match="no profile for this machine"):
        find_profile()
    recorded.save(user_path(detect().name))  # of another machine
    with pytest.raises(ProfileError, match="another machine"):
        find_profile()


def test_a_data_folder_that_cannot_be_looked_into_is_named(monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", "x" * 300)  # longer than a name may be
    with pytest.raises(StorageError):
        find_profile()


def test_a_new_microbenchmark_replaces_the_old_one_of_the_same_thing(recorded):
    newer = dataclasses.replace(SPEEDS[1], time_s=2e-6)
    other = dataclasses.replace(SPEEDS[1], neighbours=2)
    profile = recorded.with_microbenchmarks(SPEEDS).with_microbenchmarks([newer, other])
    assert profile.microbenchmarks == (SPEEDS[0], newer, other)


def test_the_published_cluster_is_shipped_and_says_so():
    profile = find_profile("xeon-gold-6154-edr")
    assert profile.machine.published_as == profile.name == "xeon-gold-6154-edr"
    assert profile.records == () and {each.noise for each in profile.microbenchmarks} == {None}
    assert {each.measured_at for each in profile.microbenchmarks} == {"published, not measured"}
