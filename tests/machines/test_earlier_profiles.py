"""Profiles of the schema before: read as if they had been written today."""

from __future__ import annotations

import dataclasses
import json

import pyarrow.parquet
import pytest

from sparsecast.errors import ProfileError
from sparsecast.features import usual_groups
from sparsecast.machines import earlier_profiles
from sparsecast.machines.profile import Profile
from sparsecast.records import SCHEMA_VERSION, Bandwidth, Parameters

STREAM = Bandwidth("copy", "cpu", 1, 2 << 30, 5e-4, 0.01, "2025-01-01T00:00:00+00:00", "1.0")


@pytest.fixture(scope="module")
def table(recorded_path):
    return pyarrow.parquet.read_table(recorded_path)


def changed(table, path, rows=None, **metadata):
    """Write such a profile with other rows or metadata, and return its path."""
    new = table if rows is None else table.from_pylist(rows, schema=table.schema)
    keyed = {f"sparsecast_{key}".encode(): value for key, value in metadata.items()}
    pyarrow.parquet.write_table(new.replace_schema_metadata({**table.schema.metadata, **keyed}), path)
    return path


def test_the_file_is_of_the_schema_before(table):
    version = int(table.schema.metadata[b"sparsecast_schema"])
    assert version == earlier_profiles.SCHEMA_VERSION < SCHEMA_VERSION


def test_every_row_is_a_record(table, recorded):
    assert len(recorded.records) == table.num_rows == 784
    for row, record in zip(table.to_pylist(), recorded.records, strict=True):
        assert (row["format"], row["kernel"], row["dtype"]) == (
            record.candidate.format,
            record.candidate.kernel,
            record.candidate.dtype,
        )
        assert (row["matrix"], row["matrix_nnz"], row["suite"]) == (record.matrix, record.nnz, record.suite)
        assert (row["time_s"], row["samples_s"]) == (record.time_s, list(record.samples_s))
        assert record.kernel_version == 1 and record.conditions is None
        assert record.candidate.parameters == Parameters()


def test_the_matrices_are_a_table_of_every_matrix_once(table, recorded):
    rows = {row["matrix"]: row for row in table.to_pylist()}
    assert set(recorded.matrices) == set(rows)
    for name, row in rows.items():
        found = recorded.matrices[name].structure
        assert (found.rows, found.cols, found.nnz) == (
            row["matrix_rows"],
            row["matrix_cols"],
            row["matrix_nnz"],
        )
        assert list(found.groups) == usual_groups() and found.checked() is found
        assert found.row_lengths.mode == row["matrix_row_length_mode"]
        assert found.row_lengths.mispredicted == row["matrix_row_length_surprises"]
        assert list(found.row_lengths.entries_up_to) == row["matrix_entries_up_to"]
        assert found.locality.line_changes == row["matrix_x_line_changes"]
        assert list(found.bands.histogram) == row["matrix_band_histogram"]
        assert list(found.blocks.fill) == row["matrix_block_fill"]
        assert found.symmetry.triangle_nnz == row["matrix_triangle_nnz"]
        assert found.stored_values.explicit_zeros == row["matrix_explicit_zeros"]


@pytest.mark.parametrize(
    ("format_name", "dtype", "expected"),
    [
        ("csr", "complex128", "unrolled"),
        ("sell", "complex64", "chunks"),
        ("csr", "float64", "gathered"),
        ("sell", "float32", "gathered"),
    ],
)
def test_complex_records_get_the_name_of_the_kernel_that_ran(table, tmp_path, format_name, dtype, expected):
    row = {**table.to_pylist()[0], "format": format_name, "dtype": dtype, "kernel": "gathered"}
    (record,) = Profile.load(changed(table, tmp_path / "p.parquet", [row])).records
    assert record.candidate.kernel == expected


def test_the_size_of_blocks_is_a_parameter_now(table, tmp_path):
    row = {**table.to_pylist()[0], "format": "bcsr", "kernel": "blocks"}
    assert earlier_profiles.record_row({**row, "block": [2, 3]})["parameters"] == json.dumps(
        {"block": [2, 3]}
    )
    assert earlier_profiles.record_row({**row, "block": None})["parameters"] == "{}"
    row.pop("block", None)  # from before blocks could be asked for
    assert earlier_profiles.record_row(row)["parameters"] == "{}"


def test_bandwidths_come_from_the_metadata_where_there_are_any(table, recorded, tmp_path):
    assert b"sparsecast_streams" not in table.schema.metadata and recorded.bandwidths == ()
    stored = json.dumps([dataclasses.asdict(STREAM)]).encode()
    assert Profile.load(changed(table, tmp_path / "p.parquet", streams=stored)).bandwidths == (STREAM,)


def test_what_was_not_read_of_published_results_is_absent(table):
    row = {**table.to_pylist()[0], "matrix_x_reuse_histogram": [], "matrix_explicit_zeros": None}
    groups = set(earlier_profiles.matrix_entry(row)["structure"]) & set(usual_groups())
    assert groups == set(usual_groups()) - {"locality", "stored_values"}


def test_it_is_saved_in_todays_schema(recorded, tmp_path):
    path = recorded.save(tmp_path / "p.parquet")
    assert int(pyarrow.parquet.read_schema(path).metadata[b"sparsecast_schema"]) == SCHEMA_VERSION
    assert Profile.load(path) == recorded


@pytest.mark.parametrize("column", ["time_s", "matrix_nnz", "matrix_entries_up_to"])
def test_a_missing_column_is_refused_by_name(table, tmp_path, column):
    path = tmp_path / "p.parquet"
    pyarrow.parquet.write_table(table.drop_columns([column]), path)
    with pytest.raises(ProfileError, match=rf"lacks '{column}': expected a whole profile; remove the file"):
        Profile.load(path)
