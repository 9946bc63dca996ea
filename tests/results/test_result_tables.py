"""Tables and sentences of results, on fixed data: which columns there are, and what they come to."""

from __future__ import annotations

import dataclasses

import pytest
from scipy.sparse import csr_array

from sparsecast.api.partitioning import partitioned
from sparsecast.features.analysis import structure
from sparsecast.matrices.gallery import gallery, gallery_matrices
from sparsecast.measuring.timing import Speedup
from sparsecast.planning.placement import ranked
from sparsecast.records import Bandwidth, Candidate, Forecast
from sparsecast.results.evaluation import ErrorScore, Evaluation, ModelScore
from sparsecast.results.machines import DOCUMENTS as MACHINES
from sparsecast.results.machines import Machines
from sparsecast.results.measurement import Measurements
from sparsecast.results.partitions import Partitions
from sparsecast.results.placement import Placement
from sparsecast.results.plan import Plan, PlanCheck, PlannedBlock
from sparsecast.results.structure import gallery_table, structure_table
from sparsecast.system.tabular import document


def candidate(format_name, kernel="rows"):
    return Candidate(format_name, kernel, "cpu", "float64", 32, 2)


FORECASTS = (
    Forecast(candidate("csr"), 5_000_000, 3.21e-3, 2.5e-3, 4.75e-3, 60_400_000, None, 0.0),
    Forecast(candidate("hyb"), 5_000_000, 3.5e-3, 3e-3, 5e-3, 64_000_123, None, 0.0123),
)
BLOCKS = tuple(
    PlannedBlock(1000 * i, 1000 * i + 999, candidate("csr" if i % 2 else "ell"), 1e-5, 1e-4 * (i % 2))
    for i in range(15)
)
CHECK = PlanCheck(3e-5, 4.5e-5, 9e-5, 0.014, 1.2e-4, 2e-16, Speedup(3.0, 0.1))
PLAN = Plan(BLOCKS[:2], 1000, 3e-5, 2e-5, 4.5e-5, 1e-4, PlannedBlock(0, 1999, candidate("csr"), 5e-5, 0.0), 5)


def column(table, heading):
    """Return the texts below a heading."""
    place = table.headings.index(heading)
    return [cells[place] for cells in table.cells()]


@pytest.fixture
def measured(recorded):
    template = recorded.records[0]
    records = [
        dataclasses.replace(template, candidate=item.candidate, time_s=time_s, convert_s=item.convert_s)
        for item, time_s in zip(FORECASTS, (3e-3, 4e-3), strict=True)
    ]
    return Measurements(
        "cant", recorded.structure(template), records, {FORECASTS[0].candidate: FORECASTS[0]}, {}
    )


@pytest.mark.parametrize(
    ("values", "cols", "spared"),
    [
        ([0.1, 0.1, 0.1], 5, ["8 of 12", "2 of 12"]),
        ([1.0, 2.0, 1.0], 70_000, ["4 of 12", None]),
        ([0.1, 0.2, 1.0], 70_000, [None, None]),
    ],
)
def test_a_structure_says_what_narrow_storage_spares(values, cols, spared):
    A = csr_array((values, [0, cols - 1, 1], [0, 2, 3]), shape=(2, cols))
    cells = dict(structure_table("small", structure(A)).cells())
    for name, share in zip(("values", "columns"), spared, strict=True):
        assert ("bytes" in cells[name]) == (share is not None) and (share or "") in cells[name]


def test_measurements_stand_beside_their_forecasts(measured):
    table = measured.table()
    assert column(table, "forecast") == ["3.21 ms", "-"] and column(table, "error") == ["+7 %", "-"]
    assert column(table, "converted") == ["nothing", "12.3 ms"]
    first, second = table.records()
    assert (first["forecast_s"], first["forecast_low_s"], second["forecast_s"]) == (3.21e-3, 2.5e-3, None)
    assert "energy" not in table.headings and "frequency" not in table.headings


def test_measurements_say_how_far_their_forecasts_are_off(measured):
    assert "by 7.0 %" in measured.accuracy() and "1 of 1 measured time in" in measured.accuracy()
    both = {forecast.candidate: forecast for forecast in FORECASTS}
    slower = dataclasses.replace(measured.records[1], time_s=7e-3)
    found = dataclasses.replace(measured, forecasts=both, records=[measured.records[0], slower])
    assert all(text in found.accuracy() for text in ("by 28.5 %", "of 2", "50.0 %", "1 of 2"))
    unknown = {key: dataclasses.replace(f, low_s=None, high_s=None) for key, f in both.items()}
    assert "interval" not in dataclasses.replace(found, forecasts=unknown).accuracy()
    assert dataclasses.replace(found, forecasts={}).accuracy() == ""


def test_of_many_blocks_the_terminal_shows_the_first():
    table = dataclasses.replace(PLAN, blocks=BLOCKS).table()
    assert 0 < table.most < len(table.rows) == 15


def on_device(plan):
    """The same plan on a GPU."""
    there = dataclasses.replace(plan.baseline.candidate, device="cuda", threads=1)
    blocks = [dataclasses.replace(block, candidate=there) for block in (*plan.blocks, plan.baseline)]
    return dataclasses.replace(plan, blocks=tuple(blocks[:-1]), baseline=blocks[-1])


