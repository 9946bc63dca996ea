"""Training of networks of blocks on the labels of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError, ProfileError, remedy_for
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem
from sparsecast.papers.barreda_2020.label_files import kept_labels
from sparsecast.papers.barreda_2020.networks.architectures import TIME, Architecture, built
from sparsecast.papers.barreda_2020.networks.dataset import BlockDataset, joined, labelled_blocks
from sparsecast.papers.barreda_2020.networks.scores import always_the_mean, score
from sparsecast.papers.barreda_2020.networks.training import (
    PAPER_PLAN,
    Progress,
    TrainingPlan,
    forecasts,
    train,
)
from sparsecast.papers.barreda_2020.networks.weights import ModelCard, save_network
from sparsecast.system.version import VERSION

#: Kinds of labels: two of time, and joules where a meter counted them. Splits: whole groups of matrices,
#: or the first blocks, as the paper splits.
KINDS, SPLITS = ("hot", "streaming", "energy"), ("groups", "paper")


def block_dataset(kind: str, dtype: str = "float64", most: int = 1024) -> BlockDataset:
    """Return the labelled blocks of this machine, made again from the matrices' specifications.

    Parameters
    ----------
    kind : str
        One of KINDS.
    dtype : str
        Of the values of the labelled products.
    most : int
        Blocks of one matrix, evenly spread.

    Raises
    ------
    InputError
        If `kind` is another.
    ProfileError
        If there are no labels whose matrices can be had.
    """
    if kind not in KINDS:
        raise InputError(
            f"labels '{kind}': expected one of {', '.join(KINDS)}; {remedy_for(kind, KINDS, 'name one')}"
        )
    machine = machine_of(PROCESSOR)
    parts = []
    for labels in kept_labels(machine.name, dtype):
        problem = Problem.rebuilt(labels.matrix)
        if problem is not None and (kind != "energy" or len(labels.energy_blocks)):
            parts.append(labelled_blocks(problem, labels, kind, machine, most))
    if not parts:
        where = ", where a meter is" if kind == "energy" else ""
        raise ProfileError(
            f"no {kind} labels of blocks of {dtype} values on {machine.name}: expected some; run sparsecast "
            f"label{where}"
        )
    return joined(parts)


def train_network(
    blocks: BlockDataset,
    kind: str,
    path: Path,
    *,
    dtype: str = "float64",
    architecture: Architecture = TIME,
    split: str = "groups",
    plan: TrainingPlan = PAPER_PLAN,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> ModelCard:
    """Train a network on labelled blocks and write it with its card; an interrupted training goes on.

    Parameters
    ----------
    blocks : BlockDataset
        As `block_dataset` gives it.
    kind, dtype : str
        Of the labels, for the card.
    path : Path
        Of the weights; the checkpoint stands beside it until the training is over.
    architecture : Architecture
        The paper's network of time by default; theirs of energy is ENERGY.
    split : str
        One of SPLITS.
    plan, on_epoch
        As in `train`.

    Raises
    ------
    InputError
        If `split` is another, PyTorch is missing, or the checkpoint is damaged or of another training.
    """
    if split not in SPLITS:
        raise InputError(
            f"split '{split}': expected one of {', '.join(SPLITS)}; {remedy_for(split, SPLITS, 'name one')}"
        )
    learned, validation = blocks.split_by_group() if split == "groups" else blocks.split_first()
    network, checkpoint = built(architecture), path.with_suffix(".checkpoint")
    progress = train(network, learned, validation, plan, checkpoint, on_epoch)
    errors = {
        "network": score(forecasts(network, validation), validation),
        "always the mean": always_the_mean(learned, validation),
        "measured again": score(validation.again, validation),
    }
    matrices = set(learned.matrices.tolist())
    card = ModelCard(
        quantity=kind if kind == "energy" else f"{kind} time",
        machine=machine_of(PROCESSOR).name,
        dtype=dtype,
        matrices=len(matrices),
        blocks=len(learned),
        split=split,
        errors={name: asdict(error) for name, error in errors.items()},
        trained_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        groups=tuple(sorted({blocks.groups[number] for number in matrices})),
        losses=tuple(progress.losses),
        validation=tuple(progress.validation),
    )
    save_network(network, card, path)
    checkpoint.unlink(missing_ok=True)
    return card
