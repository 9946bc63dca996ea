"""`sparsecast partition`: its document, its page, the kept file, the figure, and what it refuses."""

import importlib.util
import json
import sys

import pytest

from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.methods import METHODS

from .conftest import complains, document_of

HAS_METIS = importlib.util.find_spec("pymetis") is not None
SMALL = "gallery:poisson2d?n=30"


def test_all_methods_are_compared_least_communication_first(run, exact):
    document = exact(run("partition", SMALL, "--ranks", "9", "--json"), "partition")
    nnz = gallery("poisson2d", n=30).nnz
    assert document["matrix"] == {"name": SMALL, "rows": 900, "cols": 900, "nnz": nnz}
    assert (document["ranks"], document["notes"]) == (9, [])
    assert {each["method"] for each in document["partitions"]} | set(document["refused"]) == {
        *METHODS.names()
    }
    assert set(document["refused"]) == (set() if HAS_METIS else {"metis"})
    volumes = [each["volume_words"] for each in document["partitions"]]
    assert volumes == sorted(volumes)
    by_method = {each["method"]: each for each in document["partitions"]}
    rows = by_method["rows"]
    # Eight borders of 30 points each, of which six lie inside a line and cut it, too.
    assert (rows["volume_words"], rows["volume_bytes"], rows["edge_cut"]) == (480, 3840, 246)
    assert (rows["messages_most"], rows["neighbours_most"], rows["received_words_most"]) == (4, 2, 60)
    assert rows["halo_share"] == pytest.approx(480 / 900)
    blocks = by_method["uniform-2d"]
    assert (blocks["volume_words"], blocks["edge_cut"], blocks["messages_mean"]) == (2 * 2 * 900, None, None)


def test_a_partition_is_kept_and_shown_again(run, tmp_path):
    path = tmp_path / "kept.npz"
    made = document_of(
        run("partition", SMALL, "--ranks", "4", "--method", "uniform-2d", "--out", path, "--json")
    )
    read = document_of(run("partition", SMALL, "--partition", path, "--json"))
    assert read["partitions"][0].pop("partition_s") is None
    assert made["partitions"][0].pop("partition_s") > 0
    assert read == made
    complains(
        run("partition", "gallery:poisson2d?n=31", "--partition", path), "kept.npz is of another matrix"
    )
    path.write_bytes(path.read_bytes()[:300])
    complains(run("partition", SMALL, "--partition", path), r"kept.npz is damaged, or no partition")


@pytest.mark.parametrize(
    ("suffix", "asked"),
    ((".png", ()), (".svg", ("--method", "rows")), (".pdf", ("--method", "rows"))),
)
def test_the_pattern_is_drawn(run, tmp_path, suffix, asked):
    path = tmp_path / f"pattern{suffix}"
    outcome = run("partition", SMALL, "--ranks", "4", *asked, "--figure", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert path.stat().st_size > 5000


def test_more_ranks_than_rows(run):
    outcome = run("partition", "gallery:poisson2d?n=3", "--ranks", "100", "--json")
    document = json.loads(outcome.out)
    (note,) = document["notes"]
    assert note in " ".join(outcome.err.split())
    assert note == "On 100 ranks some have no row, because there are 9: they only wait; take fewer"
    assert {each["rows_most"] for each in document["partitions"]} == {1}
    empty = {each["method"]: each["empty_ranks"] for each in document["partitions"]}
    assert empty["rows"] == 91


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "wide.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 5 2\n1 5 1.0\n2 1 1.0\n")
    return path


def test_a_rectangular_matrix(ask, wide):
    document = ask("partition", wide, "--ranks", "4")
    assert document["notes"][0].startswith("On 4 ranks some have no row, because there are 2")
    assert [each["method"] for each in document["partitions"]] == ["nonzeros", "rows"]
    assert {each["edge_cut"] for each in document["partitions"]} == {None}
    assert "2 x 5: expected a square one" in document["refused"]["uniform-2d"]


def test_without_metis_it_is_said_what_is_done_instead(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    outcome = run("partition", SMALL, "--ranks", "4", "--method", "metis", "--json")
    document = json.loads(outcome.out)
    assert [item["method"] for item in document["partitions"]] == ["nonzeros"]
    assert "METIS is not installed" in document["notes"][0] and "METIS is not installed" in outcome.err
    assert set(document_of(run("partition", SMALL, "--ranks", "4", "--json"))["refused"]) == {"metis"}
