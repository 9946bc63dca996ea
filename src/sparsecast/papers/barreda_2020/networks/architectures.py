"""Architectures of networks of blocks, in PyTorch.

Source: M. Barreda, M. F. Dolz, M. A. Castano, "Convolutional neural nets for estimating the run time and
energy consumption of the sparse matrix-vector product" (2020), section 4.2 and Table 2. Twice a convolution,
ReLU and a maximum over a pool, no padding; then dense layers, each but the last with ReLU and dropout; one
output that is linear. Inputs are ln(|difference of columns| + 1) within a block, 249 of 250 entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparsecast.papers.barreda_2020.features.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.networks import required

#: Differences within a block.
INPUTS = BLOCK_ENTRIES - 1


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

    @property
    def flat(self) -> int:
        """Numbers that the convolutions leave of a block."""
        if min(*self.filters, *self.kernels, *self.pools, *self.dense, self.channels) < 1:
            raise ValueError("layers of at least one filter or neuron")
        length = INPUTS
        for kernel, pool in zip(self.kernels, self.pools, strict=True):
            length = (length - kernel + 1) // pool
        if length < 1:
            raise ValueError(
                f"kernels {self.kernels} and pools {self.pools} leave nothing of {INPUTS} inputs"
            )
        return self.filters[1] if self.averages else length * self.filters[1]


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

    @property
    def parameters(self) -> int:
        return sum(weights.numel() for weights in self.parts.parameters())


def built(architecture: Architecture, seed: int = 0) -> BlockNetwork:
    """Return a network with weights as drawn from a seed, the paper's as Keras draws them.

    A ValueError says that nothing of a block is left after the pools.
    """
    torch = required("torch")
    nn = torch.nn
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[Any] = []
        dense: list[Any] = []
        channels, width = architecture.channels, architecture.flat
        sizes = zip(architecture.filters, architecture.kernels, architecture.pools, strict=True)
        for filters, kernel, pool in sizes:
            layers += [nn.Conv1d(channels, filters, kernel), nn.ReLU()]
            layers += [nn.MaxPool1d(pool)] if pool > 1 else []
            channels = filters
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
