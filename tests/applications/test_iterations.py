"""How many iterations there will be: what is told beforehand, beside what comes."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.applications.application import Iterations, Laps, ScipyOperator, no_iteration
from sparsecast.operators.applications.cg import (
    ConjugateGradients,
    conjugate_gradients,
    expected_iterations,
    lanczos_values,
)
from sparsecast.operators.applications.pagerank import TRIALS, PageRankOfGraph, iterations_of


def web(scale):
    A = gallery("rmat", scale=scale)
    A.data[:] = 1.0
    return A


@pytest.mark.parametrize("damping", (0.5, 0.85, 0.95))
@pytest.mark.parametrize(
    "A",
    (
        web(9),
        gallery("poisson2d", n=20).astype(bool).astype(float),
        csr_array(np.roll(np.eye(30), 1, axis=1)),
        csr_array(np.eye(12, k=1)),
    ),
    ids=("rmat", "grid", "ring", "path"),
)
def test_pagerank_takes_no_more_than_what_is_told(operator, A, damping):
    ranking = PageRankOfGraph(A, damping)
    told, found = ranking.iterations(), ranking.ranked(operator(ranking.matrix), 1000)
    assert found.iterations <= told.high  # the damping factor bounds it surely
    assert told.tried < told.low <= told.expected <= told.high or told.low == told.high


@pytest.mark.parametrize(
    ("rates", "shares"), [((0.3,), (1.0,)), ((0.4, 0.85), (1.0, 0.01)), ((0.2, 0.7), (5.0, 0.3))]
)
def test_slow_exponentials_are_found_below_fast_ones(rates, shares):
    changes = np.sum(
        [share * rate ** np.arange(80.0) for rate, share in zip(rates, shares, strict=True)], axis=0
    )
    after = 1 + int(np.argmax(changes <= 1e-6))
    assert iterations_of(changes[:TRIALS], 1e-6, 0.85) == pytest.approx(after, rel=0.1)


@pytest.mark.parametrize("n", (6, 40))
@pytest.mark.parametrize("scale", (0.0, 0.5))
def test_cg_takes_no_more_than_what_is_told(operator, n, scale):
    A = gallery("poisson2d", n=n)
    by = diags_array(10.0 ** np.linspace(-scale, scale, A.shape[0]))
    A = csr_array(by @ A @ by)
    for preconditioner in (None, "jacobi"):
        solver = ConjugateGradients(A, preconditioner=preconditioner)
        told = solver.iterations()
        found = solver.solved(operator(A), A @ np.ones(A.shape[0]), None)
        assert found.iterations <= told.high <= solver.most_iterations
        assert told.low <= told.expected <= told.high


def test_lanczos_finds_the_condition_number_of_few_values():
    """Of a matrix with eight values, eight steps tell all of them."""
    A = csr_array(diags_array(np.repeat([1.0, 2, 3, 5, 8, 13, 21, 34], 20)))
    done = conjugate_gradients(
        ScipyOperator(A), np.random.default_rng(0).normal(size=160), tolerance=1e-14, most=8
    )
    values, weights, _ = lanczos_values(done.coefficients)
    assert values == pytest.approx([1.0, 2, 3, 5, 8, 13, 21, 34], rel=1e-6)
    assert weights.sum() == pytest.approx(1.0)


def test_what_is_not_positive_definite_is_refused_before_the_run():
    A = csr_array(diags_array(np.linspace(-1, 1, 50)))
    with pytest.raises(InputError):
        ConjugateGradients(A).iterations()


@pytest.mark.parametrize("most_s", (0.0, 5.0))
def test_what_does_not_converge_in_the_iterations_allowed_has_no_forecast(most_s):
    solver = ConjugateGradients(csr_array(diags_array(np.arange(1.0, 7.0))), tolerance=1e-12)
    solver.most_iterations = solver.trials = 5  # fewer than there are eigenvalues
    done = solver.run(ScipyOperator(solver.matrix), 5, no_iteration, Laps())
    assert (done.stop, done.iterations) == ("most iterations", 5)
    with pytest.raises(InputError):
        solver.iterations(most_s=most_s)


def test_a_given_number_is_known():
    assert Iterations.known(7).low == Iterations.known(7).high == 7
    with pytest.raises(InputError):
        Iterations.known(0)


@pytest.mark.parametrize(
    ("name", "size"), [("poisson2d", {"n": 80}), ("poisson3d", {"n": 25}), ("elasticity3d", {"n": 9})]
)
def test_forty_iterations_tell_those_of_a_mesh_within_two_fifths(name, size):
    solver = ConjugateGradients(gallery(name, **size), tolerance=1e-10)
    told = solver.iterations()
    op = ScipyOperator(solver.matrix)
    done = solver.run(op, solver.most_iterations, no_iteration, Laps()).iterations
    assert told.tried < done and told.low <= done <= told.high
    assert done / 1.4 < told.expected < 1.4 * done


def test_settled_values_are_not_spread():
    """Of three eigenvalues, one far below the others, five steps are enough, as for the method."""
    A = csr_array(diags_array(np.repeat([1e-6, 1.0, 2.0], (1, 50, 49))))
    b = np.random.default_rng(0).normal(size=100)
    done = conjugate_gradients(ScipyOperator(A), b, tolerance=1e-14, most=3)
    assert expected_iterations(done.coefficients, done.residuals, 100, 1e-13) <= 5


def test_a_short_run_is_counted_to_its_end():
    solver = ConjugateGradients(gallery("poisson2d", n=40))
    few, all_of_them = solver.iterations(), solver.iterations(most_s=5.0)
    assert few.tried == solver.trials < all_of_them.tried == all_of_them.expected
