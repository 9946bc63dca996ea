"""What `train` does: networks of quantities and frequencies, searched, trained, tested, cross-validated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError, StorageError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.storage import ensure_writable
from sparsecast.measuring.energy import MODELLED
from sparsecast.papers.barreda_2020.label_files import ENERGIES, labelled_frequencies
from sparsecast.papers.barreda_2020.network_training import (
    LabelSet,
    cross_validate,
    label_set,
    network_path,
    train_network,
)
from sparsecast.papers.barreda_2020.networks.architectures import ENERGY, SEEING_ROWS, TIME
from sparsecast.papers.barreda_2020.networks.search import SearchResult, search
from sparsecast.papers.barreda_2020.networks.training import PAPER_PLAN
from sparsecast.papers.barreda_2020.networks.weights import ModelCard
from sparsecast.papers.barreda_2020.published_labels import published_labels
from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Columns, Table, keys
from sparsecast.system.texts import percent

#: Called with what is trained, epochs that are done, and most of them.
OnPart = Callable[[str, int, int], None]

ARCHITECTURES = ("paper", "ours")


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Which networks to train, and how.

    Attributes
    ----------
    quantities : tuple of str, or None
        Of QUANTITIES; None for ``"time"`` and the energies that the labels have.
    frequencies_ghz : tuple of float
        All that have labels by default; labels at the machine's own frequency where none has.
    network : str
        One of ARCHITECTURES.
    split : str
        One of SPLITS.
    published : Path or None
        Folder of the authors' labels, in the place of those of this machine.
    epochs, blocks : int
        At most, and of one matrix at most.
    search : int
        Trials of the search for hyper-parameters, which takes the place of Table 2.
    folds : int
        Parts of a cross-validation; 0 for none.
    """

    quantities: tuple[str, ...] | None = None
    frequencies_ghz: tuple[float, ...] = ()
    network: str = "paper"
    split: str = "groups"
    published: Path | None = None
    epochs: int = 100
    blocks: int = 1024
    search: int = 0
    folds: int = 0


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A network with its errors on matrices that it has not seen.

    Attributes
    ----------
    path : Path
    card : ModelCard
    found : SearchResult or None
    """

    path: Path
    card: ModelCard
    found: SearchResult | None = None

    @property
    def modelled(self) -> str:
        """What of the labels is modelled: ``"joules"``, ``"times"``, both, or nothing."""
        what = {"times": self.card.frequency_source, "joules": self.card.energy_source}
        return " and ".join(name for name, source in what.items() if source and MODELLED in source)


def network_table(networks: Sequence[TrainedNetwork]) -> Table:
    """Return a row for each network."""
    return Table("Errors on matrices that were not learned from", NETWORK, networks)


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
    """Give networks as they are trained, those of time first; what was trained so before is taken over.

    Raises
    ------
    InputError, ProfileError
        As `label_set`, `published_labels` and `train_network` raise them; if `network` is unknown.
    """
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
        found = _searched(request, labels, path, on_part)
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


def _searched(request: TrainingRequest, labels: LabelSet, path: Path, on_part: OnPart) -> SearchResult:
    learned, validation, _ = labels.blocks.parts(request.split)
    file = path.with_suffix(f".{len(learned)}.search.sqlite")
    what = f"search for {labels.quantity}"
    return search(
        learned, validation, file, request.search, lambda number, error: on_part(what, number, request.search)
    )


def _error(name: str, which: str, heading: str) -> Column:
    return Column(
        f"{name.replace(' ', '_')}_{which}",
        heading,
        lambda network: network.card.errors.get(name, {}).get(which),
        percent,
    )


#: Of a TrainedNetwork.
NETWORK: Columns = (
    Column("quantity", "quantity", "card.quantity"),
    Column("frequency_ghz", "GHz", "card.frequency_ghz", "{:g}".format),
    _error("network", "block_mean", "block, mean"),
    _error("network", "block_median", "median"),
    _error("network", "matrix_mean", "matrix, mean"),
    _error("network", "matrix_median", "median "),
    _error("network", "matrix_worst", "worst"),
    _error("always the mean", "block_mean", "always the mean"),
    _error("measured again", "block_mean", "measured again"),
    _error("power baseline", "block_mean", "power x time"),
    Column("modelled", "modelled", lambda network: network.modelled or None),
    Column("cross_validation_block_mean", "", "card.folds"),
    *within("card", keys("energy_source", "frequency_source", "blocks", "matrices", "split", "machine")),
    Column("file", value=lambda network: str(network.path)),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {"train": (Column("networks", columns=NETWORK),)}
