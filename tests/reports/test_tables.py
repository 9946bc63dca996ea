"""Tables for people on fixed data, at a fixed width, against golden files."""

from __future__ import annotations

import dataclasses
import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from sparsecast.features.analysis import structure
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.gallery import gallery
from sparsecast.papers.gahvari_2007.bench_reports import twins_table
from sparsecast.papers.gahvari_2007.twin_comparison import TwinRow, Twins, TwinScore
from sparsecast.planning.partition_comparison import partitioned
from sparsecast.planning.placement import compare
from sparsecast.records import Bandwidth, Candidate, Forecast
from sparsecast.reports import tables
from sparsecast.results.evaluation import ErrorScore, ModelScore, Repeats
from sparsecast.results.partitions import Partitions
from sparsecast.results.plan import Placement, Plan, PlanCheck, PlannedBlock

GOLDEN = Path(__file__).parents[1] / "data" / "tables"
#: Set to write the golden files anew instead of comparing with them.
WRITE_GOLDEN = "SPARSECAST_WRITE_GOLDEN"

WIDTH = 120


def candidate(format_name, kernel="rows"):
    return Candidate(format_name, kernel, "cpu", "float64", 32, 2)


FORECASTS = (
    Forecast(candidate("csr"), 5_000_000, 3.21e-3, 2.5e-3, 4.75e-3, 60_400_000, None, 0.0),
    Forecast(candidate("hyb", "long-kernel-name"), 5_000_000, 3.5e-3, 3e-3, 5e-3, 64_000_123, None, 0.0123),
    Forecast(candidate("coo"), 5_000_000, 1.5, None, None, 999, None, 2.5e-7),
)
REFUSED = {"ell": "ELL would store 1,000,000 entries (12.0 MB) for 5,000 non-zeros: use another format"}

BLOCKS = tuple(
    PlannedBlock(
        1000 * i, 1000 * i + 999, candidate("csr" if i % 2 else "ell"), 1e-5 * (i + 1), 1e-4 * (i % 2)
    )
    for i in range(15)
)
PLAN = Plan(BLOCKS[:2], 1000, 3e-5, 2e-5, 4.5e-5, 1e-4, PlannedBlock(0, 1999, candidate("csr"), 5e-5, 0.0), 5)

MACHINE = Machine(
    "Example Processor",
    "x86_64",
    4,
    8,
    (Cache(1, 32 << 10, 2), Cache(2, 1 << 20, 2)),
    ("avx2", "fma"),
    64 << 30,
    "Linux",
)


@pytest.fixture
def matches():
    """Compare a rendered table with its golden file."""

    def compare(name, *shown):
        stream = io.StringIO()
        console = Console(file=stream, width=WIDTH, color_system=None, legacy_windows=False)
        for item in shown:
            console.print(item)
        found = "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
        path = GOLDEN / f"{name}.txt"
        if os.environ.get(WRITE_GOLDEN):
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        assert found == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def records(recorded):
    template = recorded.records[0]
    return [
        dataclasses.replace(
            template, candidate=f.candidate, nnz=5_000_000, time_s=t, noise=n, convert_s=f.convert_s
        )
        for f, t, n in zip(FORECASTS, (3e-3, 4e-3, 0.75), (0.012, 0.0, 0.31), strict=True)
    ]


def test_structure(matches):
    matches("structure", tables.structure("arrow", structure(gallery("arrow", n=300, dense_rows=2))))


def test_forecasts(matches):
    matches("forecasts", tables.forecasts("Forecast of y = A x: cant on here", FORECASTS, REFUSED))


def test_measurements(matches, records):
    expected = {forecast.candidate: forecast for forecast in FORECASTS[:2]}
    matches("measurements", tables.measurements("Measured: cant", records, expected, REFUSED))


def test_energy_has_a_column_where_some_was_measured(matches, records):
    metered = dataclasses.replace(records[0], energy_j=1.2e-3, energy_source="nvml")
    matches("measurements-energy", tables.measurements("Measured", [metered, *records[1:]], {}, {}))


