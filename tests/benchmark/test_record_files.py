"""Merged files: every Record once, with its origin, for any program that reads Parquet."""

import dataclasses

import duckdb
import pandas
import pyarrow.fs
import pytest

from sparsecast.api.campaigns import merge
from sparsecast.benchmark import journal as journals
from sparsecast.benchmark.journal import keep
from sparsecast.benchmark.record_files import MergedRecords
from sparsecast.cli.options import refuse_no_parquet
from sparsecast.errors import InputError, ProfileError, StorageError
from sparsecast.machines.profile import Profile
from sparsecast.machines.storage import home
from sparsecast.matrices.problem import Problem
from sparsecast.system import files

NAMES = ("gallery:poisson2d?n=9", "gallery:arrow?n=40", "gallery:banded?n=50")


def records_of(recorded, name):
    return [dataclasses.replace(record, matrix=name, suite="user") for record in recorded.records[:3]]


@pytest.fixture
def kept(recorded, data_folder, monkeypatch):
    """Three journals of this machine, as of three nodes; the folder that has them."""
    for number, name in enumerate(NAMES):
        monkeypatch.setattr(journals.os, "getpid", lambda number=number: -number)
        monkeypatch.setattr(journals.platform, "node", lambda number=number: f"node{number}")
        journals._writer_name.cache_clear()
        keep(recorded.machine, Problem.named(name), records_of(recorded, name))
    yield home() / "measurements"
    journals._writer_name.cache_clear()


def test_pandas_and_duckdb_read_what_was_merged(recorded, kept, tmp_path):
    path = tmp_path / "records.parquet"
    merged = merge([kept], path)
    assert (len(merged.records), merged.files, merged.repeated, list(merged.notes)) == (9, 3, 0, [])
    assert {row["host"] for row in merged.rows} == {"node0", "node1", "node2"}
    frame = pandas.read_parquet(path)
    assert list(frame.columns[:4]) == ["schema", "machine", "host", "matrix_name"]
    assert set(frame.machine) == {recorded.name} and set(frame.schema) == {4}
    wanted = {(name, record.time_s) for name in NAMES for record in records_of(recorded, name)}
    assert set(zip(frame.matrix, frame.time_s, strict=True)) == wanted
    rows = duckdb.sql(f"select host, matrix, time_s, len(samples_s) from '{tmp_path}/*.parquet'").fetchall()
    assert {row[1:3] for row in rows} == wanted and all(row[3] > 1 for row in rows)
    assert {row[:2] for row in rows} == {(f"node{n}", name) for n, name in enumerate(NAMES)}


def test_what_is_merged_does_not_depend_on_the_way(kept, recorded, tmp_path):
    paths = sorted(kept.rglob("*.jsonl"))
    merge(paths[:2], tmp_path / "a.parquet")
    merge([tmp_path / "a.parquet", *paths[::-1]], tmp_path / "b.parquet")
    merge([kept], tmp_path / "c.parquet")
    assert MergedRecords.of([tmp_path / "b.parquet"]).repeated == 0
    assert pandas.read_parquet(tmp_path / "b.parquet").equals(pandas.read_parquet(tmp_path / "c.parquet"))
    assert MergedRecords.of([tmp_path / "b.parquet", kept]).repeated == 9


def test_a_profile_and_a_file_without_records(recorded_path, recorded, kept, tmp_path):
    pandas.DataFrame({"a": [1]}).to_parquet(kept / "rows.parquet")
    found = MergedRecords.of([kept, recorded_path])
    assert len(found.records) == 9 + len(recorded.records) and len(found.notes) == 1
    assert {merged.host for merged in found.records} == {None, "node0", "node1", "node2"}
    with pytest.raises(ProfileError):
        MergedRecords.of([kept / "rows.parquet"])


def test_a_journal_that_is_cut_counts_up_to_there_and_is_said(kept, tmp_path):
    path = min(kept.rglob("*.jsonl"))
    path.write_bytes(path.read_bytes()[:-20])
    before = path.read_bytes()
    found = MergedRecords.of([kept])
    assert len(found.records) == 8 and len(found.notes) == 1 and str(path) in found.notes[0]
    assert path.read_bytes() == before
    lines = before.split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:-9], *lines[2:]]))
    with pytest.raises(ProfileError):
        MergedRecords.of([kept])


