"""Training of networks of blocks on labels: those of this machine, or the authors'."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError, ProfileError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.papers.barreda_2020.label_files import (
    ENERGIES,
    QUANTITIES,
    LabelFacts,
    kept_labels,
    labelled_frequencies,
    labels_folder,
)
from sparsecast.papers.barreda_2020.networks.architectures import TIME, Architecture, built
from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset, joined, labelled_blocks
from sparsecast.papers.barreda_2020.networks.scores import always_the_mean, matrix_errors, score
from sparsecast.papers.barreda_2020.networks.training import (
    PAPER_PLAN,
    Progress,
    TrainingPlan,
    forecasts,
    train,
)
from sparsecast.papers.barreda_2020.networks.weights import ModelCard, load_network, save_network
from sparsecast.system.version import VERSION

#: How blocks are parted: whole groups of matrices, or as the paper does.
SPLITS = ("groups", "paper")

#: Parts of a cross-validation (Barreda et al., section 5.2).
FOLDS = 5

OnEpoch = Callable[[Progress], None]


@dataclass(frozen=True)
class LabelSet(LabelFacts):
    """Blocks with labels of one quantity.

    Attributes
    ----------
    blocks : BlockDataset
    sees_rows : bool
        Whether the ends of rows are known, which our networks see.
    """

    blocks: BlockDataset
    sees_rows: bool = True


def refuse_quantity(quantity: str) -> None:
    """Raise an InputError for what labels do not have."""
    if quantity not in QUANTITIES:
        remedy = remedy_for(quantity, QUANTITIES, "name one")
        raise InputError(f"labels '{quantity}': expected one of {', '.join(QUANTITIES)}; {remedy}")


def label_set(
    quantity: str, dtype: str = "float64", most: int = 1024, frequency_ghz: float | None = None
) -> LabelSet:
    """Return the labelled blocks of this machine, made again from the matrices' specifications.

    Parameters
    ----------
    quantity : str
        One of QUANTITIES.
    dtype : str
        Of the values of the labelled products.
    most : int
        Blocks of one matrix, evenly spread.
    frequency_ghz : float, optional
        One that `label --frequencies` named; by default labels at that of the machine.

    Raises
    ------
    InputError
        If `quantity` is another.
    ProfileError
        If there are no labels whose matrices can be had.
    """
    refuse_quantity(quantity)
    machine = machine_of(PROCESSOR)
    parts, used = [], []
    for labels in kept_labels(machine.name, dtype, frequency_ghz):
        blocks = labelled_blocks(labels, quantity, machine, most)
        if blocks is not None:
            parts.append(blocks)
            used.append(labels)
    if not parts:
        at = "" if frequency_ghz is None else f" at {frequency_ghz:g} GHz"
        known = ", ".join(f"{ghz:g}" for ghz in labelled_frequencies(machine.name, dtype)) or "none"
        where = " with a meter" if quantity in ENERGIES else ""
        raise ProfileError(
            f"no {quantity} labels of blocks of {dtype} values{at} on {machine.name}: expected some, GHz "
            f"with labels: {known}; run sparsecast label{where}"
        )
    set_by, counted_by = (
        ", ".join(sorted({getattr(labels, name) for labels in used} - {None})) or None
        for name in ("frequency_source", "energy_source")
    )
    energy_source = counted_by if quantity in ENERGIES else None
    return LabelSet(quantity, machine.name, dtype, frequency_ghz, set_by, energy_source, joined(parts))


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
    on_epoch: OnEpoch = lambda progress: None,
) -> ModelCard:
    """Train a network on labelled blocks and write it with its card.

    An interrupted training goes on, and a network that was trained so before is taken over.

    Parameters
    ----------
    labels : LabelSet
    path : Path
        Of the weights; the checkpoint stands beside it until the training is over.
    architecture : Architecture
        The paper's network of time by default; theirs of energy is ENERGY.
    split : str
        One of SPLITS.
    plan, on_epoch
        As in `train`.
    time : Path, optional
        The trained network of the time of the same blocks: joules are compared with its power baseline.

    Raises
    ------
    InputError
        If `split` is another, PyTorch is missing, labels lack what the network sees, or a file is damaged.
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
    if path.exists():
        _, card = load_network(path)
        if card.digest == digest:
            return card
    learned, validation, test = labels.blocks.parts(split)
    if not len(test):
        raise InputError(f"{len(labels.blocks)} blocks of one group: expected several; label more matrices")
    network, checkpoint = built(architecture), path.with_suffix(f".{digest[:12]}.checkpoint")
    progress = train(network, learned, validation, plan, checkpoint, on_epoch)
    estimated = forecasts(network, test)
    errors = {"network": score(estimated, test), "always the mean": always_the_mean(learned, test)}
    if np.isfinite(test.again).all():
        errors["measured again"] = score(test.again, test)
    if time is not None:
        errors["power baseline"] = power_baseline(time, learned, test)
    steered = {*learned.matrices.tolist(), *validation.matrices.tolist()}
    card = ModelCard(
        **labels.facts,
        matrices=len(set(learned.matrices.tolist())),
        blocks=len(learned),
        split=split,
        errors=errors,
        matrix_errors=matrix_errors(estimated, test),
        trained_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        digest=digest,
        mean=float(learned.labels.mean()),
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
            errors.append(score(forecasts(network, validation), validation)["block_mean"])
        card = replace(card, folds=tuple(errors))
        save_network(whole, card, path)
    return card


def power_baseline(time: Path, learned: BlockDataset, test: BlockDataset) -> dict[str, float]:
    """Return the errors of mean power, of what is learned, times the time by a network (section 5.3)."""
    network, card = load_network(time)
    power = float(learned.labels.mean()) / card.mean
    return score((power * forecasts(network, test)).astype(np.float32), test)


def _digest(
    labels: LabelSet, architecture: Architecture, split: str, plan: TrainingPlan, time: Path | None
) -> str:
    """Return a digest of all that a card is made from: labels, inputs, machine, plan, the network of time."""
    blocks, facts = labels.blocks, [*labels.facts.values()]
    facts.append(None if time is None else load_network(time)[1].digest)
    digest = hashlib.sha256(repr((architecture, split, plan, blocks.names, blocks.groups, facts)).encode())
    for array in (blocks.inputs, blocks.conditions, blocks.labels, blocks.again, blocks.matrices):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
