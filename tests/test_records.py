"""Records survive the way to plain rows and to Parquet and back, whatever they hold."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing
from collections.abc import Mapping

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.records import (
    Bandwidth,
    Candidate,
    Conditions,
    Forecast,
    Parameters,
    Record,
    product_flops,
)

REAL = st.floats(allow_nan=False, allow_infinity=False)
#: Text that UTF-8 can say.
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)

#: What each annotated type may hold; a new field of a known type needs nothing here.
VALUES = {
    int: st.integers(0, 2**62),
    float: REAL,
    str: TEXT,
    int | None: st.none() | st.integers(0, 2**62),
    float | None: st.none() | REAL,
    str | None: st.none() | TEXT,
    Parameters: st.dictionaries(
        TEXT, st.integers(0, 2**62) | TEXT | st.lists(st.integers(1, 8), max_size=3).map(tuple), max_size=2
    ).map(Parameters),
    bool | None: st.none() | st.booleans(),
    Mapping[str, float]: st.dictionaries(TEXT, REAL, max_size=3),
    tuple[int, ...]: st.lists(st.integers(0, 2**62), max_size=4).map(tuple),
    tuple[float, ...]: st.lists(REAL, max_size=4).map(tuple),
}


def instances(kind: type, **known: st.SearchStrategy) -> st.SearchStrategy:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    own = {f.name: known[f.name] if f.name in known else VALUES[hints[f.name]] for f in fields}
    return st.builds(kind, **own)


CANDIDATES = instances(Candidate)
RECORDS = instances(Record, candidate=CANDIDATES, conditions=st.none() | instances(Conditions))
STRUCTURE = Structure(3, 4, 5)
MACHINE = Machine("test", "x86_64", 1, 1, (), (), 1 << 30, "Linux")


@given(RECORDS)
def test_a_record_survives_the_way_to_a_row_and_back(record):
    row = record.to_row()
    assert Record.from_row(row) == record
    assert all(not isinstance(value, dict) for value in row.values()), "the row is flat"


@given(CANDIDATES)
def test_a_candidate_survives_json(candidate):
    assert Candidate.from_dict(json.loads(json.dumps(candidate.to_dict()))) == candidate


def test_parameters_are_alike_in_any_order_and_frozen():
    one, other = Parameters({"a": 1, "block": (2, 3)}), Parameters({"block": [2, 3], "a": 1})
    assert one == other and hash(one) == hash(other) and list(other) == ["a", "block"]
    assert other["block"] == (2, 3) and other.get("window") is None
    assert copy.deepcopy(one) == one
    with pytest.raises(TypeError):
        one["a"] = 2


@settings(max_examples=30)
@given(
    records=st.lists(RECORDS, max_size=3, unique_by=lambda r: r.identity),
    bandwidths=st.lists(instances(Bandwidth), max_size=3),
)
def test_records_and_streams_survive_parquet(records, bandwidths, tmp_path_factory):
    path = tmp_path_factory.mktemp("profiles") / "p.parquet"
    matrices = {record.matrix: MatrixEntry(record.matrix, "named", STRUCTURE) for record in records}
    profile = Profile(MACHINE, tuple(records), matrices, tuple(bandwidths))
    profile.save(path)
    assert Profile.load(path) == profile


@given(RECORDS, st.data())
def test_a_row_without_a_column_is_refused_by_its_name(record, data):
    row = record.to_row()
    beside = set()
    if record.conditions is None:
        beside = {field.name for field in dataclasses.fields(Conditions)} - {"references_s"}
    missing = data.draw(st.sampled_from(sorted(row.keys() - beside)))
    del row[missing]
    with pytest.raises(KeyError):
        Record.from_row(row)


def test_pandas_reads_a_profile(recorded, tmp_path):
    frame = pandas.read_parquet(recorded.save(tmp_path / "p.parquet"))
    assert len(frame) == len(recorded.records)
    assert frame["time_s"].tolist() == [record.time_s for record in recorded.records]
    assert frame["format"].tolist() == [record.candidate.format for record in recorded.records]
    assert frame["nnz"].tolist() == [record.nnz for record in recorded.records]
    assert frame["energy_j"].isna().all()


@pytest.mark.parametrize(
    ("dtype", "each"), [("float64", 2), ("float32", 2), ("complex128", 8), ("complex64", 8)]
)
def test_flops_of_an_entry(dtype, each):
    assert product_flops(1_000_000_000_000, dtype) == each * 10**12
    assert product_flops(0, dtype) == 0


def test_gflops_of_complex_types_count_eight(recorded):
    record = recorded.records[0]
    candidate = dataclasses.replace(record.candidate, dtype="complex64")
    turned = dataclasses.replace(record, candidate=candidate)
    assert turned.gflops == 8 * record.nnz / record.time_s / 1e9
    assert Forecast(candidate, 125_000_000, 1.0, None, None, 0, None, 0.0).gflops == 1.0


def test_row_length_levels_rise_to_the_largest_int32_in_steps_of_an_eighth_octave():
    levels = np.array(ROW_LENGTH_LEVELS)
    assert levels[0] == 0
    assert levels[-1] == 2**31
    assert (np.diff(levels) > 0).all()
    assert (np.diff(levels) <= np.maximum(levels[:-1] / 8, 1)).all()
