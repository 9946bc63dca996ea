"""A model fitted for one profile and one target. Every forecast comes from one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from weakref import WeakKeyDictionary

from sparsecast.api.profiles import (
    described,
    disturbed,
    model_records,
    records_for,
    refuse_disturbed,
    training_for,
)
from sparsecast.api.settings import Setting, Trust
from sparsecast.benchmark.journal import keep
from sparsecast.benchmark.trials import Outcome, Question, Spending, try_contenders
from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import Rounding
from sparsecast.devices.target import Choice, Target, believed, published_choice, whole_matrix
from sparsecast.errors import DeviceError, InputError, ProfileError, StorageError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.narrow_storage import narrowest
from sparsecast.features.structure import Structure
from sparsecast.formats.narrowing import suited
from sparsecast.machines.machine import PROCESSOR, Machine, detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.fitting import LEAST_RANKED, UNTRIED_FACTOR
from sparsecast.models.forecaster import Forecaster
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import Model
from sparsecast.models.probing import Correction
from sparsecast.models.store import fitted, probe_correction
from sparsecast.models.training import TrainingSet, Withheld, unusual_groups
from sparsecast.models.transfer import Setting as RecordSetting
from sparsecast.models.transfer import Transfer, TransferredForecaster, widening
from sparsecast.planning.drift import NO_DRIFT, Drift, drift_since
from sparsecast.records import Candidate, Estimate, Forecast, reads_of
from sparsecast.results.prediction import Dense, Prediction
from sparsecast.system.texts import counted


@dataclass(frozen=True)
class ForecastBasis:
    """A fitted model for one profile and one target; forecasts any number of matrices.

    A forecast is corrected in this order, and each step is left out where there is no reason for it:

    1. `Withheld`: the model is fitted without features that the question, or the published results, lack.
    2. `Transfer`: times of another setting of the profile are carried over, with wider intervals.
    3. `tried`: products measured here correct the model. They are of the target, so nothing is transferred.
    4. A model of energy adds joules, for the machine as it was calibrated.
    5. `Drift`: times are scaled to the machine as it is now. After trials, which tell that, they are not.
    """

    profile: Profile
    target: Target  # what is asked about
    #: The setting of the Records: the target, or the nearest one of which the profile has enough.
    source: Target
    #: The Records, with no more about their matrices than is known of those of the questions.
    training: TrainingSet
    model: Forecaster  # fitted to them, or what adjusts such a model
    #: What is known of the matrices of the questions in vain.
    unused: Withheld = field(default_factory=Withheld)
    notes: tuple[str, ...] = ()  # sentences on what the model learned from

    @classmethod
    def of(
        cls,
        A: Problem | Structure,
        profile: Profile,
        target: Target,
        trust: Trust,
        *,
        transfers: bool = True,
    ) -> ForecastBasis:
        """Return the basis for a matrix, or for all with the same feature groups.

        `transfers` tells whether another setting of the profile may answer where its own has too few Records.
        A ProfileError says that none suffices, for the reason of the nearest one; a DisturbedError that its
        calibration is no basis for a forecast, and `anyway` is not set.
        """
        # The settings that can answer, the nearest first. Published results are of one setting, with kernels
        # that are unknown: they answer nothing else.
        sources = [target]
        if transfers:
            settings = sources if target.is_published else _settings(target, profile)
            known = [source for source in settings if model_records(profile, source)]
            sources = sorted(
                known, key=lambda source: RecordSetting.of(target).distance(RecordSetting.of(source))
            )
        if not sources:
            records_for(profile, target)  # raises
        refusals = []
        for source in sources:
            if not trust.anyway:
                refuse_disturbed(profile, source)
            try:
                return cls._of_source(A, profile, target, source, trust)
            except ProfileError as error:
                refusals.append(error)
        raise refusals[0]

    @classmethod
    def _of_source(
        cls, A: Problem | Structure, profile: Profile, target: Target, source: Target, trust: Trust
    ) -> ForecastBasis:
        kind, training = MODELS.get(trust.time_model), training_for(profile, source)
        withheld, unused = Withheld(), Withheld()
        if isinstance(A, Structure) or target.is_published:
            structure = A if isinstance(A, Structure) else _read(A, profile, target, kind.groups)
            unused = Withheld.of_question(structure, training)
            withheld = Withheld.of(structure, training) if isinstance(A, Structure) else withheld
            for group in kind.groups:
                unused.structure(structure).require(group)
        training = withheld.training(training)
        printed = kind.compared[-1] if trust.as_printed else {}
        notes = []
        if source == target:
            fit: Forecaster = fitted(kind(**printed), training)
        else:
            fit, transferred = _transferred(profile, target, source, fitted(kind(), training), training)
            notes.append(transferred)
        if target.vectors > 1 and sum(r.candidate.vectors > 1 for r in training.records) < LEAST_RANKED:
            notes.append(
                "Forecast from one vector: the profile has too few records of several; calibrate for these."
            )
        notes.append(withheld.sentence() or unused.unused_sentence())
        if printed and source != target:
            notes.append("These are our fits: printed ones are not transferred.")
        return cls(profile, target, source, training, fit, unused, tuple(filter(None, notes)))

    @property
    def transferred_from(self) -> RecordSetting | None:
        """The setting of the Records; None where it is the one that is asked about."""
        return None if self.source == self.target else RecordSetting.of(self.source)

    def structure(self, A: Problem | Structure) -> Structure:
        """Return what the forecasts read of a matrix; a Structure as it is."""
        return A if isinstance(A, Structure) else _read(A, self.profile, self.target, self.model.groups)

    def choice(self, structure: Structure) -> Choice:
        """Return the candidates of a matrix, with kernels that the model knows; all of published results."""
        structure, machine = self.unused.structure(structure), self.profile.machine
        if not self.target.is_published:
            return whole_matrix(structure, self.target, machine, self.model.kernels)
        published = dict.fromkeys(record.candidate for record in self.training.records)
        return published_choice(structure, tuple(published), machine)

    def estimates(self, A: Problem | Structure) -> list[Estimate]:
        structure = self.structure(A)
        return self.model.estimates(self.unused.structure(structure), self.choice(structure).candidates)

    def forecasts(self, structure: Structure) -> tuple[list[Forecast], dict[str, str]]:
        """Return the Forecasts of a matrix, and by format why others have none."""
        choice = self.choice(structure)
        forecasts = self.model.forecast(self.unused.structure(structure), choice.candidates)
        known, refused = {forecast.candidate.format for forecast in forecasts}, dict(choice.refused)
        for candidate in choice.candidates:
            name = candidate.format
            if name in known:
                continue
            if candidate.vectors > 1 and name in self.model.formats():
                why = f"it takes {candidate.vectors} products of one vector; ask for one"
            elif name in self.target.libraries:
                why = f"{self.profile.name} has too few records of it; sparsecast calibrate --libraries"
            else:
                count = sum(record.candidate.format == name for record in self.training.records)
                why = f"the profile has {counted(count, 'record')} of it; {self.model.lacking(name)}"
            refused[name] = f"{name.upper()} has no forecast: {why}"
        return forecasts, refused

    def prediction(
        self, structure: Structure, trust: tuple[Drift, tuple[str, ...]], energy: Forecaster | None
    ) -> Prediction:
        """Return the forecasts of a matrix, fastest first, for the machine as it is now.

        `trust` is that of `trust`, and `energy` a fitted model of joules, which are for the machine as it was
        calibrated. The seconds it took are left to the caller.
        """
        forecasts, refused = self.forecasts(structure)
        drift, notes = trust
        if groups := believed(structure, [forecast.candidate for forecast in forecasts]):
            shown = ", ".join(groups).replace("_", " ")
            sample = f"A sample of {structure.sampled_nnz:,} entries shows {shown}"
            notes = (f"{sample}: a conversion reads all, and may refuse.", *notes)
        joules: dict[Candidate, Estimate] = {}
        if energy is not None:
            candidates = [forecast.candidate for forecast in forecasts]
            estimates = energy.estimates(self.unused.structure(structure), candidates)
            joules = {estimate.candidate: estimate for estimate in estimates}
        drifted = []
        for forecast in forecasts:
            if own := joules.get(forecast.candidate):
                forecast = replace(forecast, energy_j=own.value, energy_low_j=own.low, energy_high_j=own.high)
            drifted.append(drift.forecast(forecast, self.profile.machine))
        dense_bytes, dense = structure.rows * structure.cols * self.target.value_bytes, None
        reads = reads_of(self.profile.bandwidths, self.target.device, self.target.threads)
        if self.target.vectors == 1 and reads:
            nearest = min(reads, key=lambda read: (read.bytes < dense_bytes, abs(read.bytes - dense_bytes)))
            dense = Dense(dense_bytes, dense_bytes / nearest.bandwidth_bytes_per_s)
        return Prediction(
            forecasts=tuple(sorted(drifted, key=lambda forecast: forecast.time_s)),
            refused=refused,
            structure=structure,
            profile=self.profile.name,
            model=self.model.name,
            predict_s=0.0,
            notes=(*self.notes, *notes),
            transferred_from=self.transferred_from,
            dense=dense,
        )

    @cached_property
    def correction(self) -> Correction:
        """What measured CSR says of the others."""
        assert isinstance(self.model, Model), "a correction is of a model, not of what was corrected by it"
        return probe_correction(self.model, self.training)

    def tried(self, problem: Problem, spending: Spending) -> tuple[ForecastBasis, Outcome | None]:
        """Return a basis with a model corrected by trials of a matrix here, and what these found.

        What they measured is kept, and the best way as built stays with the problem. Nothing is tried where
        that does not pay.
        """
        structure = self.structure(problem)
        forecasts, _ = self.forecasts(structure)
        if not spending.may_pay(forecasts):
            return self, None
        try:
            correction = self.correction
        except ProfileError as error:
            if spending.seconds is not None:
                raise
            return replace(self, notes=(*self.notes, f"Nothing was tried: {error}.")), None
        asked = Question(problem, structure, forecasts, self.model, correction, spending)
        outcome = try_contenders(asked, DEVICES.get(self.target.device))
        problem.built[outcome.kept.candidate] = outcome.kept.bound
        notes = self.notes
        try:
            if outcome.records:
                keep(self.profile.machine, problem, outcome.records)
        except StorageError as error:  # a plan does not need a folder that can be written
            notes = (*notes, f"What was tried is not kept: {error}.")
        return replace(self, model=outcome.model, notes=notes), outcome

    def trust(self, drift_correction: bool) -> tuple[Drift, tuple[str, ...]]:
        """Return how the machine has drifted, and what to say of that and of the calibration."""
        records = records_for(self.profile, self.source)
        drift = drift_since(self.profile, self.source, records) if drift_correction else NO_DRIFT
        disturbance = disturbed(records)
        calibration = f"The calibration was {disturbance.sentence()}" if disturbance else ""
        return drift, tuple(filter(None, (calibration, drift.sentence())))


def is_local(machine: Machine) -> bool:
    """Tell whether a machine is this one, with its device."""
    with suppress(DeviceError):
        if machine.device in DEVICES:
            return DEVICES.get(machine.device).describe().name == machine.name
    return detect().name == machine.name


_ROUNDINGS: WeakKeyDictionary[Problem, dict[str, Rounding]] = WeakKeyDictionary()


def rounding(A: Problem | Structure, setting: Setting) -> Rounding | None:
    """Return what a matrix loses in the `values` of a setting; None where these are not asked for.

    All its entries tell from now on whether they need it. An InputError refuses what cannot be stored so.
    """
    values, device = setting.values, setting.device
    if values is None:
        return None
    if isinstance(A, Structure) or device not in (None, PROCESSOR):
        where = "without the matrix" if isinstance(A, Structure) else f"on {device}"
        raise InputError(f"values '{values}' {where}: expected a matrix to round, on cpu; leave values out")
    target = replace(Target.of(A, detect(), None, setting.dtype), values=values)
    known = _ROUNDINGS.setdefault(A, {})
    if target.dtype not in known:
        holds = suited(narrowest(A.proven(["narrow_storage"])), target.dtype)
        known[target.dtype] = Rounding(0.0, 0.0) if "values" in holds else Rounding.of(A.matrix, target.dtype)
    return known[target.dtype]


def _read(problem: Problem, profile: Profile, target: Target, groups: Sequence[str]) -> Structure:
    """Return what a forecast reads of a matrix: a sample, `groups`, and what only published results have."""
    structure = problem.sampled_structure
    unusual = unusual_groups(profile.matrices.values()) if target.is_published else []
    for wanted, is_sampled in ((groups, True), (unusual, False)):
        if lacking := structure.lacks(wanted):
            read = structure_of(problem.matrix, groups=lacking, is_sampled=is_sampled)
            structure = structure.having(*read.groups.values())
    return structure


def _settings(target: Target, profile: Profile) -> list[Target]:
    """Return the target in every setting that a profile has Records of on its device."""
    candidates = (record.candidate for record in profile.records if record.candidate.device == target.device)
    settings = dict.fromkeys(map(RecordSetting.of, candidates))
    values = {target.dtype: target.values}  # another type has none of its own
    return [replace(target, **asdict(s), values=values.get(s.dtype)) for s in settings]


def _transferred(
    profile: Profile, target: Target, source: Target, model: Forecaster, training: TrainingSet
) -> tuple[Forecaster, str]:
    """Return a model of another setting carried over to the target, and what to say of it."""
    transfer = Transfer.to(RecordSetting.of(target), fitted(LinearModel(), training), training)
    settings = [model_records(profile, setting) for setting in _settings(target, profile)]
    others = chain.from_iterable(
        TrainingSet.of(profile, records).at_full_speed().records for records in settings
    )
    factor = widening(transfer, training.at_full_speed(), others)
    lacks = "too few records" if model_records(profile, target) else "no records"
    sentence = (
        f"Forecast from {described(source)}: this profile has {lacks} of {described(target)}; "
        f"calibrate for it for narrower intervals."
    )
    if factor is None:
        sentence += " How much wider they are now was learned on another machine."
    if not transfer.is_measured:
        sentence += " Bandwidths of both numbers of threads are not known: the threads stand for them."
    return TransferredForecaster(model, transfer, factor or UNTRIED_FACTOR), sentence
