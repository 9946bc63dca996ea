"""Damaged files of every reader, read in a child process; and matrices with unsound index arrays."""

import dataclasses
import os
import signal
import struct
import time
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

import sparsecast as sc
from sparsecast.api.matrices import read_table
from sparsecast.errors import InputError, MatrixFileError
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.npz import index_fault
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import as_csr
from sparsecast.matrices.reading import load
from sparsecast.models.forest import Forest
from sparsecast.models.power import PowerFile
from sparsecast.papers.barreda_2020.datasets import block_inputs
from sparsecast.records import Candidate
from sparsecast.system.archives import read_arrays
from sparsecast.system.integers import falls

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

#: SciPy's shortest of these: neighbours whose differences wrap in 32 bits, and are not below 0.
WRAPPING = np.array([0, 2, 7, 1711276040, -1298175770, 14], dtype=np.int32)


#: Of each reader; as many as one likes by `python benchmarks/run.py damaged-files`.
FILES = 80


@pytest.fixture
def fuzzing(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import fuzz_samples
    import fuzzing

    return fuzzing, fuzz_samples.READERS


@pytest.mark.hypothesis  # with a seed, it reads other files
def test_no_damaged_file_ends_the_process_or_is_refused_in_more_than_a_line(fuzzing, pytestconfig):
    harness, readers = fuzzing
    seed = pytestconfig.getoption("hypothesis_seed") or "7"
    assert len(readers) >= 13
    for name, reader in readers.items():
        outcome = harness.read_damaged(reader, int(seed), FILES)
        assert not outcome.findings, (name, outcome.first)
        assert outcome.files == outcome.read + outcome.refused == FILES
        assert outcome.refused > FILES / 10 and outcome.read > 1, name  # the changes matter, and not all do


def _faulty(kind, path):
    if "whole" in path.name and path.read_bytes() != b"0 1\n1 2\n":
        if kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif kind == "hang":
            time.sleep(60)
        elif kind == "memory":
            np.ones(400 << 20, dtype=np.uint8)
        elif kind == "error":
            raise KeyError("x")
        raise InputError("two\nlines")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("crash", f"ended with status {-signal.SIGSEGV}"),
        ("hang", "hang"),
        ("memory", "more memory than is allowed"),
        ("error", "KeyError at test_damaged_files.py"),
    ],
)
def test_what_is_wrong_with_a_reader_is_found_with_its_file(fuzzing, monkeypatch, kind, what):
    harness, _ = fuzzing
    if kind == "hang":
        monkeypatch.setattr(harness, "HANGING_S", 0.3)
    reader = harness.Reader(
        lambda: [harness.Sample("whole.txt", b"0 1\n1 2\n", "text")], lambda path: _faulty(kind, path)
    )
    outcome = harness.read_damaged(reader, 1, 2)
    found = next(iter(outcome.findings))
    assert found.startswith(what) and outcome.files == 2
    index, _ = outcome.first[found]
    assert harness.damaged_file(reader.samples(), 1, index) == harness.damaged_file(
        reader.samples(), 1, index
    )


def test_an_error_is_one_line_whatever_a_file_holds():
    assert str(InputError("a\nfile")) == "a file"


def test_what_the_fuzzer_found_is_refused(tmp_path):
    heading, twice, power = (tmp_path / name for name in ("heading.csv", "twice.csv", "power.json"))
    heading.write_bytes(b"group,matrix,r\xa0ws,cols,nnz\ng,m,1,1,1\n")
    twice.write_bytes(b"group,matrix,rows,rows,cols,nnz\ng,m,1,1,1,1\n")
    power.write_text('{"joules": {"idle": 1' + 400 * "0" + "}}")
    for read, path in ((read_table, heading), (read_table, twice), (PowerFile.read, power)):
        with pytest.raises(InputError):
            read(path)
    for stored in ({"parameters": "text"}, {"parameters": {"block": [1.5]}}, {"parameters": {"a": {}}}):
        with pytest.raises((KeyError, msgspec.ValidationError)):
            Candidate.from_dict(stored)
    with pytest.raises(TypeError):
        MatrixEntry(["a list"], "name", {})


def test_a_header_of_numpy_that_is_no_python_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    header = b"{'descr': '<f8', 'fortran_ord\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(ValueError):
        read_arrays(path)


def test_a_matlab_file_whose_pointers_wrap_is_refused(tmp_path):
    path = tmp_path / "a.mat"
    A = sparse.random_array((7, 5), density=0.4, rng=np.random.default_rng(3), format="csc")
    savemat(path, {"A": A})
    content = path.read_bytes()
    place = content.index(A.indptr.astype("<i4").tobytes())
    damaged = A.indptr.astype("<i4")
    damaged[3:5] = WRAPPING[3:5]
    path.write_bytes(content[:place] + damaged.tobytes() + content[place + 4 * len(damaged) :])
    with pytest.raises(MatrixFileError):
        load(path)


