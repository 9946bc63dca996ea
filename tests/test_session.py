"""Whatever is asked of a matrix, its forecast is the same: every question goes through one session."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsecast as sc
from sparsecast.errors import InputError
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models.power import PowerFile

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


def same(one, other):
    return [(f.candidate, f.time_s, f.low_s, f.energy_j) for f in one] == [
        (f.candidate, f.time_s, f.low_s, f.energy_j) for f in other
    ]


def test_what_a_session_was_asked_before_changes_no_forecast(recorded, data_folder):
    power = PowerFile({"idle": 30.0})
    here = Profile(detect(), recorded.records, recorded.matrices)
    options = {"threads": 1, "drift_correction": False, "power_model": power}
    A, B = sc.gallery("circuit", n=900), sc.gallery("poisson2d", n=40)
    known = sc.structure(A)
    lengths = dataclasses.replace(known.row_lengths, mispredicted=None)
    unordered = known.having(lengths)
    asked = [A, B, known, unordered, B.astype("float32"), known, A]
    session = sc.session(here, **options)
    for matrix in asked:
        assert same(session.predict(matrix), sc.session(here, **options).predict(matrix))
    probing = sc.session(here, **options | {"drift_correction": True})
    probing.predict(A, probe_s=0.05)
    [watts] = {round(f.energy_j / f.time_s, 6) for f in probing.predict(B) if f.energy_j}
    assert watts == 30.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.pagerank(sc.gallery("rmat", scale=5), damp=0.1),
        lambda session: session.cg(sc.gallery("poisson2d", n=5), np.ones(25), tol=0.5),
        lambda session: session.evaluate(["gallery:poisson2d?n=9"], keep=False),
        lambda session: sc.calibrate(60.0, thread=1),
        lambda session: sc.cluster(sc.gallery("poisson2d", n=5), [4], session.profile, format="csr"),
        lambda session: sc.where(sc.gallery("poisson2d", n=5), "cpu", device="cpu"),
        lambda session: sc.session(thread=1),
    ],
)
def test_a_keyword_that_is_none_is_refused(recorded, data_folder, ask):
    with pytest.raises(TypeError):
        ask(sc.session(recorded, threads=1))


@pytest.mark.parametrize(
    ("options", "ask"),
    [
        ({"dtype": "float32"}, lambda session, A: session.cg(A, np.ones(25))),
        ({"vectors": 8}, lambda session, A: session.pagerank(A)),
        ({"values": "float32"}, lambda session, A: session.evaluate([A])),
        ({"threads": "auto"}, lambda session, A: session.evaluate([A])),
        ({"model": "linear"}, lambda session, A: session.measure(A)),
        ({"as_printed": True, "model": "guo"}, lambda session, A: session.plan(A, probe_s=1.0)),
        ({"vectors": 8}, lambda session, A: session.compile(A, adapt=True)),
        ({"energy_model": "nonsense"}, lambda session, A: session),
        ({"model": "nonsense"}, lambda session, A: session),
    ],
)
def test_an_option_that_does_not_count_is_refused(data_folder, options, ask):
    with pytest.raises(InputError):
        ask(sc.session(**options), sc.gallery("poisson2d", n=5))


def test_the_profile_of_another_machine_runs_nothing_here(recorded, data_folder):
    session, A = sc.session(recorded, threads=1), sc.gallery("poisson2d", n=5)
    for ask in (session.measure, session.pagerank, lambda A: session.compile(A, adapt=True)):
        with pytest.raises(InputError):
            ask(A)
