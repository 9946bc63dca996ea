"""A model with a feature group of its own (toys/columns), fitted to Records from before the group."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from sparsecast.machines.profile import MatrixEntry

TOYS = Path(__file__).parent / "toys"
MOST_ENTRIES = 400_000
NOBODY_CAN_MAKE = "array?sha256=0"


@pytest.fixture
def before(recorded, tmp_path):
    """Records of small matrices, measured before there was the feature group; one matrix is gone."""
    gone = "gallery:poisson2d?n=400"
    records = [
        dataclasses.replace(record, matrix=NOBODY_CAN_MAKE) if record.matrix == gone else record
        for record in recorded.records
        if record.candidate.dtype == "float64" and (record.nnz <= MOST_ENTRIES or record.matrix == gone)
    ]
    matrices = dict(recorded.matrices)
    matrices[NOBODY_CAN_MAKE] = MatrixEntry(
        NOBODY_CAN_MAKE, NOBODY_CAN_MAKE, recorded.matrices[gone].structure
    )
    return dataclasses.replace(recorded, records=tuple(records), matrices=matrices).save(
        tmp_path / "before.parquet"
    )


def test_a_model_forecasts_by_features_that_did_not_exist(
    install, document, documents, before, data_folder, tmp_path
):
    own = install(shutil.copytree(TOYS / "columns", tmp_path / "columns"))
    asked = ("predict", "gallery:poisson2d?n=30", "--profile", before, "--model", "columns")
    evaluate = ("evaluate", "--replay", "--models", "columns,linear", "--profile", before)
    shown, found, scored = documents(("structure", "gallery:poisson2d?n=30"), asked, evaluate)
    assert shown["structure"]["column_lengths"] == {"version": 1, "used": 900, "max": 5}

    assert found["model"] == "columns"
    assert {"csr", "ell", "sell"} <= {item["format"] for item in found["forecasts"]}
    for item in found["forecasts"]:
        assert item["time_s"] == pytest.approx(sum(item["why"].values()))
    [csr] = [item for item in found["forecasts"] if item["format"] == "csr" and not item["parameters"]]
    assert 0 < csr["low_s"] < csr["high_s"]  # two of the three held-out matrices can be made again

    assert set(scored["models"]) == {"columns", "linear"}
    rows = scored["rows"]
    matrices = {name: {row["matrix"] for row in rows if row["model"] == name} for name in scored["models"]}
    assert matrices["columns"] == {"gallery:circuit?n=60000", "gallery:rmat?scale=15&degree=12"}
    assert matrices["linear"] == matrices["columns"] | {NOBODY_CAN_MAKE}
    assert 0 < scored["models"]["columns"]["median_error"] < 1

    [kept] = data_folder.glob("models/*/columns-*.json")
    fitted = json.loads(kept.read_text())
    assert document(*asked)["forecasts"] == found["forecasts"]
    assert json.loads(kept.read_text()) == fitted

    group = own / "column_lengths.py"  # other numbers, so another fit
    group.write_text(group.read_text().replace("version: ClassVar[int] = 1", "version: ClassVar[int] = 2"))
    document(*asked)
    assert json.loads(kept.read_text())["key"] != fitted["key"]


def test_its_own_benchmark_matrices_are_measured_on_request(install, document, data_folder):
    for toy in ("columns", "short_csr", "few"):
        install(toy)
    asked = ("--device", "few", "--threads", "1", "--dtype", "float64", "--budget", "60")
    measured = document("calibrate", "--suites", "columns", *asked)
    assert measured["records"] == 10  # two held out and three of the suite, in both formats