def unsound(kind):
    """Matrices of a format whose index arrays lie outside of it, each in another way."""
    build = getattr(sparse, f"{kind}_array")
    if kind == "coo":
        for row in ([0, 5], [0, -1], [0]):
            A = build((np.ones(2), ([0, 1], [0, 1])), shape=(5, 5))
            A.coords = (np.array(row), np.array([0, 1]))
            yield A
        return
    for starts, indices in (
        (WRAPPING, np.zeros(14)),
        (np.array([0, 1, 2, 3, 4, 15]), np.zeros(14)),
        (np.array([0, 3, 2, 3, 4, 14]), np.zeros(14)),
        (np.array([1, 1, 2, 3, 4, 14]), np.zeros(14)),
        (np.array([0, 1, 2, 3, 14]), np.zeros(14)),
        (np.array([0, 1, 2, 3, 4, 14]), np.full(14, 5)),
        (np.array([0, 1, 2, 3, 4, 14]), np.full(14, -1)),
        (np.array([0, 1, 2, 3, 4, 14]), np.zeros(14) + 0.5),
    ):
        data = np.ones((14, 1, 1) if kind == "bsr" else 14)
        A = build((5, 5)) if kind != "bsr" else build((5, 5), blocksize=(1, 1))
        A.data, A.indptr = data, starts.astype(np.int32)
        A.indices = indices if indices.dtype.kind == "f" and indices[0] else indices.astype(np.int32)
        yield A


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_unsound_matrices_are_refused_wherever_they_are_handed_over(kind, own):
    for A in unsound(kind):
        assert index_fault(A)
        for taken in (sc.predict, sc.plan, sc.compile, sc.structure, sc.pagerank, sc.accelerate):
            with pytest.raises(InputError):
                taken(A)
    A = sc.gallery("poisson2d", n=5)
    operator = sc.compile(A, threads=1)
    A.indices = np.where(A.indices == 3, 25, A.indices)
    with pytest.raises(InputError):
        operator.update(A)


def test_scipys_check_passes_what_wraps():
    """The finding that the check is for; where SciPy refuses it, the check may go."""
    A = next(unsound("csr"))
    try:
        A.check_format(full_check=True)
    except ValueError:
        pytest.skip("SciPy compares neighbours now")


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9))
def test_falls_are_those_of_exact_numbers(starts):
    found = falls(np.array(starts, dtype=np.int32))
    assert found.tolist() == [k for k in range(len(starts) - 1) if starts[k + 1] < starts[k]]


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_sound_matrices_of_all_formats_are_taken_and_stay_as_they_are(kind):
    A = sparse.random_array((9, 6), density=0.3, rng=np.random.default_rng(1)).asformat(kind)
    before = A.toarray()
    assert sc.structure(A).nnz == np.count_nonzero(before)
    np.testing.assert_array_equal(A.toarray(), before)


def test_other_unsound_matrices_are_refused():
    lil = sparse.lil_array((4, 4))
    lil[0, 0] = 1.0
    lil.data[0] = [1.0] * 1000
    flat = sparse.csr_array(np.eye(4))
    flat.data = np.ones((4, 2))
    empty_blocks = sparse.bsr_array((4, 4), blocksize=(2, 2))
    empty_blocks.data = np.ones((0, 2, 0))
    for A in (lil, flat, empty_blocks, sparse.coo_array(np.ones(3)), np.eye(3)):
        with pytest.raises(InputError):
            sc.structure(A)


@pytest.mark.parametrize("index", ["i2", ">i4", "u4", "u8"])
def test_indices_of_unusual_types_count_as_what_they_are(index):
    A = sc.gallery("rmat", scale=7)
    expected = sc.pagerank(A, threads=1).ranks
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    np.testing.assert_array_equal(sc.pagerank(A, threads=1).ranks, expected)
    partition = sc.partition(A, 3, "rows")
    assert sc.distribute(A, partition).local_nnz.sum() <= A.nnz


def test_room_behind_the_entries_does_not_count():
    A = sc.gallery("poisson2d", n=6)
    wider = sparse.csr_array(A.shape)
    wider.indptr, wider.indices = A.indptr, np.append(A.indices, [0, 0]).astype(np.int32)
    wider.data = np.append(A.data, [1e9, 1e9])
    found = as_csr(wider)
    assert found.nnz == len(found.data) == len(found.indices) == A.nnz


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([], []),
        ([0, 5, 10], list(range(12))),
        ([-(10**9), 10], [0, 12]),
        ([0, 11, 10], [0, 5, 12]),
        ([0, 10], [0, 12]),
    ],
)
def test_a_partition_of_a_user_is_looked_at_before_it_is_counted(rows, columns):
    A = sparse.random_array((10, 12), density=0.5, format="csr", rng=np.random.default_rng(0))
    partition = Partition("rows", 2, np.array(rows), np.array(columns))
    assert not partition.is_sound
    with pytest.raises(InputError):
        sc.distribute(A, partition)


@pytest.mark.parametrize("feature", [[32767, -1, -1], [0, -1], [-1, 0, -1], [0, 0, -1, -1], [-2], []])
def test_a_damaged_forest_is_refused(feature):
    with pytest.raises(ValueError, match="forest"):
        Forest(np.array(feature, dtype=np.int16), np.zeros(len(feature), dtype=np.float32)).mean(
            np.zeros((1, 3))
        )


def test_blocks_that_are_not_there_are_refused():
    A = sc.gallery("poisson2d", n=20)
    for blocks in ([0, 10**9], [-1], [A.nnz // 250]):
        with pytest.raises(InputError):
            block_inputs(A.indptr, A.indices, np.array(blocks))


def test_a_plan_in_another_order_is_for_a_square_matrix(own):
    plan = sc.plan(sc.gallery("poisson2d", n=5), threads=1)
    reordered = dataclasses.replace(plan, order=np.arange(25))
    with pytest.raises(InputError):
        sc.compile(sparse.random_array((25, 30), density=0.2, format="csr"), reordered)
