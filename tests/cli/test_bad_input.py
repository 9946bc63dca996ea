"""Whatever the user gets wrong: one line that says so, status 2, nothing half-written."""

import dataclasses
import gzip
import json
import re
import shlex
import signal
import subprocess
import sys
import time

import pyarrow
import pyarrow.parquet
import pytest

from sparsecast.machines import storage
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import user_path
from sparsecast.records import Bandwidth

from .conftest import complains

SMALL, MESH = "gallery:poisson2d?n=10", "counts:rows=1000000&cols=1000000&nnz=5000000"
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
    "void.mtx": (HEADER + "3 3 0\n").encode(),
    "beyond.mtx": (HEADER + "3 3 2\n1 1 1.5\n2 2 -1e39\n").encode(),
    "wide.mtx": (HEADER + "2 5 2\n1 5 1.0\n2 1 1.0\n").encode(),
    "negative.mtx": (HEADER + "2 2 1\n1 2 -2.5\n").encode(),
    "skew.mtx": (HEADER + "2 2 3\n1 1 1.0\n2 2 1.0\n1 2 1.0\n").encode(),
    "nan.mtx": (HEADER + "2 2 2\n1 1 nan\n2 2 1.0\n").encode(),
    "indefinite.mtx": (HEADER + "2 2 2\n1 1 -1.0\n2 2 1.0\n").encode(),
    "words.txt": b"alice bob\ncarol dave\n",
    "notes/notes.txt": b"no matrix",
    "taken.html": b"",
    "junk.json": b"{",
    "list.json": b"[1, 2]",
    "other.json": b'{"figures": {}, "settings": [{}]}',
    "binary.json": b"\xff\xfe\x00",
}

#: Matrices that are none. {tmp} is a folder with FILES.
MATRICES = [
    *(f"{{tmp}}/{name}" for name in ("absent.mtx", "folder", "junk.npz", "truncated.mtx.gz", "matrix.xyz")),
    *(f"{{tmp}}/{name}.mtx" for name in ("empty", "junk", "header", "outside", "short", "huge")),
    *("galery:circuit", "gallery:poison3d", "gallery:poisson3d?pints=7", "gallery:poisson2d?n=abc"),
    *("gallery:poisson2d?n=0", "gallery:poisson2d?n=99999999", ""),
]

