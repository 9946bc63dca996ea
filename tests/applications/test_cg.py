"""Conjugate gradients against SciPy's, and what they say when they cannot go on."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.applications.application import PRODUCT, Laps
from sparsecast.operators.applications.cg import ROUNDINGS, ConjugateGradients, conjugate_gradients


def scaled():
    """A Poisson matrix whose diagonal goes over two orders of magnitude: Jacobi pays."""
    A = gallery("poisson2d", n=13)
    by = diags_array(10.0 ** np.linspace(-0.5, 0.5, A.shape[0]))
    return csr_array(by @ A @ by)


MATRICES = {"poisson": lambda: gallery("poisson2d", n=13), "scaled": scaled}


def side(A, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, A.shape[0])


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("is_preconditioned", (False, True))
def test_iterates_are_those_of_scipy(operator, name, is_preconditioned):
    A = MATRICES[name]()
    b, inverse = side(A), 1 / A.diagonal() if is_preconditioned else None
    M = LinearOperator(A.shape, matvec=lambda r: inverse * r) if is_preconditioned else None
    steps = []
    x, failed = cg(A, b, rtol=1e-10, atol=0.0, M=M, callback=steps.append, maxiter=2000)
    found = conjugate_gradients(operator(A), b, inverse, tolerance=1e-10)
    assert not failed and found.stop == "converged"
    assert abs(found.iterations - len(steps)) <= 0.02 * len(steps)  # rounding decides the last
    np.testing.assert_allclose(found.x, x, rtol=1e-7, atol=1e-9 * np.abs(x).max())
    tenth = conjugate_gradients(operator(A), b, inverse, tolerance=1e-10, most=10)
    ahead = []
    cg(A, b, rtol=1e-10, atol=0.0, M=M, callback=lambda each: ahead.append(each.copy()), maxiter=10)
    np.testing.assert_allclose(tenth.x, ahead[-1], rtol=1e-9, atol=1e-12 * np.abs(tenth.x).max())


@pytest.mark.parametrize("is_preconditioned", (False, True))
def test_a_run_that_ended_too_soon_is_gone_on_with(operator, is_preconditioned):
    A = scaled()
    op, asked = operator(A), (side(A), 1 / A.diagonal() if is_preconditioned else None)
    whole, begun = conjugate_gradients(op, *asked), conjugate_gradients(op, *asked, most=11)
    rest = conjugate_gradients(op, *asked, start=begun)
    assert rest.residuals == whole.residuals and rest.coefficients == whole.coefficients
    np.testing.assert_array_equal(rest.x, whole.x)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_a_matrix_that_is_symmetric_up_to_rounding_is_taken_and_another_one_is_not(dtype):
    A, step = scaled().astype(dtype), np.finfo(dtype).eps * np.abs(scaled().data).max()
    upper = np.flatnonzero(A.indices > np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    A.data[upper] += np.random.default_rng(0).uniform(-5, 5, upper.size) * step
    assert (A - A.T).count_nonzero()
    ConjugateGradients(A)
    A.data[upper[0]] += 2 * ROUNDINGS * step
    with pytest.raises(InputError, match="not symmetric"):
        ConjugateGradients(A)


def test_residuals_are_those_of_b_minus_a_x(operator):
    A = MATRICES["poisson"]()
    b, seen = side(A), []
    found = conjugate_gradients(
        operator(A), b, tolerance=1e-9, on_iteration=lambda number, residual: seen.append(number)
    )
    assert found.residuals[0] == 1.0 and found.residuals[-1] <= 1e-9 < found.residuals[-2]
    assert seen == list(range(1, found.iterations + 1))
    assert np.linalg.norm(b - A @ found.x) / np.linalg.norm(b) == pytest.approx(found.residuals[-1], rel=1e-3)


def test_jacobi_takes_fewer_iterations_where_the_diagonal_varies(operator):
    A = scaled()
    plain = conjugate_gradients(operator(A), side(A))
    jacobi = conjugate_gradients(operator(A), side(A), 1 / A.diagonal())
    assert jacobi.iterations < 0.7 * plain.iterations


def test_a_b_of_zeros_needs_no_step(operator):
    A = MATRICES["poisson"]()
    found = conjugate_gradients(operator(A), np.zeros(A.shape[0]))
    assert (found.iterations, found.stop) == (0, "converged") and not found.x.any()


@pytest.mark.parametrize(
    ("diagonal", "b", "step", "why"),
    [
        ([1, -1], [1, 2], 1, "not positive definite"),
        ([1, 2, -0.1], [1, 1, 1], 3, "not positive definite"),
        ([0, 0], [1, 1], 1, "not positive definite (p A p is 0)"),
        ([1e300, 1e300], [1e100, 1e100], 1, "overflow or are not finite"),
        ([np.nan, 1], [1, 1], 1, "overflow or are not finite"),
    ],
)
def test_breakdowns_say_the_step_and_the_reason(operator, diagonal, b, step, why):
    A = csr_array(diags_array(np.array(diagonal, dtype=float)))
    found = conjugate_gradients(operator(A), np.array(b, dtype=float))
    assert found.stop.startswith(f"breakdown in step {step}: ") and why in found.stop
    assert found.iterations == step - 1 and np.isfinite(found.x).all()


@pytest.mark.parametrize("is_preconditioned", (False, True))
def test_every_loop_is_timed_as_often_as_it_runs(operator, is_preconditioned):
    A, laps = scaled(), Laps()
    found = conjugate_gradients(
        operator(A), side(A), 1 / A.diagonal() if is_preconditioned else None, lap=laps
    )
    asked = ConjugateGradients(A, preconditioner="jacobi" if is_preconditioned else None)
    names = {loop.name: loop.is_once for loop in asked.loops} | {PRODUCT: False}
    assert {name: laps.runs[name] for name in names} == {
        name: 1 if is_once else found.iterations for name, is_once in names.items()
    }
    assert set(laps.runs) == set(names)


@pytest.mark.parametrize(
    ("b", "settings"),
    [
        ([1.0, np.nan], {}),
        ([1.0, 1.0], {"tolerance": 0.0}),
        ([1.0, 1.0], {"tolerance": 1.0}),
        ([1.0, 1.0], {"most": 0}),
    ],
)
def test_wrong_settings_are_refused(operator, b, settings):
    A = csr_array(diags_array(np.ones(2)))
    with pytest.raises(InputError):
        conjugate_gradients(operator(A), np.array(b), **settings)
