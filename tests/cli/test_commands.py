"""Every command's answer: one JSON document with the promised keys, or something for people to read."""

import dataclasses
import gzip
import json

import pyarrow.parquet
import pytest
import scipy.io

from sparsecast.api import campaigns
from sparsecast.cli.commands import COMMANDS
from sparsecast.devices.cpu.processor import Processor
from sparsecast.errors import MatrixSizeError
from sparsecast.features import FEATURES
from sparsecast.formats import FORMATS
from sparsecast.machines.profile import _SHIPPED, missing_profiles
from sparsecast.matrices.gallery import gallery, gallery_names

from .conftest import document_of

SMALL = "gallery:poisson2d?n=30"
DENSE_ROW = "gallery:arrow?n=3000&dense_rows=1"


@pytest.mark.parametrize("way", ["run", "process"])
def test_structure(request, exact, way):
    document = exact(request.getfixturevalue(way)("structure", SMALL, "--json"), "structure")
    assert document["matrix"] == {
        "name": SMALL,
        "rows": 900,
        "cols": 900,
        "nnz": gallery("poisson2d", n=30).nnz,
    }
    assert set(document["structure"]) == {"rows", "cols", "nnz", *FEATURES.names()}


def test_predict(run, exact, calibrated):
    document = exact(run("predict", SMALL, "--threads", "1", "--json"), "predict")
    assert document["profile"] == calibrated.name
    forecast_formats = {forecast["format"] for forecast in document["forecasts"]}
    assert {"csr", "coo", "ell", "hyb"} <= forecast_formats
    assert forecast_formats == set(FORMATS.names()) - set(document["refused"])
    for forecast in document["forecasts"]:
        assert forecast["energy_j"] is None
        assert forecast["threads"] == 1
        assert forecast["device"] == "cpu"
    times = [forecast["time_s"] for forecast in document["forecasts"]]
    assert times == sorted(times)


@pytest.mark.parametrize("name", ("a[bold]b", "a[", "a[link=x]"))
def test_brackets_in_the_name_of_a_file_are_shown(run, tmp_path, name):
    path = tmp_path / f"{name}.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1.0\n")
    outcome = run("structure", path)
    assert outcome.status == 0 and name in outcome.out


def test_predict_for_another_machine_by_name_and_by_path(run, recorded, foreign, tmp_path):
    path = recorded.save(tmp_path / "elsewhere.parquet")
    assert document_of(run("predict", SMALL, "--profile", foreign, "--json"))["profile"] == foreign
    assert document_of(run("predict", SMALL, "--profile", path, "--json"))["profile"] == recorded.name


@pytest.fixture
def wave(tmp_path):
    """A file of a complex matrix: 900 waves."""
    path = tmp_path / "wave.mtx.gz"
    with gzip.open(path, "wb") as file:
        scipy.io.mmwrite(file, gallery("helmholtz2d", n=30), symmetry="symmetric")
    return path


def test_predict_and_plan_a_complex_file(run, recorded_complex, wave, tmp_path):
    path = recorded_complex.save(tmp_path / "elsewhere.parquet")
    document = document_of(run("predict", wave, "--profile", path, "--json"))
    assert {forecast["dtype"] for forecast in document["forecasts"]} == {"complex128"}
    for forecast in document["forecasts"]:
        assert forecast["gflops"] == pytest.approx(8 * 4380 / forecast["time_s"] / 1e9)
        assert forecast["bytes"] > 16 * 4380
    document = document_of(run("plan", wave, "--profile", path, "--json"))
    assert document["plan"]["blocks"]


def test_measure_a_complex_file(run, wave):
    for asked, found in (((), "complex128"), (("--dtype", "complex64"), "complex64")):
        document = document_of(run("measure", wave, "--threads", "1", *asked, "--json"))
        assert {m["format"] for m in document["measurements"]} >= {"csr", "sell", "jad"}
        for measurement in document["measurements"]:
            assert measurement["dtype"] == found
            assert measurement["gflops"] == pytest.approx(8 * 4380 / measurement["time_s"] / 1e9)
            assert 0 < measurement["error"] <= (1e-15 if found == "complex128" else 1e-6)


