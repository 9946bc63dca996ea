"""What every model of distributed products offers, and the data that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.distributed.products import PRODUCTS
from sparsecast.errors import ProfileError
from sparsecast.machines.machine import Machine
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.records import Configuration, DistributedRecord, Forecast, MicroBenchmark

Floats = NDArray[np.float64]

#: What makes each part of a fit possible, for messages.
ADD_MICROBENCHMARKS = "add them by `mpirun -n N sparsecast calibrate --ranks`"

#: Formats whose bytes and work follow from counts. Another one needs times of products on a node.
COUNTED_FORMATS = ("csr", "coo")


@dataclass(frozen=True)
class ClusterTraining:
    """What a model of distributed products learns from: all of one machine."""

    machine: Machine
    microbenchmarks: tuple[MicroBenchmark, ...]  # those with more ranks than cores count in no fit
    records: tuple[DistributedRecord, ...] = ()  # measured products, of which none need exist

    def of_kind(self, kind: str) -> list[MicroBenchmark]:
        """Return the micro-benchmarks of a kind, those with more ranks than cores left out."""
        return [point for point in self.microbenchmarks if point.kind == kind and not point.is_oversubscribed]


@dataclass(frozen=True)
class Question:
    """A matrix among ranks, and what is known of it beyond counts."""

    distribution: Distribution
    #: local, remote: by format: of the local and the remote part of `rank`, on one thread, alone on its node.
    #: Empty where the profile has no times of products on its node, or the matrix is not at hand.
    local: Mapping[str, Forecast] = field(default_factory=dict)
    remote: Mapping[str, Forecast] = field(default_factory=dict)
    #: Share of the rows whose length does not follow from the rows before; None where it is not known.
    mispredicted_share: float | None = None
    deviation: float | None = None  # of the row lengths; None where it is not known
    #: The slowest rank, as far as the node model was asked; None is the one with the most entries.
    rank: int | None = None
    #: Returns the rows of a rank, in 2D its block, columns renumbered; None where the matrix is not at hand.
    block: Callable[[int], csr_array[Any]] | None = None

    def on_node(self, configuration: Configuration) -> list[Forecast]:
        """Return what the node model forecasts of the local part and, where it knows one, the remote part."""
        remote = self.remote.get(configuration.remote_format)
        return [self.local[configuration.format], *([] if remote is None else [remote])]

    def bytes_on_node(self, configuration: Configuration) -> int:
        """Return the bytes that a rank moves, by the node model."""
        return sum(part.bytes for part in self.on_node(configuration))


@dataclass(frozen=True)
class ClusterForecast:
    """What a model expects of a Configuration: one product, until the last rank is done."""

    configuration: Configuration
    time_s: float
    memory_bytes: int  # of the rank that needs most: matrix, vectors and buffers
    terms: tuple[tuple[str, float], ...] = ()  # the model's terms and their values
    #: low_s, high_s: the interval that should hold nine tenths of the measurements; None where nothing told
    #: its width.
    low_s: float | None = None
    high_s: float | None = None
    #: computation_s, communication_s: their sum is the time, but for products that communicate while they
    #: compute. None where a model does not tell them apart.
    computation_s: float | None = None
    communication_s: float | None = None
    #: energy_j, energy_low_j, energy_high_j: joules of one product on all nodes; None where the power of a
    #: node is unknown.
    energy_j: float | None = None
    energy_low_j: float | None = None
    energy_high_j: float | None = None

    def within(self, low: float, high: float) -> ClusterForecast:
        """Return the forecast with the interval from `low` to `high` times its time."""
        return replace(self, low_s=low * self.time_s, high_s=high * self.time_s)


class ClusterModel(ABC):
    """Forecasts products on many ranks from what was measured on some.

    A forecast reads counts of each rank and takes no time that grows with the entries of the matrix.
    """

    name: ClassVar[str]
    #: algorithms, covers: algorithms and formats that its paper models; None is all.
    algorithms: ClassVar[tuple[str, ...] | None] = None
    covers: ClassVar[tuple[str, ...] | None] = None
    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)  # the settings that `evaluate --ranks` scores

    @property
    def title(self) -> str:
        """Its name, and whether it is as printed."""
        return f"{self.name} (as printed)" if getattr(self, "as_printed", False) else self.name

    @abstractmethod
    def fit(self, training: ClusterTraining) -> Self:
        """Learn from what was measured; a ProfileError names the command that adds what is missing."""

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        """Return in words why it has no forecast for a Configuration; None where it has one."""
        for covered in self._not_covering(configuration):
            return f"the {self.name} model covers {', '.join(covered)}; choose another model"
        if configuration.format not in COUNTED_FORMATS and configuration.format not in question.local:
            return (
                f"format {configuration.format} has no forecast for a rank's part: expected times of it in "
                f"the profile; calibrate, or name {' or '.join(COUNTED_FORMATS)}"
            )
        return None

    def forecast(self, configurations: Sequence[Configuration], question: Question) -> list[ClusterForecast]:
        """Return a forecast of each Configuration that nothing is lacking for, in their order.

        All are of the partition and the ranks of the Distribution.
        """
        return [
            self._forecast(configuration, question)
            for configuration in configurations
            if self.lacking(configuration, question) is None
        ]

    @abstractmethod
    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        """Return the forecast of a Configuration that nothing is lacking for."""

    def _not_covering(self, configuration: Configuration) -> Iterator[tuple[str, ...]]:
        """Give what it covers, algorithms or formats, where that does not include the Configuration's."""
        names = (configuration.algorithm, self.algorithms), (configuration.format, self.covers)
        yield from (covered for name, covered in names if covered is not None and name not in covered)

    def _learnable(self, training: ClusterTraining) -> Iterator[tuple[DistributedRecord, Question]]:
        """Give the records that it may learn from, each with its Distribution."""
        for record in training.records:
            if not record.is_oversubscribed and not any(self._not_covering(record.configuration)):
                distribution = Distribution.from_dict(record.distribution)
                yield record, Question(distribution, deviation=record.deviation)

    def insufficient(self, expected: str) -> ProfileError:
        """Return what is raised where measurements do not suffice."""
        return ProfileError(f"the profile does not suffice for the {self.name} model: expected {expected}")


def memory_bytes(configuration: Configuration, question: Question) -> int:
    """Return the bytes of matrix, vectors and buffers of the rank that needs most.

    COO and CSR are counted; the bytes of another format are those that the node model gives for a rank.
    """
    distribution, product = question.distribution, PRODUCTS.get(configuration.algorithm)
    value, index = configuration.value_bytes, configuration.index_bytes
    nnz = distribution.nnz.astype(float)
    if configuration.format in COUNTED_FORMATS:
        row_words = nnz if configuration.format == "coo" else distribution.rows + 1
        matrix = nnz * (value + index) + row_words * index
    else:
        matrix = np.full(len(nnz), float(question.bytes_on_node(configuration)))
    words = distribution.rows + product.x_words(distribution) + product.buffer_words(distribution)
    return int((matrix + words * value).max(initial=0.0))
