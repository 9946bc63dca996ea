"""The journal of distributed products: what was measured comes back, and nothing damaged counts."""

from __future__ import annotations

import dataclasses
import json

import pytest

from sparsecast.benchmark.distributed_journal import keep_distributed, kept_distributed
from sparsecast.errors import ProfileError
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.records import Configuration, DistributedRecord

RECORD = DistributedRecord(
    configuration=Configuration("local-1d", "csr", "coo", "metis", 4, 1),
    matrix="gallery:poisson2d?n=30",
    nnz=4380,
    distribution=estimated_distribution(900, 900, 4380, 4, "metis", 2).to_dict(),
    samples_s=(1.5e-5, 1.25e-5),
    time_s=1.25e-5,
    spread=0.1,
    noise=None,
    error=1e-16,
    is_oversubscribed=True,
    measured_at="2026-01-01T00:00:00Z",
    version="0.1",
    parts_s={"local": [1e-5] * 4},
)


@pytest.fixture
def path(data_folder, recorded):
    return data_folder / "measurements" / f"{recorded.machine.name}.distributed.jsonl"


def test_what_was_kept_comes_back(data_folder, recorded):
    other = dataclasses.replace(RECORD, time_s=1e-5, parts_s={})
    assert kept_distributed(recorded.machine) == ()
    keep_distributed(recorded.machine, [RECORD])
    keep_distributed(recorded.machine, [other])
    assert kept_distributed(recorded.machine) == (RECORD, other)


def test_a_last_line_that_was_cut_short_is_dropped(recorded, path):
    keep_distributed(recorded.machine, [RECORD, RECORD])
    path.write_text(path.read_text()[:-40])
    assert kept_distributed(recorded.machine) == (RECORD,)
    keep_distributed(recorded.machine, [RECORD])
    assert kept_distributed(recorded.machine) == (RECORD, RECORD)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    (
        (lambda line: line[:-9], "line 1 is damaged"),
        (lambda line: line.replace('"schema": 1', '"schema": 9'), "line 1 is damaged"),
        (lambda line: line.replace('"nnz"', '"entries"'), "line 1 is damaged"),
        (lambda line: line.replace('"time_s": 1.25e-05', '"time_s": "long"'), "line 1 is damaged"),
        (lambda line: line.replace('"time_s": 1.25e-05', '"time_s": NaN'), "line 1 has time_s nan: expected"),
        (lambda line: line.replace('"time_s": 1.25e-05', '"time_s": -1'), "line 1 has time_s -1: expected"),
    ),
)
def test_a_damaged_line_is_named(recorded, path, damage, complaint):
    keep_distributed(recorded.machine, [RECORD, RECORD])
    first, second = path.read_text().splitlines()
    assert json.loads(first) == json.loads(second)
    path.write_text(f"{damage(first)}\n{second}\n")
    with pytest.raises(ProfileError, match=complaint) as refused:
        kept_distributed(recorded.machine)
    assert "\n" not in str(refused.value)
    path.write_text(f"{damage(second)}\n")
    with pytest.raises(ProfileError, match=complaint):  # the last line is whole, and not dropped in silence
        kept_distributed(recorded.machine)