def test_another_type_is_forecast_from_what_was_measured_and_said(run, recorded, data_folder):
    machine = dataclasses.replace(recorded.machine, processor="of float64 alone")
    double = dataclasses.replace(recorded, machine=machine, records=tuple(recorded.select(dtype="float64")))
    double.save()
    asked = (SMALL, "--profile", double.name, "--model", "linear", "--dtype", "complex128", "--json")
    for outcome in (run("predict", *asked), run("plan", *asked)):
        document = json.loads(outcome.out)
        assert outcome.status == 0
        assert document["transferred_from"] == {"dtype": "float64", "threads": 1}
        assert "has no records of cpu complex128 1 thread; calibrate for it" in outcome.err
    own = document_of(run("predict", SMALL, "--profile", double.name, "--json"))
    assert own["transferred_from"] is None
    assert document_of(run("plan", SMALL, "--profile", double.name, "--json"))["transferred_from"] is None


def _way(item):
    """A format and its parameters: one format can be there in full and in narrow storage."""
    return item["format"], tuple(sorted(item["parameters"].items()))


_LOSSY_CSR = ("columns", 16), ("values", "lossy float32")


def test_predict_and_plan_with_a_probe(run, calibrated):
    outcome = run("predict", SMALL, "--threads", "1", "--probe", "--json")
    found = json.loads(outcome.out)
    assert outcome.status == 0 and outcome.err == f"Note: {found['notes'][-1]}\n"
    bases = {_way(each): each["basis"] for each in found["forecasts"]}
    assert len(bases) == len(found["forecasts"])
    assert bases["csr", ()] == "measured" and set(bases.values()) <= {"measured", "corrected"}
    assert {way for way, basis in bases.items() if basis == "measured"} == {
        ("csr", ()),
        *(_way(trial) for trial in found["trials"]["tried"] if trial["time_s"] is not None),
    }
    outcome = run("plan", SMALL, "--threads", "1", "--probe", "0.01", "--json")
    plan = json.loads(outcome.out)["plan"]
    assert outcome.status == 0 and plan["trials"]["used_s"] > 0 and plan["time_s"] > 0


def test_plan_as_printed(run, ask, foreign):
    line = ("plan", DENSE_ROW, "--profile", foreign, "--products", "1", "--model", "guo")
    ours, printed = (ask(*line, *way)["plan"] for way in ((), ("--as-printed",)))
    assert (ours["as_printed"], printed["as_printed"]) == (False, True)
    assert printed["baseline"]["time_s"] != ours["baseline"]["time_s"], "the fits are as printed, too"
    assert any("no conversion counted" in note for note in printed["notes"])
    early = run("plan", SMALL, "--as-printed")  # no profile: it is refused before a calibration
    assert (early.status, early.out, early.err.count("\n")) == (2, "", 1)
    refused = run("plan", DENSE_ROW, "--profile", foreign, "--as-printed")
    assert (refused.status, refused.err.count("\n")) == (2, 1) and "guo" in refused.err


def test_rounded_values_are_named_as_lossy_with_their_errors(run, ask, exact, calibrated, tmp_path):
    path, asked = tmp_path / "tenth.mtx", ("--threads", "1", "--values", "float32", "--json")
    scipy.io.mmwrite(path, gallery("poisson2d", n=30).astype(float) * 0.1)
    measured = exact(run("measure", path, *asked, "--no-keep"), "measure")
    rounding = measured["rounding"]
    assert 1e-9 < rounding["y_error"] <= (1 + 1e-15) * rounding["value_error"] <= 2.0**-24
    errors = {_way(each): each["error"] for each in measured["measurements"]}
    lossy = {way: error for way, error in errors.items() if "lossy float32" in dict(way[1]).values()}
    assert {"csr", "sell", "symmetric_csr"} <= {name for name, _ in lossy}
    assert errors["csr", ()] < 1e-15 and lossy["csr", _LOSSY_CSR] == pytest.approx(
        rounding["y_error"], rel=1e-4
    )
    predicted = ask("predict", path, *asked)
    assert predicted["rounding"] == rounding and "Lossy" in predicted["notes"][-1]
    assert any(_way(each) == ("csr", _LOSSY_CSR) for each in predicted["forecasts"])
    plan = ask("plan", path, *asked, "--check")["plan"]
    assert plan["rounding"] == rounding and plan["check"]["error"] < 2.0**-23
    plain = exact(run("plan", path, "--threads", "1", "--json"), "plan")["plan"]
    assert plain["rounding"] is None
    assert not any("lossy" in str(block["parameters"]) for block in plain["blocks"])


