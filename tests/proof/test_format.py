"""A storage format with its kernel from elsewhere (toys/short_csr): no file of ours knows of it."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFORMANCE = Path(__file__).parents[1] / "conformance"
SMALL, WIDE = "gallery:poisson2d?n=30", "gallery:random?n=70000&nnz_per_row=2"


def formats(items):
    """By format, in its full storage: CSR has a second way in narrow storage."""
    return {item["format"]: item for item in items if not item["parameters"]}


def test_a_format_is_calibrated_forecast_and_measured(install, documents):
    install("short_csr"), install("few")
    asked = ("--device", "few", "--threads", "1")
    before, met, found, wide = documents(
        ("measure", SMALL, "--no-keep", *asked),
        ("calibrate", "--budget", "29", "--dtype", "float64", *asked),
        ("predict", SMALL, "--no-drift-correction", *asked),
        ("predict", WIDE, *asked),
    )
    measured, forecast = formats(before["measurements"]), formats(found["forecasts"])
    assert measured["short_csr"]["error"] < 1e-15 and measured["short_csr"]["forecast_s"] is None
    assert met["records"] == 40  # 18 matrices and 2 held out, in both formats
    assert set(forecast) == {"csr", "short_csr"}
    low_s, high_s = forecast["short_csr"]["low_s"], forecast["short_csr"]["high_s"]
    assert 0 < low_s < forecast["short_csr"]["time_s"] < high_s
    entries, rows = 4380, 900
    assert forecast["short_csr"]["bytes"] == 10 * entries + 4 * (rows + 1) + 16 * rows
    assert forecast["csr"]["bytes"] - forecast["short_csr"]["bytes"] == 2 * entries

    assert wide["refused"]["short_csr"].startswith("SHORT_CSR of 70,000 columns: expected at most 65,536")


def test_it_is_planned_where_it_is_fast_and_forecast_from_a_suite_that_only_it_has(
    install, documents, faster_than_csr, tmp_path
):
    install("short_csr")
    path = faster_than_csr("short_csr", "rows", 0.5, suite="short rows").rename(tmp_path / "suite.parquet")
    faster_than_csr("short_csr", "rows", 0.5)
    asked = ("plan", SMALL, "--check", "--threads", "1", "--products", "1000000", "--model", "linear")
    planned, predicted = documents(  # products here are not tried
        (*asked, "--no-drift-correction"), ("predict", SMALL, "--threads", "1", "--profile", path)
    )
    plan, forecast = planned["plan"], formats(predicted["forecasts"])
    assert [block["format"] for block in plan["blocks"]] == ["short_csr"]
    assert plan["check"]["error"] < 1e-15
    assert forecast["short_csr"]["time_s"] == pytest.approx(forecast["csr"]["time_s"] / 2, rel=0.2)
    why = forecast["short_csr"]["why"]
    assert {"start", "rows", "entries", "mispredicted", "lines of x"} <= set(why)
    assert sum(why.values()) == pytest.approx(forecast["short_csr"]["time_s"])


def test_the_tests_of_every_kernel_take_it_up(install):
    install("short_csr")
    line = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-k",
        "short_csr and float64",
        str(CONFORMANCE / "test_kernels.py"),
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout and "failed" not in done.stdout
