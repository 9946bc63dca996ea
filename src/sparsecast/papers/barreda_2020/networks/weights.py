"""Files of trained networks: safetensors, with architecture and model card as JSON in their metadata."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.machines.storage import write_atomically
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import Architecture, BlockNetwork, built

#: What a reader of the files must know.
FILE_VERSION = 1


@dataclass(frozen=True)
class ModelCard:
    """What a network is, and how far it can be trusted.

    Attributes
    ----------
    quantity : str
        ``"hot time"``, ``"streaming time"`` (nanoseconds an entry) or ``"energy"`` (nanojoules an entry).
    machine : str
        Whose labels it learned.
    dtype : str
        Of the values of the labelled matrices.
    matrices : int
        That it learned from; their groups are `groups`.
    blocks : int
    split : str
        How the validation was chosen.
    errors : dict of str to dict of str to float
        On the validation, each by the names of a BlockScore: of the ``"network"``, of ``"always the mean"``
        and of what was ``"measured again"``.
    trained_at, version : str
    groups : tuple of str
    losses, validation : tuple of float
        Mean squared errors of each epoch, on what was learned and on the validation.
    """

    quantity: str
    machine: str
    dtype: str
    matrices: int
    blocks: int
    split: str
    errors: dict[str, dict[str, float]]
    trained_at: str
    version: str
    groups: tuple[str, ...] = field(default=())
    losses: tuple[float, ...] = field(default=())
    validation: tuple[float, ...] = field(default=())


def save_network(network: BlockNetwork, card: ModelCard, path: Path) -> None:
    """Write a network with its card.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    save = required("safetensors.torch").save_file
    tensors = {name: value.detach().contiguous() for name, value in network.parts.state_dict().items()}
    facts = {
        "version": str(FILE_VERSION),
        "architecture": json.dumps(network.architecture.to_dict()),
        "card": json.dumps(asdict(card)),
    }
    write_atomically(path, lambda temporary: save(tensors, str(temporary), metadata=facts))


def load_network(path: Path, machine: str | None = None) -> tuple[BlockNetwork, ModelCard]:
    """Read a network and its card.

    Parameters
    ----------
    path : Path
    machine : str, optional
        Name of the machine that the question is about: a network of another one is refused.

    Raises
    ------
    InputError
        If the file is missing or damaged, its weights have other shapes than its architecture, it is of
        another version, or was trained for another machine.
    """
    safetensors = required("safetensors")
    remedy = "expected a file that save_network wrote; name another, or train it again"
    try:
        with safetensors.safe_open(str(path), framework="pt") as stored:
            facts = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        if facts.get("version") != str(FILE_VERSION):
            raise InputError(f"{path} is a network of version {facts.get('version')}: {remedy}")
        architecture = Architecture.from_dict(json.loads(facts["architecture"]))
        card = _card(json.loads(facts["card"]))
    except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read ({' '.join(str(error).split())}): {remedy}") from error
    if machine is not None and card.machine != machine:
        raise InputError(
            f"{path} was trained for {card.machine}: expected a network of {machine}; train one there"
        )
    network = built(architecture)
    _refuse_other_shapes(path, network, tensors)
    network.parts.load_state_dict(tensors)
    return network, card


def _card(stored: dict[str, Any]) -> ModelCard:
    rows = {name: tuple(stored.get(name, ())) for name in ("groups", "losses", "validation")}
    return ModelCard(**(stored | rows))


def _refuse_other_shapes(path: Path, network: BlockNetwork, tensors: dict[str, Any]) -> None:
    expected = {name: tuple(value.shape) for name, value in network.parts.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise InputError(
                f"{path} has {name} of shape {found.get(name)}: expected {expected.get(name)}, as its "
                f"architecture says; train it again"
            )
