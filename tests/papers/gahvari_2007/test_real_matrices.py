"""Real matrices beside the figures: what is measured, taken over and left out, and how figures are scored."""

import dataclasses
import json
from itertools import count

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array

from sparsecast.benchmark.journal import read_journal
from sparsecast.machines.machine import Cache, detect
from sparsecast.matrices.synthesis import block_matrix, varied_matrix
from sparsecast.measuring.timing import Effort
from sparsecast.papers.gahvari_2007 import real_matrices as real_module
from sparsecast.papers.gahvari_2007.bench_charts import real as real_charts
from sparsecast.papers.gahvari_2007.bench_reports import DOCUMENTS, REAL_ROW, real_tables
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, real_journal, real_matrices
from sparsecast.papers.gahvari_2007.search_space import UNBLOCKED, Point, Series
from sparsecast.papers.gahvari_2007.summary import SUITE, ratings
from sparsecast.reports.charts.chart import svg
from sparsecast.system.tabular import document

EFFORT = Effort(samples=2, sample_s=1e-5)


@pytest.fixture
def rating(recorded):
    machine = dataclasses.replace(detect(), caches=(Cache(2, 200_000, 1),))
    points = [Point(series, d, 29) for series in (UNBLOCKED, Series((2, 2))) for d in (512, 1024)]
    template = recorded.select(format="csr", dtype="float64")[0]
    candidate = dataclasses.replace(template.candidate, threads=1)
    records = [
        dataclasses.replace(template, matrix=point.name, suite=SUITE, candidate=candidate) for point in points
    ]
    [rating] = ratings(records, machine)
    return rating


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("matrices")
    mmwrite(path / "plain.mtx", varied_matrix(300, 4, "mixed", 0.5, seed=0))
    mmwrite(path / "mirrored.mtx", csr_array(np.eye(40) + np.eye(40)[::-1]), symmetry="general")
    mmwrite(path / "blocks.mtx", block_matrix(60, 3, 2, 0.5, seed=0))
    mmwrite(path / "complex.mtx", csr_array(np.diag([1j, 2.0])))
    (path / "broken.mtx").write_text("%%MatrixMarket nonsense\n")
    return path


def test_a_stopped_run_goes_on_where_it_stopped(folder, rating, data_folder, monkeypatch):
    kept, paths, how = (
        real_journal(rating.machine),
        sorted(folder.iterdir()),
        {"effort": EFFORT, "sides": (1, 2)},
    )
    with monkeypatch.context() as patch:
        patch.setattr(real_module, "perf_counter", count().__next__)  # a second from look to look
        stopped = real_matrices(paths, rating, 12.0, **how)
    assert stopped.missing > 0
    before = read_journal(kept).records
    whole = real_matrices(paths, rating, **how)
    after = read_journal(kept).records
    assert before and after[: len(before)] == before, "nothing is lost"
    assert (whole.missing, set(whole.refused)) == (0, {"broken", "complex"})
    again = real_matrices(paths, rating, **how)
    assert read_journal(kept).records == after and again.rows == whole.rows, "nothing is measured twice"
    rows = {row["matrix"]: row for row in whole.rows}
    assert set(rows) == {"plain", "mirrored", "blocks"}
    assert rows["mirrored"]["symmetric_mflops"] and rows["plain"]["symmetric_mflops"] is None
    assert rows["blocks"]["square"] == "2x2" and rows["plain"]["square"] == "1x1"
    for row in whole.rows:
        assert row["tuned_mflops"] >= max(row["untuned_mflops"], row["square_mflops"] or 0)
        assert row["synthetic_mflops"] and row["size"] == "small"
    sizes = {
        tuple(dict(record.candidate.parameters)["block"])
        for record in after
        if record.candidate.format == "bcsr" and "blocks" in record.matrix
    }
    assert sizes == {(1, 2), (2, 1), (2, 2)}
    json.dumps(document(DOCUMENTS["bench --real FOLDER"], whole))
    assert {(score["format"], score["twin"]): score["matrices"] for score in whole.twins} == {
        **{("csr", kind): 3 for kind in ("again", "banded", "ours")},
        **{("bcsr", kind): 1 for kind in ("banded", "ours")},
    }
    scores, twins, matrices = real_tables(whole)
    assert [len(table.cells()) for table in (scores, twins, matrices)] == [3, 5, 3]
    charts = real_charts(whole)
    assert set(charts) == {f"figures-{numbers}" for numbers in ("3-to-5", "8-to-10", "11-to-13", "13-to-15")}
    for chart in charts.values():
        assert svg(chart).startswith("<svg")


def test_scores_compare_the_figures_with_the_speeds_of_each_size(rating):
    figure = rating.figures.unblocked_median_mflops
    highest = rating.figures.blocked_max_mflops

    def row(size, csr, tuned):
        speeds = {"untuned": csr, "tuned": tuned, "synthetic": csr / 2, "again": 0.9 * csr, "banded": 2 * csr}
        known = {f"{name}_mflops": speed for name, speed in speeds.items()}
        facts = {"matrix": "a", "size": size, "square": "1x1", "square_mflops": csr}
        return dict.fromkeys(column.key for column in REAL_ROW) | known | facts

    rows = [row("small", figure / 2, highest / 2), row("large", figure / 4, highest / 4)]
    real = RealMatrices(rating, tuple(rows), {}, 0, False)
    scores = {score["size"]: score for score in real.scores}
    assert list(scores) == ["all", "small", "large"]
    assert scores["small"]["untuned_error"] == pytest.approx(1.0)
    assert scores["large"]["untuned_error"] == pytest.approx(3.0)
    assert scores["all"]["untuned_error"] == pytest.approx(2.0)
    assert scores["all"]["max_ratio"] == pytest.approx(2.0)
    assert scores["large"]["max_ratio"] == pytest.approx(4.0)
    assert scores["all"]["synthetic_error"] == pytest.approx(0.5)
    assert scores["all"]["synthetic_tuned_error"] is None
    assert scores["small"]["square_share"] == pytest.approx(figure / highest)
    # A twin that is faster is as far off as one that is slower; the time of 0.9 of the speed is 11 % longer.
    errors = {(score["format"], score["twin"]): score["median_error"] for score in real.twins}
    assert errors == {("csr", "again"): pytest.approx(1 / 0.9 - 1), ("csr", "banded"): pytest.approx(0.55)}
