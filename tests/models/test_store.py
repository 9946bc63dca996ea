"""Fitted models on disk: used again while what they depend on stays, and fitted anew after that."""

import dataclasses
import json
import lzma

import pytest

from sparsecast.features import usual_groups
from sparsecast.features.analysis import structure
from sparsecast.machines.storage import home
from sparsecast.matrices.gallery import gallery
from sparsecast.models import MODELS, store
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet


@pytest.fixture(autouse=True)
def store_of_this_test(store_of_every_test, monkeypatch):
    monkeypatch.setattr(store, "_read", store_of_every_test)


@pytest.fixture(scope="module", params=MODELS.names())
def model_class(request):
    return MODELS.get(request.param)


@pytest.fixture(scope="module")
def learned():
    """What was learned so far, by model and training set."""
    return {}


@pytest.fixture
def fits(model_class, learned, monkeypatch):
    """The number of fits so far, as the length of a list; each set is learned once for all tests."""
    calls, fit = [], model_class.fit

    def counted(self, training):
        calls.append(1)
        key = self.name, training.fingerprint
        if key in learned:
            return self.restored(learned[key])
        learned[key] = fit(self, training).to_state()
        return self

    monkeypatch.setattr(model_class, "fit", counted)
    return calls


@pytest.fixture
def training(model_class, profile_of):
    profile = profile_of(model_class)
    return TrainingSet.of(profile, profile.select(dtype="float64"))


#: What stands beside the state, and the file's name, are read before any model is asked: one stands for all.
one_for_all = pytest.mark.parametrize("model_class", ["linear"], indirect=True)


def stored_file():
    (path,) = (home() / "models").rglob("*.json")
    return path


def test_a_model_is_stored_and_used_again_without_fitting(model_class, training, fits):
    first = fitted(model_class(), training)
    again = fitted(model_class(), training)
    assert len(fits) == 1
    assert again is not first and again.to_state() == first.to_state()
    found = structure(gallery("rmat", scale=9), groups=[*usual_groups(), "entry_blocks"])
    candidates = {record.candidate for record in training.records}
    assert again.forecast(found, candidates) == first.forecast(found, candidates)
    assert again.machine_ == training.machine
    stored = json.loads(stored_file().read_text())
    assert stored["model"] == first.name and stored["settings"] == first.settings()
    assert stored["state"] == json.loads(json.dumps(first.to_state()))


def test_changed_records_are_fitted_anew_and_take_the_place(model_class, training, fits):
    fitted(model_class(), training)
    learned = model_class.used(training).records[0]
    slower = dataclasses.replace(learned, time_s=2 * learned.time_s)
    records = [slower if record is learned else record for record in training.records]
    changed = dataclasses.replace(training, records=tuple(records))
    fitted(model_class(), changed)
    assert len(fits) == 2 and stored_file()
    fitted(model_class(), changed)
    assert len(fits) == 2


@one_for_all
def test_a_new_version_of_a_kernel_is_fitted_anew(model_class, training, fits):
    fitted(model_class(), training)
    newer = [dataclasses.replace(r, kernel_version=r.kernel_version + 1) for r in training.records]
    fitted(model_class(), dataclasses.replace(training, records=tuple(newer)))
    assert len(fits) == 2


@one_for_all
def test_another_version_of_the_model_or_of_sparsecast_is_fitted_anew(
    model_class, training, fits, monkeypatch
):
    fitted(model_class(), training)
    monkeypatch.setattr(model_class, "version", model_class.version + 1)
    fitted(model_class(), training)
    assert len(fits) == 2
    monkeypatch.setattr(store, "VERSION", "another")
    fitted(model_class(), training)
    assert len(fits) == 3


@one_for_all
def test_other_settings_are_fitted_anew(model_class, training, fits, monkeypatch):
    fitted(model_class(), training)
    monkeypatch.setattr(model_class, "settings", lambda self: {"strength": 2})
    fitted(model_class(), training)
    fitted(model_class(), training)
    assert len(fits) == 2


@one_for_all
def test_types_of_values_are_stored_beside_each_other(model_class, profile_of, fits):
    profile = profile_of(model_class)
    for _ in range(2):
        for dtype in ("float64", "float32"):
            fitted(model_class(), TrainingSet.of(profile, profile.select(dtype=dtype)))
    assert len(fits) == 2


@one_for_all
@pytest.mark.parametrize("damage", ["", "{", "null", "[]", "{}", '{"key": 1}', "half"])
def test_a_damaged_file_is_fitted_anew_and_replaced(model_class, training, fits, damage):
    whole = fitted(model_class(), training).to_state()
    path = stored_file()
    text = path.read_text()
    path.write_text(text[: len(text) // 2] if damage == "half" else damage)
    assert fitted(model_class(), training).to_state() == whole
    assert len(fits) == 2 and path.read_text() == text


def test_a_file_with_another_state_is_fitted_anew(model_class, training, fits):
    fitted(model_class(), training)
    for count, state in enumerate((None, [], {}, {"device": "cpu"}), 2):
        path = stored_file()
        path.write_text(json.dumps({**json.loads(path.read_text()), "state": state}))
        fitted(model_class(), training)
        assert len(fits) == count, state


@pytest.fixture
def shipped(model_class, training, tmp_path, monkeypatch):
    """The file of a fit that is shipped and not in the user's folder."""
    fitted(model_class(), training)
    own = stored_file()
    path = tmp_path / "fits" / own.parent.name / f"{own.name}.xz"
    path.parent.mkdir(parents=True)
    path.write_bytes(lzma.compress(own.read_bytes()))
    own.unlink()
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "fits")
    return path


@one_for_all
def test_a_shipped_fit_is_used_and_not_copied(model_class, training, fits, shipped):
    assert fitted(model_class(), training).formats()
    assert len(fits) == 1 and not list(home().rglob("*.json"))


@one_for_all
@pytest.mark.parametrize("named", ["xz of another key", "no JSON", "cut"])
def test_a_shipped_fit_of_something_else_is_fitted_anew_once(model_class, training, fits, shipped, named):
    text = lzma.decompress(shipped.read_bytes())
    other = b"{" if named == "no JSON" else text.replace(b'"key": "', b'"key": "0')
    packed = lzma.compress(other)
    shipped.write_bytes(packed[:-20] if named == "cut" else packed)
    for _ in range(2):
        assert fitted(model_class(), training).formats()
    assert len(fits) == 2 and stored_file().read_bytes() == text


@one_for_all
def test_a_folder_that_cannot_be_written_does_not_matter(model_class, training, fits, data_folder):
    data_folder.mkdir()
    (data_folder / "models").write_text("not a folder")
    for _ in range(2):
        assert fitted(model_class(), training).formats()
    assert len(fits) == 2
