"""Training of networks as Barreda et al. did it, the search before it, and what the command `train` does.

Section 5.2: Adam from 1e-3, batches of 256, mean squared error; the rate falls to a tenth after 5 epochs
without gain, to 1e-4 at the least; the training ends after 15 epochs without a smaller error, or after 100 in
all, and the best weights are kept. Labels are in nanoseconds or nanojoules an entry, as in the paper; ours
learns their logarithms.

For the search in the space of Table 2 the paper uses Hyperas: the tree-structured Parzen estimator
(Bergstra, Yamins, Cox 2013) over 100 trials of one epoch. Here Optuna does it. Each trial is kept in an
SQLite file. Both go on where they were interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices import machine_of
from sparsecast.errors import InputError, StorageError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.storage import ensure_writable
from sparsecast.measuring.energy import MODELLED
from sparsecast.models.forest import Forest
from sparsecast.papers.barreda_2020.block_model import TREES
from sparsecast.papers.barreda_2020.datasets import (
    BlockDataset,
    LabelSet,
    label_set,
    matrix_errors,
    published_labels,
    score,
)
from sparsecast.papers.barreda_2020.label_files import ENERGIES, labelled_frequencies, labels_folder
from sparsecast.papers.barreda_2020.networks import (
    ENERGY,
    SEEING_ROWS,
    TIME,
    Architecture,
    BlockNetwork,
    ModelCard,
    built,
    load_network,
    read_tensors,
    required,
    save_network,
    write_tensors,
)
from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import percent
from sparsecast.system.version import VERSION

#: Blocks that are forecast at once.
_FORECAST_BATCH = 4096

#: Trials of the paper's search, each of one epoch, with the gradient clipped to this norm.
TRIALS, CLIP = 100, 1.0

#: How blocks are parted: whole groups of matrices, or as the paper does.
SPLITS = ("groups", "paper")

#: Parts of a cross-validation (Barreda et al., section 5.2).
FOLDS = 5

#: Called with what is trained, epochs that are done, and most of them.
OnPart = Callable[[str, int, int], None]

ARCHITECTURES = ("paper", "ours")


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
    """The best network of a search, how to train it, and the trials."""

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
    architecture, plan = suggested(optuna.trial.FixedTrial(study.best_params))
    return SearchResult(architecture, plan, trials)


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


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Which networks to train, and how."""

    #: Of QUANTITIES; None for ``"time"`` and the energies that the labels have.
    quantities: tuple[str, ...] | None = None
    #: All that have labels by default; labels at the machine's own frequency where none has.
    frequencies_ghz: tuple[float, ...] = ()
    #: network, split: of ARCHITECTURES and of SPLITS.
    network: str = "paper"
    split: str = "groups"
    published: Path | None = None  # folder of the authors' labels, in the place of those of this machine
    #: epochs, blocks: at most, and of one matrix at most.
    epochs: int = 100
    blocks: int = 1024
    search: int = 0  # trials of the search for hyper-parameters, which takes the place of Table 2
    folds: int = 0  # parts of a cross-validation; 0 for none


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A network, its card, and the search that found its hyper-parameters."""

    path: Path
    card: ModelCard
    found: SearchResult | None = None

    @property
    def modelled(self) -> str:
        """What of the labels is modelled: ``"joules"``, ``"times"``, both, or nothing."""
        what = {"times": self.card.frequency_source, "joules": self.card.energy_source}
        return " and ".join(name for name, source in what.items() if source and MODELLED in source)


def network_path(
    machine: str, quantity: str, dtype: str, frequency_ghz: float | None, name: str, split: str
) -> Path:
    """Return the file of a network in the data folder; `name` is that of its architecture."""
    at = "" if frequency_ghz is None else f"-{frequency_ghz:g}GHz"
    return labels_folder(machine) / "networks" / f"{quantity}-{dtype}{at}-{name}-{split}.safetensors"


def train_network(
    labels: LabelSet,
    path: Path,
    *,
    architecture: Architecture = TIME,
    split: str = "groups",
    plan: TrainingPlan = PAPER_PLAN,
    time: Path | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> ModelCard:
    """Train a network on labelled blocks and write it with its card.

    An interrupted training goes on, and a network that was trained so before is taken over. The checkpoint
    stands next to the network until the training is over. Where `time` is the trained network of the time of
    the same blocks, joules are compared with its power baseline.
    """
    if split not in SPLITS:
        raise InputError(
            f"split '{split}': expected one of {', '.join(SPLITS)}; {remedy_for(split, SPLITS, 'name one')}"
        )
    if not labels.blocks.features.size and architecture.channels > 1:
        raise InputError(
            f"a network that sees ends of rows on labels of {labels.machine} without them: expected one of "
            f"the paper's; choose it"
        )
    digest = _digest(labels, architecture, split, plan, time)
    with suppress(InputError):  # not there, or of another version, which makes room
        _, card = load_network(path)
        if card.digest == digest:
            return card
    learned, validation, test = labels.blocks.parts(split)
    if not len(test):
        raise InputError(f"{len(labels.blocks)} blocks of one group: expected several; label more matrices")
    network, checkpoint = built(architecture), path.with_suffix(f".{digest[:12]}.checkpoint")
    progress = train(network, learned, validation, plan, checkpoint, on_epoch)
    mean, estimates = float(learned.labels.mean()), {"network": forecasts(network, test.inputs)}
    estimates["always the mean"] = np.full(len(test), mean, dtype=np.float32)
    if learned.features.size:  # as the trees of the model `blocks`
        trees = Forest.boosted(learned.features.astype(float), np.log(learned.labels.astype(float)), **TREES)
        estimates["trees"] = np.exp(trees.mean(test.features.astype(float))).astype(np.float32)
    if np.isfinite(test.again).all():
        estimates["measured again"] = test.again
    if time is not None:  # mean power, by the mean joules learned, times the time by a network (section 5.3)
        of_time, card_of_time = load_network(time)
        power_w = mean / card_of_time.mean
        estimates["power baseline"] = (power_w * forecasts(of_time, test.inputs)).astype(np.float32)
    steered = {*learned.matrices.tolist(), *validation.matrices.tolist()}
    card = ModelCard(
        **labels.facts,
        matrices=len(set(learned.matrices.tolist())),
        blocks=len(learned),
        split=split,
        errors={name: score(estimated, test, mean) for name, estimated in estimates.items()},
        matrix_errors=matrix_errors(estimates["network"], test),
        trained_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        digest=digest,
        mean=mean,
        groups=tuple(sorted({labels.blocks.groups[number] for number in steered})),
        losses=tuple(progress.losses),
        validation=tuple(progress.validation),
    )
    save_network(network, card, path)
    checkpoint.unlink(missing_ok=True)
    return card


def cross_validate(labels: LabelSet, path: Path, plan: TrainingPlan, count: int = FOLDS) -> ModelCard:
    """Train a network as that of a file on the groups but a part, in turn; its card keeps the errors.

    As in the paper, the part that is left out steers the training.
    """
    whole, card = load_network(path)
    if not card.folds or len(card.folds) != min(count, len(set(labels.blocks.groups))):
        errors = []
        for learned, validation in labels.blocks.folds(count):
            network = built(whole.architecture)
            train(network, learned, validation, plan)
            estimated = forecasts(network, validation.inputs)
            errors.append(score(estimated, validation, float(learned.labels.mean()))["block_mean"])
        card = replace(card, folds=tuple(errors))
        save_network(whole, card, path)
    return card


def _digest(
    labels: LabelSet, architecture: Architecture, split: str, plan: TrainingPlan, time: Path | None
) -> str:
    """Return a digest of all that a card is made from: labels, inputs, machine, plan, the network of time."""
    blocks, facts = labels.blocks, [*labels.facts.values()]
    facts.append(None if time is None else load_network(time)[1].digest)
    digest = hashlib.sha256(repr((architecture, split, plan, blocks.names, blocks.groups, facts)).encode())
    for array in (blocks.inputs, blocks.features, blocks.labels, blocks.again, blocks.matrices):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def sentences(networks: Sequence[TrainedNetwork]) -> Iterator[str]:
    """Give what is modelled, what was searched, and the cross-validation."""
    if any(network.modelled for network in networks):
        yield (
            "Modelled: joules by the power of the paper's core; where frequencies cannot be set, times "
            "at lower ones are those of here, longer in proportion."
        )
    for network in networks:
        quantity, found, folds = network.card.quantity, network.found, network.card.folds
        if found is not None:
            yield (
                f"Search, {quantity}: best of {found.trials} trials of one epoch: {found.architecture}, "
                f"{found.plan.optimizer} from {found.plan.rate:g}, batches of {found.plan.batch}."
            )
        if folds:
            errors, mean = ", ".join(map(percent, folds)), percent(fmean(folds))
            yield f"Cross-validation of {quantity}: {errors} a block; mean {mean}."


def trained(
    request: TrainingRequest, on_part: OnPart = lambda what, done, most: None
) -> Iterator[TrainedNetwork]:
    """Give networks as they are trained, those of time first; what was trained so before is taken over."""
    if request.network not in ARCHITECTURES:
        raise InputError(f"network '{request.network}': expected paper or ours; name one")
    times: dict[float | None, Path] = {}
    for labels in _label_sets(request):
        quantity, ghz = labels.quantity, labels.frequency_ghz
        path = network_path(labels.machine, quantity, labels.dtype, ghz, request.network, request.split)
        ensure_writable(path.parent)
        architecture, plan, found = _chosen(request, labels, path, on_part)
        what = quantity if ghz is None else f"{quantity} at {ghz:g} GHz"
        card = train_network(
            labels,
            path,
            architecture=architecture,
            split=request.split,
            plan=plan,
            time=times.get(ghz) if quantity in ENERGIES else None,
            on_epoch=partial(_tell, on_part, what, request.epochs),
        )
        if request.folds:
            card = cross_validate(labels, path, plan, request.folds)
        if quantity == "time":
            times[ghz] = path
        yield TrainedNetwork(path, card, found)


def _tell(on_part: OnPart, what: str, epochs: int, progress: Progress) -> None:
    on_part(what, len(progress.losses), epochs)


def _chosen(
    request: TrainingRequest, labels: LabelSet, path: Path, on_part: OnPart
) -> tuple[Architecture, TrainingPlan, SearchResult | None]:
    """Return what to train and how, and the search that found it, if one was asked for."""
    if not request.search:
        of_paper = ENERGY if labels.quantity in ENERGIES else TIME
        architecture = SEEING_ROWS if request.network == "ours" else of_paper
        return architecture, replace(PAPER_PLAN, epochs=request.epochs), None
    learned, validation, _ = labels.blocks.parts(request.split)
    file, what = path.with_suffix(f".{len(learned)}.search.sqlite"), f"search for {labels.quantity}"
    found = search(
        learned, validation, file, request.search, lambda number, _: on_part(what, number, request.search)
    )
    return found.architecture, replace(found.plan, epochs=request.epochs, clip=PAPER_PLAN.clip), found


def _label_sets(request: TrainingRequest) -> Iterator[LabelSet]:
    if request.published is not None:
        for quantity in request.quantities or ("time", *ENERGIES):
            yield published_labels(request.published, quantity, request.blocks)
        return
    known = labelled_frequencies(machine_of(PROCESSOR).name, "float64")
    frequencies: list[float | None] = [*(request.frequencies_ghz or known)] or [None]
    for ghz in frequencies:
        for quantity in request.quantities or ("time", *ENERGIES):
            try:
                yield label_set(quantity, most=request.blocks, frequency_ghz=ghz)
            except StorageError:
                raise
            except InputError:
                if request.quantities is not None or quantity == "time":
                    raise


def error_column(name: str, which: str, heading: str, of: str = "") -> Column:
    """Return the column of an error on a network's card; `of` names it in a row of several networks."""
    return Column(
        f"{of and f'{of}_'}{name.replace(' ', '_')}_{which}",
        heading,
        lambda row: (getattr(row, of) if of else row).card.errors.get(name, {}).get(which),
        percent,
    )


#: Of a TrainedNetwork.
NETWORK: Columns = (
    Column("quantity", "quantity", "card.quantity"),
    Column("frequency_ghz", "GHz", "card.frequency_ghz", "{:g}".format),
    error_column("network", "block_mean", "block, mean"),
    error_column("network", "block_median", "median"),
    error_column("network", "explained", "explained"),
    error_column("network", "matrix_mean", "matrix, mean"),
    error_column("network", "matrix_median", "median "),
    error_column("network", "matrix_worst", "worst"),
    error_column("always the mean", "block_mean", "always the mean"),
    error_column("trees", "block_mean", "trees"),
    error_column("measured again", "block_mean", "measured again"),
    error_column("power baseline", "block_mean", "power x time"),
    Column("modelled", "modelled", lambda network: network.modelled or None),
    Column("cross_validation_block_mean", "", "card.folds"),
    *within("card", keys("energy_source", "frequency_source", "blocks", "matrices", "split", "machine")),
    Column("file", value=lambda network: str(network.path)),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {"train": (Column("networks", columns=NETWORK),)}
