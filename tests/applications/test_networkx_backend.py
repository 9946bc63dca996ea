"""The backend of networkx: its own tests, in a process of their own, and results on any small graph."""

import collections
import math
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsecast.api.networkx_backend as backend

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
GROUPS = ("networkx.backends", "networkx.backend_info")
FUNCTIONS = ("pagerank", "eigenvector_centrality", "katz_centrality", "hits")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables of a process in which networkx finds the backend, as ``pip install`` leaves it."""
    variables = {**os.environ, "NETWORKX_TEST_BACKEND": "sparsecast", "NETWORKX_FALLBACK_TO_NX": "True"}
    if not entry_points(group=GROUPS[0], name="sparsecast"):  # installed before there was a backend
        site = tmp_path_factory.mktemp("site")
        described = site / "sparsecast_backend-0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: sparsecast-backend\nVersion: 0\n")
        declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
        lines = [f"[{group}]\nsparsecast = {declared[group]['sparsecast']}\n" for group in GROUPS]
        (described / "entry_points.txt").write_text("".join(lines))
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(site))))
    return variables


def test_networkx_own_tests_pass(environment, tmp_path):
    root, log = Path(nx.__file__).parent, tmp_path / "log"
    modules = (
        "link_analysis/tests/test_pagerank.py",
        "link_analysis/tests/test_hits.py",
        "centrality/tests/test_eigenvector_centrality.py",
        "centrality/tests/test_katz_centrality.py",
    )
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={root}", f"--log-file={log}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--log-file-level=DEBUG"]
        + [str(root / "algorithms" / module) for module in modules],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    used = collections.Counter(re.findall(r"Using backend 'sparsecast' for call to '(\w+)'", log.read_text()))
    assert set(used) == set(FUNCTIONS) and min(used.values()) >= 3
    assert not re.search("Backend 'sparsecast' raised", log.read_text())


def test_a_user_finds_it(environment):
    code = (
        "import sys, networkx as nx\n"
        "assert not {'numba', 'sparsecast.api.applications'} & set(sys.modules)\n"
        "assert nx.utils.backends.backend_info['sparsecast']['functions'].keys() == set(sys.argv[1:])\n"
        "assert 'sparsecast' in nx.pagerank.__doc__\n"
        "G = nx.karate_club_graph()\n"
        "ours, theirs = nx.pagerank(G, backend='sparsecast'), nx.pagerank(G)\n"
        "assert ours == nx.pagerank(G, backend='sparsecast') and max(ours, key=ours.get) == 33\n"
        "assert max(abs(ours[n] - theirs[n]) for n in G) < 1e-6\n"
        "G.add_edge(0, 'new')\n"
        "assert 'new' in nx.pagerank(G, backend='sparsecast')\n"
    )
    environment = {**environment, "NETWORKX_WARNINGS_TO_IGNORE": "cache"}
    line = [sys.executable, "-W", "error", "-c", code, *FUNCTIONS]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@st.composite
def graphs(draw):
    """Any kind of graph with few nodes, with loops, dangling nodes and weights, some of which are missing."""
    kind = draw(st.sampled_from((nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)))
    nodes = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True))
    edge = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes), st.none() | st.sampled_from((0, 0.5, 3)))
    made = kind()
    made.add_nodes_from(nodes)
    for start, end, weight in draw(st.lists(edge, max_size=20)):
        made.add_edge(start, end, **({} if weight is None else {"weight": weight}))
    return made


def outcome(function, *arguments, **options):
    """Return a result, or the type of the exception that networkx has for it."""
    try:
        return function(*arguments, **options)
    except nx.NetworkXException as error:
        return type(error)


def assert_alike(ours, theirs, tolerance):
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert list(ours) == list(theirs)
        assert all(type(value) is float for value in ours.values())
        assert all(math.isclose(ours[node], theirs[node], abs_tol=tolerance) for node in theirs)


weights = st.sampled_from(("weight", None))


@given(graphs(), weights, st.data())
@settings(max_examples=60)
def test_pagerank_of_any_graph(graph, weight, data):
    shares = st.dictionaries(st.sampled_from(list(graph)), st.sampled_from((0, 1, 2.5)), min_size=1)
    some = shares.filter(lambda values: sum(values.values()) > 0)
    options = {"weight": weight, "alpha": data.draw(st.sampled_from((0.3, 0.85)))}
    options |= {"tol": 1e-9, "max_iter": data.draw(st.sampled_from((1, 500)))}
    for name in ("personalization", "dangling", "nstart"):
        if data.draw(st.booleans()):
            options[name] = data.draw(some)
    ours = outcome(backend.pagerank, backend.Graph(graph), **options)
    assert_alike(ours, outcome(nx.pagerank, graph, **options), 1e-9)


@given(graphs(), weights, st.sampled_from((2, 1000)))
@settings(max_examples=40)
def test_centralities_of_any_graph(graph, weight, max_iter):
    if graph.is_multigraph():
        graph = (nx.DiGraph if graph.is_directed() else nx.Graph)(graph)
    converted = backend.Graph(graph)
    options = {"weight": weight, "max_iter": max_iter}
    for name in ("eigenvector_centrality", "katz_centrality"):
        ours = outcome(getattr(backend, name), converted, **options)
        assert_alike(ours, outcome(getattr(nx, name), graph, **options), 1e-12)


@given(graphs())
def test_a_converted_graph_is_the_adjacency_matrix(graph):
    converted = backend.Graph(graph)
    for weight in ("weight", None):
        expected = nx.to_scipy_sparse_array(graph, weight=weight, dtype=float)
        assert (converted.matrix(weight) != expected).nnz == 0
    assert backend.convert_to_nx(converted) is graph


def test_what_networkx_alone_can_do_is_left_to_it():
    graph = backend.Graph(nx.Graph([(0, 1, {"weight": -1.0})]))
    for options in ({}, {"weight": None, "alpha": 1.0}, {"weight": None, "nstart": {0: 0.0}}):
        with pytest.raises(NotImplementedError):
            backend.pagerank(graph, **options)
    with pytest.raises(ZeroDivisionError):
        backend.pagerank(graph, weight=None, personalization={0: 0})


def test_small_graphs_are_networkxs_choice():
    small, large = nx.path_graph(5), nx.path_graph(backend.LEAST_EDGES + 1)
    assert backend.should_run("pagerank", (small,), {}) is not True
    assert backend.should_run("pagerank", (), {"G": large}) is True
    assert backend.should_run("hits", (backend.Graph(small),), {}) is True


def test_hits_by_iteration_is_that_of_the_svd_and_refuses_as_networkx():
    graph = backend.convert_from_nx(nx.DiGraph([(1, 3), (1, 5), (2, 1), (3, 5), (5, 4), (5, 3), (6, 5)]))
    ways = [backend.hits(graph, method=method) for method in ("svd", "power_iteration")]
    for ours, theirs in zip(*ways, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)
    for own in backend.hits(backend.convert_from_nx(nx.star_graph(9)), method="power_iteration"):
        assert min(own.values()) >= 0
    with pytest.raises(ValueError, match="spam"):
        backend.hits(graph, method="spam")
    with pytest.raises(nx.NetworkXError):
        backend.hits(graph, method="power_iteration", nstart=dict.fromkeys(graph.nodes, 0.0))
    with pytest.raises(nx.PowerIterationFailedConvergence):
        backend.hits(backend.convert_from_nx(nx.empty_graph(3)), method="power_iteration")
