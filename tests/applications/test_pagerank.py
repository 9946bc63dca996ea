"""PageRank against networkx, whose tolerance is ours a node, and against what must hold of any graph."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.applications.application import PRODUCT, Laps
from sparsecast.operators.applications.pagerank import links, loops, most_iterations, pagerank

EPSILON = 1e-12


def graph(edges, nodes, weights=None):
    start, end = np.array(edges, dtype=int).reshape(-1, 2).T
    values = np.ones(len(start)) if weights is None else np.array(weights, dtype=float)
    return csr_array(coo_array((values, (start, end)), shape=(nodes, nodes)))


def rmat():
    """A graph with skewed degrees, dangling nodes, self-loops and no weights."""
    A = gallery("rmat", scale=8)
    A.data[:] = 1.0
    return A


def weighted():
    A = rmat()
    A.data[:] = np.random.default_rng(3).integers(1, 9, A.nnz)
    return A


def with_zeros():
    """Edges of weight 0, some of which are all that leave a node."""
    A = weighted()
    A.data[::3] = 0.0
    A.data[A.indptr[20] : A.indptr[40]] = 0.0
    return A


GRAPHS = {
    "one node": lambda: graph([], 1),
    "one node with a loop": lambda: graph([(0, 0)], 1),
    "no edges": lambda: graph([], 7),
    "a ring": lambda: graph([(i, (i + 1) % 9) for i in range(9)], 9),
    "a path, its end dangling": lambda: graph([(i, i + 1) for i in range(8)], 9),
    "a star into a dangling hub": lambda: graph([(i, 0) for i in range(1, 12)], 12),
    "loops only": lambda: graph([(i, i) for i in range(5)], 5),
    "two parts": lambda: graph([(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)], 6),
    "all weights are 0.25": lambda: graph([(0, 1), (1, 2), (2, 0), (0, 2)], 4, [0.25] * 4),
    "weights": lambda: graph([(0, 1), (0, 2), (1, 2), (2, 0)], 4, [1, 9, 3, 1e-3]),
    "weights far apart": lambda: graph([(0, 1), (0, 2), (1, 0), (2, 0)], 3, [1e-150, 1e150, 1, 1]),
    "rmat": rmat,
    "rmat with weights": weighted,
    "rmat with edges of 0": with_zeros,
    "symmetric": lambda: gallery("poisson2d", n=7) != 0,
}


def oracle(A, damping=0.85):
    """Return networkx's PageRank; it takes an edge of weight 0 for none, as we do."""
    edges = networkx.DiGraph(A)
    found = networkx.pagerank(edges, damping, max_iter=2000, tol=EPSILON / A.shape[0])
    return np.array([found[node] for node in range(A.shape[0])])


def ranked(operator, A, **asked):
    made = links(A)
    return pagerank(operator(made.matrix), made.dangling, made.inverse_weight, **asked)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("damping", (0.85, 0.5))
def test_it_is_that_of_networkx(operator, name, damping):
    A = csr_array(GRAPHS[name]()).astype(float)
    found = ranked(operator, A, epsilon=EPSILON, damping=damping)
    assert found.stop == "converged"
    # Both stop within epsilon d / (1 - d) of the truth, in the sum of absolute values.
    assert np.abs(found.ranks - oracle(A, damping)).sum() <= 2 * EPSILON * damping / (1 - damping) + 1e-14


@pytest.mark.parametrize("name", GRAPHS)
def test_the_iteration_ends_within_its_bound_and_shrinks_by_the_damping_factor(operator, name):
    found = ranked(operator, csr_array(GRAPHS[name]()).astype(float))
    assert found.iterations <= most_iterations(0.85, 1e-6) == 91
    assert found.iterations == len(found.residuals) and found.residuals[-1] < 1e-6
    later, before = np.array(found.residuals[1:]), np.array(found.residuals[:-1])
    assert (later <= 0.85 * before + 1e-15).all()


