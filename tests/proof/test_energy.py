"""A model of energy (toys/joules): forecasts show its joules beside the times, and it is scored."""

import json
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


def test_forecasts_have_joules_beside_the_times_and_are_scored(install, document, sparsecast, metered):
    asked = ("predict", MATRIX, "--profile", metered, "--model", "linear", "--json")
    without = document(*asked[:-1])["forecasts"]
    install("joules")
    *done, refused = sparsecast(
        asked,
        (*asked, "--energy-model", "joules"),
        ("evaluate", "--replay", "--models", "joules,linear", "--profile", metered, "--json"),
        ("predict", MATRIX, "--profile", metered, "--model", "joules"),
    )
    assert refused.status == 2 and refused.err.count("\n") == 1  # it is no model of time
    by_default, found, scored = (json.loads(outcome.out) for outcome in done)
    assert [item["energy_j"] for item in by_default["forecasts"]] == [item["energy_j"] for item in without]
    assert [item["time_s"] for item in found["forecasts"]] == [item["time_s"] for item in without]
    for item in found["forecasts"]:
        expected = START_J + A_BYTE_J * item["bytes"]
        assert item["energy_j"] == pytest.approx(expected, rel=0.05)
        assert item["energy_low_j"] < expected < item["energy_high_j"]
    score = scored["models"]["joules"]
    assert score["quantity"] == "energy" and scored["models"]["linear"]["quantity"] == "time"
    assert 0.01 < score["mean_error"] < 0.1  # the tenth more on some of the matrices
    rows = [row for row in scored["rows"] if row["model"] == "joules"]
    assert rows and all(row["predicted_j"] > 0 < row["measured_j"] for row in rows)
