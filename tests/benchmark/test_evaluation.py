"""Scores against a computation by hand."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.benchmark.evaluation import Scoring, distinct_names, size_of
from sparsecast.machines.machine import Cache
from sparsecast.records import Estimate


@pytest.fixture
def scoring(recorded):
    return Scoring(recorded.machine)


@pytest.fixture
def take(recorded, scoring):
    """Take forecasts and measurements of a matrix: format -> (forecast, low, high, measured)."""
    template = recorded.records[0]

    def rows(matrix, model, ways, quantity="time"):
        estimates, records = [], []
        for name, (value, low, high, measured) in ways.items():
            candidate = dataclasses.replace(template.candidate, format=name)
            if value is not None:
                estimates.append(Estimate(candidate, value, low, high))
            name = {"time": "time_s", "energy": "energy_j"}[quantity]
            records.append(dataclasses.replace(template, candidate=candidate, **{name: measured}))
        if matrix not in scoring.measured:
            scoring.add_records(matrix, [r for r in records if r.time_s is not None])
        scoring.add_estimates(matrix, model, quantity, estimates)
        return [row for row in scoring.evaluation("p").rows if (row.matrix, row.model) == (matrix, model)]

    return rows


def test_what_was_not_measured_is_left_out_and_rows_are_sorted_by_measurement(take, scoring, recorded):
    rows = take("m", "a", {"csr": (1.0, None, None, 3.0), "ell": (2.0, None, None, 1.0)})
    assert [row.estimate.candidate.format for row in rows] == ["ell", "csr"]
    other = dataclasses.replace(recorded.records[0].candidate, format="jad")
    scoring.add_estimates("m", "a", "time", [Estimate(other, 1.0, None, None)])
    assert len(scoring.evaluation("p").rows) == 2


def test_scores_by_hand(take, scoring):
    # Forecast best: ell; measured best: csr. Errors 0.5, 0.5. The regret is 4 / 2 - 1 = 1.
    take("one", "a", {"csr": (3.0, 2.0, 4.0, 2.0), "ell": (2.0, 1.0, 3.0, 4.0)})
    # Forecast best and measured best: csr. Errors 0.1, 0. No regret.
    take("two", "a", {"csr": (1.1, 1.0, 1.2, 1.0), "ell": (5.0, 4.0, 6.0, 5.0)})
    take("one", "b", {"csr": (2.0, None, None, 2.0)})
    found = scoring.evaluation("p").models
    a, b = found["a"], found["b"]
    assert a.forecasts == 4
    assert a.mean_error == pytest.approx((0.5 + 0.5 + 0.1 + 0.0) / 4)
    assert a.median_error == pytest.approx((0.1 + 0.5) / 2)
    assert a.p90_error == pytest.approx(0.5)
    assert a.bias == pytest.approx((0.5 - 0.5 + 0.1 + 0.0) / 4)
    assert a.coverage == pytest.approx(3 / 4)
    assert a.mean_width == pytest.approx((2 / 3 + 2 / 2 + 0.2 / 1.1 + 2 / 5) / 4)
    # The geometric mean of the ratios 2 and 1.
    assert (a.regret, a.worst_ratio) == (pytest.approx(2**0.5 - 1), 2.0)
    assert a.top1 == pytest.approx(1 / 2)
    assert a.unforecast == 0
    assert set(a.formats) == {"csr", "ell"}
    assert a.formats["csr"].mean_error == pytest.approx((0.5 + 0.1) / 2)
    assert a.formats["ell"].forecasts == 2
    assert a.worst == (("two", pytest.approx(0.05)), ("one", 0.0))
    # It has no forecast of three measured ways; on the second matrix plain CSR counts as its choice.
    assert (b.mean_error, b.coverage, b.mean_width) == (0.0, None, None)
    assert (b.regret, b.worst_ratio, b.top1, b.unforecast) == (0.0, 1.0, 1.0, 3)


def test_a_model_that_forecasts_little_is_not_the_best(take, scoring):
    take("one", "narrow", {"csr": (2.0, None, None, 2.0), "ell": (None, None, None, 4.0)})
    take("one", "wide", {"csr": (2.2, None, None, 2.0), "ell": (4.4, None, None, 4.0)})
    take("one", "wild", {"csr": (9.0, None, None, 2.0), "ell": (9.0, None, None, 4.0)})
    assert list(scoring.evaluation("p").models) == ["wide", "wild", "narrow"]


@pytest.mark.parametrize(("noise", "found"), [(None, 0.0), (0.04, 0.0), (0.06, 1.0)])
def test_a_choice_within_the_noise_of_the_best_counts_as_best(take, scoring, noise, found):
    take("m", "a", {"csr": (1.0, None, None, 1.05), "ell": (2.0, None, None, 1.0)})
    best = scoring.measured["m"][1]
    scoring.measured["m"][1] = dataclasses.replace(best, noise=noise)
    score = scoring.evaluation("p").models["a"]
    assert (score.top1, score.worst_ratio) == (found, 1.05)


def test_what_was_measured_again_tells_the_noise_unless_it_is_older(take, scoring):
    take("m", "a", {"csr": (1.0, None, None, 2.0), "ell": (1.0, None, None, 4.0)})
    take("n", "a", {"csr": (1.0, None, None, 2.0)})
    first = [dataclasses.replace(r, measured_at="2026-01-01T10:00:00+00:00") for r in scoring.measured["m"]]
    scoring.measured["m"] = first
    scoring.rows["m"] = [
        dataclasses.replace(row, record=next(r for r in first if r.candidate == row.estimate.candidate))
        for row in scoring.rows["m"]
    ]
    later = dataclasses.replace(first[0], time_s=2.2, measured_at="2026-01-01T10:05:00+00:00")
    older = dataclasses.replace(first[1], time_s=9.0, measured_at="2026-01-01T09:59:59+00:00")
    scoring.add_again("m", [later, older])
    found = scoring.evaluation("p")
    assert (found.repeats.matrices, found.repeats.candidates, found.repeats.after_s) == (1, 1, 300.0)
    assert found.repeats.median == found.repeats.p90 == pytest.approx(0.1)
    assert found.models["a"].repeat_median == pytest.approx(0.1)
    assert found.models["a"].formats["ell"].repeat_median is None


def test_what_forecasts_cost_in_products_of_csr(take, scoring):
    take("small", "a", {"csr": (1.0, None, None, 2.0), "ell": (1.0, None, None, 1.0)})
    for name, nnz, cost_s in (("large", 1_000_000, 6.0), ("very large", 10_000_000, 8.0)):
        take(name, "a", {"csr": (1.0, None, None, 2.0)})
        scoring.measured[name] = [dataclasses.replace(r, nnz=nnz) for r in scoring.measured[name]]
        scoring.costs_s[name, "a"] = cost_s
    scoring.measured["small"] = [dataclasses.replace(r, nnz=999_999) for r in scoring.measured["small"]]
    scoring.costs_s["small", "a"] = 200.0
    score = scoring.evaluation("p").models["a"]
    costs = score.forecast_products, score.forecast_products_large, score.forecast_products_very_large
    assert costs == (4.0, 4.0, 4.0)
    scoring.costs_s["large", "a"] = 10.0
    score = scoring.evaluation("p").models["a"]
    costs = score.forecast_products, score.forecast_products_large, score.forecast_products_very_large
    assert costs == (5.0, 5.0, 4.0)


def test_scores_by_the_caches_that_hold_what_a_product_moves(take, scoring, recorded):
    caches = Cache(1, 1 << 15, 1), Cache(2, 1 << 20, 1), Cache(3, 1 << 22, 2)
    machine, template = dataclasses.replace(recorded.machine, caches=caches), recorded.records[0]

    def size(moved_bytes, threads=1, machine=machine):
        candidate = dataclasses.replace(template.candidate, threads=threads)
        record = dataclasses.replace(template, candidate=candidate, traffic_bytes=moved_bytes)
        return size_of(machine, record)

    assert [size(1 << 20), size((1 << 20) + 1), size(1 << 22)] == ["within L2", "within L3", "within L3"]
    assert size((1 << 20) + 1, threads=2) == "within L2"  # each has its own; they share the last
    assert [size((1 << 22) + 1, threads=2), size(1 << 23)] == ["beyond L3", "beyond L3"]
    assert size((1 << 23) + 1) == "twice beyond L3"
    assert size(1, machine=dataclasses.replace(machine, caches=())) == "any"

    scoring.machine = dataclasses.replace(machine, caches=(Cache(2, template.traffic_bytes, 1),))
    take("m", "a", {"csr": (1.0, None, None, 2.0), "ell": (2.0, None, None, 1.0)})
    evaluation = scoring.evaluation("p")
    (score,) = evaluation.models["a"].sizes.values()
    assert evaluation.models["a"].sizes.keys() == {"within L2"}
    assert (score.forecasts, score.median_error) == (2, pytest.approx(0.75))
    assert evaluation.sizes().cells() == [("a", "75.0 (2)")]
    names = ("twice beyond L3", "within L2"), ("beyond L3", "within L3")
    models = {
        model: dataclasses.replace(evaluation.models["a"], sizes=dict.fromkeys(own, score))
        for model, own in zip("ab", names, strict=True)
    }
    both = dataclasses.replace(evaluation, models=models).sizes()
    assert list(both.headings) == ["model", "within L2", "within L3", "beyond L3", "twice beyond L3"]
    assert both.cells()[1] == ("b", "-", "75.0 (2)", "75.0 (2)", "-")


def test_matrices_of_one_name_get_their_specifications():
    names = {"file:a": "cant", "file:b": "cant", "file:c": "rma10"}
    assert distinct_names(names) == {"file:a": "file:a", "file:b": "file:b", "file:c": "rma10"}


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=6))
def test_scores_keep_their_bounds(recorded, pairs):
    scoring, template = Scoring(recorded.machine), recorded.records[0]
    candidates = [dataclasses.replace(template.candidate, threads=n + 1) for n in range(len(pairs))]
    records = [
        dataclasses.replace(template, candidate=c, time_s=t)
        for c, (t, _) in zip(candidates, pairs, strict=True)
    ]
    scoring.add_records("m", records)
    estimates = [Estimate(c, v, v / 2, 2 * v) for c, (_, v) in zip(candidates, pairs, strict=True)]
    scoring.add_estimates("m", "a", "time", estimates)
    score = scoring.evaluation("p").models["a"]
    assert score.median_error <= score.p90_error and abs(score.bias) <= score.mean_error * (1 + 1e-12)
    assert score.worst_ratio >= 1 and score.regret == pytest.approx(score.worst_ratio - 1)
    assert score.mean_width == pytest.approx(1.5) and 0 <= score.coverage <= 1
    # Its second-best choice is never called best where the noise is small.
    assert score.top1 == (score.worst_ratio <= 1 + (template.noise or 0))


def test_a_format_without_a_forecast_counts_in_the_regret(take, scoring):
    take("m", "a", {"csr": (1.0, None, None, 3.0), "ell": (None, None, None, 1.0)})
    score = scoring.evaluation("p").models["a"]
    assert (score.regret, score.top1, score.unforecast) == (pytest.approx(2.0), 0.0, 1)


def test_energy_is_compared_with_joules_and_not_with_times(take, scoring):
    take("m", "joules", {"csr": (3.0, None, None, 2.0)}, quantity="energy")
    (row,) = scoring.evaluation("p").rows
    assert (row.measured, row.error) == (2.0, 0.5)
    assert scoring.evaluation("p").models["joules"].quantity == "energy"


def test_no_rows_have_no_scores(scoring):
    assert scoring.evaluation("p").models == {}
