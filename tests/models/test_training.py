"""Training sets: what is missing is computed from the matrices, and whatever a fit depends on is told."""

import dataclasses

import pytest

from sparsecast.features.structure import Structure
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.problem import Problem
from sparsecast.models.training import TrainingSet
from sparsecast.records import Bandwidth, Conditions

SPECIFICATION = "gallery:poisson2d?n=9"
GONE = "file:/nowhere/small.mtx?sha256=0123"


@pytest.fixture
def training(recorded):
    """Records of a matrix that can be made again and of one that cannot, both without the row lengths."""
    template = recorded.records[0]
    found = Problem.named(SPECIFICATION).structure
    records = [dataclasses.replace(template, matrix=name, nnz=found.nnz) for name in (SPECIFICATION, GONE)]
    bare = Structure(found.rows, found.cols, found.nnz, {"bands": found.bands})
    entries = {name: MatrixEntry(name, name, bare) for name in (SPECIFICATION, GONE)}
    return TrainingSet(recorded.machine, tuple(records), entries)


def test_a_training_set_of_a_profile_has_all_it_has(recorded):
    whole, some = TrainingSet.of(recorded), TrainingSet.of(recorded, recorded.records[:3])
    assert (whole.machine, whole.records) == (recorded.machine, recorded.records)
    assert some.records == recorded.records[:3]
    for record in some.records:
        assert some.structure(record) == recorded.structure(record)
    assert [r.suite for r in whole.where(lambda r: r.suite == "gallery").records] == ["gallery"] * len(
        recorded.select(suite="gallery")
    )


def test_a_group_that_is_missing_is_computed_from_the_matrix(training):
    found = training.having(["row_lengths"])
    (record,) = found.records
    assert record.matrix == SPECIFICATION
    expected = Problem.named(SPECIFICATION).structure
    assert found.structure(record).row_lengths == expected.row_lengths
    assert list(found.structure(record).groups) == ["bands", "row_lengths"]
    assert training.structure(record).lacks(["row_lengths"]) == ["row_lengths"], "the set itself stays"


def test_what_is_known_is_not_computed_again(training, monkeypatch):
    def refuse(specification):
        raise AssertionError(f"{specification} was made again")

    monkeypatch.setattr(Problem, "rebuilt", refuse)
    assert training.having(["bands"]).records == training.records


def test_whatever_a_fit_depends_on_changes_the_fingerprint(recorded):
    first, *rest = recorded.records
    known = {**recorded.matrices, "another": recorded.matrices[first.matrix]}
    whole = TrainingSet.of(dataclasses.replace(recorded, matrices=known))
    entry = known[first.matrix]
    other = entry.structure.having(dataclasses.replace(entry.structure.row_lengths, mispredicted=0))
    of_record = (
        *({"time_s": 1.0}, {"energy_j": 1.0}, {"convert_s": 1.0}, {"measured_at": "later"}),
        *({"kernel_version": 99}, {"suite": "gallery"}, {"regime": "cold"}, {"matrix": "another"}),
    )
    changes = (
        {},
        *({"records": (dataclasses.replace(first, **change), *rest)} for change in of_record),
        {"records": tuple(rest)},
        {"machine": dataclasses.replace(recorded.machine, memory_bytes=1)},
        {
            "bandwidths": (
                Bandwidth("read", "cpu", 1, 1 << 20, 1e-4, 0.0, "2025-01-01T00:00:00+00:00", "1.0"),
            )
        },
        {"matrices": {**known, first.matrix: MatrixEntry(entry.specification, entry.name, other)}},
    )
    prints = {dataclasses.replace(whole, **change).fingerprint for change in changes}
    assert len(prints) == len(changes)


@pytest.mark.parametrize(("fast", "counted"), [(15, 15), (14, 24)])
def test_records_of_slow_cores_count_at_full_speed_where_a_format_has_few_others(recorded, fast, counted):
    slow, full = (Conditions(0.0, 0.0, {}, slow_share=share) for share in (1.0, 0.0))

    def record(conditions, time_s):
        return dataclasses.replace(
            recorded.records[0], conditions=conditions, traffic_bytes=1000, time_s=time_s
        )

    records = [record(full, 2.0)] * fast + [record(slow, 3.0)] * 10
    used = TrainingSet.of(recorded, records).at_full_speed()
    assert len(used.records) == counted
    assert {each.time_s for each in used.records} == {2.0}
    assert used.at_full_speed() is used
    mostly_slow = [record(full, 2.0)] * 3 + [record(slow, 3.0)] * 4
    assert TrainingSet.of(recorded, mostly_slow).at_full_speed().records == tuple(mostly_slow)


def test_without_alike_ones_at_full_speed_slow_records_count_as_they_are(recorded):
    first = recorded.records[0]
    full = dataclasses.replace(first, conditions=Conditions(0.0, 0.0, {}, slow_share=0.0))
    slow = dataclasses.replace(
        first, conditions=Conditions(0.0, 0.0, {}, slow_share=1.0), traffic_bytes=1 << 40
    )
    used = TrainingSet.of(recorded, [full, full, slow]).at_full_speed()
    assert [each.time_s for each in used.records] == [first.time_s] * 3
