"""The gallery: canonical form, known spectra and counts, seeds, and refusals in one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.csgraph import connected_components

from sparsecast.errors import InputError, MatrixSizeError, UnknownNameError
from sparsecast.matrices.gallery import (
    gallery,
    gallery_from_specification,
    gallery_matrices,
    gallery_names,
    gallery_parameters,
)

from .conftest import check_canonical, same

SMALL = {
    "arrow": {"n": 50, "dense_rows": 3},
    "delaunay": {"n": 200, "seed": 1},
    "banded": {"n": 60, "half_bandwidth": 4},
    "circuit": {"n": 400},
    "elasticity3d": {"n": 4},
    "helmholtz2d": {"n": 9},
    "poisson2d": {"n": 9},
    "poisson3d": {"n": 6},
    "random": {"n": 70, "cols": 40, "nnz_per_row": 7},
    "rmat": {"scale": 7, "degree": 5},
}
DEFINITE = ["arrow", "banded", "circuit", "elasticity3d", "poisson2d", "poisson3d"]


def test_every_matrix_is_tested_and_described():
    assert sorted(SMALL) == gallery_names()
    for name in gallery_names():
        assert set(SMALL[name]) <= set(gallery_parameters(name))
        assert len(gallery_matrices()[name]["summary"]) > 10


@pytest.mark.parametrize("name", sorted(SMALL))
def test_canonical_and_deterministic(name):
    one = gallery(name, **SMALL[name])
    check_canonical(one, np.complex128 if name == "helmholtz2d" else np.float64)
    assert same(one, gallery(name, **SMALL[name]))


@pytest.mark.parametrize("name", DEFINITE)
def test_symmetric_positive_definite(name):
    A = gallery(name, **SMALL[name]).toarray()
    np.testing.assert_allclose(A, A.T, atol=1e-14)
    assert np.linalg.eigvalsh(A).min() > 0


def second_difference(n):
    return diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))


def test_poisson_is_the_sum_of_second_differences():
    n, one = 7, eye_array(7)
    flat = kron(second_difference(n), one) + kron(one, second_difference(n))
    np.testing.assert_array_equal(gallery("poisson2d", n=n).toarray(), flat.toarray())
    solid = kron(flat, one) + kron(eye_array(n * n), second_difference(n))
    np.testing.assert_array_equal(gallery("poisson3d", n=n).toarray(), solid.toarray())


@pytest.mark.parametrize("n", [1, 2, 9])
def test_helmholtz_is_the_sum_of_second_differences_that_let_waves_out(n):
    k = 2 * np.pi / 7
    line, one = second_difference(n).astype(complex).tolil(), eye_array(n)
    line[0, 0] -= 1 + 1j * k
    line[n - 1, n - 1] -= 1 + 1j * k
    expected = kron(line, one) + kron(one, line) - k**2 * eye_array(n * n)
    A = gallery("helmholtz2d", n=n, wavelength=7)
    np.testing.assert_allclose(A.toarray(), expected.toarray(), atol=1e-14)
    assert A.nnz == 5 * n * n - 4 * n
    np.testing.assert_array_equal(A.toarray(), A.toarray().T)
    assert not np.array_equal(A.toarray(), A.toarray().conj().T)


def test_elasticity_of_rigid_motions_vanishes_inside():
    n = 5
    A = gallery("elasticity3d", n=n)
    assert A.nnz == 9 * 13**3
    z, y, x = np.meshgrid(*[np.arange(float(n))] * 3, indexing="ij")
    inside = np.zeros((n, n, n, 3), dtype=bool)
    inside[1:-1, 1:-1, 1:-1] = True
    zero = np.zeros_like(x)
    motions = [(zero + 1, zero, zero), (zero, zero, zero + 1), (-y, x, zero), (zero, -z, y), (z, zero, -x)]
    for motion in motions:
        force = A @ np.stack(motion, axis=-1).reshape(-1)
        np.testing.assert_allclose(force[inside.reshape(-1)], 0, atol=1e-12)
    stretch = A @ np.stack((x * x, zero, zero), axis=-1).reshape(-1)
    # The divergence of the stress: -(lambda + 2 mu) * 2 a unit of volume.
    np.testing.assert_allclose(stretch.reshape(n, n, n, 3)[2, 2, 2], (-6, 0, 0), atol=1e-12)


def test_banded_is_a_full_band():
    A = gallery("banded", n=30, half_bandwidth=3).toarray()
    i, j = np.indices(A.shape)
    np.testing.assert_array_equal(A != 0, abs(i - j) <= 3)
    assert gallery("banded", n=4, half_bandwidth=100).nnz == 16
    assert gallery("banded", n=4, half_bandwidth=0).nnz == 4


@given(st.integers(1, 30), st.integers(1, 30), st.data())
@settings(deadline=None, max_examples=60)
def test_random_rows_are_exact_and_distinct(n, cols, data):
    nnz_per_row = data.draw(st.integers(0, cols))
    A = gallery("random", n=n, cols=cols, nnz_per_row=nnz_per_row, seed=data.draw(st.integers(0, 99)))
    assert A.shape == (n, cols)
    check_canonical(A)
    np.testing.assert_array_equal(np.diff(A.indptr), nnz_per_row)


def test_rmat_is_a_power_law_graph():
    A = gallery("rmat", scale=12, degree=16)
    assert A.shape == (4096, 4096)
    assert A.sum() == 16 * 4096
    lengths = np.diff(A.indptr)
    assert lengths.max() > 20 * lengths.mean()
    top = A[:2048]
    share = top[:, :2048].sum() / A.sum(), top[:, 2048:].sum() / A.sum()
    np.testing.assert_allclose(share, (0.57, 0.19), atol=0.01)
    assert gallery("rmat", scale=0, degree=3).toarray() == [[3.0]]
    other = gallery("rmat", rows=3000, edges=50_000)
    assert other.shape == (3000, 3000) and other.sum() == 50_000
    assert (gallery("rmat", rows=4096, edges=16 * 4096) != A).nnz == 0
    assert gallery("rmat", scale=3, degree=0).nnz == 0


def test_arrow_has_full_first_rows_and_columns():
    A = gallery("arrow", n=20, dense_rows=2).toarray()
    expected = np.eye(20, dtype=bool)
    expected[:2] = expected[:, :2] = True
    np.testing.assert_array_equal(A != 0, expected)
    assert gallery("arrow", n=5, dense_rows=5).nnz == 25
    assert gallery("arrow", n=5, dense_rows=0).nnz == 5


def test_circuit_has_short_rows_and_a_few_very_long_ones():
    lengths = np.diff(gallery("circuit", n=20_000).indptr)
    assert 3 <= np.median(lengths) <= 6
    assert (lengths > 200).sum() in range(1, 5)
    assert gallery("circuit", n=1).nnz == 1


def test_specifications():
    assert gallery_from_specification("poisson3d?n=3&points=27").nnz == 7**3
    assert (gallery_from_specification("rmat?scale=3") != gallery("rmat", scale=3, degree=16)).nnz == 0
    assert gallery("poisson2d", n=np.int32(3)).shape == (9, 9)
    assert gallery_parameters("poisson3d") == {"n": 100, "points": 7}


@pytest.mark.parametrize(
    "specification",
    [
        "poisson2d?n=0",
        "helmholtz2d?wavelength=1",
        "poisson2d?n=-4",
        "poisson2d?n=1e3",
        "poisson2d?n=",
        "poisson2d?n",
        "poisson2d?",
        "poisson2d?n=3&n=4",
        "poisson3d?points=9",
        "random?n=5&nnz_per_row=6",
        "arrow?n=5&dense_rows=6",
        "rmat?scale=41",
        "random?cols=9223372036854775807",
        "rmat?seed=-1",
        "posson2d",
        "poisson3d?m=3",
        "poisson3d?name=3",
    ],
)
def test_refusals_are_one_line(specification):
    with pytest.raises(InputError) as caught:
        gallery_from_specification(specification)
    is_unknown = any(name in specification for name in ("posson", "?m=", "?name="))
    assert isinstance(caught.value, UnknownNameError) == is_unknown


@pytest.mark.parametrize(
    "specification",
    [
        "poisson2d?n=1000000000",
        "helmholtz2d?n=1000000000",
        "poisson3d?n=100000",
        "elasticity3d?n=10000",
        "banded?n=1000000000000&half_bandwidth=100000000000",
        "random?n=1000000000000000",
        "random?n=1000000&cols=1000000&nnz_per_row=900000",
        "rmat?scale=40",
        "arrow?n=10000000000&dense_rows=5",
        "circuit?n=10000000000",
    ],
)
def test_what_does_not_fit_is_refused_before_allocation(specification):
    with pytest.raises(MatrixSizeError):
        gallery_from_specification(specification)


@given(st.integers(4, 300), st.integers(0, 99), st.data())
@settings(deadline=None, max_examples=40)
def test_a_triangulation_is_planar_connected_and_keeps_its_shortest_edges(n, seed, data):
    A = gallery("delaunay", n=n, seed=seed)
    assert (A != A.T).nnz == 0 and not A.diagonal().any()
    hull = 3 * n - 3 - A.nnz // 2  # Euler: 3 n - 3 - h edges with h points on the boundary
    assert 3 <= hull <= n and connected_components(A)[0] == 1
    edges = data.draw(st.integers(1, A.nnz // 2))
    fewer = gallery("delaunay", n=n, seed=seed, edges=edges)
    assert fewer.nnz == 2 * edges and (fewer > A).nnz == 0