def test_records_without_their_matrix_are_counted_and_said(kept, tmp_path):
    path = min(kept.rglob("*.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"matrix": {' not in line))
    held = journals.read_journal(path)
    assert held.records == [] and held.left_out == 3
    found = MergedRecords.of([kept])
    assert len(found.records) == 6 and len(found.notes) == 1 and str(path) in found.notes[0]
    with pytest.raises(InputError) as refusal:
        MergedRecords.of([path])
    assert found.notes[0] in str(refusal.value)


@pytest.mark.parametrize(
    "credentials", ["AKIAKEY:S3CRET", "AKIAKEY:S3C/RET", "AKIAKEY:S3C RET", "AKIAKEY:/S3C@RET", "S3CRET"]
)
@pytest.mark.parametrize("scheme", ["s3", "s4", "gs"])
def test_no_message_has_a_secret(kept, scheme, credentials, monkeypatch):
    def unknown(place):
        raise ValueError(f"Cannot parse URI:\n'{place}' at {place}")

    monkeypatch.setattr(files, "_system", unknown)
    address = f"{scheme}://{credentials}@bucket/a@b.parquet"
    for act in (
        lambda: MergedRecords.of([address]),
        lambda: merge([kept], address),
        lambda: Profile.load(address),
        lambda: files.exists(address),
        lambda: journals.read_journal(address),
        lambda: refuse_no_parquet("--output", f"{address}?region=x"),
    ):
        with pytest.raises((InputError, StorageError)) as refusal:
            act()
        assert not any(part in str(refusal.value) for part in ("AKIA", "S3C", "RET")), refusal.value


def test_a_damaged_file_is_not_taken_for_a_profile(kept):
    for name in ("bad.parquet", "rows.parquet"):
        path = kept / name
        pandas.DataFrame({"a": [1]}).to_parquet(path)
        if name == "bad.parquet":
            path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(ProfileError) as refusal:
            MergedRecords.of([path])
        assert str(path) in str(refusal.value) and "a profile" not in str(refusal.value)


def test_two_machines_of_one_name_are_refused(recorded, tmp_path):
    for number, cores in enumerate((8, 16)):
        machine = dataclasses.replace(recorded.machine, published_as="mine", cores=cores)
        dataclasses.replace(recorded, machine=machine).save(tmp_path / f"{number}.parquet")
    with pytest.raises(InputError):
        MergedRecords.of([tmp_path])
    machine = dataclasses.replace(recorded.machine, published_as="mine", cores=8, memory_bytes=1)
    dataclasses.replace(recorded, machine=machine).save(tmp_path / "1.parquet")
    MergedRecords.of([tmp_path])


def test_nothing_to_merge(tmp_path):
    for place in (tmp_path, tmp_path / "nope", f"file://{tmp_path}/nope", "nope://bucket/x", "s3://"):
        with pytest.raises(InputError):
            MergedRecords.of([place])


def test_addresses_of_file_systems(recorded, kept, tmp_path):
    address = f"file://{tmp_path}/records.parquet"
    assert len(merge([f"file://{kept}"], address).records) == 9
    assert len(MergedRecords.of([address]).records) == 9
    profile = f"file://{tmp_path}/profile.parquet"
    recorded.save(profile)
    assert Profile.load(profile) == recorded


def test_a_place_that_is_closed(recorded, kept, monkeypatch):
    class Closed(pyarrow.fs.FileSystemHandler):
        """A bucket that is closed: every question is refused, in two lines."""

        def _refuse(self, *arguments, **options):
            raise PermissionError("AWS Error ACCESS_DENIED:\nno")

        copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = (
            get_file_info
        ) = get_file_info_selector = get_type_name = move = normalize_path = open_append_stream = (
            open_input_file
        ) = open_input_stream = open_output_stream = _refuse

    closed = pyarrow.fs.PyFileSystem(Closed())

    monkeypatch.setattr(files, "_system", lambda place: (closed, "bucket/records.parquet"))
    address = "s3://key:secret@bucket/records.parquet"
    with pytest.raises(InputError) as refusal:
        MergedRecords.of([address])
    assert "secret" not in str(refusal.value)
    with pytest.raises(StorageError) as refusal:
        merge([kept], address)
    assert "secret" not in str(refusal.value)
    with pytest.raises(ProfileError):
        Profile.load(address)
