"""Networks of blocks of entries: those of Barreda, Dolz and Castano (2020), and one that sees more.

Section 4.2 and Table 2 have the architectures: twice a convolution, ReLU and a maximum over a pool, no
padding; then dense layers, each but the last with ReLU and dropout; one output that is linear. Inputs are
ln(|difference of columns| + 1) within a block, 249 of 250 entries. A trained network is a file of
safetensors, with architecture and model card as JSON in its metadata.

They learn from labels that were measured before, and forecast; nothing here runs a kernel or reads a clock.
They need PyTorch, which `pip install 'sparsecast[cnn]'` brings. Everything else works without it, the model
`blocks` too.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sparsecast.errors import InputError
from sparsecast.machines.storage import write_atomically
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.label_files import LabelFacts

#: Differences within a block.
INPUTS = BLOCK_ENTRIES - 1

#: What a reader of the files must know.
FILE_VERSION = "4"

#: What the extra `cnn` installs, by what it is for.
_PACKAGES = {
    "torch": "networks",
    "safetensors": "files of weights",
    "optuna": "the search",
    "h5py": "published labels",
}


def required(package: str) -> Any:
    """Return a package of the extra `cnn`; an InputError says what to install where it is missing."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"{_PACKAGES[package.partition('.')[0]]} without {package}: expected the extra cnn; "
            f"pip install 'sparsecast[cnn]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Architecture:
    """The hyper-parameters of Table 2, and what the paper's networks do not have."""

    #: filters, kernels, pools: of the two convolutions.
    filters: tuple[int, int]
    kernels: tuple[int, int]
    pools: tuple[int, int]
    #: dense, dropout: neurons of the dense layers before the output, and the dropout after each of them.
    dense: tuple[int, ...]
    dropout: tuple[float, ...]
    channels: int = 1  # 1: distances of columns. 2: also the rows that end between two entries.
    #: The output is the logarithm of the label, so that squared errors are of relative ones.
    logarithm: bool = False
    #: The dense layers see the mean of each filter over the block, wherever in it something is.
    averages: bool = False


#: Table 2: the networks of time and of energy.
TIME = Architecture((32, 64), (3, 9), (7, 5), (1000,), (6.6e-4,))
ENERGY = Architecture((32, 64), (5, 3), (7, 7), (100, 1000), (0.47, 0.59))

#: Ours: ends of rows next to the distances. It is smaller, and averages: what entries take adds up.
SEEING_ROWS = Architecture(
    (32, 32), (5, 5), (1, 1), (64, 64), (0.0, 0.0), channels=2, logarithm=True, averages=True
)


@dataclass
class BlockNetwork:
    """A network of PyTorch: a `ModuleDict` with the layers over the block, and the dense ones."""

    architecture: Architecture
    parts: Any = field(repr=False)

    def __call__(self, blocks: Any) -> Any:
        """Return the outputs, shape (b,), of blocks (b, channels, INPUTS)."""
        return self.parts["dense"](self.parts["blocks"](blocks)).squeeze(1)


def built(architecture: Architecture, seed: int = 0) -> BlockNetwork:
    """Return a network with weights as drawn from a seed, the paper's as Keras draws them.

    A ValueError says that nothing of a block is left after the pools.
    """
    torch = required("torch")
    nn, channels, length = torch.nn, architecture.channels, INPUTS
    filters, kernels, pools = architecture.filters, architecture.kernels, architecture.pools
    if min(*filters, *kernels, *pools, *architecture.dense, channels) < 1:
        raise ValueError("layers of at least one filter or neuron")
    for kernel, pool in zip(kernels, pools, strict=True):
        length = (length - kernel + 1) // pool
    if length < 1:
        raise ValueError(f"kernels {kernels} and pools {pools} leave nothing of {INPUTS} inputs")
    width = filters[1] if architecture.averages else length * filters[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[Any] = []
        dense: list[Any] = []
        for count, kernel, pool in zip(filters, kernels, pools, strict=True):
            layers += [nn.Conv1d(channels, count, kernel), nn.ReLU()]
            layers += [nn.MaxPool1d(pool)] if pool > 1 else []
            channels = count
        for neurons, dropout in zip(architecture.dense, architecture.dropout, strict=True):
            dense += [nn.Linear(width, neurons), nn.ReLU(), nn.Dropout(dropout)]
            width = neurons
        layers += [nn.AdaptiveAvgPool1d(1)] if architecture.averages else []
        parts = {
            "blocks": nn.Sequential(*layers, nn.Flatten()),
            "dense": nn.Sequential(*dense, nn.Linear(width, 1)),
        }
        # The paper's: Glorot's weights, biases of 0.
        if architecture.channels == 1 and not architecture.logarithm:
            for layer in (*parts["blocks"], *parts["dense"]):
                if hasattr(layer, "weight"):
                    nn.init.xavier_uniform_(layer.weight)
                    nn.init.zeros_(layer.bias)
        return BlockNetwork(architecture, nn.ModuleDict(parts))


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
