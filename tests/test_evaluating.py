"""Evaluations here: durable, gone on with, measured again, and with no matrix on both sides of a fit."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import sparsecast as sc
from sparsecast import api
from sparsecast.api import campaigns
from sparsecast.errors import InputError, StorageError
from sparsecast.machines.storage import home
from sparsecast.matrices.problem import group_of
from sparsecast.models.linear import LinearModel

#: One model stands for all: those of every matrix are scored in `test_api.py`.
ASKED = {"threads": 1, "models": ["linear"]}


def found_names(found):
    return list(dict.fromkeys(row.matrix for row in found.rows))


@pytest.fixture
def measurements(monkeypatch):
    """What an evaluation measured: the name of the matrix and the Candidates, for each measurement."""
    taken, measure_here = [], campaigns.measure_here

    def spied(problem, candidates, *rest, **options):
        taken.append((problem.name, set(candidates)))
        return measure_here(problem, candidates, *rest, **options)

    monkeypatch.setattr(campaigns, "measure_here", spied)
    return taken


SEVERAL = [f"gallery:banded?n={n}" for n in (60, 70, 80, 90, 100)]


def test_evaluate_measures_some_matrices_again_and_tells_the_difference(own, measurements):
    found = api.evaluate(SEVERAL, own, **ASKED)
    assert [name for name, _ in measurements] == [*SEVERAL, SEVERAL[0]]
    assert found.repeats.matrices == 1 and found.repeats.candidates == len(measurements[0][1])
    first = [row for row in found.rows if row.matrix == SEVERAL[0]]
    for row in found.rows:
        assert (row.again is not None) == (row.matrix == SEVERAL[0])
    for row in first:
        assert row.again.suite == "user again" and row.again.measured_at >= row.record.measured_at
        assert row.repeat_difference == pytest.approx(abs(row.again.time_s / row.record.time_s - 1))
    # A format that the profile has no Records of is measured twice, too, and not forecast.
    differences = {row.record.candidate: row.repeat_difference for row in first}
    unforecast = measurements[0][1] - differences.keys()
    assert {candidate.format for candidate in unforecast} <= {"symmetric_bcsr"}
    low, high = (np.quantile([*differences.values(), *[end] * len(unforecast)], 0.5) for end in (0, np.inf))
    assert low <= found.repeats.median <= high


def test_an_evaluation_that_was_stopped_goes_on_where_it_was(own, measurements):
    def stop(done_s, total_s, name):
        if name == SEVERAL[1]:
            raise KeyboardInterrupt

    stopped = api.evaluate(SEVERAL, own, **ASKED, on_progress=stop)
    assert stopped.interrupted and found_names(stopped) == SEVERAL[:2] and stopped.models
    del measurements[:]
    whole = api.evaluate(SEVERAL, own, **ASKED, resume=True)
    assert [name for name, _ in measurements] == [*SEVERAL[2:], SEVERAL[0]]
    assert (whole.taken_over, whole.interrupted) == (2, False) and found_names(whole) == SEVERAL
    before = {(row.matrix, row.model, row.record.candidate): row.record for row in stopped.rows}
    after = {(row.matrix, row.model, row.record.candidate): row.record for row in whole.rows}
    assert before.items() <= after.items()
    del measurements[:]
    same = api.evaluate(SEVERAL, own, **ASKED, resume=True)
    assert measurements == [] and same.taken_over == 5
    assert {name: score.median_error for name, score in same.models.items()} == {
        name: score.median_error for name, score in whole.models.items()
    }
    assert same.repeats == whole.repeats is not None


@pytest.mark.parametrize("options", [{}, {"keeps": False, "resume": True}])
def test_what_was_measured_is_measured_again_without_resume_and_where_nothing_is_kept(
    own, measurements, options
):
    for _ in range(2):
        found = api.evaluate(SEVERAL[:1], own, **ASKED, **options)
        assert found.taken_over == 0
    assert len(measurements) == 4 and len({frozenset(formats) for _, formats in measurements}) == 1


def test_what_these_kernels_did_is_taken_over_whatever_its_age(own, measurements):
    (name,) = SEVERAL[:1]
    api.evaluate([name], own, **ASKED)
    (path,) = (home() / "measurements" / own.name).glob("*.jsonl")
    text = path.read_text()
    for changed, count in (
        ({"version": "0.0"}, 2),
        ({"kernel_version": 0}, 2),
        ({"regime": "cold"}, 2),
        ({"measured_at": "2026-01-01T00:00:00+00:00"}, 0),
        ({}, 0),
    ):
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            line.get("record", {}).update(changed if "record" in line else {})
        for other in path.parent.glob("*.jsonl"):
            other.unlink()
        path.with_name("before.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        del measurements[:]
        found = api.evaluate([name], own, **ASKED, resume=True)
        assert (len(measurements), found.taken_over) == (count, int(count == 0)), changed


def test_no_model_learns_from_the_groups_that_it_is_scored_on(own, monkeypatch):
    learned = []

    def spied(self, training):
        learned.append({training.group(record) for record in training.records})
        return fit(self, training)

    fit = LinearModel.fit
    monkeypatch.setattr(LinearModel, "fit", spied)
    monkeypatch.setattr(LinearModel, "learns_from", classmethod(lambda cls, suite: True))
    kept = sc.gallery("rmat", scale=8)
    records = sc.measure(kept, threads=1, name="kept")
    assert records and all(record.suite == "user" for record in records)
    api.evaluate(["gallery:banded?n=60", kept], own, **ASKED)
    both = {"gallery:banded", group_of(records[0].matrix)}
    assert [both - groups for groups in learned] == [
        {each} for each in ("gallery:banded", group_of(records[0].matrix))
    ]
    api.evaluate(["gallery:poisson2d?n=9"], own, **ASKED)
    assert group_of(records[0].matrix) in learned[-1], "what others kept is learned from"


def test_an_evaluation_and_its_replay_score_the_same_records_with_the_same_noise(own):
    names = ["gallery:banded?n=60", "gallery:rmat?scale=7", "gallery:poisson2d?n=9"]
    here = api.evaluate(names, own, **ASKED)
    found = api.replay(sc.session(own, threads=1), models=["linear"])
    assert found.repeats == here.repeats is not None
    replayed = [row.record for row in found.rows if row.matrix in names and row.model == "linear"]
    measured = [row.record for row in here.rows if row.model == "linear"]
    assert measured and all(record in replayed for record in measured)
    assert {score.forecast_products for score in found.models.values()} == {None}


def test_what_cannot_be_evaluated_is_left_out_with_its_reason(own, tmp_path):
    empty = csr_array((5, 5))
    seen = []
    asked = [SEVERAL[0], empty, tmp_path / "nope.mtx", "gallery:nope"]
    found = api.evaluate(asked, own, **ASKED, on_matrix=lambda *done: seen.append(done))
    (name, alone), *left_out = seen
    best = next(iter(alone.models))
    assert name == SEVERAL[0] and f"median errors: {best} " in alone.sentence_of(name)
    errors = [{n: score.median_error for n, score in each.models.items()} for each in (alone, found)]
    assert errors[0] == errors[1] and {row.matrix for row in alone.rows} == {name}
    assert left_out and all(found.refused[name] in each.sentence_of(name) for name, each in left_out)
    assert found_names(found) == SEVERAL[:1]
    assert found.refused["matrix 2"] == "matrix 2 has no entries: expected at least one; leave it out"
    assert "there is no such file" in found.refused[str(tmp_path / "nope.mtx")]
    assert "'nope' is unknown" in found.refused["gallery:nope"]
    assert all("\n" not in reason for reason in found.refused.values())


def test_a_folder_stands_for_its_matrix_files(own, tmp_path):
    save_npz(tmp_path / "one.npz", sc.gallery("banded", n=60))
    save_npz(tmp_path / "two.npz", sc.gallery("banded", n=70))
    (tmp_path / "notes.txt").write_text("none")
    found = api.evaluate([tmp_path, tmp_path / "one.npz"], own, **ASKED)
    assert found_names(found) == ["one", "two"]
    assert all(name.startswith("model ") for name in found.refused)


def test_a_folder_without_matrices_is_refused_before_anything_is_measured(own, tmp_path, measurements):
    with pytest.raises(InputError):
        api.evaluate([SEVERAL[0], tmp_path], own, **ASKED)
    assert measurements == []


def test_what_cannot_be_kept_is_said_before_anything_is_measured(own, measurements):
    (home() / "measurements").write_text("mine")
    with pytest.raises(StorageError):
        api.evaluate(SEVERAL, own, **ASKED)
    assert measurements == []


def test_shards_are_evaluated_apart_and_together_they_are_all(own, measurements):
    shards = [api.evaluate(SEVERAL, own, **ASKED, shard=f"{number}/3") for number in (1, 2, 3)]
    names = [name for found in shards for name in found_names(found)]
    assert sorted(names) == sorted(SEVERAL)
    del measurements[:]
    whole = api.evaluate(SEVERAL, own, **ASKED, resume=True)
    assert whole.taken_over == 5 and {row.matrix for row in whole.rows} == set(SEVERAL)
    assert all(name == SEVERAL[0] for name, _ in measurements), "no more than the noise"
    pending = api.pending(SEVERAL, "1/3")
    assert [row["matrix"] for row in pending.rows] == found_names(shards[0])
    assert all(row["kept"] > 0 for row in pending.rows)


def test_a_collection_is_measured_without_a_profile_and_goes_on_where_it_was(own, measurements):
    def stop(done_s, total_s, name):
        if name == SEVERAL[1]:
            raise KeyboardInterrupt

    asked = [*SEVERAL, "gallery:nope"]
    stopped = api.measure_all(sc.session(threads=1), asked, on_progress=stop)
    assert stopped.interrupted and [name for name, _ in measurements] == SEVERAL[:2]
    del measurements[:]
    whole = api.measure_all(sc.session(threads=1), asked, resume=True)
    assert [name for name, _ in measurements] == SEVERAL[2:] and whole.taken_over == 2
    assert list(dict.fromkeys(row["matrix"] for row in whole.rows)) == SEVERAL
    assert set(whole.refused) == {"gallery:nope"} and not whole.interrupted
