"""Training of networks as Barreda et al. did it (section 5.2), which goes on where it was interrupted.

Adam from 1e-3, batches of 256, mean squared error; the rate falls to a tenth after 5 epochs without gain, to
1e-4 at the least; the training ends after 15 such epochs, or after 100 in all, and the best weights are kept.
Labels are in nanoseconds or nanojoules an entry, as in the paper; ours learns their logarithms.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.machines.storage import write_atomically
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import BlockNetwork
from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset

#: Blocks that are forecast at once.
_FORECAST_BATCH = 4096

#: What a damaged checkpoint makes torch and json raise; an InputError is a ValueError, and comes first.
_DAMAGED = (OSError, KeyError, TypeError, ValueError, RuntimeError)

#: Squared errors fall by at least this share, or an epoch counts as one without gain.
_GAIN = 1e-4


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train; by default as the paper.

    Attributes
    ----------
    optimizer : str
        ``"Adam"``, ``"SGD"`` or ``"RMSprop"``.
    epochs, batch, patience, stop_after : int
    rate, least_rate, factor : float
    clip : float or None
        Largest norm of the gradient; None does not clip.
    seed : int
        Of the order of the blocks, and of dropout.
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
    """Where a training stands: plain data.

    Attributes
    ----------
    losses, validation : list of float
        Mean squared errors of each epoch, of logarithms where the network forecasts these.
    best : float
        The smallest of `validation`.
    rate : float
        Today's.
    since_best, since_gain : int
        Epochs since the best, and since that or the last fall of the rate.
    """

    rate: float
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: float = float("inf")
    since_best: int = 0
    since_gain: int = 0

    def take(self, loss: float, validation: float, plan: TrainingPlan) -> bool:
        """Take the errors of one epoch; tell whether its weights are the best so far."""
        self.losses.append(loss)
        self.validation.append(validation)
        is_best = validation < self.best * (1 - _GAIN)
        if is_best:
            self.best, self.since_best, self.since_gain = validation, 0, 0
        else:
            self.since_best += 1
            self.since_gain += 1
        if self.since_gain > plan.patience:
            self.rate, self.since_gain = max(self.rate * plan.factor, plan.least_rate), 0
        return is_best

    def is_over(self, plan: TrainingPlan) -> bool:
        """Tell whether no epoch follows."""
        return len(self.losses) >= plan.epochs or self.since_best >= plan.stop_after


def train(
    network: BlockNetwork,
    training: BlockDataset,
    validation: BlockDataset,
    plan: TrainingPlan = PAPER_PLAN,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Train a network, which ends with its best weights.

    Parameters
    ----------
    network : BlockNetwork
        Changed in place.
    training, validation : BlockDataset
    plan : TrainingPlan
    checkpoint : Path, optional
        Where the state of each epoch is kept (safetensors, and JSON in its metadata). Where such a file is
        there already, the training goes on from it. It stays when the training is over.
    on_epoch : callable
        Called after each epoch.

    Raises
    ------
    InputError
        If a dataset is empty, or the checkpoint is damaged or of another training.
    """
    torch = required("torch")
    if not len(training) or not len(validation):
        raise InputError(
            f"{len(training)} blocks to train with and {len(validation)} to validate: expected some of both; "
            f"label more matrices"
        )
    optimizer = getattr(torch.optim, plan.optimizer)(network.parts.parameters(), lr=plan.rate)
    progress = Progress(plan.rate)
    best = {name: value.detach().clone() for name, value in network.parts.state_dict().items()}
    key = _key(network, training, validation, plan)
    if checkpoint is not None and checkpoint.exists():
        progress, best = _resume(checkpoint, key, network, optimizer)
    if not progress.losses:
        # The output begins at the mean of the labels: it is linear, and these are far from 0.
        with torch.no_grad():
            network.parts["dense"][-1].bias.fill_(float(_targets(network, training.labels).mean()))
    while not progress.is_over(plan):
        for group in optimizer.param_groups:
            group["lr"] = progress.rate
        loss = _epoch(network, training, optimizer, plan, len(progress.losses))
        found, wanted = forecasts(network, validation), validation.labels
        error = _targets(network, found) - _targets(network, wanted)
        if progress.take(loss, float(np.mean(error**2)), plan):
            best = {name: value.detach().clone() for name, value in network.parts.state_dict().items()}
        if checkpoint is not None:
            _keep(checkpoint, key, network, optimizer, progress, best)
        on_epoch(progress)
    network.parts.load_state_dict(best)
    return progress


