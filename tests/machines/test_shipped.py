"""The profiles that come with the package: small, with their licence, and of matrices that can be."""

import dataclasses

import numpy as np
import pyarrow.parquet
import pytest

import sparsecast as sc
from sparsecast.errors import ProfileError
from sparsecast.features.row_lengths import RowLengths
from sparsecast.machines.profile import _SHIPPED, MatrixEntry, Profile, find_profile
from sparsecast.models import published_trees, store
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet

#: Of this project, by a campaign on a GPU.
OWN = _SHIPPED / "nvidia-h100.parquet"
PUBLISHED = sorted(set(_SHIPPED.glob("*.parquet")) - {_SHIPPED / "xeon-gold-6154-edr.parquet", OWN})
STALE = "the shipped fit is of another model: run python benchmarks/run.py shipped-fits"


def test_they_are_small_and_each_says_where_it_is_from():
    assert len(PUBLISHED) == 8 and sum(path.stat().st_size for path in PUBLISHED) < 2_000_000
    for path in PUBLISHED:
        profile = Profile.load(path)
        machine = profile.machine
        assert machine.name == path.stem and machine.sheet is not None
        assert "CC BY 4.0" in machine.source and "ginkgo-data" in machine.source
        assert not any(record.impossible for record in profile.records)
        # As exact as a single precision number, and no more.
        assert all(np.float32(record.time_s) == record.time_s for record in profile.records)


def test_their_matrices_are_whole_although_five_lengths_stand_for_all():
    profile = Profile.load(_SHIPPED / "nvidia-a100.parquet")
    for entry in profile.matrices.values():
        found = entry.structure  # which is checked for contradictions
        assert found.row_lengths.entries_up_to[-1] == found.nnz
        assert found.row_lengths.changes is None  # nobody published the order of the rows
        assert entry.to_dict()["structure"]["row_lengths"]["five"][-1] == found.row_lengths.max


def test_a_packed_profile_is_the_same_and_smaller(tmp_path, recorded):
    plain, packed = recorded.save(tmp_path / "plain.parquet"), tmp_path / "packed.parquet"
    recorded.save(packed, is_packed=True)
    assert Profile.load(packed) == Profile.load(plain) == recorded
    assert packed.stat().st_size < plain.stat().st_size / 2
    metadata = pyarrow.parquet.read_metadata(packed).metadata
    data = packed.read_bytes()
    place = data.index(metadata[b"sparsecast_matrices"][:50])
    packed.write_bytes(data[: place + 20] + bytes([data[place + 20] ^ 1]) + data[place + 21 :])
    with pytest.raises(ProfileError):
        Profile.load(packed)


def test_five_lengths_that_no_rows_have_are_damage():
    stored = {"version": RowLengths.version, "rows": 10, "nnz": 50, "five": [6.0] * 5, "deviation": 0.0}
    entry = MatrixEntry("published:G/m", "G/m", {"rows": 10, "cols": 10, "nnz": 50, "row_lengths": stored})
    with pytest.raises(ProfileError):
        _ = entry.structure
    even = RowLengths.from_dict({**stored, "five": [5.0] * 5})
    assert even == dataclasses.replace(even, min=5, max=5, mode=5, empty_rows=0, mean=5.0)


@pytest.fixture
def store_alone(store_of_every_test, monkeypatch):
    """No fit of another test is read."""
    monkeypatch.setattr(store, "_read", store_of_every_test)


@pytest.mark.parametrize("path", [*PUBLISHED, OWN], ids=lambda path: path.stem)
def test_each_is_forecast_without_a_fit(path, store_alone, monkeypatch):
    monkeypatch.setattr(SparsecastModel, "fit", lambda model, training: pytest.fail(STALE))
    assert len(sc.predict(sc.gallery("poisson2d", n=9), Profile.load(path))) >= 3


def test_the_fits_are_small():
    sizes = [path.stat().st_size for path in store.SHIPPED.rglob("*.xz")]
    assert len(sizes) == len(PUBLISHED) + 2 and sum(sizes) < 3_700_000


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_gpu_of_our_own_measurements_answers_by_its_short_name(dtype, store_alone, monkeypatch):
    monkeypatch.setattr(SparsecastModel, "fit", lambda model, training: pytest.fail(STALE))
    profile = find_profile("nvidia-h100")
    assert profile.machine.published_as is None and profile.machine.gpu.name == "NVIDIA H100 80GB HBM3"
    assert not any(record.impossible for record in profile.records)
    assert {record.suite for record in profile.records}.isdisjoint({"user", "again", "tried"})
    A = sc.gallery("poisson2d", n=300)
    prediction = sc.predict(A, profile, dtype=dtype)
    assert {forecast.candidate.device for forecast in prediction} == {"cuda"}
    assert {"csr", "ell", "coo"} <= {forecast.candidate.format for forecast in prediction}
    assert {"sell", "hyb"} <= set(prediction.refused)
    best = sc.where(A, ["nvidia-h100"], dtype=dtype, prices={"nvidia-h100": 3.6}).best
    assert best.total_s > 0 and best.price_per_hour == 3.6


def test_a_shipped_fit_is_what_is_learned_today(few_trees, store_alone, monkeypatch):
    """One stands for all: the key tells that they are of the same version of the model."""
    monkeypatch.setattr(published_trees, "BOOSTING", few_trees)
    training = TrainingSet.of(Profile.load(_SHIPPED / "nvidia-a100.parquet"))
    shipped, today = store.fitted(SparsecastModel(), training), SparsecastModel().fit(training)
    asked = [(training.structure(record), [record.candidate]) for record in training.records[::7]]
    for question in asked:
        found, expected = (model.estimates(*question)[0] for model in (shipped, today))
        assert (found.low, found.value, found.high) == pytest.approx(
            (expected.low, expected.value, expected.high), rel=1e-6
        ), STALE
