"""sparsecast bench: its document, its pages, two results beside each other, and what it refuses."""

import dataclasses
import json
import re
from time import perf_counter

import pytest

from sparsecast.benchmark.run import Calibration
from sparsecast.machines.machine import Cache, detect
from sparsecast.machines.profile import Profile
from sparsecast.papers.gahvari_2007.search_space import Point
from sparsecast.papers.gahvari_2007.summary import AGAIN, FIGURES, SUITE

NAMES = ("unblocked_max_mflops", "unblocked_median_mflops", "blocked_max_mflops", "blocked_median_mflops")


@pytest.fixture
def rated(monkeypatch, recorded):
    """Let a calibration have measured made-up speeds in no time; give the runs, and how fast to be."""
    template = recorded.select(format="csr", dtype="float64")[0]
    runs, faster = [], [1.0]

    def records(target, series):
        points = [Point(each, d, k) for each in series for d in (512, 1024, 2048) for k in (24, 34)]
        for suite, some in ((SUITE, points), (AGAIN, points[:5])):
            for point in some:
                mflops = faster[0] * (1000 + point.nnz_per_row) * point.series.block[0]
                yield dataclasses.replace(
                    template,
                    candidate=dataclasses.replace(
                        template.candidate, dtype=target.dtype, threads=target.threads
                    ),
                    matrix=point.name,
                    suite=suite,
                    time_s=2e-6 * template.nnz / mflops,
                )

    def run(self):
        self._start = perf_counter()
        self.machine = dataclasses.replace(self.machine, caches=(Cache(2, 400_000, 1),))
        self.measured.records += [
            r for target in self.targets for r in records(target, self.rating_suites[0].series)
        ]
        self.phases = {"compiling": 1.0, "measuring": 2.0}
        runs.append(self)
        return Profile(self.machine, tuple(self.records))

    monkeypatch.setattr(Calibration, "run", run)
    return runs, faster


def test_the_document_has_what_others_rely_on(run, exact, rated):
    document = exact(run("bench", "--json"), "bench")
    assert set(NAMES) <= set(document["figures"]) == set(document["errors"]) == set(FIGURES)
    assert all(isinstance(document["figures"][name], float) for name in NAMES)
    assert document["budget_s"] == 300
    assert 0 <= document["used_s"] < 60
    assert document["noise"] == pytest.approx(0)
    assert document["machine"]["threads"] == detect().threads
    assert {"sparsecast", "python", "numpy", "scipy", "numba", "llvmlite", "compiler"} == set(
        document["versions"]
    )
    assert document["phases_s"] == {"compiling": 1.0, "measuring": 2.0}
    assert document["interrupted"] is False
    main = document["settings"][0]
    assert main["figures"] == document["figures"]
    assert (main["dtype"], main["threads"], main["device"]) == ("float64", detect().threads, "cpu")
    assert len(main["points"]) == 37 * 3 * 2
    assert {point["size"] for point in main["points"]} == {"small", "medium"}
    assert main["points"][0]["samples_s"]
    assert main["refilled"] == 37 * 3 * 11 - 37 * 3 * 2
    assert {target["dtype"] for target in document["settings"]} == {"float64", "float32"}


def test_a_small_budget_rates_fewer_settings_and_says_so(run, exact, rated):
    document = exact(run("bench", "--budget", "60", "--json"), "bench")
    assert len(document["settings"]) == 1
    asked = 2 * len({1, detect().threads})
    assert f"time for 1 of {asked} combinations of type and threads" in document["notes"]


def test_a_result_is_written_drawn_and_compared(run, exact, rated, tmp_path):
    first, second, figure = (tmp_path / name for name in ("a.json", "b.json", "map.png"))
    assert run("bench", "--output", first, "--figure", figure).status == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    rated[1][0] = 1.25
    assert exact(run("bench", "--json", "--output", second), "bench") == json.loads(second.read_text())
    found = exact(run("bench", "--compare", first, second, "--json"), "bench --compare A.json B.json")
    assert len(rated[0]) == 2, "comparing measures nothing"
    assert set(found["figures"]) == set(NAMES)
    for figure in found["figures"].values():
        assert figure["ratio"] == pytest.approx(1.25)
        assert figure["is_different"] is True
    assert (found["points"], found["points_ratio"]) == (37 * 3 * 2, pytest.approx(1.25))
    same = run("bench", "--compare", first, first)
    assert (same.status, same.err) == (0, "")
    assert re.search(r"blocked median .* 1\.000 .* no ", same.out)


@pytest.mark.parametrize("left", [20, 0])
def test_ctrl_c_prints_the_figures_of_what_was_measured(run, rated, monkeypatch, tmp_path, left):
    inner = Calibration.run

    def interrupted(self):
        profile = inner(self)
        del self.measured.records[left:]
        self.interrupted = True
        return profile

    monkeypatch.setattr(Calibration, "run", interrupted)
    outcome = run("bench", "--json", "--figure", tmp_path / "map.png")
    document = json.loads(outcome.out)
    assert (outcome.status, document["interrupted"]) == (130, True)
    if left:
        assert document["figures"]["unblocked_median_mflops"] == pytest.approx(1029)
        assert "what was measured until then is kept" in outcome.err
    else:
        assert set(document["figures"].values()) == {None}
        assert not (tmp_path / "map.png").exists()
        assert "No blocked median" in run("bench").out


@pytest.mark.parametrize(
    ("damage", "value"),
    [
        (("figures", NAMES[0]), {"not": "this"}),
        (("settings", 0, "errors", NAMES[1]), {"not": "this"}),
        (("settings", 0, "points", 0, "mflops"), None),
        (("settings", 0, "points", 0, "mflops"), 0),
    ],
)
def test_a_damaged_result_is_no_result(run, rated, tmp_path, damage, value):
    path = tmp_path / "a.json"
    assert run("bench", "--output", path).status == 0
    document = json.loads(path.read_text())
    inner = document
    for key in damage[:-1]:
        inner = inner[key]
    inner[damage[-1]] = value
    path.write_text(json.dumps(document))
    assert run("bench", "--compare", path, path).status == 2


def test_without_vl_convert_a_figure_is_refused_before_measuring(run, rated, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = run("bench", "--figure", tmp_path / "map.png")
    assert outcome.status == 2
    assert "pip install 'sparsecast[report]'" in outcome.err
    assert rated[0] == []
