"""What a question is answered from: the Records of its own setting, or of the nearest one that suffices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TypeVar

from sparsecast.api.resolving import described, model_records, records_for, training_for
from sparsecast.devices.target import Target
from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.models import MODELS
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.models.transfer import UNTRIED_FACTOR, Setting, Transfer, TransferredModel, widening

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Basis:
    """The Records of `source` in a profile, for a question about `asked`: often the same."""

    profile: Profile
    asked: Target
    source: Target

    @cached_property
    def training(self) -> TrainingSet:
        """The training set for `source`."""
        return training_for(self.profile, self.source)

    @property
    def transferred_from(self) -> Setting | None:
        """The setting of the Records; None where it is the one that is asked about."""
        return None if self.source == self.asked else Setting.of(self.source)

    def fitted(self, name: str, training: TrainingSet) -> tuple[Model, str]:
        """Return a model of time for what is asked, fitted to `training`, and what to say of it.

        Raises
        ------
        ProfileError
            If the Records do not suffice.
        """
        model = fitted(MODELS.get(name)(), training)
        if self.transferred_from is None:
            return model, ""
        transfer = Transfer.to(Setting.of(self.asked), fitted(LinearModel(), training), training)
        settings = [model_records(self.profile, each) for each in _targets(self.asked, self.profile)]
        others = chain.from_iterable(
            TrainingSet.of(self.profile, each).at_full_speed().records for each in settings
        )
        factor = widening(transfer, training.at_full_speed(), others)
        said = self._sentence(transfer, is_tried=factor is not None)
        return TransferredModel(model, transfer, factor or UNTRIED_FACTOR), said

    def _sentence(self, transfer: Transfer, is_tried: bool) -> str:
        lacks = "too few records" if model_records(self.profile, self.asked) else "no records"
        said = (
            f"Forecast from {described(self.source)}: this profile has {lacks} of {described(self.asked)}; "
            f"calibrate for it for narrower intervals."
        )
        if not is_tried:
            said += " How much wider they are now was learned on another machine."
        if not transfer.is_measured:
            said += " Bandwidths of both numbers of threads are not known: the threads stand for them."
        return said


def bases(profile: Profile, asked: Target) -> list[Basis]:
    """Return what a question can be answered from, the nearest first: its own Records, where there are some.

    Published results are of one setting, whose kernels nobody knows: they answer nothing else.

    Raises
    ------
    ProfileError
        If there is nothing.
    """
    is_published = profile.machine.published_as is not None
    found = [asked] if is_published else _targets(asked, profile)
    with_records = [source for source in found if model_records(profile, source)]
    if not with_records:
        records_for(profile, asked)  # raises
    own = Setting.of(asked)
    nearest = sorted(with_records, key=lambda source: own.distance(Setting.of(source)))
    return [Basis(profile, asked, source) for source in nearest]


def _targets(asked: Target, profile: Profile) -> list[Target]:
    """Return what is asked in every setting that a profile has Records of on its device."""
    own = (record.candidate for record in profile.records if record.candidate.device == asked.device)
    settings = dict.fromkeys(map(Setting.of, own))
    return [replace(asked, dtype=each.dtype, threads=each.threads) for each in settings]


def answered(bases: Sequence[Basis], answer: Callable[[Basis], Answer]) -> Answer:
    """Return what `answer` gives for the first basis that suffices.

    Raises
    ------
    ProfileError
        Of the first one, if none suffices.
    """
    refusals = []
    for basis in bases:
        try:
            return answer(basis)
        except ProfileError as error:
            refusals.append(error)
    raise refusals[0]
