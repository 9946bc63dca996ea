"""Edge lists: graphs as text, as SNAP and others publish them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from sparsecast.errors import MatrixSizeError
from sparsecast.matrices import edge_list, sources
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import load, matrix_files, matrix_name, read_file

from .conftest import write

#: One graph in many dresses: 0 -> 1, 1 -> 2, 2 -> 0.
RING = {
    "snap.txt": "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n2\t0\n",
    "commas.csv": "0,1\n1,2\n2,0\n",
    "carriage returns.tsv": "0\t1\r\n1\t2\r\n2\t0\r\n",
    "blanks.el": "  0   1 \n\n 1  2\n2 0",
    "comments between.edges": "0 1\n# a comment\n% another one\n1 2\n2 0\n",
    "heading.csv": "source;target\n0;1\n1;2\n2;0\n",
    "compressed.txt.gz": "0 1\n1 2\n2 0\n",
    "byte order mark.txt": "\ufeff0 1\n1 2\n2 0\n",
    "weights of 1.txt": "0 1 1\n1 2 1.0\n2 0 1e0\n",
}


@pytest.mark.parametrize("name", RING)
def test_one_graph_in_many_dresses(tmp_path, name):
    A = load(write(tmp_path, RING[name], name))
    np.testing.assert_array_equal(A.toarray(), np.roll(np.eye(3), 1, axis=1))
    assert A.dtype == np.float64 and A.has_sorted_indices


def test_nodes_are_renumbered_in_order_and_that_is_said(tmp_path):
    A, notes, *_ = read_file(write(tmp_path, "70 9000000000\n9000000000 500\n", "a.txt"))
    np.testing.assert_array_equal(A.toarray(), [[0, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert notes == (
        "numbers its 3 nodes from 70 to 9,000,000,000: they are renumbered from 0, in the same order",
    )


def test_weights_and_edges_that_stand_there_twice(tmp_path):
    A, notes, *_ = read_file(write(tmp_path, "0 1 0.5\n1 0 -2\n0 1 0.25\n", "a.txt"))
    np.testing.assert_array_equal(A.toarray(), [[0, 0.75], [-2, 0]])
    assert "1 duplicate" in notes[-1]


def test_a_graph_that_calls_itself_undirected_is_read_as_it_stands(tmp_path):
    A, notes, *_ = read_file(write(tmp_path, "# Undirected graph: a.txt\n0 1\n", "a.txt"))
    assert A.nnz == 1 and "undirected" in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "# nothing but a comment\n", "from,to\n", "0 1\n1\n", "0 1\n1 2 3\n", "0 1 2 3\n", "7\n"),
        *("0 1\n-3 2\n", "0 1\nabc 2\n", "0 1.5\n", "0 1 {}\n", "0 1 \n1 2 x\n", "0 99999999999999999999\n"),
        bytes(range(256)) * 40,
        "1" * (2 << 20),
    ],
)
@pytest.mark.parametrize("suffix", [".txt", ".csv.gz"])
def test_what_is_no_edge_list_is_refused_in_one_line(refusal, tmp_path, text, suffix):
    assert len(refusal(write(tmp_path, text, f"a{suffix}"))) < 500


def test_more_edges_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsecast.system.memory.free_bytes", lambda: 1000)
    with pytest.raises(MatrixSizeError):
        load(write(tmp_path, "0 1\n" * 1001, "a.txt"))


def test_a_folder_with_texts_has_no_graphs_unless_named(tmp_path):
    write(tmp_path, "about", "README.txt")
    graph = write(tmp_path, "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n", "a.mtx")
    assert matrix_files(tmp_path) == [graph]
    assert matrix_name("soc-Epinions1.txt.gz") == "soc-Epinions1"
    assert Problem.named(write(tmp_path, RING["snap.txt"], "ring.txt")).matrix.nnz == 3


@settings(max_examples=25)
@given(
    edges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60),
    piece=st.sampled_from([1, 1 << 24]),
    block=st.sampled_from([16, 1 << 20]),
)
def test_any_graph_in_pieces_of_any_length(tmp_path_factory, edges, piece, block):
    """The places where a text is cut show nowhere."""
    path = tmp_path_factory.mktemp("graph") / "a.txt"
    path.write_text("".join(f"{start}\t{end}\n" for start, end in edges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_list, "_PIECE_BYTES", piece)
        for module in (edge_list, sources):
            patch.setattr(module, "BLOCK_BYTES", block)
        A = load(path)
    nodes, places = np.unique(np.array(edges).T, return_inverse=True)
    start, end = places.reshape(2, -1)
    expected = coo_array((np.ones(len(edges)), (start, end)), shape=(len(nodes), len(nodes)))
    np.testing.assert_array_equal(A.toarray(), expected.toarray())
