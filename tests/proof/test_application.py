"""An application (toys/jacobi): `cost` finds it, forecasts it loop by loop, and runs it."""

import json

import pytest

from sparsecast.records import Bandwidth

MATRIX = "gallery:poisson2d?n=12"


@pytest.fixture
def streaming(recorded, tmp_path):
    """The recorded profile with speeds of reads: 10 GB/s."""
    sizes = (1 << 14, 1 << 20, 1 << 26)
    reads = [Bandwidth("read", "cpu", 1, size, size / 1e10, 0.0, "", "") for size in sizes]
    return recorded.with_bandwidths(reads).save(tmp_path / "streaming.parquet")


def test_it_is_found_forecast_and_run_and_foreign_settings_and_wrong_matrices_are_refused(
    install, sparsecast, streaming, tmp_path
):
    install("jacobi")
    (tmp_path / "zero.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.0\n")
    cost, rest = ("cost", "jacobi"), ("--profile", streaming, "--threads", "1", "--model", "linear", "--json")
    found = sparsecast(
        (*cost, MATRIX, *rest),
        (*cost, MATRIX, *rest, "--check"),
        (*cost, MATRIX, *rest, "--damping", "0.5"),
        (*cost, tmp_path / "zero.mtx", *rest),
    )
    for outcome in found[2:]:
        assert outcome.status == 2 and len(outcome.err.splitlines()) == 1, outcome
    forecast, checked = (json.loads(outcome.out) for outcome in found[:2])
    assert {loop["name"] for loop in forecast["loops"]} == {"SpMV", "update"}
    iterations = forecast["iterations"]["expected"]
    assert iterations > 20 and forecast["measured"] is None
    measured = checked["measured"]
    assert measured["stop"] == "converged" and measured["residual"] < 1e-6
    assert {loop["name"] for loop in measured["loops"]} == {"SpMV", "update"}
