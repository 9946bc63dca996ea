"""The charts of the five-minute benchmark, and of the forecasts of blocks."""

import dataclasses

import numpy as np
import pytest

from sparsecast.machines.machine import Cache
from sparsecast.papers.barreda_2020.block_forecast import BlockForecast, block_chart
from sparsecast.papers.gahvari_2007.bench_charts import bench, speed_title
from sparsecast.papers.gahvari_2007.search_space import UNBLOCKED, Point, Series
from sparsecast.papers.gahvari_2007.summary import SUITE, ratings

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


def test_the_maps_show_what_has_no_blocks_and_the_fastest_block_size(rating, rows_of, drawn):
    chart = bench(rating())
    points = [row for row in rows_of(chart) if "mflops" in row and "dimension" in row]
    assert [row["dimension"] for row in points] == [512, 512, 1024, 1024, 1 << 20, 1 << 20] * 2
    assert [row["nnz_per_row"] for row in points] == [24, 34] * 6
    assert [row["mflops"] for row in points] == pytest.approx([124, 134] * 3 + [324, 334] * 3)
    svg = drawn(chart)
    for text in ("no blocks, CSR", "1 Ki", "MFLOP/s"):
        assert f">{text}<" in svg


def test_block_sizes_are_sorted_by_their_median_and_the_figures_are_lines(rating, rows_of, drawn):
    chart = bench(rating())
    sizes = [row for row in rows_of(chart) if "median" in row]
    assert [(row["size"], row["kind"]) for row in sizes] == [
        ("2x2", "blocks"),
        ("4x1", "blocks"),
        ("1x1", "no blocks"),
    ]
    first = sizes[0]
    assert (first["least"], first["median"], first["most"]) == pytest.approx((324, 329, 334))
    svg = drawn(chart)
    for text in ("unblocked maximum: 134", "blocked maximum: 334"):
        assert f">{text}<" in svg


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
def test_the_sizes_are_marked_where_there_are_some(rating, rows_of, cache_bytes, named):
    rows = rows_of(bench(rating(cache_bytes, {UNBLOCKED: 1.0})))
    assert {row["size"] for row in rows if set(row) == {"size", "dimension"}} == named


def test_what_was_not_measured_has_no_map(rating, drawn):
    for series in (UNBLOCKED, Series((2, 2))):
        drawn(bench(rating(series={series: 1.0})))
    assert speed_title(rating()) == "recorded test machine: float64, 1 thread"


def test_blocks_show_their_times_and_joules(rows_of, drawn):
    ns = np.linspace(1, 2, 8)
    forecast = BlockForecast("m", "p", "n", 9, 9, 2000, ns, np.arange(8), 1e-6)
    rows = rows_of(block_chart(forecast))
    assert [row["value"] for row in rows if "value" in row] == ns.tolist()
    assert max(row["entry"] for row in rows) == 2000
    both = dataclasses.replace(forecast, nj=2 * ns)
    assert len([row for row in rows_of(block_chart(both)) if "value" in row]) == 16
    drawn(block_chart(both))
