"""What every model of distributed products offers, and the data that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.machines.machine import Machine
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.records import VALUE_BYTES, Configuration, DistributedRecord, MicroBenchmark

Floats = NDArray[np.float64]

#: What makes each part of a fit possible, for messages.
ADD_MICROBENCHMARKS = "add them by `mpirun -n N sparsecast calibrate --ranks`"


@dataclass(frozen=True)
class ClusterTraining:
    """What a model of distributed products learns from: all of one machine.

    Attributes
    ----------
    microbenchmarks : tuple of MicroBenchmark
        Those with more ranks than cores count in no fit.
    records : tuple of DistributedRecord
        Measured products, of which none need exist.
    """

    machine: Machine
    microbenchmarks: tuple[MicroBenchmark, ...]
    records: tuple[DistributedRecord, ...] = ()

    def of_kind(self, kind: str) -> list[MicroBenchmark]:
        """Return the micro-benchmarks of a kind, those with more ranks than cores left out."""
        return [each for each in self.microbenchmarks if each.kind == kind and not each.is_oversubscribed]


@dataclass(frozen=True)
class LocalTime:
    """What the node model forecasts of a local matrix, alone on its node: one thread, nothing else running.

    Attributes
    ----------
    low_s, high_s : float or None
    bytes : int
        Of the matrix in its format, and its vectors.
    """

    time_s: float
    low_s: float | None
    high_s: float | None
    bytes: int


@dataclass(frozen=True)
class Question:
    """A matrix among ranks, and what is known of it beyond counts.

    Attributes
    ----------
    local, remote : mapping of str to LocalTime
        By format: of the local and the remote part of `rank`. Empty where the
        profile has no times of products on its node, or the matrix is not at hand.
    mispredicted_share : float or None
        Share of the rows whose length does not follow from the rows before; None where it is not known.
    deviation : float or None
        Of the row lengths; None where it is not known.
    rank : int or None
        The slowest rank, as far as the node model was asked; None is the one with the most entries.
    """

    distribution: Distribution
    local: Mapping[str, LocalTime] = field(default_factory=dict)
    remote: Mapping[str, LocalTime] = field(default_factory=dict)
    mispredicted_share: float | None = None
    deviation: float | None = None
    rank: int | None = None


@dataclass(frozen=True)
class ClusterForecast:
    """What a model expects of a Configuration: one product, until the last rank is done.

    Attributes
    ----------
    low_s, high_s : float or None
        The interval that should hold nine tenths of the measurements; None where nothing told its width.
    computation_s, communication_s : float or None
        Their sum is the time, but for products that communicate while they compute. None where a model does
        not tell them apart.
    memory_bytes : int
        Of the rank that needs most: matrix, vectors and buffers.
    terms : tuple of (str, float)
        The model's terms and their values.
    energy_j, energy_low_j, energy_high_j : float or None
        Joules of one product on all nodes; None where the power of a node is unknown.
    """

    configuration: Configuration
    time_s: float
    low_s: float | None
    high_s: float | None
    computation_s: float | None
    communication_s: float | None
    memory_bytes: int
    terms: tuple[tuple[str, float], ...] = ()
    energy_j: float | None = None
    energy_low_j: float | None = None
    energy_high_j: float | None = None

    def within(self, low: float, high: float) -> ClusterForecast:
        """Return the forecast with the interval from `low` to `high` times its time."""
        return replace(self, low_s=low * self.time_s, high_s=high * self.time_s)


class ClusterModel(ABC):
    """Forecasts products on many ranks from what was measured on some.

    A forecast reads counts of each rank and takes no time that grows with the entries of the matrix.

    Attributes
    ----------
    name : str
    algorithms, formats : tuple of str or None
        Those that its paper models; None is all.
    """

    name: ClassVar[str]
    algorithms: ClassVar[tuple[str, ...] | None] = None
    formats: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def fit(self, training: ClusterTraining) -> Self:
        """Learn from what was measured on a machine.

        Raises
        ------
        ProfileError
            If that does not suffice; the message names the command that adds it.
        """

    def lacking(self, configuration: Configuration) -> str | None:
        """Return in words why it has no forecast for a Configuration; None where it has one."""
        if self.algorithms is not None and configuration.algorithm not in self.algorithms:
            return f"the {self.name} model covers {', '.join(self.algorithms)}; choose another model"
        if self.formats is not None and configuration.format not in self.formats:
            return f"the {self.name} model covers {', '.join(self.formats)}; choose another model"
        return None

    @abstractmethod
    def forecast(self, configurations: Sequence[Configuration], question: Question) -> list[ClusterForecast]:
        """Return a forecast of each Configuration that nothing is lacking for, in their order.

        All are of the partition and the ranks of the Distribution.
        """

    def insufficient(self, expected: str) -> ProfileError:
        """Return what is raised where measurements do not suffice."""
        return ProfileError(f"the profile does not suffice for the {self.name} model: expected {expected}")


def memory_bytes(configuration: Configuration, question: Question) -> int:
    """Return the bytes of matrix, vectors and buffers of the rank that needs most.

    COO, CSR and what the node model gives the bytes of are as stored; another format counts as CSR.
    """
    found = question.distribution
    value, index = VALUE_BYTES[configuration.dtype], configuration.index_bits // 8
    rows, nnz = found.rows.astype(float), found.nnz.astype(float)
    known = question.local.get(configuration.format)
    row_words = nnz if configuration.format == "coo" else rows + 1
    matrix = nnz * (value + index) + row_words * index
    if known is not None and configuration.format not in ("csr", "coo"):
        matrix = np.maximum(matrix, float(known.bytes))
    vectors = rows * value
    if configuration.algorithm == "global-1d":
        vectors = vectors + found.shape[1] * value
    else:
        vectors = vectors + found.columns * value
    if configuration.algorithm == "2d":
        vectors = vectors + rows * value  # the sum of the row of ranks
    elif configuration.algorithm != "global-1d":
        vectors = vectors + (found.received_words + found.sent_words) * value
    return int((matrix + vectors).max(initial=0.0))


def distribution_of(record: DistributedRecord) -> Distribution:
    """Return the Distribution that a record has as plain data; an InputError if that is damaged."""
    return Distribution.from_dict(record.distribution)
