"""The interface of models: Forecasters that learn from a training set, and are kept.

What a fit learned is stored as plain data. msgspec reads annotations of dataclasses and containers; arrays
and models inside of models are added to it.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, get_origin, get_type_hints

import msgspec
import numpy as np

from sparsecast.errors import DeviceError, ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats.narrowing import NARROW_PARAMETERS
from sparsecast.models.fitting import INTERVAL_FOLDS, UNTRIED_FACTOR, Interval, prediction_interval
from sparsecast.models.forecaster import QUANTITIES, ConversionCost, Forecaster, has_predicted_size
from sparsecast.models.training import TrainingSet
from sparsecast.records import PUBLISHED_SUITE, Candidate, Record

#: Suite that no model is fitted to: it tells the size of the errors.
HELD_OUT_SUITE = "gallery"

#: Suites of matrices as users have them, which models are scored on.
SCORED_SUITES = (HELD_OUT_SUITE, "user")


class AsPrinted:
    """A model with a second way: as its paper prints it, where ours differs; a replay scores both."""

    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"as_printed": True})

    def __init__(self, as_printed: bool = False) -> None:
        self.as_printed = as_printed


class Model(Forecaster):
    """A Forecaster that learns from Records, in the steps of scikit-learn, and is kept.

    Hyper-parameters stand in ``__init__``, under the names of the attributes. What a fit learns and a file
    keeps is declared in the class, under names that end in ``_``, with types that `state.to_plain` takes.

    Attributes
    ----------
    name, quantity : str
        As it is registered, and what it forecasts: a name of QUANTITIES.
    devices : tuple of str or None
        Those that it can forecast; None is all.
    groups : tuple of str
        Feature groups without which it can neither learn nor forecast.
    covers : tuple of str or None
        Formats that its paper models; None is all.
    optional_groups : tuple of str
        Feature groups that it uses where they are known.
    suite : str or None
        What `calibrate --suites` calls the benchmark matrices of its paper; None where a usual calibration
        measures all that it needs.
    compared : tuple of mappings
        Hyper-parameters that a replay scores it with.
    takes_several : bool
        Whether it learns from products of several vectors, too, and forecasts them.
    version : int
        Raised whenever the same training set would give another model; stored models are then fitted again.
    machine_, device_ : Machine, str
        That the training set is from.
    ratios_ : dict of str to (float, float)
        For each label, the ends of the interval of measured over forecast, from the held-out Records.
    several_ : dict of str to float
        By format, how many times longer products of several vectors take than their work says.
    conversion_ : ConversionCost
    """

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...] | None] = None
    groups: ClassVar[tuple[str, ...]] = ("row_lengths",)
    optional_groups: ClassVar[tuple[str, ...]] = ()
    covers: ClassVar[tuple[str, ...] | None] = None
    suite: ClassVar[str | None] = None
    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    takes_several: ClassVar[bool] = False
    version: ClassVar[int] = 1
    ratios_: dict[str, tuple[float, float]]
    several_: dict[str, float]

    def fit(self, training: TrainingSet) -> Self:
        """Learn from the Records of one device, dtype and number of threads that have warm caches.

        Raises
        ------
        ProfileError
            If they suffice for no format, or are of a device that the model does not forecast.
        DeviceError
            If they are not of the device that the machine describes.
        """
        warm = self.used(training)
        used = warm.completed(self.optional_groups).having(self.groups)
        self.machine_, described = training.machine, training.machine.device
        self.device_ = training.records[0].candidate.device if training.records else described
        if self.device_ != described:
            raise DeviceError(
                f"records of device '{self.device_}': expected those of {described}, which the machine is "
                f"described as; name the profile of such a machine"
            )
        if self.devices is not None and self.device_ not in self.devices:
            raise ProfileError(
                f"the {self.name} model does not forecast {self.device_}: expected one of "
                f"{', '.join(self.devices)}; choose another model"
            )
        self.several_ = {}
        self._fit(used.where(lambda record: self.learns_from(record.suite)))
        self._establish()
        if not self.formats():
            raise self.insufficient(used)
        self.conversion_ = ConversionCost.fitted(warm)
        self.ratios_ = {
            label: prediction_interval(ratios)
            for label, ratios in self._ratios(used).items()
            if len(ratios) > 1
        }
        return self

    @classmethod
    def used(cls, training: TrainingSet) -> TrainingSet:
        """Return the part of a training set that such a model can learn from."""

        def is_used(record: Record) -> bool:
            is_of_suite = record.suite == HELD_OUT_SUITE or cls.learns_from(record.suite)
            is_warm = record.regime == "warm" and has_predicted_size(record.candidate)
            is_known = cls.takes_several or record.candidate.vectors == 1
            return is_of_suite and is_warm and is_known and cls.measured(record) is not None

        return training.where(is_used).at_full_speed()

    @classmethod
    def measured(cls, record: Record) -> float | None:
        """Return what a Record says of the quantity."""
        value: float | None = getattr(record, QUANTITIES[cls.quantity])
        return value

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite."""
        return suite != HELD_OUT_SUITE

    def learns_of(self, record: Record) -> bool:
        """Tell whether it is fitted to a Record of a suite that it learns from: to all."""
        return True

    def needed(self) -> str:
        """Return in words what the Records lack, and after a semicolon the remedy: of a fit that failed."""
        return "a calibration that ran to its end; calibrate with a larger budget"

    def insufficient(self, training: TrainingSet) -> ProfileError:
        return ProfileError(
            f"the profile's {len(training.records)} records do not suffice for the {self.name} model: "
            f"expected {self.needed()}"
        )

    def serves(self, candidate: Candidate) -> bool:
        """As a Forecaster; models of papers know neither narrow storage nor several vectors.

        Of several vectors, formats are served that such products were measured of; all where none were.
        """
        is_narrow = not NARROW_PARAMETERS.isdisjoint(candidate.parameters)
        if candidate.vectors > 1:
            known = (self.several_ or self.formats()) if self.takes_several else ()
            if candidate.format not in known:
                return False
        return super().serves(candidate) and (self.covers is None or not is_narrow)

    def several_factor(self, candidate: Candidate) -> float:
        """Return how many times longer a product takes than its work says: 1 of one vector."""
        return self.several_.get(candidate.format, 1.0) if candidate.vectors > 1 else 1.0

    def lacking(self, format_name: str) -> str:
        """Return in words why it does not forecast a format, and after a semicolon the remedy."""
        if self.covers is not None and format_name not in self.covers:
            return f"the {self.name} model covers {', '.join(self.covers)}; choose another model"
        return f"the {self.name} model expected {self.needed()}"

    @property
    def title(self) -> str:
        """Name, and the hyper-parameters that are not the usual ones."""
        usual = inspect.signature(type(self)).parameters
        words = [
            name.replace("_", " ") if value is True else f"{name}={value}"
            for name, value in self.settings().items()
            if value != usual[name].default
        ]
        return f"{self.name} ({', '.join(words)})" if words else self.name

    @abstractmethod
    def _fit(self, training: TrainingSet) -> None:
        """Learn what `terms` needs, of each format whose Records suffice."""

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        """Return the low and high end of a forecast for `matrix`, or for a block of its rows.

        None where too few Records were held out.
        """
        label, factor = self.label(candidate), 1.0
        if label not in self.ratios_ and candidate.vectors > 1:
            label, factor = self.label(replace(candidate, vectors=1)), UNTRIED_FACTOR
        if label not in self.ratios_:
            return None, None
        low, high = self.ratios_[label]
        return value * low / factor, value * high * factor

    def label(self, candidate: Candidate) -> str:
        """Return the name of a fit: a format, and after spaces its kernel and whether vectors are several."""
        name = candidate.format
        label = f"{name} {candidate.kernel}" if self.kernels(name) else name
        return f"{label}, several vectors" if candidate.vectors > 1 else label

    def _ratios(self, used: TrainingSet) -> dict[str, list[float]]:
        """Return measured over forecast for each label, on matrices that the model has not seen.

        Published results have no matrices that are held out of every fit. There the groups are left out in
        turn, INTERVAL_FOLDS parts of them.
        """
        published = used.where(lambda record: record.suite == PUBLISHED_SUITE)
        fits = [(self, used.where(lambda record: record.suite == HELD_OUT_SUITE))]
        if published.records:
            parts = published.parts_left_out(INTERVAL_FOLDS)
            fits = [(self._fitted_alike(rest), left_out) for rest, left_out in parts]
        ratios: dict[str, list[float]] = {}
        for fit, left_out in fits:
            for record in left_out.records:
                if fit.serves(record.candidate):
                    blocks = RowBlocks.of(left_out.structure(record))
                    expected = float(fit.values(record.candidate, blocks)[0])
                    measured = getattr(record, QUANTITIES[self.quantity])  # known of all that is used
                    ratios.setdefault(fit.label(record.candidate), []).append(measured / expected)
        return ratios

    def _fitted_alike(self, training: TrainingSet) -> Self:
        """Return a model of the same settings, machine and device that learned from other Records."""
        other = type(self)(**self.settings())
        other.machine_, other.device_ = self.machine_, self.device_
        other._fit(training)
        other._establish()
        return other

    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @classmethod
    def _learned_types(cls) -> dict[str, Any]:
        """Return the types of what is stored: the attributes whose declared name ends in ``_``."""
        return {name: kind for name, kind in get_type_hints(cls).items() if name.endswith("_")}

    def to_state(self) -> dict[str, Any]:
        """Return what was learned as plain data: what JSON can hold."""
        return {name: to_plain(getattr(self, name)) for name in self._learned_types()}

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Take over what a model with the same hyper-parameters learned, and return self.

        A KeyError or ValueError says that `state` is nothing that `to_state` gave.
        """
        for name, kind in self._learned_types().items():
            setattr(self, name, from_plain(state[name], kind))
        self._establish()
        return self

    def _establish(self) -> None:
        """Find what follows from what is stored: of models that need more than that."""


def to_plain(learned: object) -> Any:
    """Return dataclasses, arrays and containers of these as what JSON can hold."""
    return msgspec.to_builtins(learned, enc_hook=_encoded, str_keys=True)


def from_plain(plain: object, kind: Any) -> Any:
    """Return what `to_plain` gave of something of the type `kind`, such as a dataclass; else a ValueError."""
    return msgspec.convert(plain, kind, dec_hook=_decoded, strict=False)


def _encoded(value: object) -> object:
    if hasattr(value, "to_state"):  # a model that another one holds
        return value.to_state()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value)} cannot be stored: expected a dataclass or an array")
    return {"dtype": value.dtype.str, "shape": value.shape, "bytes": value.tobytes()}


def _decoded(kind: Any, plain: Any) -> object:
    if hasattr(kind, "restored"):
        return kind().restored(plain)
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} cannot be restored: expected a dataclass or an array")
    return np.frombuffer(b64decode(plain["bytes"]), dtype=plain["dtype"]).reshape(plain["shape"])
