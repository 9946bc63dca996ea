"""The figure of the five-minute benchmark: what it shows, and that it is drawn."""

from __future__ import annotations

import dataclasses

import pytest

from sparsecast.errors import InputError
from sparsecast.machines.machine import Cache
from sparsecast.papers.gahvari_2007.bench_figures import draw_bench, series_speeds, speed_maps, speed_title
from sparsecast.papers.gahvari_2007.search_space import UNBLOCKED, Point, Series
from sparsecast.papers.gahvari_2007.summary import SUITE, ratings
from sparsecast.reports.figures import refuse_undrawable

SERIES = {UNBLOCKED: 100.0, Series((2, 2)): 300.0, Series((4, 1)): 200.0}


@pytest.fixture
def rating(recorded):
    def make(cache_bytes=0, series=SERIES):
        template = recorded.select(format="csr", threads=1, dtype="float64")[0]
        records = [
            dataclasses.replace(
                template,
                matrix=Point(each, d, k).name,
                suite=SUITE,
                time_s=2e-6 * template.nnz / (mflops + k),
            )
            for each, mflops in series.items()
            for d in (512, 1024, 1 << 20)
            for k in (24, 34)
        ]
        caches = (Cache(3, cache_bytes, 1),) if cache_bytes else ()
        return ratings(records, dataclasses.replace(recorded.machine, caches=caches))[0]

    return make


def test_the_maps_show_what_has_no_blocks_and_the_fastest_block_size(rating):
    plain, blocked = speed_maps(rating())
    assert "CSR" in plain.title
    assert "2x2" in blocked.title
    assert plain.dimensions == blocked.dimensions == (512, 512, 1024, 1024, 1 << 20, 1 << 20)
    assert plain.nnz_per_row == (24, 34) * 3
    assert plain.mflops == pytest.approx((124, 134) * 3)
    assert blocked.mflops == pytest.approx((324, 334) * 3)


def test_what_was_not_measured_has_no_map(rating):
    assert len(speed_maps(rating(series={UNBLOCKED: 1.0}))) == 1
    assert len(speed_maps(rating(series={Series((2, 2)): 1.0}))) == 1


@pytest.mark.parametrize(
    ("cache_bytes", "named"),
    [
        (0, set()),
        (1 << 20, {"small", "medium", "large"}),
        (64 << 20, {"small", "medium"}),
        (1 << 33, {"small"}),
        (100, {"large"}),
    ],
)
def test_the_sizes_are_marked_where_there_are_some(rating, recorded, tmp_path, cache_bytes, named):
    path = tmp_path / "map.svg"
    found = rating(cache_bytes)
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_bench(
            speed_maps(found), series_speeds(found), found.figures, speed_title(found, recorded.machine), path
        )
    drawn = path.read_text()
    assert {name for name in ("small", "medium", "large") if f">{name}<" in drawn} == named
    assert "recorded test machine: float64, 1 thread" in drawn
    assert "non-zeros a row" in drawn


def test_a_figure_that_cannot_be_written_is_said(rating, recorded, tmp_path):
    with pytest.raises(InputError, match=r"map\.png cannot be written \(No such file or directory\)"):
        found = rating()
        draw_bench(
            speed_maps(found), series_speeds(found), found.figures, "", tmp_path / "absent" / "map.png"
        )


@pytest.mark.parametrize("name", ["map", "map.bmp", "map.PNG", "png"])
def test_a_kind_of_file_that_is_not_written_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"expected a name that ends in \.png, \.svg, \.pdf; name it so"):
        refuse_undrawable(tmp_path / name)


def test_block_sizes_are_sorted_by_their_median_and_the_figures_are_lines(rating, tmp_path):
    found = rating()
    speeds = series_speeds(found)
    assert [(each.name, each.is_blocked) for each in speeds] == [("2x2", True), ("4x1", True), ("1x1", False)]
    assert speeds[0].ends == pytest.approx((324, 334)) and speeds[0].median == pytest.approx(329)
    assert speeds[0].ends[0] <= speeds[0].quartiles[0] <= speeds[0].median <= speeds[0].quartiles[1]
    draw_bench(speed_maps(found), speeds, found.figures, "rated", tmp_path / "b.svg")
    drawn = (tmp_path / "b.svg").read_text()
    for text in ("4x1", "unblocked maximum: 134", "blocked maximum: 334", "rated", "1 Ki"):
        assert f">{text}<" in drawn
