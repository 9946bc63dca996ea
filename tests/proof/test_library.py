"""Another library from elsewhere (toys/counted): no file of ours knows of it."""

SMALL = "gallery:poisson2d?n=30"


def test_a_library_is_measured_forecast_planned_and_looked_for(install, documents, faster_than_csr):
    install("counted")
    faster_than_csr("counted", "bincount", 0.1)
    asked = "--library", "counted,scipy", "--threads", "1"

    planned = ("plan", SMALL, "--check", "--forecast-only", "--products", "1000000", *asked)
    measured, plan, doctor = documents(("measure", SMALL, "--no-keep", *asked), planned, ("doctor",))
    own = next(item for item in measured["measurements"] if item["format"] == "counted")
    assert own["kernel"] == "bincount" and own["error"] < 1e-15
    assert own["forecast_s"] > 0

    assert [block["format"] for block in plan["plan"]["blocks"]] == ["counted"]
    assert plan["plan"]["check"]["error"] < 1e-15

    found = {item["what"]: item for item in doctor["findings"]}
    assert found["library counted"]["state"] == "NumPy's bincount 1.5"
