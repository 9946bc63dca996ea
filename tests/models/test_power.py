"""The model of energy: on Records whose joules follow a law, and power models of someone's own."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import MatrixEntry
from sparsecast.models.power import LEAST_RECORDS, PowerFile, PowerModel
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Parameters

IDLE_W, AN_ENTRY_J = 20.0, 3e-9


@pytest.fixture(scope="module")
def metered(recorded):
    """Times as measured, and joules of idle power and of each entry, of two formats."""
    records = [
        r for name in ("csr", "sell") for r in recorded.select(format=name, dtype="float64", threads=1)
    ]
    return TrainingSet.of(
        recorded,
        [replace(r, energy_j=IDLE_W * r.time_s + AN_ENTRY_J * r.nnz, energy_source="rapl") for r in records],
    )


@pytest.fixture(scope="module")
def model(metered):
    return PowerModel().fit(metered)


def test_it_finds_idle_power_and_the_joules_of_work(model, metered):
    assert model.joules_["idle"] == pytest.approx(IDLE_W, rel=0.1)
    errors = []
    for record in metered.records:
        blocks = RowBlocks.of(metered.structure(record))
        watts = model.watts(record.candidate, blocks, np.array([record.time_s]))["watts"][0]
        errors.append(abs(watts / (record.energy_j / record.time_s) - 1))
    assert np.median(errors) < 0.03


def test_joules_are_power_times_the_forecast_time_and_have_an_interval(model, metered):
    time = SparsecastModel().fit(metered)
    record = max(metered.records, key=lambda each: each.nnz)
    structure = metered.structure(record)
    [found] = model.estimates(structure, [record.candidate])
    expected_s = float(time.values(record.candidate, RowBlocks.of(structure))[0])
    assert found.value == pytest.approx(IDLE_W * expected_s + AN_ENTRY_J * record.nnz, rel=0.1)
    # Joules are not known better than the time.
    low_s, high_s = time.interval(record.candidate, expected_s, structure)
    assert found.low / found.value <= low_s / expected_s < high_s / expected_s <= found.high / found.value
    assert sum(value for _, value in found.why) == pytest.approx(found.value)


def test_an_entry_in_narrow_storage_takes_the_joules_of_one_in_full(model, metered):
    record = max((r for r in metered.records if r.candidate.format == "csr"), key=lambda each: each.nnz)
    blocks = RowBlocks.of(metered.structure(record))
    narrow = replace(record.candidate, parameters=Parameters({"values": "float32", "columns": 16}))
    own, full = (model.terms(each, blocks)["entries"] for each in (narrow, record.candidate))
    assert own == pytest.approx(full) and full > 0
    given = PowerFile({"idle": 0.0, "entries": AN_ENTRY_J}).model(model.time_)
    assert given.values(narrow, blocks) == pytest.approx(AN_ENTRY_J * record.nnz)


def test_trees_see_how_fast_a_product_is(recorded):
    """Of the same matrices, those that the cores wait for take less power; no count tells them apart."""
    whole = [r for r in recorded.select(dtype="float64", threads=1) if r.candidate.format in ("csr", "coo")]
    fast = [replace(r, energy_j=100.0 * r.time_s) for r in whole]
    slow = [
        replace(r, matrix=f"{r.matrix} slow", time_s=9 * r.time_s, energy_j=50.0 * 9 * r.time_s)
        for r in whole
    ]
    of = zip(slow, whole, strict=True)
    entries = [MatrixEntry(new.matrix, new.matrix, recorded.structure(old)) for new, old in of]
    profile = recorded.with_records(slow, entries)
    model = PowerModel().fit(TrainingSet.of(profile, [*fast, *slow]))
    assert model.forest_ is not None
    for record, watts in ((fast[3], 100.0), (slow[3], 50.0)):
        blocks, time_s = RowBlocks.of(profile.structure(record)), np.array([record.time_s])
        assert model.watts(record.candidate, blocks, time_s)["watts"][0] == pytest.approx(watts, rel=0.05)


def test_what_was_not_metered_has_no_forecast(model, recorded):
    coo = recorded.select(format="coo", dtype="float64")[0]
    assert not model.serves(coo.candidate)
    assert model.estimates(recorded.structure(coo), [coo.candidate]) == []


def test_a_kernel_whose_time_is_not_forecast_is_not_served():
    model = PowerModel()
    model.labels_ = ("csr merge", "csr scalar")
    model.time_ = SimpleNamespace(formats=lambda: ["csr"], kernels=lambda name: ("scalar",))
    assert model.kernels("csr") == ("scalar",)


def test_without_joules_it_is_refused_before_anything_is_fitted(metered, monkeypatch):
    monkeypatch.setattr(SparsecastModel, "fit", lambda *_: pytest.fail("fitted"))
    few = [replace(r, energy_j=None) if k >= LEAST_RECORDS - 1 else r for k, r in enumerate(metered.records)]
    with pytest.raises(ProfileError):
        PowerModel().fit(replace(metered, records=tuple(few)))


def test_a_power_model_of_ones_own_counts_seconds_and_work(metered, tmp_path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"joules": {"idle": IDLE_W, "entries": AN_ENTRY_J}}))
    time = SparsecastModel().fit(metered)
    energy = PowerFile.read(path).model(time)
    record = next(r for r in metered.records if r.candidate.format == "csr" and r.nnz > 1e5)
    structure = metered.structure(record)
    [found] = energy.estimates(structure, [record.candidate])
    expected_s = float(time.values(record.candidate, RowBlocks.of(structure))[0])
    assert found.value == pytest.approx(IDLE_W * expected_s + AN_ENTRY_J * record.nnz, rel=1e-6)
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        *(
            "",
            "[]",
            '{"joules": {"\udce9": 1}}',
            '{"watts": 3}',
            '{"joules": {"idle": "much"}}',
            '{"joules": {"moonlight": 1}}',
        ),
        *(f'{{"joules": {{"idle": {wrong}}}}}' for wrong in ("-1", "NaN", "0")),
    ],
)
def test_a_file_that_is_no_power_model_is_refused(tmp_path, content):
    path = tmp_path / "own.json"
    path.write_text(content, errors="surrogateescape")  # one has a byte that is no UTF-8
    with pytest.raises(ProfileError):
        PowerFile.read(path)
    with pytest.raises(ProfileError):
        PowerFile.read(tmp_path / "absent.json")
