"""Questions about a type of values, or a number of threads, that a profile has no Records of."""

import dataclasses

import pytest

import sparsecast as sc
from sparsecast import api
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.models.fitting import UNTRIED_FACTOR
from sparsecast.models.transfer import Setting


@pytest.fixture(scope="module")
def double(recorded):
    """The profile of another machine with two threads: records of float64 and one thread."""
    machine = dataclasses.replace(recorded.machine, processor="another one", threads=2, cores=2)
    return dataclasses.replace(recorded, machine=machine, records=tuple(recorded.select(dtype="float64")))


@pytest.fixture(name="A", scope="module")
def small():
    return sc.gallery("poisson2d", n=60)


def by_format(found):
    return {forecast.candidate.format: forecast for forecast in found}


@pytest.mark.parametrize("asked", [("complex128", 1), ("float32", 1), ("float64", 2), ("complex64", 2)])
def test_other_settings_are_forecast_with_wider_intervals_and_said(double, A, asked):
    own = by_format(sc.predict(A, double, threads=1))
    found = sc.predict(A, double, dtype=asked[0], threads=asked[1])
    assert found.transferred_from == Setting("float64", 1)
    (note,) = found.notes
    assert f"Forecast from cpu float64 1 thread: this profile has no records of cpu {asked[0]} " in note
    assert "learned on another machine" in note and ("stand for them" in note) == (asked[1] == 2)
    assert set(by_format(found)) == set(own)
    alike = 0
    for name, forecast in by_format(found).items():
        assert (forecast.candidate.dtype, forecast.candidate.threads) == asked
        there = dataclasses.replace(own[name].candidate, dtype=asked[0], threads=asked[1])
        if forecast.candidate == there:  # else the rule takes another kernel for the type
            alike += 1
            wider = forecast.high_s / forecast.low_s / (own[name].high_s / own[name].low_s)
            assert wider == pytest.approx(UNTRIED_FACTOR**2)
    assert alike >= 5


def test_what_was_measured_is_not_transferred(recorded, A):
    found = sc.predict(A, recorded, dtype="float32")
    assert found.transferred_from is None and found.notes == ()


def test_the_width_is_learned_where_the_profile_can_try_it(recorded_complex, A):
    others = tuple(r for r in recorded_complex.records if r.candidate.dtype != "float32")
    without = dataclasses.replace(recorded_complex, records=others)
    for profile, is_tried in ((recorded_complex, True), (without, False)):
        found = sc.predict(A, profile, dtype="complex64")
        assert found.transferred_from == Setting("complex128", 1)
        # To float32, and not to float64, precision changes as well.
        assert ("learned on another machine" not in found.notes[0]) == is_tried


def test_too_few_records_of_its_own_are_said_to_be_too_few(double, recorded, A):
    few = double.with_records(recorded.select(dtype="float32")[:3], ())
    found = sc.predict(A, few, dtype="float32", threads=1)
    assert found.transferred_from == Setting("float64", 1) and "has too few records" in found.notes[0]


def test_where_nothing_suffices_the_question_is_refused_as_before(double, A):
    machine = dataclasses.replace(double.machine, published_as="somebody")
    for profile, dtype in (
        (dataclasses.replace(double, records=double.records[:1]), "complex128"),
        (dataclasses.replace(double, records=()), "complex128"),
        (dataclasses.replace(double, machine=machine), "float32"),
    ):
        for ask in (sc.predict, sc.plan):
            with pytest.raises(ProfileError):
                ask(A, profile, dtype=dtype, threads=1)


def test_a_probe_and_measurements_keep_to_what_was_measured(double, A):
    own = Profile(detect(), double.records, double.matrices)
    own.save()
    with pytest.raises(ProfileError):
        sc.predict(A, own, dtype="complex128", threads=1, probe_s=0.1)
    assert sc.session(dtype="complex128", threads=1).forecasts_at_hand(A) is None
    with pytest.raises(ProfileError):
        api.replay(sc.session(own, dtype="complex128", threads=1))
    refused = api.evaluate([A], own, dtype="complex128", threads=1).refused
    assert any("no records for cpu complex128 1 thread" in why for why in refused.values())


def test_a_gpu_forecasts_another_type_by_kernel(gpu_profile, A):
    own, found = (sc.predict(A, gpu_profile, dtype=dtype) for dtype in ("float64", "float32"))
    assert found.transferred_from == Setting("float64", 1)
    assert {f.candidate.kernel for f in found} == {f.candidate.kernel for f in own}
    # Its times are made up of launches and bytes: those of a float32 are as many fewer.
    for name, forecast in by_format(found).items():
        assert forecast.time_s <= by_format(own)[name].time_s
    with pytest.raises(InputError):
        sc.predict(A, gpu_profile, dtype="complex128")


@pytest.fixture(scope="module")
def of_both(double):
    """The same with records of two threads, too: a product takes half as long, and 40 us more."""
    twice = [
        dataclasses.replace(
            record,
            candidate=dataclasses.replace(record.candidate, threads=2),
            time_s=record.time_s / 2 + 40e-6,
            samples_s=tuple(sample / 2 + 40e-6 for sample in record.samples_s),
        )
        for record in double.records
    ]
    return dataclasses.replace(double, records=(*double.records, *twice))


def test_auto_ranks_the_forecasts_of_each_number_of_threads(of_both, A):
    found = sc.predict(A, of_both, threads="auto", drift_correction=False)
    each = [sc.predict(A, of_both, threads=count, drift_correction=False) for count in (1, 2)]
    assert {f.candidate: f.time_s for f in found} == {f.candidate: f.time_s for one in each for f in one}
    assert [f.time_s for f in found] == sorted(f.time_s for f in found)
    assert found.table().headings[0] == "threads" and each[0].table().headings[0] != "threads"
    assert f"{found[0].candidate.threads} thread" in found.table().below[-1]


@pytest.mark.parametrize(("n", "best"), [(20, 1), (300, 2)])
@pytest.mark.parametrize("products", [1, 10_000])
def test_auto_plans_for_more_threads_only_where_they_pay(of_both, n, best, products):
    A = sc.gallery("poisson2d", n=n)
    how = {"products": products, "drift_correction": False}
    plan = sc.plan(A, of_both, threads="auto", **how)
    each = [sc.plan(A, of_both, threads=count, **how) for count in (1, 2)]
    assert plan.threads == best and plan.thread_plans == tuple(each)
    assert dataclasses.replace(plan, thread_plans=()) == each[best - 1]
    assert any(f"{best} thread" in sentence for sentence in plan.sentences("x"))


def test_auto_is_one_number_where_no_other_was_measured(double, gpu_profile, A):
    assert {f.candidate.threads for f in sc.predict(A, double, threads="auto")} == {1}
    assert sc.plan(A, double, threads="auto", drift_correction=False).threads == 1
    assert sc.plan(A, gpu_profile, threads="auto", drift_correction=False).threads == 1


def test_another_word_for_the_threads_is_refused(double, A):
    for ask in (sc.predict, sc.plan):
        with pytest.raises(InputError):
            ask(A, double, threads="all")


def test_an_operator_of_auto_has_the_planned_threads(of_both, A):
    own = dataclasses.replace(of_both, machine=detect())
    own.save()
    for adapt in (False, True):
        operator = sc.compile(A, threads="auto", adapt=adapt)
        assert abs(operator @ A.diagonal() - A @ A.diagonal()).max() < 1e-12
    counts = {candidate.threads for candidate in sc.session(threads="auto").choice(A).candidates}
    assert counts == {1, 2} and len(sc.session(threads=1).choice(A).candidates) > 3
