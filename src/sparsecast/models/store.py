"""Store of fitted models: JSON files in the data folder, used until something they depend on changes."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from sparsecast.errors import StorageError
from sparsecast.features import FEATURES
from sparsecast.machines.storage import home, write_atomically
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.version import VERSION


def fitted(model: Model, training: TrainingSet) -> Model:
    """Return `model` fitted to `training`: read from the user's data folder if it was fitted before.

    A stored model counts only for the same Records, hyper-parameters and versions (of the model, of its
    feature groups, of Sparsecast). Each model has one file for each machine and kind of Records.

    Raises
    ------
    ProfileError, DeviceError
        As `Model.fit`.
    """
    training = model.used(training)
    key, path = _key(model, training), _path(model, training)
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["key"] == key:
            return model.restored(stored["state"], training.machine)
    except (OSError, AttributeError, KeyError, TypeError, ValueError):
        pass  # it is missing or damaged: a new fit replaces it below
    model.fit(training)
    stored = {"key": key, "model": model.name, "settings": model.settings(), "state": model.to_state()}
    with suppress(StorageError):  # a forecast does not need a folder that can be written
        write_atomically(path, lambda temporary: temporary.write_text(json.dumps(stored), encoding="utf-8"))
    return model


def _key(model: Model, training: TrainingSet) -> str:
    groups = [(name, FEATURES.get(name).version) for name in model.groups]
    settings = sorted(model.settings().items())
    parts = (model.name, model.version, VERSION, groups, settings, training.fingerprint)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _path(model: Model, training: TrainingSet) -> Path:
    first = training.records[0].candidate if training.records else None
    kind = f"{first.device}-{first.dtype}-{first.threads}t" if first else "empty"
    without = f"-without-{'+'.join(training.withheld)}".replace(" ", "_") if training.withheld else ""
    return home() / "models" / training.machine.name / f"{model.name}-{kind}{without}.json"
