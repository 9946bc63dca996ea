"""Tables and sentences of results, on fixed data: which columns there are, and what they come to."""

import dataclasses

import pytest

from sparsecast.api.partitioning import partitioned
from sparsecast.matrices.gallery import gallery
from sparsecast.records import Bandwidth, Candidate, Forecast
from sparsecast.results.evaluation import ErrorScore, Evaluation, ModelScore
from sparsecast.results.machines import DOCUMENTS as MACHINES
from sparsecast.results.machines import Machines
from sparsecast.results.measurement import Measurements
from sparsecast.results.partitions import Partitions
from sparsecast.results.plan import Plan, PlannedBlock
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


def test_measurements_stand_beside_their_forecasts(measured):
    table = measured.table()
    assert column(table, "forecast") == ["3.21 ms", "-"] and column(table, "error") == ["+7 %", "-"]
    assert column(table, "converted") == ["nothing", "12.3 ms"]
    first, second = table.records()
    assert (first["forecast_s"], first["forecast_low_s"], second["forecast_s"]) == (3.21e-3, 2.5e-3, None)
    assert "energy" not in table.headings and "frequency" not in table.headings


def test_of_many_blocks_the_terminal_shows_the_first():
    table = dataclasses.replace(PLAN, blocks=BLOCKS).table()
    assert 0 < table.most < len(table.rows) == 15


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
