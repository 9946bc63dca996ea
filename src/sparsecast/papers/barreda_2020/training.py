"""Training of networks as Barreda et al. did it, and the search for their hyper-parameters (section 5.2).

Adam from 1e-3, batches of 256, mean squared error; the rate falls to a tenth after 5 epochs without gain, to
1e-4 at the least; the training ends after 15 epochs without a smaller error, or after 100 in all, and the
best weights are kept. Labels are in nanoseconds or nanojoules an entry, as in the paper; ours learns their
logarithms.

For the search in the space of Table 2 the paper uses Hyperas: the tree-structured Parzen estimator
(Bergstra, Yamins, Cox 2013) over 100 trials of one epoch. Here Optuna does it. Each trial is kept in an
SQLite file. Both go on where they were interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.papers.barreda_2020.datasets import BlockDataset
from sparsecast.papers.barreda_2020.networks import (
    Architecture,
    BlockNetwork,
    built,
    read_tensors,
    required,
    write_tensors,
)

#: Blocks that are forecast at once.
_FORECAST_BATCH = 4096

#: Trials of the paper's search, each of one epoch, with the gradient clipped to this norm.
TRIALS, CLIP = 100, 1.0


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train; by default as the paper.

    `optimizer` is ``"Adam"``, ``"SGD"`` or ``"RMSprop"``, `clip` the largest norm of the gradient, and `seed`
    that of the order of the blocks and of dropout.
    """

    optimizer: str = "Adam"
    epochs: int = 100
    batch: int = 256
    rate: float = 1e-3
    factor: float = 0.1
    patience: int = 5
    least_rate: float = 1e-4
    stop_after: int = 15
    clip: float | None = None
    seed: int = 0


PAPER_PLAN = TrainingPlan()


@dataclass
class Progress:
    """Where a training stands.

    `losses` and `validation` are mean squared errors of each epoch, of logarithms where the network forecasts
    these, on what was learned and on the validation; `rates` the rates.
    """

    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.validation)

    @property
    def since_best(self) -> int:
        """Epochs after that with the smallest error."""
        return len(self.validation) - 1 - self.validation.index(self.best)

    def is_over(self, plan: TrainingPlan) -> bool:
        epochs = len(self.validation)
        return epochs >= plan.epochs or (epochs > 0 and self.since_best >= plan.stop_after)


