"""What `train` does: networks of quantities and frequencies, searched, trained, tested, cross-validated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import numpy as np

from sparsecast.devices import machine_of
from sparsecast.errors import InputError, StorageError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.storage import ensure_writable
from sparsecast.measuring.energy import MODELLED
from sparsecast.models.forest import Forest
from sparsecast.papers.barreda_2020.block_model import TREES
from sparsecast.papers.barreda_2020.datasets import (
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
    ModelCard,
    built,
    load_network,
    save_network,
)
from sparsecast.papers.barreda_2020.training import (
    PAPER_PLAN,
    Progress,
    SearchResult,
    TrainingPlan,
    forecasts,
    search,
    train,
)
from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Columns, keys
from sparsecast.system.texts import percent
from sparsecast.system.version import VERSION

#: How blocks are parted: whole groups of matrices, or as the paper does.
SPLITS = ("groups", "paper")

#: Parts of a cross-validation (Barreda et al., section 5.2).
FOLDS = 5

#: Called with what is trained, epochs that are done, and most of them.
OnPart = Callable[[str, int, int], None]

ARCHITECTURES = ("paper", "ours")


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
    if not labels.sees_rows and architecture.channels > 1:
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
        network = _trained(request, labels, times.get(labels.frequency_ghz), on_part)
        if labels.quantity == "time":
            times[labels.frequency_ghz] = network.path
        yield network


def _trained(
    request: TrainingRequest, labels: LabelSet, time: Path | None, on_part: OnPart
) -> TrainedNetwork:
    """Return a network of some labels; `time` is that of the time of the same blocks."""
    of_labels = labels.machine, labels.quantity, labels.dtype, labels.frequency_ghz
    path = network_path(*of_labels, request.network, request.split)
    ensure_writable(path.parent)
    at = "" if labels.frequency_ghz is None else f" at {labels.frequency_ghz:g} GHz"
    is_energy = labels.quantity in ENERGIES
    architecture = SEEING_ROWS if request.network == "ours" else ENERGY if is_energy else TIME
    plan, found = replace(PAPER_PLAN, epochs=request.epochs), None
    if request.search:
        learned, validation, _ = labels.blocks.parts(request.split)
        file, what = path.with_suffix(f".{len(learned)}.search.sqlite"), f"search for {labels.quantity}"
        found = search(
            learned, validation, file, request.search, lambda number, _: on_part(what, number, request.search)
        )
        architecture = found.architecture
        plan = replace(found.plan, epochs=request.epochs, clip=PAPER_PLAN.clip)
    card = train_network(
        labels,
        path,
        architecture=architecture,
        split=request.split,
        plan=plan,
        time=time if is_energy else None,
        on_epoch=lambda progress: on_part(f"{labels.quantity}{at}", len(progress.losses), request.epochs),
    )
    if request.folds:
        card = cross_validate(labels, path, plan, request.folds)
    return TrainedNetwork(path, card, found)


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
