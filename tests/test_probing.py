"""Trials and probes: measured CSR corrects the other forecasts, and what may be worth it is measured too."""

import math

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.benchmark import trials
from sparsecast.benchmark.journal import TRIED_SUITE, kept
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.errors import InputError, MatrixSizeError, ProfileError, StorageError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Timing
from sparsecast.models import DEFAULT_MODEL, MODELS, store
from sparsecast.models.probing import Correction, PairedErrors, is_plain_csr, shared_error
from sparsecast.models.store import fitted, probe_correction
from sparsecast.models.training import TrainingSet


@pytest.fixture
def takes(own, monkeypatch):
    """Let every product take so many times what the profile's model forecasts, by format; count them."""
    A = sc.gallery("circuit", n=3000)  # where SELL, JAD, symmetric CSR and HYB may each be the fastest
    expected = {f.candidate: f.time_s for f in sc.predict(A, own, threads=1)}
    measured = []

    def let(**factors):
        def time(self, calls, effort):
            measured.append(list(calls)[-1])
            found = {}
            for candidate, call in calls.items():
                call()
                time_s = expected[candidate] * factors.get(candidate.format, factors["others"])
                found[candidate] = Timing.of((time_s,) * 8 + (1.02 * time_s,) * 8)
            return found

        monkeypatch.setattr(ProductTimer, "time", time)
        monkeypatch.setattr(trials, "HOPELESS", math.inf)  # that is seen on the real clock
        return A, own, expected, measured

    return let


def test_csr_is_measured_and_corrects_the_others(takes):
    A, profile, expected, _ = takes(others=2.0)
    table = sc.predict(A, profile, threads=1, probe_s=1e-9)  # no time for anything but CSR
    found, csr = {f.candidate: f for f in table}, next(filter(is_plain_csr, expected))
    assert not table.trials.tried and table.trials.csr_ratio == pytest.approx(2.0)
    assert found[csr].basis == "measured"
    assert found[csr].time_s == pytest.approx(2 * expected[csr])
    assert found[csr].high_s == pytest.approx(1.02 * found[csr].time_s)
    training = TrainingSet.of(profile, list(profile.select(dtype="float64", threads=1)))
    correction = Correction.learned(MODELS.get(DEFAULT_MODEL)(), training)
    for name in expected.keys() - {csr}:
        assert found[name].basis == "corrected"
        assert found[name].time_s == pytest.approx(expected[name] * 2 ** correction.share(name.format))
        assert sum(dict(found[name].why).values()) == pytest.approx(found[name].time_s)
    assert [f.time_s for f in table] == sorted(f.time_s for f in table)
    [note] = table.notes
    assert note == table.trials.sentence() and "2.00 times its forecast" in note


def test_what_may_be_fastest_is_measured_within_the_seconds(takes):
    A, profile, expected, measured = takes(others=1.0)
    table = sc.predict(A, profile, threads=1, probe_s=1000.0)
    assert is_plain_csr(measured[0]) and len(measured) == len(set(measured)) > 1
    assert {measured[0]} | {trial.candidate for trial in table.trials.tried} == set(measured)
    assert {f.candidate for f in table if f.basis == "measured"} == set(measured)
    for forecast in table:
        if forecast.basis == "measured":
            assert forecast.time_s == pytest.approx(expected[forecast.candidate])
        else:  # it cannot be the fastest any more
            assert forecast.low_s >= table[0].time_s
    assert table[0].basis == "measured"


def test_a_contender_that_is_slower_than_forecast_is_not_chosen(takes):
    A, profile, expected, _ = takes(others=1.0)
    first = min(expected, key=expected.__getitem__).format
    assert first != "csr"
    A, profile, expected, measured = takes(**{first: 50.0, "others": 1.0})
    table = sc.predict(A, profile, threads=1, probe_s=1000.0)
    assert first in {candidate.format for candidate in measured} and table[0].candidate.format != first
    plan = sc.plan(A, profile, threads=1, probe_s=1000.0, products=10**9)
    assert first not in {block.candidate.format for block in plan.blocks}


def test_a_plan_has_the_measured_times(takes):
    A, profile, _, _ = takes(others=3.0)
    plan = sc.plan(A, profile, threads=1, probe_s=1000.0, products=1)
    table = sc.predict(A, profile, threads=1, probe_s=1000.0)
    csr = next(f for f in table if is_plain_csr(f.candidate))
    assert plan.baseline.time_s == pytest.approx(csr.time_s)
    tried = [[trial.candidate for trial in each.trials.tried] for each in (plan, table)]
    assert tried[0] == tried[1] and plan.notes == (plan.trials.sentence(),)
    assert [b.candidate.format for b in plan.blocks] == ["csr"]


def test_a_plan_tries_what_pays_and_nothing_is_converted_twice(takes, monkeypatch):
    A, profile, expected, measured = takes(others=1.0)
    problem = Problem.of(A)
    first = min(expected, key=expected.__getitem__)
    for asked in ({"products": 100}, {"probe_s": 0}, {"drift_correction": False}):
        assert sc.plan(problem, profile, threads=1, **{"products": 10**7, **asked}).trials is None
    assert not measured and not problem.built
    plan = sc.plan(problem, profile, threads=1, products=10**7)
    [block] = plan.blocks
    assert is_plain_csr(measured[0]) and first in measured and block.candidate == first
    kept = [trial for trial in plan.trials.tried if trial.is_kept]
    assert [trial.candidate for trial in kept] == [block.candidate] == list(problem.built)
    assert plan.convert_s == kept[0].convert_s and plan.time_s == kept[0].time_s
    assert plan.trials.gain_s == pytest.approx(plan.baseline.time_s - plan.time_s)
    assert plan.trials.share == pytest.approx(plan.trials.used_s / (plan.products * plan.baseline.time_s))
    monkeypatch.setattr(type(problem.built[block.candidate].matrix), "from_csr", None)
    x = np.ones(A.shape[1])
    np.testing.assert_allclose(sc.compile(problem, plan) @ x, A @ x)
    assert not problem.built