def train(
    network: BlockNetwork,
    training: BlockDataset,
    validation: BlockDataset,
    plan: TrainingPlan = PAPER_PLAN,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Train a network in place, which ends with its best weights; `on_epoch` is called after each epoch.

    The state of each epoch is kept in the file `checkpoint` (safetensors). Where it is there already, the
    training goes on from it; an InputError says that it is damaged or of another training. It stays when the
    training is over.
    """
    torch = required("torch")
    if not len(training) or not len(validation):
        raise InputError(
            f"{len(training)} blocks to train with and {len(validation)} to validate: expected some of both; "
            f"label more matrices"
        )
    # The output begins at the mean of the labels: it is linear, and these are far from 0. Ours begins with
    # their deviation as well, which is a few per cent.
    targets, last = _targets(network, training.labels), network.parts["dense"][-1]
    with torch.no_grad():
        last.bias.fill_(float(targets.mean()))
        if network.architecture.logarithm:
            last.weight.mul_(float(targets.std()))
    optimizer = getattr(torch.optim, plan.optimizer)(network.parts.parameters(), lr=plan.rate)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=plan.factor, patience=plan.patience, min_lr=plan.least_rate, eps=0.0
    )
    progress, best = Progress(), _weights(network)
    data = [len(training), float(training.labels.sum()), len(validation), float(validation.labels.sum())]
    # What a checkpoint must have been made for.
    key = {"architecture": repr(network.architecture), "plan": repr(plan), "data": data}
    if checkpoint is not None and checkpoint.exists():
        progress, best = _resume(checkpoint, key, network, optimizer)
        for error in progress.validation:
            schedule.step(error)
    while not progress.is_over(plan):
        progress.rates.append(optimizer.param_groups[0]["lr"])
        progress.losses.append(_epoch(network, training, optimizer, plan, len(progress.losses)))
        outputs, targets = (
            _targets(network, labels) for labels in (forecasts(network, validation.inputs), validation.labels)
        )
        progress.validation.append(float(np.mean((outputs - targets) ** 2)))
        schedule.step(progress.validation[-1])
        if progress.since_best == 0:
            best = _weights(network)
        if checkpoint is not None:
            _keep(checkpoint, key, network, optimizer, progress, best)
        on_epoch(progress)
    network.parts.load_state_dict(best)
    return progress


def _epoch(
    network: BlockNetwork, training: BlockDataset, optimizer: Any, plan: TrainingPlan, number: int
) -> float:
    """Return the mean squared error of one epoch."""
    torch = required("torch")
    network.parts.train()
    torch.manual_seed(plan.seed * 1000 + number)  # the same order and dropout where a training goes on
    targets, total = torch.from_numpy(_targets(network, training.labels)), 0.0
    for chosen in torch.randperm(len(training)).split(plan.batch):
        optimizer.zero_grad()
        outputs = network(_seen(network, training.inputs[chosen.numpy()]))
        loss = torch.nn.functional.mse_loss(outputs, targets[chosen])
        loss.backward()
        if plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(network.parts.parameters(), plan.clip)
        optimizer.step()
        total += float(loss.detach()) * len(chosen)
    return total / len(training)


def _targets(network: BlockNetwork, labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what a network's output is to be where the labels are these."""
    return np.log(labels) if network.architecture.logarithm else labels


def _seen(network: BlockNetwork, inputs: NDArray[np.float32]) -> Any:
    return required("torch").from_numpy(np.ascontiguousarray(inputs[:, : network.architecture.channels]))


def forecasts(network: BlockNetwork, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what a network forecasts of blocks with inputs as `block_inputs` returns them, shape (b,)."""
    torch = required("torch")
    network.parts.eval()
    outputs = np.zeros(len(inputs), dtype=np.float32)
    with torch.no_grad():
        for first in range(0, len(inputs), _FORECAST_BATCH):
            chosen = slice(first, first + _FORECAST_BATCH)
            outputs[chosen] = network(_seen(network, inputs[chosen])).numpy()
    return np.exp(outputs) if network.architecture.logarithm else outputs


def _weights(network: BlockNetwork) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in network.parts.state_dict().items()}


def _keep(
    path: Path,
    key: dict[str, Any],
    network: BlockNetwork,
    optimizer: Any,
    progress: Progress,
    best: dict[str, Any],
) -> None:
    """Keep all that the next epoch needs: weights, best weights, state of the optimizer."""
    torch = required("torch")
    parts = {"last": network.parts.state_dict(), "best": best}
    parts |= {f"optimizer.{number}": state for number, state in optimizer.state_dict()["state"].items()}
    tensors = {
        f"{part}:{name}": torch.as_tensor(value)
        for part, values in parts.items()
        for name, value in values.items()
    }
    write_tensors(path, tensors, {"key": key, "progress": asdict(progress)})


def _resume(
    path: Path, key: dict[str, Any], network: BlockNetwork, optimizer: Any
) -> tuple[Progress, dict[str, Any]]:
    """Take over a checkpoint: weights, and the state of the optimizer; return progress and best weights."""
    tensors, facts = read_tensors(path, "a checkpoint of a training", "remove it")
    if facts.get("key") != key:
        raise InputError(
            f"{path} is the checkpoint of another training: expected the same network, blocks and plan; "
            f"remove it, or name another"
        )
    parts: dict[str, dict[str, Any]] = {}
    for name, value in tensors.items():
        part, _, rest = name.partition(":")
        parts.setdefault(part, {})[rest] = value
    network.parts.load_state_dict(parts.pop("last"))
    best = parts.pop("best")
    states = {int(part.removeprefix("optimizer.")): state for part, state in parts.items()}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
    return Progress(**facts["progress"]), best


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
