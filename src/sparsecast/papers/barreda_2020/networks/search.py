"""The search for hyper-parameters of Table 2 (Barreda et al., section 5.2), which can be interrupted.

The paper uses Hyperas: the tree-structured Parzen estimator (Bergstra, Yamins, Cox 2013) over 100 trials of
one epoch. Here Optuna does it. Each trial is kept in an SQLite file, so that the next run goes on with the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import Architecture, built
from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset
from sparsecast.papers.barreda_2020.networks.training import PAPER_PLAN, TrainingPlan, train

#: Trials of the paper, each of one epoch, with the gradient clipped to this norm.
TRIALS, CLIP = 100, 1.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best of a search: mean squared error on the validation after one epoch, and with what."""

    error: float
    architecture: Architecture
    plan: TrainingPlan
    trials: int


def search(
    training: BlockDataset,
    validation: BlockDataset,
    path: Path,
    trials: int = TRIALS,
    on_trial: Callable[[int, float], None] = lambda number, error: None,
) -> SearchResult:
    """Search the space of Table 2; trials that the SQLite file already has count.

    After each trial `on_trial` is called with its number and error.
    """
    optuna = required("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=f"sqlite:///{path}", study_name="table 2", load_if_exists=True, direction="minimize"
    )
    finished = optuna.trial.TrialState.COMPLETE
    seen = len(study.get_trials(states=(finished,)))
    # A sampler of the same seed would propose the same trials again.
    study.sampler = optuna.samplers.TPESampler(seed=seen)

    def objective(trial: Any) -> float:
        architecture, plan = suggested(trial)
        try:
            network = built(architecture)
        except ValueError as error:  # kernels and pools that leave nothing of a block
            raise optuna.TrialPruned(str(error)) from error
        progress = train(network, training, validation, plan)
        on_trial(trial.number, progress.validation[-1])
        return progress.validation[-1]

    while (count := len(study.get_trials(states=(finished,)))) < trials:
        study.optimize(objective, n_trials=trials - count)
    best = study.best_trial
    architecture, plan = suggested(optuna.trial.FixedTrial(best.params))
    return SearchResult(float(best.value), architecture, plan, trials)


def suggested(trial: Any) -> tuple[Architecture, TrainingPlan]:
    pick = trial.suggest_categorical
    filters = {"16, 32": (16, 32), "32, 64": (32, 64)}[pick("filters", ["16, 32", "32, 64"])]
    kernels = tuple(pick(f"kernel {place}", [3, 5, 7, 9]) for place in (1, 2))
    pools = tuple(pick(f"pool {place}", [2, 3, 5, 7, 9]) for place in (1, 2))
    hidden = pick("hidden dense layers", [1, 2, 3])  # the output comes after them
    dense = tuple(pick(f"neurons {place}", [10, 100, 1000]) for place in range(1, hidden + 1))
    dropout = tuple(trial.suggest_float(f"dropout {place}", 0.0, 1.0) for place in range(1, hidden + 1))
    plan = replace(
        PAPER_PLAN,
        optimizer=pick("optimizer", ["SGD", "Adam", "RMSprop"]),
        rate=pick("rate", [1e-1, 1e-2, 1e-3]),
        batch=pick("batch", [32, 64, 128, 256]),
        epochs=1,
        clip=CLIP,
    )
    return Architecture(filters, (kernels[0], kernels[1]), (pools[0], pools[1]), dense, dropout), plan
