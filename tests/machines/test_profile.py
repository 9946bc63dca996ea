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


@pytest.fixture
def saved(recorded, tmp_path) -> Path:
    return recorded.save(tmp_path / "saved.parquet")


def rewritten(path: Path, change) -> Path:
    """Write the table at `path` again after `change`; its metadata stays unless changed."""
    pyarrow.parquet.write_table(change(pyarrow.parquet.read_table(path)), path)
    return path


def with_metadata(table: pyarrow.Table, **change: bytes) -> pyarrow.Table:
    """Change the metadata, with a checksum that fits: that of before would find the change."""
    keyed = {f"sparsecast_{key}".encode(): value for key, value in change.items()}
    metadata = {**table.schema.metadata, **keyed}
    parts = (b"schema", b"machine", b"matrices", b"bandwidths", b"microbenchmarks")
    digest = hashlib.sha256(b"".join(metadata.get(b"sparsecast_" + part, b"") for part in parts))
    return table.replace_schema_metadata({**metadata, b"sparsecast_checksum": digest.hexdigest().encode()})


def test_a_profile_survives_its_file(recorded, saved):
    assert Profile.load(saved) == recorded


def test_a_profile_is_saved_to_its_place_and_found_by_name_and_path(recorded):
    path = recorded.save()
    assert path == user_path(recorded.name)
    assert find_profile(recorded.name) == recorded
    assert find_profile(path) == recorded
    assert find_profile(str(path)) == recorded
    assert {**SHIPPED, recorded.name: path} == known_profiles()


def test_this_machines_profile_is_found_without_a_name(recorded):
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


def test_a_profile_without_a_matrix_that_its_records_name_is_refused(recorded, tmp_path):
    missing = recorded.records[0].matrix
    rest = {name: entry for name, entry in recorded.matrices.items() if name != missing}
    path = dataclasses.replace(recorded, matrices=rest).save(tmp_path / "p.parquet")
    with pytest.raises(ProfileError):
        Profile.load(path)


NO_JSON = (b"null", b"[]", b"not json", b"{}")


@pytest.mark.parametrize(
    ("part", "content"),
    [
        *(("schema", version) for version in (b"0", b"999", b"one", b"\xff")),
        *(("machine", text) for text in (*NO_JSON, b'{"caches": [{}], "simd": []}')),
        *(
            ("bandwidths", text)
            for text in (b"null", b"not json", b"[1]", b"[{}]", b'[{"kind": "read", "moon": 1}]')
        ),
    ],
)
def test_damaged_metadata_is_refused(saved, part, content):
    rewritten(saved, lambda table: with_metadata(table, **{part: content}))
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


@pytest.mark.parametrize(
    "before, after",
    [(b'"cores": ', b'"coreS": '), (b'"nnz": ', b'"nnz": 9'), (b'"bytes": 2', b'"bytes": 3')],
    ids=["machine", "matrices", "bandwidths"],
)
def test_a_changed_byte_of_the_metadata_is_told(recorded, saved, before, after):
    with_stream = recorded.with_bandwidths([STREAM])
    table = pyarrow.parquet.read_table(with_stream.save(saved))
    changed = {key: value.replace(before, after, 1) for key, value in table.schema.metadata.items()}
    assert changed != table.schema.metadata
    pyarrow.parquet.write_table(table.replace_schema_metadata(changed), saved)
    with pytest.raises(ProfileError):
        Profile.load(saved)


def test_a_profile_without_a_checksum_is_refused(saved):
    def without(table: pyarrow.Table) -> pyarrow.Table:
        kept = {key: text for key, text in table.schema.metadata.items() if not key.endswith(b"checksum")}
        return table.replace_schema_metadata(kept)

    with pytest.raises(ProfileError):
        Profile.load(rewritten(saved, without))


@pytest.mark.parametrize("holds_a_profile", [False, True])
def test_a_folder_is_no_profile(saved, tmp_path, holds_a_profile):
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    if holds_a_profile:
        shutil.copy(saved, folder / "part.parquet")
    with pytest.raises(ProfileError):
        find_profile(folder)


@pytest.mark.parametrize("column", ["time_s", "format", "nnz", "parameters"])
def test_a_missing_column_is_refused_by_name(saved, column):
    rewritten(saved, lambda table: table.drop_columns([column]))
    with pytest.raises(ProfileError):
        Profile.load(saved)


def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownNameError):
        find_profile("nope")


def test_a_machine_that_was_not_met_is_told_where_its_profile_would_be():
    with pytest.raises(ProfileError):
        find_profile()


def test_another_machines_profile_in_this_ones_place_is_refused(recorded):
    here = detect().name
    recorded.save(user_path(here))
    with pytest.raises(ProfileError):
        find_profile()


def test_a_data_folder_that_cannot_be_looked_into_is_named(monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", "x" * 300)  # longer than a name may be
    with pytest.raises(StorageError):
        find_profile()


SPEEDS = [
    MicroBenchmark("fma", 1, 1, 0, None, 1e-11, 0.01, False, "2026-01-01T00:00:00Z", "0.1"),
    MicroBenchmark("neighbour exchange", 4, 2, 64, 3, 1e-6, None, True, "2026-01-01T00:00:00Z", "0.1"),
]


@pytest.mark.parametrize("has_records", (False, True))
def test_microbenchmarks_survive_their_file(recorded, tmp_path, has_records):
    before = recorded if has_records else Profile(recorded.machine, ())
    profile = before.with_microbenchmarks(SPEEDS)
    assert Profile.load(profile.save(tmp_path / "p.parquet")) == profile
    assert profile.microbenchmarks == tuple(SPEEDS)


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