#: Lines that are refused before anything is measured or written.
OPTIONS = """
frobnicate
predict
predict SMALL SMALL
predict SMALL --nope
predict SMALL --values float16
predict counts:rows=9&cols=9&nnz=9 --values float32
plan SMALL --values float32 --where cpu,cuda
plan {tmp}/beyond.mtx --values float32
measure {tmp}/beyond.mtx --values float32
measure SMALL --values float32 --dtype complex64
measure SMALL --library scipy,
measure SMALL --format csr
measure SMALL --algorithm 2d --threads 2
measure SMALL --frequencies 1.2,,2
measure SMALL --frequencies nan
measure SMALL --meter-command 'echo much'
predict SMALL --threads 0
predict SMALL --dtype int8
predict SMALL --device ''
plan SMALL --device cpu,cuda
predict {tmp}/complex.mtx --dtype float64
measure {tmp}/complex.mtx --dtype float32
predict SMALL --profile nope
predict SMALL --profile {tmp}/nope.parquet
predict SMALL --profile {tmp}/junk.mtx
predict SMALL --profile {tmp}/other.parquet
predict SMALL --profile {tmp}/schema.parquet
predict SMALL --power-model {tmp}/absent.json --profile {tmp}/recorded.parquet
predict SMALL --probe --no-drift-correction
predict counts:rows=9&cols=9&nnz=9 --probe
predict {tmp}/table.csv --probe
plan SMALL --probe -1
plan SMALL --probe 1 --where cpu,cuda
plan SMALL --products 0
plan SMALL --objective beauty
plan SMALL --objective energy --profile {tmp}/recorded.parquet --threads 1
plan SMALL --objective edp --as-printed --profile {tmp}/recorded.parquet --threads 1
plan SMALL --where nobodys
plan SMALL --where cpu,
plan SMALL --where nvidia-v100 --check
plan SMALL --where nvidia-v100 --price cpu=2/h
plan SMALL --where nvidia-v100 --price nvidia-v100=much
plan SMALL --where all --device cpu
plan SMALL --price cpu=2/h
compare SMALL --machines nvidia-v100,,nvidia-p100
compare SMALL --machines ''
compare SMALL --machines nobodys
compare SMALL --machines xeon-gold-6154-edr
compare SMALL --machines nvidia-v100 --library mlk
compare SMALL --machines {tmp}/recorded.parquet --price fast=cheap
compare SMALL --machines {tmp}/recorded.parquet --price fast=2
compare SMALL --machines {tmp}/recorded.parquet --price other=2/h
compare SMALL --machines {tmp}/recorded.parquet --products 0
compare SMALL --machines {tmp}/recorded.parquet --figure figure.bmp
calibrate --ranks --dtype float32
calibrate --budget nan
calibrate --budget=x
calibrate --suites wong
evaluate
evaluate --ranks
evaluate --replay --watch
evaluate --replay --ranks --threads 2
evaluate SMALL --replay --ranks
evaluate SMALL --models linear,astrology
evaluate SMALL --rows {tmp}/rows.csv
evaluate SMALL --rows {tmp}/nope/rows.parquet
evaluate SMALL --dry-run --rows {tmp}/rows.parquet
evaluate SMALL --figure {tmp}/figure.bmp
evaluate {tmp}/notes
evaluate {tmp}/void.mtx
cost gmres SMALL
cost cg SMALL --preconditioner ilu
cost cg SMALL --tolerance 2
cost cg SMALL --threads auto
cost cg {tmp}/wide.mtx
cost cg {tmp}/skew.mtx
cost cg {tmp}/nan.mtx
cost cg {tmp}/indefinite.mtx --profile {tmp}/recorded.parquet --threads 1
cost cg {tmp}/indefinite.mtx --preconditioner jacobi
cost pagerank SMALL --damping 1
cost pagerank SMALL --epsilon 0
cost pagerank SMALL --iterations 0
cost pagerank {tmp}/negative.mtx
cost pagerank {tmp}/wide.mtx
cost pagerank {tmp}/nan.mtx
cost pagerank {tmp}/words.txt
partition SMALL
partition SMALL --ranks 0
partition SMALL --ranks four
partition SMALL --ranks 4 --method kway
partition SMALL --ranks 4 --partition {tmp}/kept.npz
partition SMALL --ranks 4 --out {tmp}/kept.npz
partition SMALL --ranks 4 --method rows --out {tmp}/absent/kept.npz
partition SMALL --ranks 4 --figure {tmp}/figure.bmp
partition SMALL --partition {tmp}/a.npz --method rows
partition SMALL --partition {tmp}/absent.npz
partition {tmp}/wide.mtx --ranks 4 --method uniform-2d
RANKS --ranks 0
RANKS --ranks 4,,9
RANKS --ranks 4 --algorithms 3d
RANKS --ranks 5 --algorithms 2d
RANKS --ranks 4 --algorithms 2d --partitions rows
RANKS --ranks 4 --partitions luck
RANKS --ranks 4 --formats csr,best
RANKS --ranks 4 --formats dia
RANKS --ranks 4 --model luck
RANKS --ranks 4 --model hossain-svr
RANKS --ranks 4 --model hossain-micro --algorithms global-1d
RANKS --ranks 4 --price -1
RANKS --ranks 4 --ranks-per-node 37
RANKS --ranks 4 --objective energy
RANKS --ranks 4 --figure time.txt
cluster counts:rows=9&cols=9&nnz=0 --profile xeon-gold-6154-edr --ranks 4
cluster counts:rows=1000000000&cols=1000000000&nnz=100000000000 --profile xeon-gold-6154-edr --ranks 1
measure SMALL gallery:banded?n=60 --profile=x
measure SMALL gallery:banded?n=60 --figure=f.svg
measure SMALL gallery:banded?n=60 --frequencies=1.2
measure SMALL gallery:banded?n=60 --algorithm=2d
compare-results {tmp}/recorded.parquet {tmp}/recorded.parquet --fail-above 5
compare-results {tmp}/recorded.parquet {tmp}/recorded.parquet --fail-above x%
compare-results {tmp}/recorded.parquet {tmp}/recorded.parquet --fail-above -5%
report {tmp}/absent.mtx
report {tmp}/notes
report {tmp}/absent.mtx {tmp}/gone.mtx -o {tmp}/page.html --profile {tmp}/recorded.parquet
report {tmp}/notes SMALL --models nope --profile {tmp}/recorded.parquet
report SMALL --models linear --profile {tmp}/recorded.parquet
report SMALL --products 0
report SMALL -o {tmp}/nope/page.html --profile {tmp}/recorded.parquet
report SMALL -o {tmp}/taken.html --profile {tmp}/recorded.parquet
report SMALL gallery:poisson2d?n=11 -o {tmp}/all.html --profile {tmp}/recorded.parquet
bench --budget 59
bench --budget nan
bench --budget much
bench --block 5x5
bench --dtype int8
bench --threads 0
bench --device abacus
bench --figure {tmp}/map.bmp
bench --figure {tmp}/absent/map.png
bench --output {tmp}/absent/a.json
bench --output {tmp}
bench --compare {tmp}/absent.json {tmp}/junk.json
bench --compare {tmp}/list.json {tmp}/junk.json
bench --compare {tmp}/other.json {tmp}/junk.json
bench --compare {tmp}/binary.json {tmp}/junk.json
bench --compare {tmp} {tmp}/junk.json
bench --compare {tmp}/junk.json
bench --real {tmp}/absent
bench --real {tmp}/notes
paper nowhere
paper hossain-saule --from xeon-gold-6154-edr gallery:poisson2d?n=30
paper hossain-saule --dtype float32
paper hossain-saule --from nowhere
paper hossain-saule --budget 1
paper hossain-saule nowhere.mtx
paper hossain-saule --profile xeon-gold-6154-edr
paper guo-2014 --budget 1
paper guo-2014 --profile nvidia-a100
paper wang-2017 --budget 1
paper wang-2017 gallery:poisson2d?n=9 nowhere.mtx
paper wang-2017 --profile nvidia-a100
paper wang-2017 --from nvidia-a100
paper gahvari-2007 --from nvidia-a100
paper gahvari-2007 --from nowhere
paper gahvari-2007 --from {tmp}/recorded.parquet
paper gahvari-2007 {tmp}/notes
paper gahvari-2007 --profile nvidia-a100
paper gahvari-2007 nowhere.mtx --budget 1
paper barreda-2020 --dtype float32
paper barreda-2020 --from nvidia-a100
label SMALL --dtype complex128
label absent.mtx
blocks gallery:poisson2d?n=4 --profile {tmp}/recorded.parquet
evaluate SMALL --shard 9/8
measure SMALL --shard 0/8
label SMALL --shard x
doctor --csv {tmp}/absent/table.csv
"""

