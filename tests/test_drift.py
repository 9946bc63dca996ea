"""Forecasts for the machine as it is now: what reference products say of it, and what users read of that."""

import dataclasses

import pytest

import sparsecast as sc
from sparsecast import api
from sparsecast.devices.cpu.processor import Processor
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.references import LAST_CACHE, MOST_DRIFT, Pooled
from sparsecast.planning.drift import Drift
from sparsecast.records import MEMORY, Conditions

LEVELS = ("L2", LAST_CACHE, MEMORY)


class Monitor:
    """References that take `ratio` times as long as in the calibration."""

    def __init__(self, ratio):
        self.ratio = ratio

    def time(self):
        pass

    def pooled(self):
        return {level: Pooled(self.ratio, (self.ratio, self.ratio)) for level in LEVELS}


@pytest.fixture
def own(recorded, monkeypatch):
    """This machine's profile, whose references took a second; returns what lets them take longer now."""
    records = tuple(
        dataclasses.replace(r, conditions=Conditions(0.0, 0.0, dict.fromkeys(LEVELS, 1.0 + k % 3 * 1e-4)))
        for k, r in enumerate(recorded.records)
    )
    profile = Profile(detect(), records, recorded.matrices)
    profile.save()

    def takes(ratio):
        monkeypatch.setattr(Processor, "references", lambda self, machine, threads: Monitor(ratio))
        return profile

    return takes


@pytest.mark.parametrize("ratio", (0.4, 2.5))
def test_forecasts_and_plans_follow_the_machine_unless_told_not_to(own, ratio):
    A, profile = sc.gallery("poisson2d", n=30), own(ratio)
    met, now = (sc.predict(A, profile, threads=1, drift_correction=on) for on in (False, True))
    before = {each.candidate: each for each in met}
    for each in now:
        for name in ("time_s", "low_s", "high_s"):
            assert getattr(each, name) == pytest.approx(
                ratio * getattr(before[each.candidate], name), rel=1e-3
            )
    assert (
        met.notes == () and f"{ratio:.2f} in L2" in now.notes[0] and "--no-drift-correction" in now.notes[0]
    )
    plans = [sc.plan(A, profile, threads=1, drift_correction=on) for on in (False, True)]
    assert plans[1].time_s == pytest.approx(ratio * plans[0].time_s, rel=1e-3)
    assert plans[1].convert_s == pytest.approx(ratio * plans[0].convert_s, rel=1e-3)
    assert [b.candidate for b in plans[1].blocks] == [b.candidate for b in plans[0].blocks]


def test_references_that_wait_for_cores_scale_nothing_and_are_named(own):
    A, profile = sc.gallery("poisson2d", n=30), own(2 * MOST_DRIFT)
    met, now = (sc.predict(A, profile, threads=1, drift_correction=on) for on in (False, True))
    assert list(now) == list(met) and len(now.notes) == 1


def test_nothing_is_said_of_the_same_machine(own):
    assert sc.predict(sc.gallery("poisson2d", n=30), own(1.0), threads=1).notes == ()


def test_another_machines_references_are_not_timed(recorded, monkeypatch):
    def timed(self, machine, threads):
        raise AssertionError("references of this machine say nothing of another one")

    monkeypatch.setattr(Processor, "references", timed)
    conditions = Conditions(0.0, 0.0, {"L2": 1.0})
    records = tuple(dataclasses.replace(r, conditions=conditions) for r in recorded.records)
    assert (
        sc.predict(
            sc.gallery("poisson2d", n=30), dataclasses.replace(recorded, records=records), threads=1
        ).notes
        == ()
    )


def test_the_questions_of_a_report_share_one_reading(own, monkeypatch):
    profile, made = own(2.5), []
    monkeypatch.setattr(
        Processor, "references", lambda self, machine, threads: made.append(threads) or Monitor(2.5)
    )
    report = api.matrix_report(sc.session(profile, threads=1), Problem.of(sc.gallery("poisson2d", n=30)))
    assert made == [1]
    assert report.prediction.notes == report.plan.notes == (report.trust.drift,)
    sc.predict(sc.gallery("poisson2d", n=30), profile, threads=1)
    assert made == [1, 1]


def test_terms_of_memory_change_apart_from_all_others(recorded):
    """Three quarters of the work wait for memory, which takes 1.8 times as long."""
    [forecast, *_] = sc.predict(sc.gallery("poisson2d", n=30), recorded, threads=1)
    last = f"bytes beyond L{recorded.machine.product_caches[-1].level}"
    why = (("entries", 1e-6), (last, 3e-6), ("correction", 5e-6))
    of_memory = dataclasses.replace(forecast, why=why)
    drift = Drift({"L2": 1.0, LAST_CACHE: 1.0, MEMORY: 1.8})
    assert drift.scale(of_memory, recorded.machine) == pytest.approx(0.75 * 1.8 + 0.25)
    assert drift.scale(forecast, recorded.machine) == pytest.approx(1.0)
    bare = dataclasses.replace(forecast, why=(), bytes=1 << 40)
    assert drift.scale(bare, recorded.machine) == pytest.approx(1.8)
    assert "1.80 in memory " in drift.sentence()
