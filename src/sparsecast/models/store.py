"""Store of fitted models: JSON files in the data folder, used until something they depend on changes.

Fits of shipped machines come with the package: the same files, compressed.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sparsecast.errors import StorageError
from sparsecast.features import FEATURES
from sparsecast.machines.storage import home, write_atomically
from sparsecast.models.model import Model, from_plain, to_plain
from sparsecast.models.probing import Correction
from sparsecast.models.training import TrainingSet
from sparsecast.system.version import VERSION

AnyModel = TypeVar("AnyModel", bound=Model)


def fitted(model: AnyModel, training: TrainingSet) -> AnyModel:
    """Return `model` fitted to `training`: read from the package or the user's data folder, if it is there.

    A stored model counts only for the same Records, hyper-parameters and versions (of the model, of its
    feature groups, of Sparsecast). Each model has one file for each machine and kind of Records.

    Errors are those of `Model.fit`.
    """
    training = model.used(training)
    key, path = _place(model, training)
    for stored in (SHIPPED / path.parent.name / f"{path.name}.xz", path):
        with _unreadable:
            return model.restored(_read(stored, key))
    model.fit(training)
    _write(path, key, model, model.to_state())
    return model


def probe_correction(model: Model, training: TrainingSet) -> Correction:
    """Return what a probe corrects the forecasts of `model` by: read from the data folder, as in `fitted`.

    A ProfileError says that the Records do not suffice.
    """
    training = model.used(training)
    key, path = _place(model, training, "-probe")
    with _unreadable:
        correction: Correction = from_plain(_read(path, key), Correction)
        return correction
    correction = Correction.learned(model, training)
    _write(path, key, model, to_plain(correction))
    return correction


#: Where the package has fits; `python benchmarks/run.py shipped-fits` writes them.
SHIPPED = Path(__file__).parent / "fits"

#: What is stored is missing, damaged, or of something else: it is learned anew, and replaced.
_unreadable = suppress(OSError, KeyError, TypeError, ValueError)


def _read(path: Path, key: str) -> Any:
    data = path.read_bytes()
    if path.suffix == ".xz":
        try:
            import lzma
        except ImportError as error:
            raise ValueError("this build of Python has no lzma") from error
        try:
            data = lzma.decompress(data)
        except lzma.LZMAError as error:
            raise ValueError("damaged") from error
    stored = json.loads(data)
    if stored["key"] != key:
        raise ValueError("stored for something else")
    return stored["state"]


def _write(path: Path, key: str, model: Model, state: Any) -> None:
    stored = {"key": key, "model": model.name, "settings": model.settings(), "state": state}
    with suppress(StorageError):  # a forecast does not need a folder that can be written
        write_atomically(path, lambda temporary: temporary.write_text(json.dumps(stored), encoding="utf-8"))


def _place(model: Model, training: TrainingSet, what: str = "") -> tuple[str, Path]:
    """Return the key and the file of what is learned from a training set."""
    groups = [(name, FEATURES.get(name).version) for name in model.groups]
    settings = sorted(model.settings().items())
    parts = (model.name, model.version, VERSION, groups, settings, training.fingerprint)
    first = training.records[0].candidate if training.records else None
    kind = f"{first.device}-{first.dtype}-{first.threads}t" if first else "empty"
    without = f"-without-{'+'.join(training.withheld)}".replace(" ", "_") if training.withheld else ""
    path = home() / "models" / training.machine.name / f"{model.name}-{kind}{without}{what}.json"
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32], path