def _epoch(
    network: BlockNetwork, training: BlockDataset, optimizer: Any, plan: TrainingPlan, number: int
) -> float:
    """Train for one epoch; return the mean squared error."""
    torch = required("torch")
    network.parts.train()
    torch.manual_seed(plan.seed * 1000 + number)  # the same order and dropout where a training goes on
    order = np.random.default_rng([plan.seed, number]).permutation(len(training))
    targets, total = torch.from_numpy(_targets(network, training.labels)), 0.0
    for first in range(0, len(order), plan.batch):
        chosen = order[first : first + plan.batch]
        optimizer.zero_grad()
        blocks, conditions = _tensors(network, training, chosen)
        loss = torch.nn.functional.mse_loss(network(blocks, conditions), targets[chosen])
        loss.backward()
        if plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(network.parts.parameters(), plan.clip)
        optimizer.step()
        total += float(loss.detach()) * len(chosen)
    return total / len(order)


def _targets(network: BlockNetwork, labels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what a network's output is to be where the labels are these."""
    return np.log(labels) if network.architecture.logarithm else labels


def _tensors(network: BlockNetwork, blocks: BlockDataset, chosen: Any) -> tuple[Any, Any]:
    torch, wanted = required("torch"), network.architecture
    inputs = np.ascontiguousarray(blocks.inputs[chosen][:, : wanted.channels])
    conditions = np.ascontiguousarray(blocks.conditions[chosen][:, : wanted.conditions])
    return torch.from_numpy(inputs), torch.from_numpy(conditions)


def forecasts(network: BlockNetwork, blocks: BlockDataset) -> NDArray[np.float32]:
    """Return what a network forecasts of each block, shape (b,)."""
    torch = required("torch")
    network.parts.eval()
    found = []
    with torch.no_grad():
        for first in range(0, len(blocks), _FORECAST_BATCH):
            chosen = slice(first, first + _FORECAST_BATCH)
            found.append(network(*_tensors(network, blocks, chosen)).numpy())
    outputs = np.concatenate(found) if found else np.zeros(0, dtype=np.float32)
    return np.exp(outputs) if network.architecture.logarithm else outputs


def _key(network: BlockNetwork, training: BlockDataset, validation: BlockDataset, plan: TrainingPlan) -> str:
    """Return what a checkpoint must have been made for: architecture, data and plan."""
    data = [len(training), float(training.labels.sum()), len(validation), float(validation.labels.sum())]
    return json.dumps([network.architecture.to_dict(), asdict(plan), data], sort_keys=True)


def _keep(
    path: Path, key: str, network: BlockNetwork, optimizer: Any, progress: Progress, best: dict[str, Any]
) -> None:
    """Keep all that the next epoch needs: weights, best weights, state of the optimizer."""
    torch, save = required("torch"), required("safetensors.torch").save_file
    tensors = {f"last.{name}": value.contiguous() for name, value in network.parts.state_dict().items()}
    tensors |= {f"best.{name}": value.contiguous() for name, value in best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    facts = {"key": key, "progress": json.dumps(asdict(progress))}
    write_atomically(path, lambda temporary: save(tensors, str(temporary), metadata=facts))


def _resume(path: Path, key: str, network: BlockNetwork, optimizer: Any) -> tuple[Progress, dict[str, Any]]:
    """Take over a checkpoint."""
    safe_open = required("safetensors").safe_open
    try:
        with safe_open(str(path), framework="pt") as stored:
            facts = stored.metadata() or {}
            if facts.get("key") != key:
                raise InputError(
                    f"{path} is the checkpoint of another training: expected the same network, blocks and "
                    f"plan; remove it, or name another"
                )
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        parts: dict[str, dict[str, Any]] = {"last": {}, "best": {}, "optimizer": {}}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            parts[kind][rest] = value
        network.parts.load_state_dict(parts["last"])
        state = optimizer.state_dict()
        for name, value in parts["optimizer"].items():
            number, _, what = name.partition(".")
            state["state"].setdefault(int(number), {})[what] = value
        optimizer.load_state_dict(state)
        return Progress(**json.loads(facts["progress"])), parts["best"]
    except InputError:
        raise
    except (*_DAMAGED, required("safetensors").SafetensorError) as error:
        raise InputError(
            f"{path} cannot be read ({' '.join(str(error).split())}): expected a checkpoint of a training; "
            f"remove it"
        ) from error