def test_what_a_plan_tried_is_kept_and_no_model_learns_from_it(takes):
    A, profile, _, measured = takes(others=1.0)
    before = sc.predict(A, profile, threads=1, drift_correction=False)
    sc.plan(A, profile, threads=1, products=10**7)
    records = kept(profile.machine).records
    assert {record.suite for record in records} == {TRIED_SUITE}
    assert {record.candidate for record in records} == set(measured)
    assert all(record.error < 1e-12 for record in records)
    again = sc.predict(A, profile, threads=1, drift_correction=False)
    assert [f.time_s for f in again] == [f.time_s for f in before]


def test_a_plan_that_cannot_keep_what_it_tried_or_not_learn_to_correct_says_so(own, monkeypatch):
    def refuse(model, training):
        raise ProfileError("too few")

    def refuse_to_keep(machine, problem, records):
        raise StorageError("no room")

    monkeypatch.setattr("sparsecast.api.forecast_basis.keep", refuse_to_keep)
    kept_not = sc.plan(sc.gallery("circuit", n=3000), own, threads=1, products=10**7)
    assert kept_not.trials is not None and "What was tried is not kept: no room." in kept_not.notes
    monkeypatch.setattr("sparsecast.api.forecast_basis.probe_correction", refuse)
    plan = sc.plan(sc.gallery("circuit", n=3000), own, threads=1, products=10**7)
    assert plan.trials is None and "Nothing was tried: too few." in plan.notes


def test_a_format_that_does_not_fit_after_all_is_left_as_corrected(takes, monkeypatch):
    A, profile, expected, _ = takes(others=1.0)
    real, tried = ProductTimer.build, []

    def build(self, candidate):
        tried.append(candidate)
        if not is_plain_csr(candidate):
            raise MatrixSizeError("too large")
        return real(self, candidate)

    monkeypatch.setattr(ProductTimer, "build", build)
    table = sc.predict(A, profile, threads=1, probe_s=1000.0)
    assert all(trial.time_s is None for trial in table.trials.tried) and len(tried) == len(set(tried)) > 1
    assert {f.candidate for f in table} == set(expected)


def test_every_model_is_probed(own, served_model):
    table = sc.predict(sc.gallery("circuit", n=3000), own, threads=1, model=served_model, probe_s=1e-9)
    assert table.model == served_model
    assert {f.basis for f in table} == {"measured", "corrected"}
    assert all(f.time_s > 0 for f in table)


@pytest.mark.parametrize("shape", [(0, 5), (7, 5)])
def test_a_matrix_without_entries_is_probed(own, shape):
    from scipy.sparse import csr_array

    assert sc.predict(csr_array(shape), own, threads=1, probe_s=0.01)[0].time_s > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"probe_s": -1.0},
        {"probe_s": math.nan},
        {"probe_s": math.inf},
        {"probe_s": 1.0, "drift_correction": False},
    ],
)
def test_a_probe_that_cannot_be_is_refused(own, changes):
    for question in (sc.predict, sc.plan):
        with pytest.raises(InputError):
            question(sc.gallery("banded", n=50), own, threads=1, **changes)


def test_a_structure_and_another_machine_are_not_probed(own, recorded, gpu_profile):
    A = sc.gallery("banded", n=50)
    with pytest.raises(InputError):
        sc.predict(sc.structure(A), own, threads=1, probe_s=1.0)
    for question in (sc.predict, sc.plan):
        with pytest.raises(InputError):
            question(A, recorded, threads=1, probe_s=1.0)


def test_the_correction_leaves_smaller_errors_and_narrower_intervals(own):
    """On the matrices that were left out, CSR's error is in the others' too."""
    training = TrainingSet.of(own, own.select(dtype="float64", threads=1))
    for name in ("linear", "sparsecast"):
        correction = Correction.learned(MODELS.get(name)(), training)
        assert all(0 < share < 2 for share in correction.shares.values())
        assert all(low < 0 < high for low, high in correction.widths.values())


def test_a_stored_correction_is_read_and_a_damaged_one_learned_anew(
    own, data_folder, monkeypatch, store_of_every_test
):
    monkeypatch.setattr(store, "_read", store_of_every_test)
    training = TrainingSet.of(own, own.select(dtype="float64", threads=1))
    model = fitted(MODELS.get("linear")(), training)
    first = probe_correction(model, training)
    [path] = data_folder.rglob("linear-*-probe.json")
    learned = Correction.learned
    monkeypatch.setattr(Correction, "learned", None)
    assert probe_correction(model, training) == first
    monkeypatch.setattr(Correction, "learned", learned)
    path.write_text('{"key": 1')
    assert probe_correction(model, training) == first


def test_the_share_is_the_median_weighted_by_the_error_of_csr():
    errors = ((0.1, 0.9), (-0.5, -0.25), (1.0, 0.8))
    pairs = [PairedErrors("ell", csr_error, error, 1.0) for csr_error, error in errors]

    def lost(share):
        return sum(abs(pair.error - share * pair.csr_error) for pair in pairs)

    assert shared_error(pairs) == pytest.approx(0.8)
    assert lost(0.8) <= min(lost(share) for share in np.linspace(-1, 10, 12001))
    assert shared_error([PairedErrors("ell", 0.0, 0.3, 1.0)]) == 0.0