def test_too_few_iterations_are_said(operator):
    seen = []
    found = ranked(
        operator, rmat(), most=3, on_iteration=lambda number, change: seen.append((number, change))
    )
    assert (found.stop, found.iterations) == ("most iterations", 3)
    assert seen == list(zip((1, 2, 3), found.residuals, strict=True))


@pytest.mark.parametrize("name", ("rmat", "rmat with weights"))
def test_a_run_that_ended_too_soon_is_gone_on_with(operator, name):
    A = GRAPHS[name]()
    whole, begun = ranked(operator, A, epsilon=EPSILON), ranked(operator, A, epsilon=EPSILON, most=7)
    rest = ranked(operator, A, epsilon=EPSILON, start=begun)
    assert rest.residuals == pytest.approx(whole.residuals) and rest.iterations == whole.iterations
    np.testing.assert_allclose(rest.ranks, whole.ranks, rtol=1e-13)


def test_every_loop_is_timed_as_often_as_it_runs(operator):
    laps = Laps()
    found = ranked(operator, rmat(), lap=laps)
    assert laps.runs == {"L0": 1, PRODUCT: found.iterations, "L1-L4": found.iterations}
    assert {loop.name for loop in loops(0.5, divides=True)} | {PRODUCT} == set(laps.runs)
    laps = Laps()
    found = ranked(operator, weighted(), lap=laps)
    assert laps.runs.pop("L0") == 1 and set(laps.runs.values()) == {found.iterations}
    assert {loop.name for loop in loops(0.5, divides=False)} | {PRODUCT} == {"L0", *laps.runs}


@pytest.mark.parametrize("name", ("unsorted", "duplicates", "spare room in the arrays", "explicit zeros"))
def test_awkward_arrays(operator, matrices, name):
    A = matrices[name]
    square = csr_array((max(A.shape), max(A.shape)))
    # Set, not given to SciPy, which would cut off what is spare.
    square.indptr = np.append(A.indptr, [A.indptr[-1]] * (len(square.indptr) - len(A.indptr)))
    square.indices, square.data = A.indices, np.abs(A.data)
    dense = csr_array(square.toarray())
    np.testing.assert_allclose(
        ranked(operator, square, epsilon=EPSILON).ranks, oracle(dense), rtol=1e-9, atol=1e-14
    )


@settings(max_examples=25)
@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40, unique=True),
    weights=st.sampled_from([None, "any"]),
    seed=st.integers(0, 1000),
)
def test_ranks_sum_to_1_and_follow_a_renumbering(operator, edges, weights, seed):
    generator = np.random.default_rng(seed)
    values = None if weights is None else generator.integers(0, 5, len(edges))
    A = graph(edges, 12, values)
    found = ranked(operator, A, epsilon=EPSILON)
    assert found.ranks.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found.ranks >= 0.15 / 12 - 1e-12).all()
    order = generator.permutation(12)
    renumbered = csr_array(A.toarray()[np.ix_(order, order)])
    np.testing.assert_allclose(
        ranked(operator, renumbered, epsilon=EPSILON).ranks, found.ranks[order], rtol=1e-9, atol=1e-13
    )


@pytest.mark.parametrize(
    "A",
    [
        csr_array((3, 4)),
        csr_array((0, 0)),
        graph([(0, 1)], 2, [-2.5]),
        graph([(0, 1)], 2, [np.nan]),
        graph([(0, 1)], 2, [np.inf]),
        graph([(0, 1)], 2) * 1j,
        graph([(0, 1), (0, 0)], 2, [1.7e308, 1.6e308]),
        graph([(1, 1)], 2, [5e-324]),
    ],
)
def test_a_matrix_that_is_no_graph_is_refused(A):
    with pytest.raises(InputError), np.errstate(over="ignore"):
        links(csr_array(A))


@pytest.mark.parametrize(
    "settings", ({"damping": 1.0}, {"damping": float("nan")}, {"epsilon": 0.0}, {"most": 0})
)
def test_wrong_settings_are_refused(operator, settings):
    with pytest.raises(InputError):
        ranked(operator, rmat(), **settings)
