"""Next steps: each is the forecast of the question that it names, and worth naming."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparsecast as sc
from sparsecast.api import forecast_next_steps, next_steps
from sparsecast.records import PANEL_VECTORS

ASKED = {"threads": 1, "model": "linear"}


@pytest.fixture
def every(monkeypatch):
    """Let all steps be named, whatever they gain."""
    monkeypatch.setattr(next_steps, "MOST_STEPS", 9)
    monkeypatch.setattr(next_steps, "WORTH_NAMING", 0.0)


@pytest.fixture(scope="module", name="A")
def matrix():
    return sc.gallery("circuit", n=30_000)


def steps_of(A, recorded, iterations):
    made = sc.plan(A, recorded, products=iterations, **ASKED)
    return made, {step.kind: step for step in forecast_next_steps(A, sc.session(recorded, **ASKED), made)}


def test_each_is_the_forecast_of_what_it_names(recorded, every, A):
    made, steps = steps_of(A, recorded, 100_000)
    assert set(steps) == {"vectors", "values"}
    here = sc.predict(A, recorded, **ASKED)
    several = sc.predict(A, recorded, **ASKED, vectors=PANEL_VECTORS)[0]
    rounded = sc.predict(A, recorded, **ASKED, values="float32")[0]
    assert steps["vectors"].time_s == pytest.approx(several.time_s / PANEL_VECTORS)
    assert steps["vectors"].vectors == PANEL_VECTORS
    assert steps["values"].forecast == rounded
    for step in steps.values():
        assert step.now in here and step.now.candidate == made.blocks[0].candidate
        assert step.gain == pytest.approx(made.time_s / step.time_s)
        assert step.low_s <= step.time_s <= step.high_s
        assert f"{step.gain:.2f}" in step.sentence()


def test_indices_of_64_bits(recorded, every, A):
    wide = csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape)
    _, steps = steps_of(wide, recorded, 100_000)
    assert steps["indices"].forecast == sc.predict(A, recorded, **ASKED)[0]
    assert steps["indices"].now == sc.predict(wide, recorded, **ASKED)[0]
    assert steps["indices"].forecast.candidate.index_bits == 32


def test_more_products_pay_for_another_format(recorded, every, A):
    made, steps = steps_of(A, recorded, 1)
    step = steps["products"]
    assert made.blocks[0].candidate.format == "csr" and step.products > 1
    many = sc.plan(A, recorded, products=100 * step.products, **ASKED)
    assert (many.blocks[0].candidate, many.time_s) == (step.forecast.candidate, pytest.approx(step.time_s))
    assert many.break_even_products == step.products
    assert {steps[kind].forecast.candidate.format for kind in ("vectors", "values")} == {"csr"}


def test_without_a_plan_it_begins_at_plain_csr(recorded, every, A):
    steps = {step.kind: step for step in forecast_next_steps(A, sc.session(recorded, model="linear"))}
    here = sc.predict(A, recorded, model="linear")
    assert steps["format"].forecast == here[0] == steps["vectors"].now
    assert steps["format"].now == next(
        f for f in here if f.candidate.format == "csr" and not f.candidate.parameters
    )


def test_three_at_most_that_are_worth_naming_the_best_first(recorded, A):
    found = forecast_next_steps(A, sc.session(recorded, model="linear"))
    gains = [step.gain for step in found]
    assert 0 < len(found) <= next_steps.MOST_STEPS and gains == sorted(gains, reverse=True)
    assert min(gains) >= next_steps.WORTH_NAMING


def test_values_that_float32_holds_are_no_step(recorded, A):
    exact = csr_array((np.round(A.data), A.indices, A.indptr), shape=A.shape)
    _, steps = steps_of(exact, recorded, 100_000)
    assert "values" not in steps


@pytest.mark.parametrize("matrix", (csr_array((5, 5)), csr_array((0, 3))))
def test_a_matrix_without_entries_has_none(recorded, every, matrix):
    assert forecast_next_steps(matrix, sc.session(recorded, model="linear")) == ()


def test_without_a_calibration_there_are_none(A):
    assert forecast_next_steps(A) == ()


def test_there_are_none_of_a_session_for_several_vectors(recorded, every, A):
    assert forecast_next_steps(A, sc.session(recorded, **ASKED))
    assert forecast_next_steps(A, sc.session(recorded, **ASKED, vectors=4)) == ()
