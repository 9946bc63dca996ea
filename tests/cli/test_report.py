"""sparsecast report: one page that needs nothing else, from what is known of a matrix."""

import json
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest
from scipy.io import mmwrite

import sparsecast as sc
from sparsecast.api.profiles import training_for
from sparsecast.devices.target import Target
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models.linear import LinearModel
from sparsecast.reports.pages.rendering import code_within_script, file_names

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

MATRIX = "gallery:circuit?n=3000"
VOID = {"meta", "br", "img", "image", "rect", "path", "line", "circle", "link", "input", "hr"}


class Page(HTMLParser):
    """A page as a reader sees it: what it asks for from elsewhere, its ids, texts and charts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.asked, self.charts, self.texts, self.labels = [], [], [], {}, [], []
        self.chart = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.labels += [found["aria-label"]] if found.get("role") == "img" and "aria-label" in found else []
        self.asked += [found[key] for key in ("src", "href") if key in found]
        self.chart = found.get("id") if found.get("type") == "application/json" else None
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag
        self.chart = None

    def handle_data(self, data):
        if self.chart:
            self.charts[self.chart] = json.loads(data)
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def written(run, exact, recorded_path, tmp_path_factory):
    """The page of a matrix, and its document."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSECAST_HOME", str(folder / "home"))
        asked = ("--profile", recorded_path, "--threads", "1", "-o", folder / "page.html", "--json")
        done = run("report", MATRIX, *asked)
    return exact(done, "report"), (folder / "page.html").read_text(encoding="utf-8")


def test_a_page_needs_nothing_else_and_is_small(written):
    document, text = written
    page = Page(text)
    assert page.open == [] and len(page.ids) == len(set(page.ids))
    assert document["bytes"] == len(text.encode()) < 3_000_000
    assert document["matrix"] == MATRIX
    anchors = {each for each in page.asked if each.startswith("#")}
    assert {each.removeprefix("#") for each in anchors} <= set(page.ids)
    assert all(each.startswith("data:image/png") for each in page.asked if not each.startswith("#"))
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style
    assert 'lang="en"' in text and len(page.labels) >= 6


def test_a_page_shows_the_forecasts_and_the_plan_and_the_commands(written, ask, recorded_path):
    text = " ".join(Page(written[1]).texts)
    asked = ("--profile", recorded_path, "--threads", "1", "--json")
    for forecast in ask("predict", MATRIX, *asked)["forecasts"]:
        assert forecast["format"].upper() in text and forecast["kernel"] in text
    plan = ask("plan", MATRIX, *asked)["plan"]
    assert all(block["format"].upper() in text for block in plan["blocks"])
    assert "not measured" in text and f"sparsecast predict '{MATRIX}'" in text


def test_every_chart_is_drawn_without_javascript_and_again_with_it(written):
    _, text = written
    charts = Page(text).charts
    assert set(charts) == {
        f"chart-{name}"
        for name in ("pattern", "row-lengths", "diagonals", "forecasts", "break-even", "roofline")
    }
    for name, spec in charts.items():
        assert "http" not in json.dumps({key: value for key, value in spec.items() if key != "$schema"})
        assert f'data-chart="{name}"' in text
    before_scripts = text[: text.index("<script")]
    assert before_scripts.count('class="marks"') == len(charts)


def test_names_are_no_markup(run, recorded_path, tmp_path):
    path = tmp_path / "<b>&amp.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n3 3 1\n")
    done = run("report", path, "--profile", recorded_path, "--threads", "1", "-o", tmp_path / "page.html")
    assert done.status == 0, done.err
    text = (tmp_path / "page.html").read_text()
    assert "<b>" not in text and "&lt;b&gt;&amp;amp" in text


