"""Whatever the user gets wrong: one line that says so, status 2, nothing half-written."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest

from sparsecast.machines import storage
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import user_path

SMALL = "gallery:poisson2d?n=10"
HEADER = "%%MatrixMarket matrix coordinate real general\n"

FILES = {
    "empty.mtx": b"",
    "junk.mtx": bytes(range(256)) * 40,
    "junk.npz": bytes(range(256)) * 40,
    "truncated.mtx.gz": gzip.compress((HEADER + "100 100 100\n" + "5 5 1.25\n" * 100).encode())[:60],
    "header.mtx": b"%%MatrixMarket tensor coordinate real general\n3 3 1\n1 1 1\n",
    "outside.mtx": (HEADER + "3 3 2\n1 1 1.0\n4 1 2.0\n").encode(),
    "short.mtx": (HEADER + "3 3 5\n1 1 1.0\n").encode(),
    "huge.mtx": (HEADER + "9000000000000 9000000000000 90000000000000\n1 1 1.0\n").encode(),
    "complex.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1.0 2.0\n",
    "matrix.xyz": b"1 2 3",
    "beyond.mtx": (HEADER + "3 3 2\n1 1 1.5\n2 2 -1e39\n").encode(),
}

#: Arguments, and what the line must say of value, expectation and remedy. {tmp} is a folder with FILES.
MATRICES = [
    ("{tmp}/absent.mtx", "absent.mtx.*no such file; check the path"),
    ("{tmp}", "folder|directory"),
    ("{tmp}/empty.mtx", "empty.mtx"),
    ("{tmp}/junk.mtx", "junk.mtx"),
    ("{tmp}/junk.npz", "junk.npz"),
    ("{tmp}/truncated.mtx.gz", "truncated.mtx.gz"),
    ("{tmp}/header.mtx", "header.mtx.*tensor"),
    ("{tmp}/outside.mtx", "outside.mtx.*4"),
    ("{tmp}/short.mtx", "short.mtx.*5"),
    ("{tmp}/huge.mtx", "huge.mtx"),
    ("{tmp}/matrix.xyz", r"matrix.xyz.*\.mtx"),
    ("galery:circuit", "galery:circuit.*no such file; did you mean 'gallery:'"),
    ("circuit?n=9", r"no such file; did you mean 'gallery:circuit\?n=9'"),
    ("gallery:poison3d", "known are arrow, .*did you mean 'poisson3d'"),
    ("gallery:poisson3d?pints=7", "known are n, points; did you mean 'points'"),
    ("{tmp}/trunkated.mtx.gz", "no such file; did you mean 'truncated.mtx.gz'"),
    ("gallery:poisson2d?n=abc", "n = abc.*integer"),
    ("gallery:poisson2d?n=0", "n = 0.*at least 1"),
    ("gallery:poisson2d?n=99999999", "poisson2d"),
    ("", "."),
]

OPTIONS = [
    (("predict", SMALL, "--model", "sparsecst"), "known are .*; did you mean 'sparsecast'"),
    (("predict", SMALL, "--library", "petsk"), "known are .*; did you mean 'petsc'"),
    (("measure", SMALL, "--library", "scipy,"), "library '' is unknown: known are .*scipy"),
    (("predict", SMALL, "--values", "float16"), "values 'float16' of float64 on cpu: expected float32"),
    (
        ("predict", "counts:rows=9&cols=9&nnz=9", "--values", "float32"),
        "values 'float32' without the matrix: expected a matrix",
    ),
    (
        ("plan", SMALL, "--values", "float32", "--where", "cpu,cuda"),
        "--values float32 with --where cpu,cuda: expected one of both",
    ),
    (("plan", "{tmp}/beyond.mtx", "--values", "float32"), "beyond the range of float32: expected .*leave"),
    (("measure", "{tmp}/beyond.mtx", "--values", "float32"), "beyond the range of float32: expected .*leave"),
    (
        ("measure", SMALL, "--values", "float32", "--dtype", "complex64"),
        "complex64 on cpu: expected float32, of float64",
    ),
    (("predict", SMALL, "--dtype", "flot64"), "expected one of .*; did you mean 'float64'"),
    (("predict", SMALL, "--device", "cdua"), "expected cpu, .*; did you mean 'cuda'"),
    (("plan", SMALL, "--objective", "enrgy"), "expected one of .*; did you mean 'energy'"),
    (("partition", SMALL, "--ranks", "2", "--method", "mets"), "known are .*; did you mean 'metis'"),
    (("measure", SMALL, "--format", "csr"), "--format csr of one process: expected --algorithm"),
    (("measure", SMALL, "--algorithm", "2d", "--threads", "2"), "--threads 2 with ranks: expected none"),
    (("calibrate", "--ranks", "--dtype", "float32"), "--dtype float32 with ranks: expected none"),
    (("evaluate", "--ranks"), "--ranks without --replay: expected both"),
    (("evaluate", SMALL, "--replay", "--ranks"), "matrices and --replay: expected one of them"),
    (("evaluate", "--replay", "--ranks", "--threads", "2"), "--threads 2 with ranks: expected none"),
    (("predict", SMALL, "--threads", "0"), "threads 0: expected 1 to"),
    (("predict", SMALL, "--dtype", "int8"), "'int8' on cpu: expected one of float64, float32"),
    (("cost", "cg", SMALL, "--device", "cdua"), "expected cpu, .*; did you mean 'cuda'"),
    (("report", SMALL, "--device", "cdua"), "expected cpu, .*; did you mean 'cuda'"),
    (("predict", SMALL, "--device", ""), "device '': expected cpu, cuda, or cuda:N"),
    (("plan", SMALL, "--device", "cpu,cuda"), "'cpu,cuda': expected cpu, cuda, or cuda:N.*--where"),
    (("predict", SMALL, "--profile", "nope"), "'nope' is unknown: known are amd-mi100"),
    (("predict", SMALL, "--profile", "{tmp}/nope.parquet"), "nope.parquet does not exist"),
    (("predict", SMALL, "--profile", "{tmp}/junk.mtx"), "junk.mtx cannot be read as a profile"),
    (("predict", SMALL, "--profile", "{tmp}/other.parquet"), "is Parquet but no profile"),
    (("predict", SMALL, "--profile", "{tmp}/schema.parquet"), "schema version 999: expected"),
    (
        ("measure", SMALL, "--dtype", "complex"),
        "'complex' on cpu: expected one of.*complex128, complex64; did you mean .complex64",
    ),
    (("predict", "{tmp}/complex.mtx", "--dtype", "float64"), "float64.*expected complex128 or complex64"),
    (("measure", "{tmp}/complex.mtx", "--dtype", "float32"), "float32.*imaginary parts"),
    (("plan", SMALL, "--products", "0"), "--products"),
    (("calibrate", "--budget", "nan"), "budget nan s: expected at least"),
    (("calibrate", "--budget=x"), "--budget x: "),
    (("calibrate", "--suites", "wong"), "suite 'wong': expected gahvari, general, guo, hossain, wang"),
    (("frobnicate",), "No such command 'frobnicate'"),
    (("predict", SMALL, "--nope"), "No such option: --nope"),
    (("predict",), "Missing argument 'MATRIX'"),
    (("evaluate", SMALL, "--models", "linear,astrology"), "model 'astrology' is unknown: known are"),
    (("evaluate",), "neither matrices nor --replay"),
    (("evaluate", "{tmp}/folder"), "folder has no matrix files: expected some of"),
    (("evaluate", "{tmp}/void.mtx"), "void has no entries: expected at least one; leave it out"),
    (("evaluate", SMALL, "--rows", "{tmp}/rows.csv"), r"rows.csv: expected a name that ends in .parquet"),
    (("evaluate", SMALL, "--rows", "{tmp}/nope/rows.parquet"), "rows.parquet cannot be written: expected a"),
    (("evaluate", SMALL, "--figure", "{tmp}/figure.bmp"), "figure.bmp: expected a name that ends in .png"),
    (("plan", SMALL, "--probe", "-1"), "a probe of -1 s: expected seconds from 0 on"),
    (
        ("plan", SMALL, "--probe", "1", "--where", "cpu,cuda"),
        "--probe 1.0 with --where cpu,cuda: expected one",
    ),
    (
        ("predict", "counts:rows=9&cols=9&nnz=9", "--probe"),
        "without the matrix: expected .*leave --probe out",
    ),
    (("predict", "{tmp}/table.csv", "--probe"), "without the matrix: expected the matrix"),
    (
        ("predict", SMALL, "--probe", "--no-drift-correction"),
        "expected one of --probe and --no-drift",
    ),
    (("predict", SMALL, SMALL), "unexpected extra argument"),
]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, recorded):
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for name in ("folder", "notes"):
        (folder / name).mkdir()
    (folder / "notes" / "notes.txt").write_text("no matrix")
    (folder / "void.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 3 0\n")
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), folder / "other.parquet")
    table = pyarrow.parquet.read_table(recorded.save(folder / "schema.parquet"))
    metadata = {**table.schema.metadata, b"sparsecast_schema": b"999"}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), folder / "schema.parquet")
    return folder


def complains(outcome, pattern):
    """Check the one line: what is wrong, and no trace of our insides."""
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("sparsecast: ")
    assert re.search(pattern, lines[0]), lines[0]
    assert "Traceback" not in lines[0]


@pytest.mark.parametrize(("matrix", "pattern"), MATRICES)
def test_a_matrix_that_is_none(run, bad_files, data_folder, matrix, pattern):
    matrix = matrix.format(tmp=bad_files)
    complains(run("structure", matrix), pattern)
    complains(run("predict", matrix, "--json"), pattern)
    assert not data_folder.exists(), "nothing was written"


@pytest.mark.parametrize("command", (["structure"], ["measure", "--no-keep"], ["partition", "--ranks", "4"]))
def test_a_matrix_with_more_columns_than_any_memory_has_bytes(run, tmp_path, command):
    path = tmp_path / "wide.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n2 {10**15} 1\n1 {10**15} 2.0\n")
    complains(run(*command, path), "memory")


@pytest.mark.parametrize(("arguments", "pattern"), OPTIONS)
def test_an_argument_that_cannot_be(run, bad_files, data_folder, arguments, pattern):
    complains(run(*(argument.format(tmp=bad_files) for argument in arguments)), pattern)
    assert not data_folder.exists(), "nothing was measured or written"


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (("structure", "{tmp}/truncated.mtx.gz"), "truncated.mtx.gz"),
        (("predict", "gallery:nope", "--json"), "known are"),
        (("calibrate", "--budget", "nan"), "budget nan s"),
        (("frobnicate",), "No such command"),
    ],
)
def test_in_a_process_of_its_own_it_is_the_same(process, bad_files, data_folder, arguments, pattern):
    complains(process(*(argument.format(tmp=bad_files) for argument in arguments)), pattern)
    assert not data_folder.exists()


@pytest.mark.parametrize("command", [("predict", SMALL), ("plan", SMALL), ("evaluate", SMALL)])
def test_a_damaged_profile_of_this_machine(run, data_folder, command):
    path = user_path(detect().name)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 damaged")
    complains(run(*command), r"cannot be read as a profile.*remove it and calibrate")
    complains(run("calibrate", "--budget", "10"), r"cannot be read as a profile.*remove it and calibrate")
    assert path.read_bytes() == b"PAR1 damaged"


def test_an_unknown_profile_lists_the_known_ones(run, foreign):
    complains(
        run("predict", SMALL, "--profile", "nope"),
        f"'nope' is unknown: known are amd-mi100, .*xeon-gold-6154-edr, {foreign}",
    )


def test_a_file_that_is_no_profile_is_not_taken_for_a_name(run, tmp_path, monkeypatch, foreign):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("words")
    (tmp_path / foreign).write_text("a name comes before a file")
    complains(run("predict", SMALL, "--profile", "README.md"), "README.md cannot be read as a profile")
    assert run("predict", SMALL, "--profile", foreign, "--threads", "1").status == 0


def test_a_question_that_a_profile_has_no_records_for(run, recorded, tmp_path):
    import dataclasses

    one = dataclasses.replace(recorded, records=recorded.records[:1])
    few = one.save(tmp_path / "few.parquet")
    too_few = "1 records do not suffice.*calibrate with a larger budget"
    for asked in ((), ("--dtype", "complex64")):
        complains(run("predict", SMALL, "--profile", few, *asked), too_few)
    machine = dataclasses.replace(recorded.machine, published_as="somebody")
    path = dataclasses.replace(one, machine=machine).save(tmp_path / "published.parquet")
    complains(
        run("predict", SMALL, "--profile", path, "--dtype", "complex64"),
        r"no records for cpu complex64.*it has cpu float\d\d 1 thread \(1 record\); calibrate for it",
    )


@pytest.mark.parametrize("command", ["measure", "evaluate"])
def test_measuring_against_another_machines_forecast(run, foreign, command):
    outcome = run(command, SMALL, "--profile", foreign, "--threads", "1")
    complains(outcome, rf"forecasts for {foreign}: expected this machine, {detect().name}")


def test_a_data_folder_that_is_a_file(run, data_folder):
    data_folder.write_text("mine")
    complains(run("calibrate", "--budget", "10"), r"cannot be written \(.*\).*SPARSECAST_HOME")
    assert data_folder.read_text() == "mine"


def test_a_data_folder_that_the_system_does_not_let_us_into(run, monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", "x" * 300)
    for command in (("predict", SMALL), ("machines",), ("calibrate", "--budget", "10")):
        complains(run(*command), r"cannot be written \(File name too long\).*SPARSECAST_HOME")


def test_two_calibrations_at_once(run, process):
    lock = user_path(detect().name).with_suffix(".lock")
    with storage.exclusive(lock):
        complains(process("calibrate", "--budget", "10"), r"another calibration .*wait for it")


def test_ctrl_c_in_a_real_calibration_keeps_what_was_measured(data_folder):
    import signal

    path = user_path(detect().name)
    # A shell that runs the tests in the background lets its children ignore Ctrl-C: they must hear it here.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    line = [
        sys.executable,
        "-c",
        f"{listen}; from sparsecast.cli.main import main; main()",
        "calibrate",
        "--budget",
        "100",
        "--threads",
        "1",
        "--dtype",
        "float64",
        "--json",
    ]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        journal = path.with_suffix(".journal")
        _wait_for(lambda: journal.exists() and journal.read_text().count("\n") > 2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=300)
    assert child.returncode == 130
    document = json.loads(out)
    assert document["interrupted"] is True
    assert document["records"] > 2
    assert "what was measured until then is kept" in err
    assert path.exists()
    assert not journal.exists()


def _wait_for(condition):
    import time

    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited for five minutes"
        time.sleep(0.05)


@pytest.mark.parametrize("threads", ["0", "-1", "many", ""])
def test_threads_that_numba_cannot_be_imported_with(run, monkeypatch, threads):
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    complains(run("structure", SMALL), f"NUMBA_NUM_THREADS={threads}: expected a number from 1; correct it")


def test_our_own_fault_says_so_with_its_trace(run, monkeypatch):
    from sparsecast import api

    def broken(text):
        raise RuntimeError("a cog came off")

    monkeypatch.setattr(api, "read_matrix", broken)
    outcome = run("structure", SMALL)
    assert outcome.status == 1
    assert outcome.out == ""
    assert "a cog came off" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("sparsecast: this is a fault of Sparsecast")


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_interrupt_anywhere_is_one_line(run, monkeypatch, is_compiled):
    """The parser made a silent status of it, and compiled code an error of ours."""
    from sparsecast import api

    def interrupted(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            if is_compiled:
                raise SystemError("returned a result with an exception set") from error
            raise

    monkeypatch.setattr(api, "shared_structure", interrupted)
    stopped = run("structure", "gallery:poisson2d?n=4")
    assert (stopped.status, stopped.out, stopped.err) == (130, "", "sparsecast: stopped from the keyboard\n")
