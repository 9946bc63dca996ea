"""A meter of the processor from elsewhere (toys/watts): Records have its joules and its name."""

import json

import pytest

from sparsecast.measuring.meters import METERS

MATRIX = "gallery:poisson2d?n=30"


def test_measurements_have_its_joules(install, document):
    install("watts")
    measurements = document("measure", MATRIX, "--no-keep")["measurements"]
    assert {item["energy_source"] for item in measurements} == {"10 watts"}
    for item in measurements:
        assert item["energy_j"] > 0 and item["idle_w"] == pytest.approx(10, rel=0.01)


def test_a_meter_that_is_closed_is_passed_over_and_named(install, sparsecast, monkeypatch):
    install("watts")
    monkeypatch.setenv("WATTS_CLOSED", "1")
    (done,) = sparsecast(("measure", MATRIX, "--no-keep", "--json"))
    energies = json.loads(done.out)["measurements"]
    assert all(item["energy_source"] != "10 watts" for item in energies)
    if not any(METERS.get(name).is_present() for name in METERS.names()):
        assert "expected permission; unset WATTS_CLOSED" in done.err