@pytest.mark.parametrize(
    ("joules", "text"), [(None, "not measured"), (2.5, "2.5 J"), (0.9996, "1 J"), (3.14e-5, "31.4 uJ")]
)
def test_energies_have_three_digits_and_a_unit(joules, text):
    assert tables.energy(joules) == text


def test_plan(matches):
    matches("plan", tables.plan("Plan for 1,000 products", PLAN), *tables.plan_sentences(PLAN, "here"))


def test_a_plan_of_many_blocks(matches):
    many = dataclasses.replace(PLAN, blocks=BLOCKS, low_s=None, high_s=None, break_even_iterations=None)
    matches("plan-many", tables.plan("Plan", many), *tables.plan_sentences(many, "here"))


def on_device(made):
    """The same plan on a GPU."""
    there = dataclasses.replace(made.baseline.candidate, device="cuda", threads=1)
    blocks = [dataclasses.replace(block, candidate=there) for block in (*made.blocks, made.baseline)]
    return dataclasses.replace(made, blocks=tuple(blocks[:-1]), baseline=blocks[-1])


def test_places(matches):
    far = on_device(dataclasses.replace(PLAN, time_s=1e-5, convert_s=0.02))
    found = compare([Placement("this machine", PLAN, 0.0), Placement("a GPU", far, 0.001)])
    sentences = tables.placement_sentences(found)
    matches("places", tables.placements("Where", found), *sentences, *tables.plan_sentences(far, "a GPU"))


def test_a_place_that_is_always_the_best():
    far = on_device(dataclasses.replace(PLAN, time_s=1.0, convert_s=9.0))
    slow = dataclasses.replace(far, baseline=dataclasses.replace(far.baseline, time_s=2.0))
    found = compare([Placement("this machine", PLAN, 0.0), Placement("a GPU", slow, 0.001)])
    assert found.break_even_iterations == 1
    assert "cpu has the fastest product and pays from the first one on." in tables.placement_sentences(found)


def test_a_plan_without_conversion(matches):
    plain = dataclasses.replace(PLAN, blocks=(PLAN.baseline,), convert_s=0.0, break_even_iterations=0)
    matches("plan-plain", tables.plan("Plan", plain), *tables.plan_sentences(plain, "here"))


def test_plan_check(matches):
    matches("plan-check", tables.plan_check(PLAN, PlanCheck(3.1e-5, 4.8e-5, 9.9e-5, 0.014, 1.2e-4, 2.2e-16)))


def test_partitions(matches):
    A = gallery("poisson2d", n=12)
    made = [partitioned(A, 4, method) for method in ("rows", "uniform-2d")]
    found = Partitions([dataclasses.replace(each, partition_s=0.01) for each in made], {"metis": "Why not."})
    matches("partitions", tables.partitions("mesh on 4 ranks", found, 8))


def test_machines(matches):
    contents = {MACHINE.name: "cpu float64 8 threads (205 records)", "other-2t-01234567": "no records"}
    matches("machines", tables.machines(MACHINE, contents), tables.machines(MACHINE, {}))


def test_machines_shows_the_bandwidth_over_most_bytes_of_each_kind():
    def stream(kind, device, threads, size, time_s):
        return Bandwidth(kind, device, threads, size, time_s, 0.0, "", "")

    bandwidths = [
        stream("read", "cpu", 2, 10**9, 0.1),
        stream("read", "cpu", 2, 10**6, 1e-5),
        stream("read", "cpu", 1, 10**6, 1e-3),
        stream("to device", "cuda", 1, 10**9, 0.05),
    ]
    text = "cpu 1 thread read 1 GB/s, cpu 2 threads read 10 GB/s, cuda to device 20 GB/s"
    assert tables.bandwidth_sentence(bandwidths) == text
    assert tables.bandwidth_sentence([]) == ""
    assert tables.bandwidth_sentence([stream("read", "gone", 1, 10**9, 0.1)]) == "gone read 10 GB/s"
    shown = tables.machines(MACHINE, {MACHINE.name: "records", "other": "records"}, {"other": bandwidths})
    assert list(shown.columns[1].cells) == ["records", "records", text]