def test_devices_side_by_side():
    far = on_device(dataclasses.replace(PLAN, time_s=1e-5, convert_s=0.02))
    here = Placement("m", "this machine", PLAN, 100, is_here=True)
    placements = ranked([here, Placement("m", "a GPU", far, 100, 0.001)])
    table = placements.table("Where")
    assert column(table, "place") == ["this machine (here)", "a GPU"]
    assert placements.planned is placements.best
    best, by_products, *_ = placements.sentences()
    count = placements.break_even_products
    assert best.startswith("Best on this machine (here)")
    assert f"up to {count - 1:,}" in by_products and f"a GPU from {count:,} on" in by_products
    assert "copying it to the device" in far.sentences("a GPU")[-1]


def test_a_device_that_is_always_the_best():
    far = on_device(dataclasses.replace(PLAN, time_s=1.0, convert_s=9.0))
    slow = dataclasses.replace(far, baseline=dataclasses.replace(far.baseline, time_s=2.0))
    placements = ranked(
        [Placement("m", "this machine", PLAN, 100), Placement("m", "a GPU", slow, 100, 0.001)]
    )
    assert placements.break_even_products == 1


def test_a_check_is_compared_with_the_plan():
    table = CHECK.table(PLAN)
    assert column(table, "against the plan") == ["1.00 x", "1.50 x", "3.00 x"]
    assert column(table, "forecast") == ["30 us", "50 us", "-"]


def test_the_fastest_record_is_compared_with_scipy_or_plain_csr_under_the_same_conditions(measured):
    csr, hyb = (
        dataclasses.replace(record, time_s=time_s, samples_s=(time_s,) * 20)
        for record, time_s in zip(measured.records, (3e-3, 2e-3), strict=True)
    )
    scipy, slow = (
        dataclasses.replace(csr, candidate=dataclasses.replace(csr.candidate, **change), time_s=time_s)
        for change, time_s in (({"format": "scipy"}, 6e-3), ({"threads": 1}, 5e-3))
    )

    def compared(*records):
        return dataclasses.replace(measured, records=records).comparison

    assert compared(csr) is None and compared(slow, hyb) is None
    assert (compared(csr, hyb).other, compared(csr, hyb).speedup.factor) == (csr, pytest.approx(1.5))
    assert (compared(csr, scipy, hyb).other, compared(csr, scipy).other) == (scipy, scipy)
    assert compared(hyb, dataclasses.replace(hyb, time_s=3e-3), scipy).other == scipy


def error_score(median, **more):
    shares = {"mean_error": 1.2 * median, "p90_error": 3 * median, "bias": -median}
    return {"forecasts": 1234, "median_error": median, **shares, **more}


MODELS = {
    "sparsecast": ModelScore(
        **error_score(0.0512, coverage=0.9, mean_width=0.2, median_noise=0.01),
        **{"quantity": "time", "regret": 0.005, "worst_ratio": 1.1234, "top1": 0.875, "unforecast": 0},
        forecast_products=3.456,
        formats={
            "ell": ErrorScore(**error_score(0.25, repeat_median=0.016)),
            "csr": ErrorScore(**error_score(0.04, mean_width=12.0)),
        },
        worst=(("a", 0.432), ("b", -0.31), ("c", 0.004)),
    ),
    "joules": ModelScore(
        **error_score(12.0),
        **{"quantity": "energy", "regret": 0.0, "worst_ratio": 25.0, "top1": 1.0, "unforecast": 1029},
    ),
}


def test_an_evaluation_shows_models_and_their_formats_in_percent():
    evaluation = Evaluation("here", (), MODELS)
    errors, choices = evaluation.table(), evaluation.choices()
    assert column(errors, "model") == ["sparsecast", "  CSR", "  ELL", "joules (energy)"]
    assert column(errors, "median") == ["5.1", "4.0", "25.0", "> 999"]
    assert column(choices, "regret") == ["0.5 %", "0.0 %"] and "large" not in choices.headings


def test_partitions_in_one_and_two_dimensions():
    A = gallery("poisson2d", n=12)
    made = [partitioned(A, 4, method) for method in ("rows", "uniform-2d")]
    table = Partitions(made, {"metis": "Why not."}).table("mesh", 8)
    rows, squares = table.records()
    assert rows["volume_bytes"] == 8 * rows["volume_words"] and rows["messages_most"] >= rows["messages_mean"]
    assert squares["received_words_most"] is None and column(table, "neighbours")[1] == "-"
    assert table.below[-1] == "metis: Why not."


def test_a_structure_in_words():
    table = structure_table("arrow", structure(gallery("arrow", n=300, dense_rows=2)))
    features = dict(table.cells())
    assert features["rows x columns"] == "300 x 300" and features["symmetric"].startswith("yes")
    assert table.title == "arrow"


def test_profiles_at_hand(recorded):
    here = recorded.machine
    assert column(Machines(here, {}).table(), "holds")[0].startswith("not calibrated yet")

    def stream(kind, device, threads, size, time_s):
        return Bandwidth(kind, device, threads, size, time_s, 0.0, "", "")

    bandwidths = (
        stream("read", "cpu", 2, 10**9, 0.1),
        stream("read", "cpu", 2, 10**6, 1e-5),
        stream("read", "cpu", 1, 10**6, 1e-3),
        stream("to device", "cuda", 1, 10**9, 0.05),
    )
    machines = Machines(here, {here.name: "records", "other": "records"}, {}, {"other": bandwidths})
    text = "cpu 1 thread read 1 GB/s, cpu 2 threads read 10 GB/s, cuda to device 20 GB/s"
    assert column(machines.table(), "holds") == ["records", "records", text]
    assert document(MACHINES["machines"], machines)["bandwidths"]["other"][0]["bandwidth_bytes_per_s"] == 1e10


def test_the_gallery_has_defaults():
    table = gallery_table(gallery_matrices())
    assert "poisson3d" in column(table, "name") and "n=100 points=7" in column(table, "parameters")
