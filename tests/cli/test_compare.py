"""sparsecast compare: the contract of its document, ties, prices and refusals."""

import dataclasses
import json

import pytest
from scipy import sparse
from scipy.io import mmwrite

from sparsecast.machines.profile import Profile, find_profile

SMALL, LARGE = "gallery:poisson2d?n=40", "gallery:circuit?n=3000"


@pytest.fixture
def machines(recorded, tmp_path):
    """The recorded machine, one that is twice as fast, and one a hundred times as slow."""

    def scaled(name, factor):
        machine = dataclasses.replace(recorded.machine, processor=name, threads=1)
        records = tuple(
            dataclasses.replace(
                r,
                time_s=factor * r.time_s,
                convert_s=None if r.convert_s is None else factor * r.convert_s,
                samples_s=(),
            )
            for r in recorded.select(dtype="float64", threads=1)
        )
        path = tmp_path / f"{name}.parquet"
        Profile(machine, records, recorded.matrices).save(path)
        return path

    return {name: scaled(name, factor) for name, factor in (("fast", 0.5), ("slow", 100.0), ("usual", 1.0))}


def test_the_fastest_machine_comes_first_and_ties_are_said(ask, machines):
    asked = ("compare", SMALL, LARGE, "--machines", ",".join(map(str, machines.values())))
    rows = ask(*asked, "--products", "10")["rows"]
    assert [row["matrix"] for row in rows] == [SMALL] * 3 + [LARGE] * 3
    for own in (rows[:3], rows[3:]):
        assert [row["machine"].split("-")[0] for row in own] == ["fast", "usual", "slow"]
        assert own[1]["time_s"] == pytest.approx(2 * own[0]["time_s"], rel=0.2)
        for row in own:
            assert row["total_s"] == pytest.approx(row["convert_s"] + 10 * row["time_s"])
            assert row["total_high_s"] == pytest.approx(row["convert_s"] + 10 * row["high_s"])
        assert own[0]["total_low_s"] < own[0]["total_s"] < own[0]["total_high_s"]
        assert not own[0]["tie"] and not own[2]["tie"]
        assert own[1]["tie"] == (own[1]["total_low_s"] <= own[0]["total_high_s"])
        assert {row["price"] for row in own} == {row["energy_j"] for row in own} == {None}


def test_prices_and_a_figure(run, ask, machines, tmp_path):
    name = ask("compare", SMALL, "--machines", machines["slow"])["rows"][0]["machine"]
    figure = tmp_path / "figure.svg"
    asked = ("compare", SMALL, "--machines", machines["slow"], "--price", f"{name}=3.6/h")
    [row] = ask(*asked, "--figure", figure)["rows"]
    assert row["price"] == pytest.approx(row["total_s"] * 3.6 / 3600)
    assert row["price_low"] == pytest.approx(row["total_low_s"] * 3.6 / 3600)
    assert row["price_high"] == pytest.approx(row["total_high_s"] * 3.6 / 3600)
    assert figure.read_text().startswith("<svg") and name in figure.read_text()
    shown = run(*asked).out
    assert "price" in shown and "1.00 x" in shown


def test_a_machine_that_cannot_answer_is_named_and_the_others_answer(ask, machines):
    asked = ("compare", SMALL, "--machines", f"{machines['fast']},xeon-gold-6154-edr", "--json")
    found = ask(*asked)
    assert len(found["rows"]) == 1 and "no records" in found["refused"][SMALL]["xeon-gold-6154-edr"]


def test_matrices_of_one_file_name_keep_their_rows(run, machines, tmp_path):
    paths = [tmp_path / folder / "a.mtx" for folder in ("first", "second")]
    for rows, path in enumerate(paths, 50):
        path.parent.mkdir()
        mmwrite(path, sparse.eye_array(rows))
    done = run("compare", *paths, LARGE, "--machines", machines["fast"], "--json")
    assert [row["matrix"] for row in json.loads(done.out)["rows"]] == [*map(str, paths), LARGE]


def test_two_profiles_of_one_name_are_refused_by_their_files(run, ask, machines, tmp_path, data_folder):
    new, old, copy = machines["fast"], tmp_path / "old.parquet", tmp_path / "copy.parquet"
    loaded = find_profile(new)
    dataclasses.replace(loaded, records=loaded.records[1:]).save(old)
    copy.write_bytes(new.read_bytes())
    for asked in (
        ("compare", SMALL, "--machines", f"{new},{old}"),
        ("plan", SMALL, "--where", f"{new},nvidia-v100,{old}"),
    ):
        done = run(*asked)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert str(new) in done.err and str(old) in done.err
    assert len(ask("compare", SMALL, "--machines", f"{new},{copy}")["rows"]) == 1

    folder = data_folder / "profiles"
    folder.mkdir(parents=True)
    for path in (new, old):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.parquet").write_bytes(new.read_bytes()[:1000])
    found = ask("compare", SMALL)
    assert found["refused"][SMALL].keys() == {"broken", "old"}
    assert str(folder / "old.parquet") in found["refused"][SMALL]["old"]
    assert [row["machine"] for row in found["rows"]].count(loaded.name) == 1


def test_a_page_has_the_source_of_published_results_and_needs_no_other_file(run, data_folder, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    whole = find_profile("nvidia-a100")
    records = tuple(record for record in whole.records if record.candidate.format in ("csr", "coo"))
    part = dataclasses.replace(whole, records=records).save(tmp_path / "part.parquet")
    machine = dataclasses.replace(whole.machine, published_as="nobodys")
    alike = Profile(machine, records, whole.matrices).save(tmp_path / "alike.parquet")
    page = tmp_path / "page.html"
    done = run("compare", SMALL, "--machines", f"{alike},{part}", "--page", page, "--json")
    assert done.status == 0, done.err
    text = page.read_text()
    assert "CC BY 4.0" in text and "tie" in text
    assert text.count('id="chart-matrix-0-time"') == 1
    shown = text.split("<script")[0]
    assert "<link" not in shown and "src=" not in shown