def error_score(median, **more):
    shares = {"mean_error": 1.2 * median, "p90_error": 3 * median, "bias": -median}
    return {"forecasts": 1234, "median_error": median, **shares, **more}


MODELS = {
    "sparsecast": ModelScore(
        **error_score(0.0512, coverage=0.9, mean_width=0.2, median_noise=0.01),
        **{"quantity": "time", "regret": 0.005, "worst_ratio": 1.1234, "top1": 0.875, "unforecast": 0},
        forecast_products=3.456,
        forecast_products_large=2.0,
        formats={
            "symmetric_csr": ErrorScore(**error_score(0.25, repeat_median=0.016, repeat_p90=0.0661)),
            "csr": ErrorScore(**error_score(0.04, coverage=1.0, mean_width=12.0)),
        },
        worst=(("a", 0.432), ("b", -0.31), ("c", 0.004)),
    ),
    "hossain-linear": ModelScore(
        **error_score(12.0),
        **{"quantity": "energy", "regret": 0.0, "worst_ratio": 25.0, "top1": 1.0, "unforecast": 1029},
    ),
}


def test_evaluation(matches):
    matches("evaluation", tables.errors(MODELS), tables.choices(MODELS))


def test_an_evaluation_fits_a_hundred_columns():
    wide = {"hossain-linear": MODELS["sparsecast"], "joules": MODELS["hossain-linear"]}
    page = Console(file=io.StringIO(), width=200)
    for table in (tables.errors(wide), tables.choices(wide)):
        assert page.measure(table).maximum <= 100


def test_the_worst_matrices_are_named_with_their_errors():
    assert tables.worst_sentence(MODELS).endswith(": a +43 %, b -31 %, c +0 %.")
    assert "No forecast" in tables.worst_sentence({})


def test_what_was_measured_again_stands_in_a_sentence():
    found = tables.repeats_sentence(Repeats(12, 96, 0.038, 0.26, 301.4))
    assert found.startswith(
        "Measured again after 301 s (median), 96 formats of 12 matrices differed by 3.8 %"
    )
    assert found.endswith("and 26.0 % at the 90th percentile.")
    assert "not known" in tables.repeats_sentence(None)


TWINS = Twins(
    (
        TwinRow("crack", 60_760, candidate("csr"), 1, 5.7e-5, 0.995, 0.79, 1.034),
        TwinRow("nos3", 15_844, candidate("csr"), 2, 7e-6, 1.0, 0.987, 1.028),
        TwinRow("nos3", 15_844, candidate("bcsr", "blocks"), 2, 4.4e-6, 1.01, 0.947, 1.2),
    ),
    (
        TwinScore("csr", 2, 2, (0.003, 0.005), (0.11, 0.19), (0.031, 0.034)),
        TwinScore("bcsr", 2, 1, (0.01, 0.01), (0.053, 0.053), (0.2, 0.2)),
    ),
    {"empty": "empty has no entries: expected some to multiply; leave it out"},
)


def test_twins(matches):
    matches("twins", twins_table(TWINS))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0 ns"),
        (3.2e-10, "0.32 ns"),
        (5e-7, "500 ns"),
        (1e-6, "1 us"),
        (1.2345e-3, "1.23 ms"),
        (0.5, "500 ms"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 us"),
        (0.99949, "999 ms"),
        (0.9997, "1 s"),
        (2.0, "2 s"),
        (999.0, "999 s"),
        (999.6, "1,000 s"),
        (123456.0, "123,456 s"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_suits(seconds, text):
    assert tables.time(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (1_234_567, "1.23 MB"),
        (5e9, "5 GB"),
        (2e12, "2,000 GB"),
    ],
)
def test_a_size_has_three_digits_and_the_unit_that_suits(count, text):
    assert tables.size(count) == text