#: Lines with a slip, and the name that the remedy suggests.
MEANT = {
    "structure circuit?n=9": "gallery:circuit?n=9",
    "structure galery:circuit": "gallery:",
    "structure gallery:poison3d": "poisson3d",
    "structure gallery:poisson3d?pints=7": "points",
    "structure {tmp}/trunkated.mtx.gz": "truncated.mtx.gz",
    "predict SMALL --model sparsecst": "sparsecast",
    "predict SMALL --library petsk": "petsc",
    "predict SMALL --dtype flot64": "float64",
    "measure SMALL --dtype complex": "complex64",
    "predict SMALL --device cdua": "cuda",
    "cost cg SMALL --device cdua": "cuda",
    "report SMALL --device cdua": "cuda",
    "plan SMALL --objective enrgy": "energy",
    "partition SMALL --ranks 2 --method mets": "metis",
}


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory, recorded):
    folder = tmp_path_factory.mktemp("files")
    for name in ("folder", "notes", "all-pages"):
        (folder / name).mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), folder / "other.parquet")
    reads = [Bandwidth("read", "cpu", 1, size, size / 1e10, 0.0, "", "") for size in (1 << 14, 1 << 26)]
    table = pyarrow.parquet.read_table(recorded.with_bandwidths(reads).save(folder / "recorded.parquet"))
    metadata = {**table.schema.metadata, b"sparsecast_schema": b"999"}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), folder / "schema.parquet")
    return folder


def words_of(line, folder):
    """Return the arguments of a line."""
    asked = line.replace("RANKS", f"cluster {MESH} --profile xeon-gold-6154-edr").replace("SMALL", SMALL)
    return shlex.split(asked.replace("{tmp}", str(folder)))


def value_or_option(arguments):
    """Return a pattern of what a line has: an option, a value or the name of a file, or what is expected."""
    parts = {part for argument in arguments for part in re.split("[/,=]", argument)} - {"", SMALL, MESH}
    return "|".join(["expected", "Missing", *(re.escape(part.removeprefix("--")) for part in parts)])


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_matrix_that_is_none(run, bad_files, data_folder, matrix):
    matrix, name = matrix.format(tmp=bad_files), re.split("[/:]", matrix)[-1].partition("?")[0]
    for arguments in (("structure", matrix), ("predict", matrix, "--json")):
        complains(run(*arguments), name)
    assert not data_folder.exists(), "nothing was written"


@pytest.mark.parametrize("line", OPTIONS.strip().splitlines())
def test_an_argument_that_cannot_be(run, bad_files, data_folder, line):
    arguments, before = words_of(line, bad_files), sorted(bad_files.rglob("*"))
    complains(run(*arguments), value_or_option(arguments))
    kept = [path for path in data_folder.rglob("*.*") if path.suffix in (".parquet", ".jsonl")]
    assert not kept and sorted(bad_files.rglob("*")) == before, "nothing was measured or written"


