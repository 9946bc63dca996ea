"""The journals of ranks: what was measured comes back, and nothing that nobody measured counts."""

import dataclasses

import pytest

from sparsecast.benchmark.journal import keep_distributed, kept, lines, read_journal
from sparsecast.errors import ProfileError
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.records import Configuration, MicroBenchmark

from ..conftest import distributed_record

RECORD = distributed_record(
    *(Configuration("local-1d", "csr", "coo", "metis", 4, 1), "gallery:poisson2d?n=30", 4380),
    *(estimated_distribution(900, 900, 4380, 4, "metis", 2).to_dict(), 1.25e-5),
    **{"samples_s": (1.5e-5, 1.25e-5), "spread": 0.1, "is_oversubscribed": True},
    parts_s={"local": [1e-5] * 4},
)


POINT = MicroBenchmark("fma", 1, 1, 0, None, 1e-9, None, False, "", "0.1")


def test_what_was_kept_comes_back(data_folder, recorded):
    other = dataclasses.replace(RECORD, time_s=1e-5, parts_s={})
    assert kept(recorded.machine).distributed == []
    keep_distributed(recorded.machine, [RECORD])
    keep_distributed(recorded.machine, [other])
    assert kept(recorded.machine).distributed == [RECORD, other]


@pytest.mark.parametrize(("kind", "measured"), (("distributed", RECORD), ("microbenchmark", POINT)))
@pytest.mark.parametrize("time_s", (0.0, -1e-6, float("nan"), float("inf")))
def test_a_time_that_nobody_measured_is_refused(tmp_path, kind, measured, time_s):
    path = tmp_path / "ranks.journal"
    with lines(path) as append:
        append(kind, dataclasses.asdict(measured))
        append(kind, dataclasses.asdict(dataclasses.replace(measured, time_s=time_s)))
    with pytest.raises(ProfileError):
        read_journal(path)