def test_plan_and_check(run, exact, calibrated):
    document = exact(run("plan", SMALL, "--threads", "1", "--check", "--json"), "plan")
    assert document["plan"]["check"]["error"] <= 1e-14


def test_measure_beside_the_forecast(run, exact, calibrated):
    document = exact(run("measure", SMALL, "--threads", "1", "--json"), "measure")
    measured = {m["format"] for m in document["measurements"]}
    assert {"csr", "coo", "ell", "hyb"} <= measured
    assert measured == {*FORMATS.names(), "scipy"} - set(document["refused"])
    for measurement in document["measurements"]:
        assert measurement["energy_j"] is None
        assert measurement["error"] <= 1e-14
        assert (measurement["forecast_s"] is None) == (measurement["format"] == "scipy")
    fastest = document["measurements"][0]["format"]
    assert document["comparison"]["format"] == fastest
    assert document["comparison"]["other"] == ("csr" if fastest == "scipy" else "scipy")


def test_measure_on_a_machine_that_was_not_met(run):
    document = document_of(run("measure", SMALL, "--threads", "1", "--json"))
    assert {m["forecast_s"] for m in document["measurements"]} == {None}


def test_evaluate_leaves_rows_and_a_figure_and_goes_on_with_what_was_measured(run, calibrated, tmp_path):
    rows, figure = tmp_path / "rows.parquet", tmp_path / "figure.png"
    asked = ("evaluate", SMALL, "--threads", "1", "--models", "linear,guo", "--json")
    first = document_of(run(*asked, "--rows", rows, "--figure", figure))
    assert pyarrow.parquet.read_table(rows).num_rows == len(first["rows"]) > 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    again = run(*asked, "--resume")
    assert "1 matrix was measured before" in again.err
    second = json.loads(again.out)
    assert second["rows"] == first["rows"] and second["repeats"] == first["repeats"] is not None
    assert (first["taken_over"], second["taken_over"]) == (0, 1)
    assert document_of(run(*asked))["taken_over"] == 0


