"""A calibration of ranks, on ranks that are threads: what is kept, and what a killed run leaves."""

import dataclasses

import pytest

from sparsecast.benchmark import rank_calibration
from sparsecast.benchmark.journal import read_journal
from sparsecast.benchmark.rank_calibration import RankCalibration, journal_path
from sparsecast.distributed.processes import Nodes
from sparsecast.errors import BusyError, InputError, RanksError
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import Profile
from sparsecast.machines.storage import exclusive
from sparsecast.measuring.timing import Timing

MACHINE = Machine("made up", "x86_64", 2, 2, (Cache(3, 1 << 16, 2),), (), 1 << 24, "Linux")


@pytest.fixture
def instant(monkeypatch):
    """Let every call be done once, and take a time that tells what it was; return what was timed."""
    timed = []

    def measure_together(calls, clock, wait_s, cores, *rest):
        for kind, call in calls.items():
            call()
            timed.append((kind, cores is None))
        return {kind: Timing((2e-6,) * 3, 2e-6, 0.0, 0.01) for kind in calls}

    monkeypatch.setattr(rank_calibration, "measure_together", measure_together)
    monkeypatch.setattr(rank_calibration, "cores_together", lambda comm: "cores")
    monkeypatch.setattr(rank_calibration, "compile_alone", lambda comm: None)
    return timed


def calibrated(simulated, path, of_rank=(0, 0, 1), budget_s=60.0, on_progress=None):
    """Return what each rank of a run has measured, and the profile of rank 0."""

    def work(comm):
        made = RankCalibration(comm, MACHINE, Nodes(of_rank, 2), budget_s, path=path)
        if on_progress is not None:
            made.on_progress = on_progress
        return made, made.run()

    found = simulated.on_ranks(len(of_rank), work)
    assert all(profile is None for _, profile in found[1:])
    return [made.measured for made, _ in found], found[0][1], found[0][0]


def test_every_kind_is_kept(simulated, instant, tmp_path):
    path = tmp_path / "profiles" / "made.parquet"
    measured, profile, run = calibrated(simulated, path)
    assert run.left == 0
    assert Profile.load(path).microbenchmarks == profile.microbenchmarks
    assert not journal_path(path).exists()
    kinds = {(each.kind, each.ranks, each.nodes) for each in profile.microbenchmarks}
    assert kinds >= {("ping-pong", 2, 1), ("ping-pong", 2, 2), ("allgatherv", 3, 2), ("triad", 1, 1)}
    # A rank keeps what it took part in; rank 0 in all.
    assert len(measured[0]) == len(profile.microbenchmarks) > len(measured[1]) > len(measured[2]) > 0
    assert {each.time_s for each in profile.microbenchmarks if each.kind == "ping-pong"} == {1e-6}
    assert {each.time_s for each in profile.microbenchmarks if each.kind == "bcast"} == {2e-6}


def test_ranks_beyond_the_cores_are_marked_and_do_not_wait_for_them(simulated, instant, tmp_path):
    _, profile, _ = calibrated(simulated, tmp_path / "made.parquet", of_rank=(0, 0, 0))
    for each in profile.microbenchmarks:
        assert each.is_oversubscribed == (each.ranks == 3)
    assert {is_shared for _, is_shared in instant} == {True, False}


def test_a_profile_keeps_what_it_had(simulated, instant, recorded, tmp_path):
    path = tmp_path / "made.parquet"
    own = dataclasses.replace(recorded, machine=MACHINE)
    own.save(path)
    _, profile, _ = calibrated(simulated, path, of_rank=(0, 0))
    assert profile.records == own.records
    assert profile.microbenchmarks


def test_a_killed_run_loses_nothing(simulated, instant, tmp_path):
    path, seen = tmp_path / "made.parquet", []

    def kill(done_s, total_s, item):
        seen.append(item)
        if len(seen) > 7:
            raise MemoryError("killed")

    with pytest.raises(MemoryError):
        calibrated(simulated, path, of_rank=(0, 0), on_progress=kill)
    assert not path.exists()
    left = read_journal(journal_path(path)).microbenchmarks
    assert len(left) == 7
    with journal_path(path).open("a") as stream:
        stream.write('{"schema": 1, "microbench')  # its last line was cut
    measured, profile, _ = calibrated(simulated, path, of_rank=(0, 0))
    assert len(profile.microbenchmarks) == len(measured[0]) + 7
    assert set(left) <= set(profile.microbenchmarks)
    assert not journal_path(path).exists()


def test_time_ends_it(simulated, instant, tmp_path, monkeypatch):
    ticks = iter(range(10**9))
    monkeypatch.setattr(rank_calibration.time, "perf_counter", lambda: float(next(ticks)))
    path = tmp_path / "made.parquet"
    measured, profile, run = calibrated(simulated, path, of_rank=(0,), budget_s=5.0)
    assert 0 < len(measured[0]) < 6
    assert run.left > 0
    assert len(profile.microbenchmarks) == len(measured[0])


@pytest.mark.parametrize("budget_s", (0.0, -1.0, float("nan"), 1.9))
def test_a_budget_that_measures_nothing_is_refused(simulated, budget_s):
    with pytest.raises(InputError, match="budget"):
        RankCalibration(None, MACHINE, Nodes((0,), 2), budget_s)


def test_another_calibration_is_found_out_by_all(simulated, instant, tmp_path):
    path = tmp_path / "made.parquet"
    with (
        exclusive(path.with_suffix(".lock")),
        pytest.raises(RanksError, match="another calibration") as raised,
    ):
        calibrated(simulated, path, of_rank=(0, 0))
    assert isinstance(raised.value.__cause__, BusyError | None)
