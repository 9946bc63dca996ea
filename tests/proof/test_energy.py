"""A model of energy (toys/joules): forecasts show its joules beside the times, and it is scored."""

from __future__ import annotations

from dataclasses import replace

import pytest

MATRIX = "gallery:poisson2d?n=30"
START_J, A_BYTE_J = 1e-6, 2e-10


@pytest.fixture
def metered(recorded, tmp_path):
    """The recorded profile as if a meter had counted: joules a byte, more on a held-out matrix."""
    joules = [
        replace(
            record,
            energy_j=(START_J + A_BYTE_J * record.traffic_bytes)
            * (1.1 if "poisson" in record.matrix else 1.0),
            energy_source="rapl",
        )
        for name in ("csr", "sell")
        for record in recorded.select(format=name, dtype="float64")
    ]
    return replace(recorded, records=tuple(joules)).save(tmp_path / "metered.parquet")


def test_a_forecast_has_the_joules_and_their_interval(install, document, documents, metered):
    asked = ("predict", MATRIX, "--profile", metered, "--model", "linear")
    without = document(*asked)["forecasts"]
    install("joules")
    both = documents(asked, (*asked, "--energy-model", "joules"))
    by_default, found = (each["forecasts"] for each in both)
    assert [item["energy_j"] for item in by_default] == [item["energy_j"] for item in without]
    assert [item["time_s"] for item in found] == [item["time_s"] for item in without]
    for item in found:
        expected = START_J + A_BYTE_J * item["bytes"]
        assert item["energy_j"] == pytest.approx(expected, rel=0.05)
        assert item["energy_low_j"] < expected < item["energy_high_j"]


def test_it_is_scored_on_stored_records(install, document, metered):
    install("joules")
    found = document("evaluate", "--replay", "--models", "joules,linear", "--profile", metered)
    score = found["models"]["joules"]
    assert score["quantity"] == "energy" and found["models"]["linear"]["quantity"] == "time"
    assert 0.01 < score["mean_error"] < 0.1  # the tenth more on some of the matrices
    rows = [row for row in found["rows"] if row["model"] == "joules"]
    assert rows and all(row["predicted_j"] > 0 < row["measured_j"] for row in rows)


def test_it_is_no_model_of_time(install, sparsecast, metered):
    install("joules")
    done = sparsecast("predict", MATRIX, "--profile", metered, "--model", "joules")
    assert done.returncode == 2 and "expected a model of time" in done.stderr
