"""Evaluations: every model's forecasts against what is measured here, or was measured before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any

from sparsecast.api.campaigns import Campaign, Turn
from sparsecast.api.matrices import named_problems
from sparsecast.api.profiles import asked_machine, require_own, training_for
from sparsecast.api.session import Asked, Session, question
from sparsecast.benchmark.evaluation import Scoring
from sparsecast.benchmark.journal import AGAIN_SUITE, kept
from sparsecast.benchmark.replay import FOLDS
from sparsecast.benchmark.replay import replay as replay_records
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES, machine_of, number_of
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.formats.libraries import chosen_libraries
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.records import Estimate
from sparsecast.results.evaluation import Evaluation

#: One matrix in so many is measured once more at the end, and not more than so many matrices.
_AGAIN_EVERY, _AGAIN_MOST = 4, 12

#: Times that a forecast is made to tell what it costs; the shortest counts, as the first may compile.
_COST_TRIALS = 2


def evaluate(
    matrices: Sequence[Any],
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = PROCESSOR,
    vectors: int = 1,
    library: str | None = None,
    transpose: bool = False,
    models: Sequence[str] | None = None,
    keeps: bool = True,
    resume: bool = False,
    shard: str | Shard | None = None,
    on_progress: Progress = no_progress,
    on_matrix: Callable[[str, Evaluation], None] | None = None,
) -> Evaluation:
    """Forecast a collection of matrices with all models, and measure them on this machine.

    No model learns from a matrix that it is scored on, nor from one of its group, whatever the profile and
    the kept Records hold: the groups that are known are left out in turn, in FOLDS parts. A matrix or a
    model that refuses is left out with its reason; an interrupted run gives what was done. At the end every
    fourth matrix, twelve at most, is measured once more: what a repeated measurement differs by is the error
    of a perfect forecast.

    Parameters
    ----------
    matrices : sequence of paths, folders of matrix files, gallery specifications or sparse matrices
    profile, threads, dtype, device, vectors, library
        As in `predict`.
    transpose : bool
        Whether products with the transposes are forecast and measured, of matrices that differ from these.
    models : sequence of str, optional
        Names of the models; all by default.
    keeps : bool
        Whether each matrix' Records are kept in the data folder at once, for models to learn from and to be
        scored on.
    resume : bool
        Whether Records that were kept are taken over, whatever their age: what the same version of Sparsecast
        and of its kernels measured is not measured again. So a run that was killed goes on where it stopped.
    shard : str or Shard, optional
        The part of the matrices to measure: ``"I/N"``, part I of N, the same whatever their order; or
        ``"slurm"``, that of the task of a Slurm array.
    on_progress : callable
        Called after each matrix with the seconds done, the seconds expected in all, and its name.
    on_matrix : callable
        Called after each matrix with its name and its evaluation.

    Raises
    ------
    InputError
        If a folder has no matrix files, or there is no such shard.
    UnknownNameError
        If there is no such model.
    ProfileError
        If the profile is another machine's, or the journal of kept Records is damaged.
    StorageError
        If nothing can be kept.
    """
    machine = machine_of(device)
    if profile is not None:
        require_own(profile.name, machine)
    product, kinds = Asked(threads, dtype, device, vectors, library=library), chosen_models(models, vectors)
    problems, refused = named_problems(matrices, shard)
    campaign = Campaign(machine, problems, refused, keeps, transpose=transpose, on_progress=on_progress)
    if resume:
        campaign.take_over()
    run = _Run(campaign, product, profile, kinds, on_matrix, Scoring(machine, refused=refused))
    again = min(max(1, len(problems) // _AGAIN_EVERY), _AGAIN_MOST, len(problems))
    is_interrupted = campaign.run(run.turns(again), len(problems) + again)
    return run.scoring.evaluation(machine.name, is_interrupted)


@dataclass
class _Run:
    """One evaluation, of products that are `asked` about."""

    campaign: Campaign
    asked: Asked
    profile: Profile | None
    models: list[type[Model]]
    on_matrix: Callable[[str, Evaluation], None] | None
    scoring: Scoring
    #: What models learn from, of before anything of the kind was measured, and the groups that it shares with
    #: the matrices.
    trainings: dict[Target, tuple[TrainingSet, list[str]]] = field(default_factory=dict)
    #: Of a target and a part of the groups.
    sessions: dict[tuple[Target, int | None], list[Session]] = field(default_factory=dict)

    @cached_property
    def groups(self) -> set[str]:
        """Those of its matrices."""
        return {problem.group for problem in self.campaign.problems.values()}

    def turns(self, again: int) -> Iterator[tuple[str, Turn]]:
        """Give each matrix to be forecast and measured, then some once more, spread over the collection."""
        for name in self.campaign.problems:
            yield name, self._evaluate
            if self.on_matrix:
                self.on_matrix(name, self.scoring.of(name).evaluation(self.campaign.here.name))
        measured = list(self.scoring.measured)
        again = min(again, len(measured))
        for number in range(again):
            yield measured[number * len(measured) // again], self._measure_again

    def _evaluate(self, name: str, problem: Problem) -> None:
        """Measure a matrix in every way that is open to it or forecast; add what each model says of them."""
        if problem.matrix.nnz == 0:
            raise InputError(f"{name} has no entries: expected at least one; leave it out")
        profile, target = question(problem, self.profile, self.asked)
        table = dict.fromkeys(whole_matrix(problem.sampled_structure, target, self.campaign.here).candidates)
        analysis_s = _least_seconds(
            lambda: structure(problem.matrix, threads=number_of(self.asked.threads), is_sampled=True)
        )
        estimates = []
        for session in self._sessions(profile, target, problem.group):
            forecast = partial(_estimates, session, problem)
            try:
                estimates.append((session.model, forecast()))
                self.scoring.costs_s[name, session.model.name] = analysis_s + _least_seconds(forecast)
            except InputError as error:
                self.scoring.refused.setdefault(f"model {session.model.name}", str(error))
        table |= dict.fromkeys(each.candidate for _, own in estimates for each in own)
        records, is_new = self.campaign.measured(problem, list(table))
        self.scoring.taken_over += not is_new
        self.scoring.add_records(name, records)
        for model, own in estimates:
            self.scoring.add_estimates(name, model.name, model.quantity, own)

    def _sessions(self, profile: Profile, target: Target, group: str) -> list[Session]:
        """Return the models for a target, fitted without a part of the known groups that has this one."""
        if target not in self.trainings:
            training = training_for(profile, target)
            self.trainings[target] = training, sorted(self.groups & set(training.groups()))
        training, known = self.trainings[target]
        part = known.index(group) % FOLDS if group in known else None
        if (target, part) not in self.sessions:
            out = set() if part is None else set(known[part::FOLDS])
            unseen = training.where(lambda record: training.group(record) not in out)
            self.sessions[target, part] = [
                Session(profile, target, target, unseen, model) for model in self._fitted(unseen, bool(out))
            ]
        return self.sessions[target, part]

    def _fitted(self, unseen: TrainingSet, is_part: bool) -> list[Model]:
        """Return the fitted models. A fit to a part of the Records is not stored for later."""
        models = []
        for kind in self.models:
            model = kind()
            try:
                models.append(model.fit(unseen) if is_part else fitted(model, unseen))
            except InputError as error:
                self.scoring.refused.setdefault(f"model {kind.name}", str(error))
        return models

    def _measure_again(self, name: str, problem: Problem) -> None:
        """Measure what was measured of a matrix once more."""
        taken = self.campaign.taken
        first = {record.candidate: record for record in self.scoring.measured[name]}
        for candidate, record in first.items():
            key = problem.specification, AGAIN_SUITE, candidate
            if key in taken and taken[key].measured_at < record.measured_at:
                del taken[key]  # it was measured again before it was measured
        records, _ = self.campaign.measured(problem, list(first), AGAIN_SUITE)
        self.scoring.add_again(name, records)


def _estimates(session: Session, problem: Problem) -> list[Estimate]:
    return session.estimates(session.structure(problem))


def _least_seconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(_COST_TRIALS):
        start_s = perf_counter()
        call()
        taken.append(perf_counter() - start_s)
    return min(taken)


def chosen_models(names: Sequence[str] | None, vectors: int = 1) -> list[type[Model]]:
    """Return the models of these names, or all that forecast products of so many vectors.

    An UnknownNameError says that there is no such model, an InputError that one of these forecasts one vector
    only.
    """
    chosen = [MODELS.get(name) for name in (MODELS.names() if names is None else names)]
    unable = [kind.name for kind in chosen if vectors > 1 and not kind.takes_several]
    if unable and names is not None:
        raise InputError(
            f"{vectors} vectors by {unable[0]}, which forecasts one: expected another; leave it out"
        )
    return [kind for kind in chosen if kind.name not in unable]


def fits_of(names: Sequence[str] | None, vectors: int = 1) -> int:
    """Return how often a replay of the models of these names, or of all, fits."""
    return FOLDS * sum(len(model.compared) for model in chosen_models(names, vectors))


def replay(
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str = "float64",
    device: str | None = None,
    vectors: int = 1,
    library: str | None = None,
    transpose: bool = False,
    models: Sequence[str] | None = None,
    on_fold: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score models on stored Records, on matrices that it has not seen, with no hardware.

    What the forecasts cost is not measured then. The Records that were kept of its machine join those of the
    profile; most parameters are as in `predict` and `evaluate`. With `transpose`, models are scored on
    transposes alone, else on all other matrices. `on_fold` is called after each fit: FOLDS times for each
    model and each of the settings that are compared.

    An UnknownNameError says that there is no such model, a ProfileError that there are too few Records.
    """
    profile = profile or find_profile(here=machine_of(device or PROCESSOR))
    machine = asked_machine(profile, device)
    libraries = chosen_libraries(library, machine.device, is_here=False)
    target = dataclasses.replace(Target.on(machine, dtype, threads), vectors=vectors, libraries=libraries)
    makers = [
        partial(kind, **settings) for kind in chosen_models(models, vectors) for settings in kind.compared
    ]
    again = [
        record
        for record in kept(profile.machine).records
        if record.suite == AGAIN_SUITE and DEVICES.get(record.candidate.device).is_current(record)
    ]
    training = training_for(profile, target)
    return replay_records(
        training, makers, on_fold=on_fold, again=again, vectors=vectors, transpose=transpose
    )
