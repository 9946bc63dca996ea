"""Evaluations: every model's forecasts against what is measured here, or was measured before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from time import perf_counter
from typing import Any

from sparsecast.api.campaigns import Campaign, CollectionOptions, Turn, campaign_of
from sparsecast.api.clustering import ClusterProblem, cluster_problem, training_of_ranks
from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.profiles import (
    asked_machine,
    calibrated_profile,
    measured_again,
    require_own,
    training_for,
)
from sparsecast.api.sessions import UNMEASURED, Session
from sparsecast.api.settings import Setting, refuse_unknown
from sparsecast.benchmark.evaluation import Scoring
from sparsecast.benchmark.journal import AGAIN_SUITE
from sparsecast.benchmark.replay import FOLDS, replay_clusters
from sparsecast.benchmark.replay import replay as replay_records
from sparsecast.devices import AUTO, machine_of, number_of
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.formats.libraries import chosen_libraries
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.records import DistributedRecord
from sparsecast.results.cluster import ClusterEvaluation
from sparsecast.results.evaluation import Evaluation

#: One matrix in so many is measured once more at the end, and not more than so many matrices.
_AGAIN_EVERY, _AGAIN_MOST = 4, 12

#: Times that a forecast is made to tell what it costs; the shortest counts, as the first may compile.
_COST_TRIALS = 2


def evaluated(
    session: Session,
    matrices: Sequence[Any],
    models: Sequence[str] | None,
    on_matrix: Callable[[str, Evaluation], None] | None,
    options: CollectionOptions,
) -> Evaluation:
    """Forecast and measure a collection: see `Session.evaluate`."""
    refuse_unknown(CollectionOptions, options)
    machine = machine_of(session.setting.device or PROCESSOR)
    if session.profile is not None:
        require_own(session.profile.name, machine)
    session.refuse_given("an evaluation", *UNMEASURED)
    _refuse_unscored(session.setting)
    kinds = chosen_models(models, session.setting.vectors)
    campaign = campaign_of(machine, matrices, **options)
    run = _Run(campaign, session, kinds, on_matrix, Scoring(machine, refused=campaign.refused))
    count = len(campaign.problems)
    again = min(max(1, count // _AGAIN_EVERY), _AGAIN_MOST, count)
    is_interrupted = campaign.run(run.turns(again), count + again)
    return run.scoring.evaluation(machine.name, is_interrupted)


def _refuse_unscored(setting: Setting) -> None:
    """Raise an InputError for a setting in which models are not scored."""
    if setting.values is not None:
        raise InputError(
            f"values '{setting.values}' in an evaluation: expected values in full; leave them out"
        )
    if setting.threads == AUTO:
        raise InputError(f"threads {AUTO} in an evaluation: expected one number; name it, or leave it out")


@dataclass
class _Run:
    """One evaluation, of the products of a session."""

    campaign: Campaign
    session: Session
    models: list[type[Model]]
    on_matrix: Callable[[str, Evaluation], None] | None
    scoring: Scoring
    #: What models learn from, of before anything of the kind was measured, and the groups that it shares with
    #: the matrices.
    trainings: dict[Target, tuple[TrainingSet, list[str]]] = field(default_factory=dict)
    #: Of a target and a part of the groups.
    bases: dict[tuple[Target, int | None], list[ForecastBasis]] = field(default_factory=dict)

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
        profile, target = self.session.question(problem)
        table = dict.fromkeys(whole_matrix(problem.sampled_structure, target, self.campaign.here).candidates)
        analysis_s = _least_seconds(
            lambda: structure(
                problem.matrix, threads=number_of(self.session.setting.threads), is_sampled=True
            )
        )
        estimates = []
        for basis in self._bases(profile, target, problem.group):
            forecast = partial(basis.estimates, problem)
            try:
                estimates.append((basis.model, forecast()))
                self.scoring.costs_s[name, basis.model.name] = analysis_s + _least_seconds(forecast)
            except InputError as error:
                self.scoring.refused.setdefault(f"model {basis.model.name}", str(error))
        table |= dict.fromkeys(each.candidate for _, own in estimates for each in own)
        records, is_new = self.campaign.measured(problem, list(table))
        self.scoring.taken_over += not is_new
        self.scoring.add_records(name, records)
        for model, own in estimates:
            self.scoring.add_estimates(name, model.name, model.quantity, own)

    def _bases(self, profile: Profile, target: Target, group: str) -> list[ForecastBasis]:
        """Return the models for a target, fitted without a part of the known groups that has this one."""
        if target not in self.trainings:
            training = training_for(profile, target)
            groups = {problem.group for problem in self.campaign.problems.values()}
            self.trainings[target] = training, sorted(groups & set(training.groups()))
        training, known = self.trainings[target]
        part = known.index(group) % FOLDS if group in known else None
        if (target, part) not in self.bases:
            out = set() if part is None else set(known[part::FOLDS])
            unseen = training.where(lambda record: training.group(record) not in out)
            self.bases[target, part] = bases = []
            for kind in self.models:
                try:  # a fit to a part of the Records is not stored for later
                    model = kind().fit(unseen) if out else fitted(kind(), unseen)
                    bases.append(ForecastBasis(profile, target, target, unseen, model))
                except InputError as error:
                    self.scoring.refused.setdefault(f"model {kind.name}", str(error))
        return self.bases[target, part]

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
    session: Session,
    *,
    models: Sequence[str] | None = None,
    transpose: bool = False,
    on_fold: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score models on stored Records, on matrices that they have not seen, with no hardware.

    What the forecasts cost is not measured then. The Records that were kept of its machine join those of the
    profile; values are float64 where the session names no type. With `transpose`, models are scored on
    transposes alone, else on all other matrices. `on_fold` is called after each fit: FOLDS times for each
    model and each of the settings that are compared.

    An UnknownNameError says that there is no such model, a ProfileError that there are too few Records.
    """
    setting = session.setting
    _refuse_unscored(setting)
    profile = session.profile or find_profile(here=machine_of(setting.device or PROCESSOR))
    machine = asked_machine(profile, setting.device)
    libraries = chosen_libraries(setting.library, machine.device, is_here=False)
    target = Target.on(machine, setting.dtype or "float64", number_of(setting.threads))
    target = replace(target, vectors=setting.vectors, libraries=libraries)
    makers = [
        partial(kind, **compared)
        for kind in chosen_models(models, setting.vectors)
        for compared in kind.compared
    ]
    training, again = training_for(profile, target), measured_again(profile.machine)
    how: dict[str, Any] = {"vectors": setting.vectors, "transpose": transpose}
    return replay_records(training, makers, on_fold=on_fold, again=again, **how)


