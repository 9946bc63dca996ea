"""Energy through the command line: a meter of one's own, a power model, and what a plan makes least."""

import json

import pytest

from sparsecast.measuring import core_speed

SMALL = "gallery:poisson2d?n=30"


@pytest.fixture
def power(tmp_path):
    path = tmp_path / "power.json"
    path.write_text(json.dumps({"joules": {"idle": 10.0, "bytes beyond L2": 1e-9}}))
    return path


def test_a_power_model_gives_joules_to_forecasts_and_plans(run, ask, recorded_path, power):
    asked = ("--profile", recorded_path, "--threads", "1", "--power-model", power, "--json")
    forecasts = ask("predict", SMALL, *asked)["forecasts"]
    assert all(item["energy_j"] >= 10 * item["time_s"] and item["energy_low_j"] is None for item in forecasts)
    for objective in ("time", "energy", "edp"):
        plan = ask("plan", SMALL, *asked, "--objective", objective)["plan"]
        assert plan["objective"] == objective and plan["energy_j"] > 0
    # Where all power is idle, the least energy is the least time.
    power.write_text(json.dumps({"joules": {"idle": 10.0}}))
    plans = [
        ask("plan", SMALL, *asked, "--objective", each, "--products", "100000")["plan"]
        for each in ("time", "energy")
    ]
    assert plans[0]["blocks"][0]["format"] == plans[1]["blocks"][0]["format"]
    assert "Energy of one product" in run("plan", SMALL, *asked[:-1], "--objective", "energy").out


def test_without_frequencies_to_set_a_line_says_so(run):
    if core_speed.Frequencies().mean_hz() is not None:
        pytest.skip("this machine has frequencies, which a test leaves alone")
    done = run("measure", SMALL, "--frequencies", "1.2")
    assert done.status == 2 and "leave out --frequencies" in done.err