def test_without_what_draws_pages_it_is_said_what_to_install(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = run("report", MATRIX)
    assert done.status == 2 and "pip install 'sparsecast[report]'" in done.err
    assert sc.gallery("poisson2d", n=3).nnz == 33  # everything else works


def test_a_page_is_replaced_where_that_is_asked_for(run, recorded_path, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    asked = ("report", MATRIX, "--profile", recorded_path, "--threads", "1", "-o", path)
    assert run(*asked).status == 2 and path.read_text() == "before"
    assert run(*asked, "--force").status == 0 and path.read_text().startswith("<!doctype html>")


def test_what_keeps_scripts_within_their_element_leaves_them_as_they_are():
    code = 'x.replace(/</g, "&lt;"); y = "</SCRIPT>"; z = a </b/.exec(c)'
    assert code_within_script(code) == code.replace("</SCRIPT>", "<\\/SCRIPT>")


def test_no_two_pages_have_one_name():
    found = file_names(["a b", "a-b", "A-B", "<>", "a-b-2"])
    assert len({each.lower() for each in found.values()}) == 5 and found["a b"] == "a-b.html"


@pytest.fixture
def folder(tmp_path, recorded_path, keep_times):
    """A folder: two matrices that were measured, one that was not, one without rows, one that is none.

    The last line of the journal was cut short.
    """
    folder, profile = tmp_path / "few", Profile.load(recorded_path)
    folder.mkdir()
    matrices = {"even": sc.gallery("poisson2d", n=40), "<b>&amp": sc.gallery("circuit", n=900)}
    for name, A in (matrices | {"new": sc.gallery("random", n=500)}).items():
        mmwrite(folder / f"{name}.mtx", A)
    (folder / "none.mtx").write_text("%%MatrixMarket matrix coordinate real general\n0 0 0\n")
    (folder / "bad.mtx").write_text("no matrix")
    for name, factor in zip(matrices, (1.2, 3.0), strict=True):
        keep_times(profile, Problem.named(folder / f"{name}.mtx"), factor)
    journal = next((tmp_path / "home" / "measurements").glob("*/*.jsonl"))
    journal.write_text(journal.read_text() + '{"schema": 4, "rec')
    return folder


def _held_out_errors(folder, profile):
    """Return the errors of the linear model on the measured matrices, each fitted without it."""
    found = []
    for path in (folder / "even.mtx", folder / "<b>&amp.mtx"):
        problem = Problem.named(path)
        training = training_for(profile, Target.of(problem, profile.machine, 1, None))
        own = [record for record in training.records if record.matrix == problem.specification]
        model = LinearModel().fit(training.where(lambda r, own=own: r not in own))
        estimates = model.estimates(problem.structure, [record.candidate for record in own])
        measured = {record.candidate: record.time_s for record in own}
        found += [abs(each.value / measured[each.candidate] - 1) for each in estimates]
    return found


def test_a_collection_is_scored_on_what_was_kept_and_links_to_its_matrices(
    run, exact, recorded_path, folder, tmp_path
):
    page = tmp_path / "all.html"
    asked = ("--profile", recorded_path, "--threads", "1", "--models", "linear", "--model", "linear")
    done = run("report", folder, *asked, "-o", page, "--json")
    document, text = exact(done, "report FOLDER"), page.read_text()
    measured = {each["matrix"]: each["measured"] for each in document["matrices"]}
    assert measured == {"<b>&amp": True, "even": True, "new": False, "none": False}
    assert list(document["refused"]) == ["bad"] and document["bytes"] == len(text.encode())
    errors = _held_out_errors(folder, Profile.load(recorded_path))
    score = document["models"]["linear"]
    assert score["forecasts"] == len(errors) and score["median_error"] == pytest.approx(np.median(errors))
    seen = Page(text)
    assert seen.open == [] and set(seen.charts) == {
        f"chart-{name}" for name in ("agreement", "errors-by-format", "errors-by-model", "regret", "coverage")
    }
    links = {unquote(each) for each in seen.asked if each.endswith(".html")}
    assert {str((tmp_path / link).resolve()) for link in links} == {
        each["path"] for each in document["matrices"]
    }
    assert all((tmp_path / link).read_text().startswith("<!doctype html>") for link in links)
    said = " ".join(seen.texts)
    assert "2 of them have no kept measurement" in said and "sparsecast evaluate" in said
    assert "bad: " in said and "<b>" not in text and "&lt;b&gt;&amp;amp" in text


def test_a_collection_without_measurements_says_what_measures_it(run, recorded_path, tmp_path):
    page, others = tmp_path / "all.html", MATRIX + "&seed=1"
    done = run("report", MATRIX, others, "--profile", recorded_path, "--threads", "1", "-o", page)
    assert done.status == 0 and "2 matrices, 0 of them measured" in done.out, done.err
    seen = Page(page.read_text())
    assert seen.charts == {} and "No measurement was kept" in " ".join(seen.texts)
    assert f"sparsecast evaluate '{MATRIX}' '{others}'" in " ".join(seen.texts)