def cluster_fits() -> int:
    """Return how often `replay_ranks` fits at most."""
    return FOLDS * sum(len(CLUSTER_MODELS.get(name).compared) for name in CLUSTER_MODELS.names())


def replay_ranks(
    profile: Profile | None = None, *, on_fold: Callable[[], None] = lambda: None
) -> ClusterEvaluation:
    """Score every model of products on many ranks on kept records, on matrices that it has not seen.

    The profile, by default this machine's, has micro-benchmarks of ranks. Its times of products on a node are
    used for matrices that can be made or read again. No rank is started. `on_fold` is called after each fit.
    """
    used = profile or calibrated_profile(machine_of(PROCESSOR))
    questions: dict[tuple[object, ...], Question] = {}

    @lru_cache(maxsize=1)  # records of a matrix follow one another, and a matrix may be large
    def rebuilt(specification: str) -> ClusterProblem | None:
        problem = Problem.rebuilt(specification)
        return cluster_problem(problem, used) if problem else None

    def question(record: DistributedRecord) -> Question:
        """Return the Question of a record; a matrix is partitioned once for each method and layout."""
        configuration = record.configuration
        product = PRODUCTS.get(configuration.algorithm)
        key = record.matrix, configuration.partition, configuration.ranks, product.layout()
        if key not in questions:
            distribution, problem = Distribution.from_dict(record.distribution), rebuilt(record.matrix)
            questions[key] = Question(distribution, deviation=record.deviation)
            if problem is not None:
                parts = partition(problem.matrix, configuration.ranks, configuration.partition)
                # The matrices of all records do not fit in memory: misses follow from counts.
                questions[key] = replace(problem.question(product, distribution, parts), block=None)
        return questions[key]

    return replay_clusters(training_of_ranks(used), question, on_fold)