def test_an_evaluation_stopped_from_the_keyboard_shows_what_was_done(run, calibrated, monkeypatch):
    measure_here, calls = campaigns.measure_here, []

    def stopped(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure_here(*arguments, **options)

    monkeypatch.setattr(campaigns, "measure_here", stopped)
    outcome = run("evaluate", SMALL, "gallery:banded?n=500", "--threads", "1")
    assert outcome.status == 130
    assert "Errors of forecasts" in outcome.out and "Worst matrices of " in outcome.out
    assert SMALL in outcome.out and "gallery:banded?n=500" not in outcome.out
    assert "stopped from the keyboard: what was measured until then is kept" in outcome.err


def test_machines(run, calibrated, foreign):
    document = document_of(run("machines", "--json"))
    assert document["machine"]["name"] == calibrated.name
    assert set(document["profiles"]) == {
        *(calibrated.name, foreign, *(path.stem for path in _SHIPPED.glob("*.parquet"))),
        *missing_profiles(),
    }
    for name in missing_profiles():
        assert "missing, not shipped yet" in document["profiles"][name]
    assert set(document["bandwidths"]) == {"nvidia-h100"}, "the only one with bandwidths"


def test_gallery(run):
    document = document_of(run("gallery", "--json"))
    assert set(document) == set(gallery_names())
    assert "poisson3d" in run("gallery").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("structure", SMALL),
        ("plan", SMALL, "--threads", "1", "--check"),
        ("evaluate", SMALL, "--threads", "1", "--models", "linear"),
        ("machines",),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_people_get_a_page_on_standard_output(run, calibrated, arguments):
    outcome = run(*arguments)
    assert (outcome.status, outcome.err) == (0, "")
    assert len(outcome.out.splitlines()) > 3
    with pytest.raises(json.JSONDecodeError):
        json.loads(outcome.out)


@pytest.mark.parametrize("name", COMMANDS.names())
def test_every_command_explains_itself(run, name):
    outcome = run(name, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "--json" in outcome.out


def test_help_lists_every_command(run):
    outcome = run("--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert all(name in outcome.out for name in COMMANDS.names())


def test_a_reader_that_goes_away_is_no_fault_to_trace(calibrated):
    import subprocess
    import sys

    code = "from sparsecast.cli.main import main; main()"
    line = [sys.executable, "-c", code, "structure", SMALL]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        err = child.stderr.read()
        child.wait()
    assert b"Traceback" not in err


def _no_room_but_for(monkeypatch, *formats):
    bind = Processor.bind

    def full(self, A, candidate):
        if candidate.format not in formats:
            raise MatrixSizeError(f"{candidate.format} would take 9 GB: expected less; take another")
        return bind(self, A, candidate)

    monkeypatch.setattr(Processor, "bind", full)


def test_measure_says_what_did_not_fit(run, monkeypatch):
    _no_room_but_for(monkeypatch, "csr")
    document = document_of(run("measure", SMALL, "--threads", "1", "--json"))
    assert {_way(measurement)[0] for measurement in document["measurements"]} == {"csr"}
    assert [each["parameters"] for each in document["measurements"]].count({}) == 1
    assert document["refused"].keys() == {*FORMATS.names(), "scipy"} - {"csr"}
    assert document["refused"]["ell"] == "ell would take 9 GB: expected less; take another"


def test_measure_of_what_fits_in_no_format_is_refused(run, monkeypatch):
    _no_room_but_for(monkeypatch)
    outcome = run("measure", SMALL, "--threads", "1")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("would take 9 GB: expected less") == 1 and outcome.err.count("\n") == 1


@pytest.fixture
def gpu_path(gpu_profile, tmp_path):
    return gpu_profile.save(tmp_path / "gpu.parquet")


def test_all_places_at_hand_are_compared(run, exact, calibrated, gpu_profile):
    saved = gpu_profile.save()
    (saved.parent / "broken.parquet").write_bytes(saved.read_bytes()[:1000])
    asked = ("plan", SMALL, "--where", "all", "--threads", "1", "--products", "20000")
    document = exact(run(*asked, "--price", "cpu=3.6/h", "--json"), "plan --where PLACE,PLACE")
    rows = {row["machine"]: row for row in document["placements"]}
    assert {calibrated.name, gpu_profile.name, "nvidia-v100", "xeon-gold-6154-edr"} <= set(rows)
    assert "broken" in document["refused"]
    totals = [row["total_s"] for row in document["placements"]]
    assert totals == sorted(totals)
    here, gpu, ranks = (rows[name] for name in (calibrated.name, gpu_profile.name, "xeon-gold-6154-edr"))
    assert here["here"] and here["price"] == pytest.approx(here["total_s"] / 1000)
    assert here["total_s"] == pytest.approx(here["convert_s"] + 20_000 * here["time_s"])
    assert gpu["total_s"] == pytest.approx(gpu["convert_s"] + gpu["transfer_s"] + 20_000 * gpu["time_s"])
    assert (rows["nvidia-v100"]["transfer_s"], rows["nvidia-v100"]["convert_s"]) == (None, None)
    assert ranks["ranks"] % 36 == 0 and ranks["nodes"] == ranks["ranks"] // 36 and ranks["price"] is None
    assert {item["machine"] for item in document["best_from"]} <= {calibrated.name, gpu_profile.name}
    assert document["plan"]["time_s"] == here["time_s"], "what can be built here"
    shown = run(*asked)
    assert "(here)" in shown.out and "ranks" in shown.out and "not counted" in shown.out


def test_places_without_a_plan(run, tmp_path, calibrated):
    figure = tmp_path / "where.svg"
    done = run("plan", SMALL, "--where", "nvidia-v100, nvidia-a100", "--json", "--figure", figure)
    document = document_of(done)
    assert document["plan"] is None and {row["machine"] for row in document["placements"]} == {
        "nvidia-v100",
        "nvidia-a100",
    }
    assert figure.read_text().startswith("<svg")


def test_a_profile_is_one_more_place_beside_all(run, calibrated, gpu_path, gpu_profile):
    asked = ("plan", SMALL, "--where", "all", "--profile", gpu_path, "--threads", "1", "--json")
    machines = [item["machine"] for item in document_of(run(*asked))["placements"]]
    assert {calibrated.name, gpu_profile.name, "nvidia-v100"} <= set(machines)
    assert len(machines) == len(set(machines))
