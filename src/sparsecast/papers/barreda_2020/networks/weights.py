"""Files of trained networks: safetensors, with architecture and model card as JSON in their metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from sparsecast.errors import InputError
from sparsecast.machines.storage import write_atomically
from sparsecast.papers.barreda_2020.label_files import LabelFacts
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import Architecture, BlockNetwork, built

#: What a reader of the files must know.
FILE_VERSION = "4"


@dataclass(frozen=True)
class ModelCard(LabelFacts):
    """What a network is, and how far it can be trusted."""

    #: matrices, blocks: that it learned from.
    matrices: int
    blocks: int
    split: str  # how the validation and the test were chosen
    #: On the test, each as `score` returns them: of the ``"network"``, of ``"always the mean"``, of
    #: ``"trees"`` that see features of the same blocks, of what was ``"measured again"`` and, for joules, of
    #: the ``"power baseline"``: mean power times the forecast time.
    errors: dict[str, dict[str, float]]
    matrix_errors: dict[str, float]  # of each matrix of the test, by its name
    trained_at: str
    version: str
    digest: str  # of what it learned, and how: the same digest is the same training
    mean: float  # of the labels that it learned
    groups: tuple[str, ...] = ()  # of matrices, that steered the training, too
    #: losses, validation: mean squared errors of each epoch, on what was learned and on the validation.
    losses: tuple[float, ...] = ()
    validation: tuple[float, ...] = ()
    #: Mean errors of blocks in the parts of a cross-validation; none without one.
    folds: tuple[float, ...] = ()


def save_network(network: BlockNetwork, card: ModelCard, path: Path) -> None:
    facts = {"architecture": asdict(network.architecture), "card": asdict(card)}
    write_tensors(path, network.parts.state_dict(), {"version": FILE_VERSION, **facts})


def load_network(path: Path, machine: str | None = None) -> tuple[BlockNetwork, ModelCard]:
    """Read a network and its card; an InputError refuses a damaged file, and a network of another machine."""
    remedy = "name another, or train it again"
    tensors, facts = read_tensors(path, "a trained network", remedy)
    if facts.get("version") != FILE_VERSION:
        raise InputError(f"{path} is no network of version {FILE_VERSION}: expected one; {remedy}")
    try:
        network = built(msgspec.convert(facts["architecture"], Architecture))
        card = msgspec.convert(facts["card"], ModelCard)
        network.parts.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, msgspec.ValidationError) as error:
        raise InputError(
            f"{path} has other weights than its architecture ({error}): expected those; {remedy}"
        ) from error
    if machine is not None and card.machine != machine:
        raise InputError(
            f"{path} was trained for {card.machine}: expected a network of {machine}; train one there"
        )
    return network, card


def write_tensors(path: Path, tensors: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    save = required("safetensors.torch").save_file
    contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
    texts = {name: json.dumps(fact) for name, fact in facts.items()}
    write_atomically(path, lambda temporary: save(contiguous, str(temporary), metadata=texts))


def read_tensors(path: Path, expected: str, remedy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the plain data of a file.

    If it is missing or damaged, an InputError says what was `expected`, and the `remedy`.
    """
    required("torch")
    safetensors = required("safetensors")
    try:
        with safetensors.safe_open(str(path), framework="pt") as stored:
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            facts = {name: json.loads(text) for name, text in (stored.metadata() or {}).items()}
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}): expected {expected}; {remedy}") from error
    return tensors, facts
