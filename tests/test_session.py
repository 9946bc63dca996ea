"""Whatever is asked of a matrix, its forecast is the same: every question goes through one session."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsecast as sc
from sparsecast.matrices.problem import Problem

SIZES = st.integers(1, 300)


def matrix(rows, cols, most, empty, seed):
    """Return a matrix with rows of all lengths up to `most`, and a share of empty ones."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, min(most, cols), rows, endpoint=True)
    lengths[generator.random(rows) < empty] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    indices = np.concatenate([np.sort(generator.choice(cols, length, replace=False)) for length in lengths])
    return scipy.sparse.csr_array((np.ones(indptr[-1]), indices.astype(np.int32), indptr), shape=(rows, cols))


@pytest.mark.parametrize("model", ["linear", "sparsecast"])
def test_forecasts_of_a_matrix_and_of_its_structure_and_plans_agree(recorded, data_folder, model):
    @given(SIZES, SIZES, SIZES, st.sampled_from([0.0, 0.5]), st.integers(0, 99))
    @settings(max_examples=20)
    def agree(rows, cols, most, empty, seed):
        A, asked = (
            matrix(rows, cols, most, empty, seed),
            {"threads": 1, "model": model, "drift_correction": False},
        )
        predicted = {forecast.candidate: forecast for forecast in sc.predict(A, recorded, **asked)}
        assert predicted
        of_structure = sc.predict(sc.structure(A), recorded, **asked)
        assert {forecast.candidate: forecast for forecast in of_structure} == predicted

        made = sc.plan(A, recorded, **asked)
        for block in (made.baseline, *made.blocks):
            if (block.first_row, block.last_row) == (0, rows - 1):
                forecast = predicted[block.candidate]
                assert (block.time_s, block.convert_s) == pytest.approx((forecast.time_s, forecast.convert_s))

    agree()


@pytest.mark.parametrize("model", ["linear", "guo", "sparsecast"])
def test_an_evaluation_and_an_adapting_operator_ask_the_same_session(recorded, data_folder, model):
    problem = Problem.of(sc.gallery("circuit", n=900))
    basis = sc.session(recorded, threads=1, model=model).basis(problem)
    estimates = {item.candidate: item.value for item in basis.estimates(basis.structure(problem))}
    predicted = sc.predict(problem, recorded, threads=1, model=model, drift_correction=False)
    assert estimates == pytest.approx({forecast.candidate: forecast.time_s for forecast in predicted})
