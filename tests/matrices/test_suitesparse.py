"""Matrices of the SuiteSparse Matrix Collection, from a server of this process in its place."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.errors import MatrixFileError, StorageError
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suitesparse import Downloaded
from sparsecast.system.progress_events import watched

HEADER = b"%%MatrixMarket matrix coordinate real general\n"
TEXT = HEADER + b"2 3 3\n1 1 1.5\n2 1 -2\n2 3 4\n"
DENSE = [[1.5, 0, 0], [-2, 0, 4]]


def archive(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as file:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(text) if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/hostname" if kind != tarfile.REGTYPE else ""
            file.addfile(member, io.BytesIO(text))
    return gzip.compress(held.getvalue(), mtime=0)


class Collection(BaseHTTPRequestHandler):
    """Answers with the archives of its server; a status in place of bytes is an answer without any."""

    def do_GET(self):
        self.server.asked.append(self.path)
        found = self.server.archives.get(self.path.removeprefix("/MM/"), 404)
        if isinstance(found, int):
            self.send_error(found)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(found) + self.server.withheld))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Collection) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def collection(server, data_folder, monkeypatch):
    """Give a server with one matrix, and an empty data folder."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARSECAST_SUITESPARSE", f"http://127.0.0.1:{server.server_port}/MM/")
    server.asked, server.withheld = [], 0
    members = (
        ("small/small_b.mtx", b"not the matrix"),
        ("small/small.mtx", TEXT),
        ("small/small_coord.mtx", b""),
    )
    server.archives = {"HB/small.tar.gz": archive(*members)}
    return server


def kept(data_folder):
    """Return the names of all files in the data folder, those of probes and of downloads that failed too."""
    return sorted(path.name for path in data_folder.rglob("*") if path.is_file())


def test_a_matrix_is_downloaded_once_and_only_its_own_file_is_kept(collection, data_folder, capfd):
    A = sc.load("suitesparse:HB/small")
    np.testing.assert_array_equal(A.toarray(), DENSE)
    assert sc.load("suitesparse:HB/small", dtype="float32").dtype == np.float32
    assert collection.asked == ["/MM/HB/small.tar.gz"]
    assert kept(data_folder) == ["small.json", "small.mtx"]
    assert Downloaded("HB", "small").path.read_bytes() == TEXT
    origin = json.loads(Downloaded("HB", "small").path.with_suffix(".json").read_text())
    assert origin["address"].endswith("/MM/HB/small.tar.gz")
    assert capfd.readouterr().err == ""


def test_without_a_network_one_line_says_so(collection, monkeypatch, data_folder):
    monkeypatch.setenv("SPARSECAST_SUITESPARSE", "http://127.0.0.1:1")
    with pytest.raises(MatrixFileError):
        sc.load("suitesparse:HB/small")
    assert kept(data_folder) == []


@pytest.mark.parametrize(
    "answer",
    [
        404,
        503,
        b"<html>log in first</html>",
        archive(("other/other.mtx", TEXT))[:-9],
        archive(("other/other.mtx", TEXT))[:-8] + bytes(8),
        gzip.compress(b"no tar" * 200, mtime=0),
        gzip.compress(b"", mtime=0),
        archive(("other/readme.txt", b"")),
        archive(("../other/other.mtx", TEXT)),
        archive(("/other/other.mtx", TEXT)),
        archive(("other/../../../other.mtx", TEXT)),
        archive(("other/other.mtx", b"")),
        archive(("other/other.mtx", TEXT.replace(b"coordinate", b"tensor"))),
        archive(("other/other.mtx", TEXT.replace(b"2 3 3", b"2 3"))),
        archive(("other/other.mtx", TEXT.replace(b"2 3 3", b"2 3 99999999999999999999"))),
        archive(("other/other.mtx", b""), kind=tarfile.SYMTYPE),
        archive(("other/other.mtx", b""), kind=tarfile.LNKTYPE),
        archive(("other/other.mtx", b""), kind=tarfile.DIRTYPE),
    ],
)
def test_what_is_no_matrix_is_refused_in_one_line_and_nothing_is_kept(collection, data_folder, answer):
    collection.archives["HB/other.tar.gz"] = answer
    with pytest.raises(MatrixFileError):
        sc.load("suitesparse:HB/other")
    assert kept(data_folder) == []


def test_a_download_that_broke_off_is_not_kept(collection, data_folder):
    collection.withheld = 10
    with pytest.raises(MatrixFileError):
        sc.load("suitesparse:HB/small")
    assert kept(data_folder) == []


@pytest.mark.parametrize(
    "name", ["small", "HB/", "/small", "HB/small/more", "../HB/small", "HB/..", ".HB/x", "HB/a b", "", "HB/é"]
)
def test_a_name_of_another_form_is_refused_before_anything_is_asked(collection, name):
    with pytest.raises(MatrixFileError):
        sc.load(f"suitesparse:{name}")
    assert collection.asked == []


def test_a_kept_file_that_changed_is_refused_and_downloaded_again_once_removed(collection):
    sc.load("suitesparse:HB/small")
    path = Downloaded("HB", "small").path
    path.write_bytes(TEXT.replace(b"1.5", b"1.6"))
    with pytest.raises(MatrixFileError):
        sc.load("suitesparse:HB/small")
    path.unlink()
    np.testing.assert_array_equal(sc.load("suitesparse:HB/small").toarray(), DENSE)
    assert len(collection.asked) == 2


def test_a_data_folder_that_cannot_be_written_is_named_before_the_download(collection, data_folder):
    data_folder.write_text("a file")
    with pytest.raises(StorageError):
        sc.load("suitesparse:HB/small")
    assert collection.asked == []


def test_the_problem_asks_for_nothing_before_it_is_needed_and_is_made_again_without_a_network(collection):
    problem = Problem.named("suitesparse:HB/small")
    assert (problem.name, collection.asked) == ("HB/small", [])
    specification = problem.specification
    assert specification.startswith("suitesparse:HB/small?sha256=")
    np.testing.assert_array_equal(problem.matrix.toarray(), DENSE)
    again = Problem.rebuilt(specification)
    assert again is not None
    assert again.specification == specification and again.group == problem.group
    assert problem.twin().specification.endswith(specification)
    assert Problem.rebuilt(problem.twin().specification) is not None
    assert len(collection.asked) == 1
    Downloaded("HB", "small").path.unlink()
    assert Problem.rebuilt(specification) is None
    assert Problem.rebuilt(problem.twin().specification) is None
    assert len(collection.asked) == 1


def test_the_same_content_is_one_group_with_its_file(collection, tmp_path):
    copy = tmp_path / "copy.mtx"
    copy.write_bytes(TEXT)
    assert Problem.named(copy).group == Problem.named("suitesparse:HB/small").group


def test_who_watches_is_told_of_all_bytes(collection):
    told = {}
    # A slow connection takes long for each part that is told of.
    long = ("small/small_b.mtx", np.random.default_rng(0).bytes(300_000))
    collection.archives["HB/small.tar.gz"] = archive(long, ("small/small.mtx", TEXT))
    with watched(lambda what, done, total: told.setdefault(what, []).append((done, total))):
        sc.load("suitesparse:HB/small")
    size = len(collection.archives["HB/small.tar.gz"])
    assert list(told)[:2] == ["downloading HB/small", "unpacking HB/small"]
    assert told["downloading HB/small"][0] < (100_000, size)
    assert told["downloading HB/small"][-1] == (size, size)
    assert told["unpacking HB/small"][-1][1] == size
