"""What holds for every model, on Records from a real machine and with no clock."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.errors import ProfileError
from sparsecast.features import usual_groups
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery
from sparsecast.models import MODELS
from sparsecast.models.fitting import INTERVAL_SHARE, WIDEST, prediction_interval
from sparsecast.models.forecaster import ConversionCost
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.records import Parameters

#: Whose forecasts the intervals are of; only the project's own model looks at it.
MATRIX = structure(gallery("poisson2d", n=9))


def of_matrix(A):
    """Return a Structure with the groups that some model asks for."""
    return structure(A, groups=[*usual_groups(), "entry_blocks"])


#: Row lengths as runs of (length, rows): empty, even and skewed matrices of all sizes.
RUNS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 400)), max_size=8)


#: Those of time: the one of energy has tests of its own.
OF_TIME = [name for name in MODELS.names() if MODELS.get(name).quantity == "time"]


@pytest.fixture(scope="module", params=OF_TIME)
def model_class(request):
    return MODELS.get(request.param)


@pytest.fixture(scope="module", params=["float64", "float32"])
def fitted(request, model_class, profile_of):
    profile = profile_of(model_class)
    return model_class().fit(TrainingSet.of(profile, profile.select(dtype=request.param)))


@pytest.fixture(scope="module")
def candidates(recorded):
    template = recorded.records[0].candidate
    return [dataclasses.replace(template, format=name) for name in FORMATS.names()]


def test_a_model_goes_by_its_files_name(model_class):
    assert MODELS.get(model_class.name) is model_class


def test_no_records_are_too_few(model_class, train):
    with pytest.raises(ProfileError):
        model_class().fit(train([]))


def test_fit_returns_the_model_and_does_not_change_the_training_set(model_class, profile_of):
    profile = profile_of(model_class)
    training = TrainingSet.of(profile, profile.select(dtype="float64"))
    before = list(training.records), dict(training.matrices)
    model = model_class()
    assert model.fit(training) is model
    assert (list(training.records), dict(training.matrices)) == before


#: Formats of the models of papers; ours has all.
OF_THE_PAPERS = {
    "guo": {"csr", "coo", "ell", "hyb"},
    "wang": {"csr", "ell", "jad"},
    "hossain": {"csr", "coo"},
    "blocks": {"csr"},
}


def test_the_profile_suffices_for_every_format_that_it_has(fitted, recorded):
    expected = OF_THE_PAPERS.get(fitted.name.partition("-")[0], set(FORMATS.names()))
    assert expected == set(fitted.covers or FORMATS.names())
    assert set(fitted.formats()) == expected & {record.candidate.format for record in recorded.records}


def test_the_title_names_the_settings_that_are_not_usual(model_class):
    assert model_class().title == model_class.name
    titles = [model_class(**settings).title for settings in model_class.compared]
    assert len(set(titles)) == len(titles) and titles[0] == model_class.name


def test_settings_that_are_compared_change_forecasts(model_class, profile_of, seconds, of_lengths):
    profile = profile_of(model_class)
    training = TrainingSet.of(profile, profile.select(dtype="float64"))
    found = of_lengths([3, 90, 0, 7] * 700)
    times = {
        tuple(seconds(model, name, found) for name in model.formats())
        for model in (model_class(**settings).fit(training) for settings in model_class.compared)
    }
    assert len(times) == len(model_class.compared)


@settings(max_examples=40)
@given(runs=RUNS)
def test_forecasts_are_positive_and_finite_for_any_matrix(fitted, of_lengths, candidates, runs):
    found = of_lengths([length for length, rows in runs for _ in range(rows)])
    forecasts = fitted.forecast(found, candidates)
    assert {forecast.candidate.format for forecast in forecasts} == set(fitted.formats())
    for forecast in forecasts:
        assert 0 < forecast.time_s < math.inf, forecast
        assert 0 <= forecast.low_s <= forecast.high_s < math.inf, forecast
        assert 0 <= forecast.convert_s < math.inf, forecast
        assert forecast.nnz == found.nnz


@settings(max_examples=20)
@given(rows=st.integers(1, 10**9), length=st.integers(0, 2000))
def test_forecasts_are_positive_and_finite_far_beyond_the_records(fitted, of_lengths, seconds, rows, length):
    small = of_lengths([length] * 3)
    lengths = dataclasses.replace(
        small.row_lengths,
        rows_at_least=tuple(count // 3 * rows for count in small.row_lengths.rows_at_least),
        entries_up_to=tuple(count // 3 * rows for count in small.row_lengths.entries_up_to),
    )
    huge = dataclasses.replace(small, rows=rows, nnz=rows * length).having(lengths)
    for name in fitted.formats():
        assert 0 < seconds(fitted, name, huge) < math.inf


def test_forecasts_come_fastest_first_with_their_terms(fitted, candidates):
    found = of_matrix(gallery("rmat", scale=10))
    forecasts = fitted.forecast(found, candidates)
    times = [forecast.time_s for forecast in forecasts]
    assert times == sorted(times)
    for forecast in forecasts:
        terms = fitted.terms(forecast.candidate, RowBlocks.of(found))
        assert dict(forecast.why) == {name: float(v[0]) for name, v in terms.items() if name != "time_s"}
        assert forecast.energy_j is None
        if fitted.name in ("linear", "sparsecast"):
            assert sum(dict(forecast.why).values()) == pytest.approx(forecast.time_s, rel=1e-9)
            assert ("correction" in terms) == (fitted.name == "sparsecast")


def test_bytes_are_those_of_the_format_and_of_x_and_y(fitted, candidates):
    A = gallery("banded", n=500)
    for forecast in fitted.forecast(
        of_matrix(A), [dataclasses.replace(c, dtype="float64") for c in candidates]
    ):
        built = FORMATS.get(forecast.candidate.format).from_csr(A)
        assert forecast.bytes == pytest.approx(built.traffic(), rel=0.05)


def test_blocks_are_forecast_alike_alone_and_together(fitted, way):
    A = gallery("rmat", scale=10)
    statistics = strip_statistics(A.indptr, of_matrix(A), 100)
    first, last = np.array([0, 0, 3, 7]), np.array([1, statistics.strips, 7, 9])
    for name in fitted.formats():
        together = fitted.values(way(name), statistics.blocks(first, last))
        alone = [
            fitted.values(way(name), statistics.blocks(first[[i]], last[[i]]))[0] for i in range(len(first))
        ]
        assert together.tolist() == pytest.approx(alone, rel=1e-12)


@pytest.fixture(scope="module")
def with_ratios(model_class, profile_of, make_record, of_lengths, train, seconds):
    """Fit with held-out CSR Records whose times are these multiples of the forecast."""
    if model_class.learns_from(HELD_OUT_SUITE):
        pytest.skip(f"{model_class.name} learns from all suites: its own tests are about its intervals")
    fit_records = [r for r in profile_of(model_class).select(dtype="float64") if r.suite != "gallery"]
    plain = model_class().fit(train(fit_records))
    target = of_lengths([3, 8, 5] * 500)
    expected = seconds(plain, "csr", target)

    def fit(*ratios):
        held_out = [make_record("csr", target, ratio * expected, "gallery") for ratio in ratios]
        return model_class().fit(train([*fit_records, *held_out]))

    return fit


def test_intervals_are_those_of_one_more_ratio_like_the_held_out_ones(with_ratios, way):
    assert INTERVAL_SHARE == 0.9
    low, high = with_ratios(0.5, 1.0, 2.0).interval(way("csr"), 3.0, MATRIX)
    # Logarithms -log 2, 0, log 2: mean 0, deviation log 2; Student's t of 2 degrees at 0.95 is 2.919986.
    factor = math.exp(2.919986 * math.log(2) * math.sqrt(1 + 1 / 3))
    assert low == pytest.approx(3.0 / factor, rel=1e-6)
    assert high == pytest.approx(3.0 * factor, rel=1e-6)


def test_there_is_no_interval_where_nothing_was_held_out(with_ratios, way):
    assert with_ratios().interval(way("csr"), 1.0, MATRIX) == (None, None)
    assert with_ratios(1.0).interval(way("ell"), 1.0, MATRIX) == (None, None)


def test_held_out_records_do_not_change_the_forecast(with_ratios, of_lengths, seconds):
    found = of_lengths([6] * 5000)
    assert seconds(with_ratios(0.5, 3.0), "csr", found) == seconds(with_ratios(), "csr", found)


def test_conversion_cost_reproduces_a_fixed_cost_one_a_row_and_one_an_entry(
    make_record, of_lengths, train, way
):
    def seconds(rows, stored):
        return 1e-5 + 3e-9 * rows + 2e-9 * stored

    targets = [of_lengths([k] * rows) for k, rows in ((4, 100), (1, 1000), (9, 1000), (4, 5000), (20, 300))]
    records = [make_record("ell", s, 1e-3, "strips", convert_s=seconds(s.rows, s.nnz)) for s in targets]
    records += [make_record("csr", s, 1e-3, "strips") for s in targets]
    cost = ConversionCost.fitted(train(records))
    padded = RowBlocks.of(of_lengths([4] * 99 + [8]))  # 100 rows as long as the longest
    assert float(cost.seconds(way("ell"), padded)[0]) == pytest.approx(seconds(100, 800))
    assert float(cost.seconds(way("csr"), padded)[0]) == 0.0
    narrow = way("csr", parameters=Parameters({"values": "one"}))  # never built: as the quickest that was
    assert float(cost.seconds(narrow, padded)[0]) == pytest.approx(seconds(100, padded.nnz[0]))
    copied = [make_record("csr", s, 1e-3, "strips", convert_s=1e-9 * s.nnz) for s in targets]
    there = ConversionCost.fitted(train([*records[: len(targets)], *copied]))  # a GPU, to which CSR is copied
    assert float(there.seconds(narrow, padded)[0]) == pytest.approx(seconds(100, padded.nnz[0]))


def test_a_layout_is_in_the_forecast_and_what_cannot_be_predicted_is_not_served(
    make_record, of_lengths, train, way
):
    """HYB asked to have few rows in its ELL part; BCSR asked for a block that no Structure predicts."""
    found = [of_lengths([4] * rows) for rows in (100, 1000, 5000)]
    model = MODELS.get("linear")().fit(
        train([make_record(name, s, 1e-6 * s.nnz, "strips") for name in ("hyb", "bcsr") for s in found * 4])
    )
    usual, asked = way("hyb"), way("hyb", parameters=Parameters({"least_rows": 4096}))
    sizes = {each.candidate: each.bytes for each in model.forecast(found[0], [usual, asked])}
    assert sizes[asked] - sizes[usual] == 400 * 4, "all entries in the COO part: a row index each"
    assert model.serves(way("bcsr"))
    assert not model.serves(way("bcsr", parameters=Parameters({"block": (2, 3)})))


def test_records_of_a_layout_that_cannot_be_predicted_are_not_learned_from(make_record, of_lengths, train):
    own = [make_record("bcsr", of_lengths([4] * rows), 1e-3, "strips") for rows in (100, 1000)]
    asked = dataclasses.replace(own[1].candidate, parameters=Parameters({"block": (2, 3)}))
    training = train([own[0], dataclasses.replace(own[1], candidate=asked)])
    assert MODELS.get("linear").used(training).records == (own[0],)


def test_conversion_cost_is_never_below_nothing(make_record, of_lengths, train, way, seconds):
    falling = [(100, 3e-3), (1000, 2e-3), (5000, 1e-3)]
    records = [make_record("coo", of_lengths([4] * rows), 1, "strips", convert_s=s) for rows, s in falling]
    cost = ConversionCost.fitted(train(records))
    assert min(cost.costs["coo"]) >= 0
    assert float(cost.seconds(way("coo"), RowBlocks.of(of_lengths([4] * 10**5)))[0]) > 0


def test_two_ratios_that_disagree_wildly_give_an_interval_that_can_be_read():
    low, high = prediction_interval([1e-9, 1e9])
    assert (low, high) == pytest.approx((1 / WIDEST, WIDEST))
    low, high = prediction_interval([0.9, 1.1])
    assert 1 / WIDEST < low < 0.9 and 1.1 < high < WIDEST