@pytest.mark.parametrize(("line", "name"), MEANT.items())
def test_the_name_that_was_meant_is_suggested(run, bad_files, data_folder, line, name):
    complains(run(*words_of(line, bad_files)), f"did you mean '{re.escape(name)}'")
    assert not data_folder.exists()


@pytest.mark.parametrize("command", (["structure"], ["measure", "--no-keep"], ["partition", "--ranks", "4"]))
def test_a_matrix_with_more_columns_than_any_memory_has_bytes(run, tmp_path, command):
    path = tmp_path / "wide.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n2 {10**15} 1\n1 {10**15} 2.0\n")
    complains(run(*command, path), "memory")


def test_in_a_process_of_its_own_it_is_the_same(process, bad_files, data_folder):
    arguments = words_of("structure {tmp}/truncated.mtx.gz", bad_files)
    complains(process(*arguments), value_or_option(arguments))
    assert not data_folder.exists()


@pytest.mark.parametrize("command", [("predict", SMALL), ("plan", SMALL), ("evaluate", SMALL)])
def test_a_damaged_profile_of_this_machine(run, data_folder, command):
    path = user_path(detect().name)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 damaged")
    for asked in (command, ("calibrate", "--budget", "10")):
        complains(run(*asked), path.name)
    assert path.read_bytes() == b"PAR1 damaged"


def test_an_unknown_profile_lists_the_known_ones(run, foreign):
    complains(run("predict", SMALL, "--profile", "nope"), f"amd-mi100, .*xeon-gold-6154-edr, {foreign}")


def test_a_file_that_is_no_profile_is_not_taken_for_a_name(run, tmp_path, monkeypatch, foreign):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("words")
    (tmp_path / foreign).write_text("a name comes before a file")
    complains(run("predict", SMALL, "--profile", "README.md"), "README.md")
    assert run("predict", SMALL, "--profile", foreign, "--threads", "1").status == 0


def test_a_question_that_a_profile_has_no_records_for(run, recorded, tmp_path):
    one = dataclasses.replace(recorded, records=recorded.records[:1])
    few = one.save(tmp_path / "few.parquet")
    for asked in ((), ("--dtype", "complex64")):
        complains(run("predict", SMALL, "--profile", few, *asked), "1 records")
    machine = dataclasses.replace(recorded.machine, published_as="somebody")
    path = dataclasses.replace(one, machine=machine).save(tmp_path / "published.parquet")
    complains(
        run("predict", SMALL, "--profile", path, "--dtype", "complex64"), r"complex64.*float\d\d 1 thread"
    )


@pytest.mark.parametrize("command", ["measure", "evaluate"])
def test_measuring_against_another_machines_forecast(run, foreign, command):
    outcome = run(command, SMALL, "--profile", foreign, "--threads", "1")
    complains(outcome, f"{foreign}.*{detect().name}")


def test_a_data_folder_that_is_a_file(run, data_folder):
    data_folder.write_text("mine")
    complains(run("calibrate", "--budget", "10"), "SPARSECAST_HOME")
    assert data_folder.read_text() == "mine"


def test_a_data_folder_that_the_system_does_not_let_us_into(run, monkeypatch):
    monkeypatch.setenv("SPARSECAST_HOME", "x" * 300)
    for command in (("predict", SMALL), ("machines",), ("calibrate", "--budget", "10")):
        complains(run(*command), "SPARSECAST_HOME")


def test_two_calibrations_at_once(run):
    lock = user_path(detect().name).with_suffix(".lock")
    with storage.exclusive(lock):
        complains(run("calibrate", "--budget", "10"))


def test_ctrl_c_in_a_real_calibration_keeps_what_was_measured(data_folder):
    path = user_path(detect().name)
    # A shell that runs the tests in the background lets its children ignore Ctrl-C: they must hear it here.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    line = [sys.executable, "-c", f"{listen}; from sparsecast.cli.main import main; main()"]
    line += ["calibrate", "--budget", "100", "--threads", "1", "--dtype", "float64", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        journal = path.with_suffix(".journal")
        _wait_for(lambda: journal.exists() and journal.read_text().count('"record"') > 2)
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
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited for five minutes"
        time.sleep(0.05)


@pytest.mark.parametrize("threads", ["0", "-1", "many", ""])
def test_threads_that_numba_cannot_be_imported_with(run, monkeypatch, threads):
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    complains(run("structure", SMALL), f"NUMBA_NUM_THREADS={threads}")


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


@pytest.mark.parametrize("wrong", ["--vectors 0", "--vectors=abc", "--threads abc"])
def test_a_wrong_value_of_an_option_is_repeated(run, wrong):
    command = ["cost", "cg", SMALL] if "threads" in wrong else ["predict", SMALL]
    complains(run(*command, *wrong.split()), wrong.replace("=", " "))
