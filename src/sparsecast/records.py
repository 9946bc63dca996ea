"""The data that packages exchange.

Of one process: Candidate, Record, Bandwidth, Estimate, Forecast. Of many: Configuration, MicroBenchmark,
DistributedRecord. Units are SI and part of the name. A missing value is ``None``, never 0 or a default.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import ceil, inf, isfinite
from types import MappingProxyType
from typing import Any

import msgspec

#: Version of the columns below; a stored file of another version is refused, never guessed at.
SCHEMA_VERSION = 4

Parameter = int | str | tuple[int, ...]

#: Types of values by NumPy's name, the most usual first, with their bytes.
VALUE_BYTES = {"float64": 8, "float32": 4, "complex128": 16, "complex64": 8}
DTYPES = tuple(VALUE_BYTES)

#: Suites that rate a machine, to which no model is fitted: measured once, and some matrices again.
RATING_SUITES = ("synthetic", "synthetic again")

#: Suite of the results that others published.
PUBLISHED_SUITE = "published"

#: The reference in memory, which reads it in order. Older profiles have one called "memory", which gathered
#: and did not follow the bandwidth (decision 70).
MEMORY = "memory read"

#: Kinds of Bandwidth.
BANDWIDTH_KINDS = ("read", "copy", "to device", "from device")


def product_flops(nnz: int, dtype: str) -> int:
    """Return the floating-point operations of one product of `nnz` entries, without padding.

    An entry costs a multiplication and an addition, 2 operations. With complex values it is 8: four
    multiplications and two additions for the product, two additions for the sum.
    """
    return (8 if dtype.startswith("complex") else 2) * nnz


class Parameters(Mapping[str, Parameter]):
    """Named parameters of a Candidate, such as the block size of BCSR: frozen, equal in any order."""

    __slots__ = ("_items",)

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        frozen = ((name, tuple(v) if isinstance(v, list) else v) for name, v in values.items())
        self._items: tuple[tuple[str, Parameter], ...] = tuple(sorted(frozen))

    def __getitem__(self, name: str) -> Parameter:
        return dict(self._items)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Parameters({dict(self._items)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameters, (dict(self._items),)


NO_PARAMETERS = Parameters()

#: Vectors for which a format with a kernel for several reads the matrix once.
PANEL_VECTORS = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do the product.

    Attributes
    ----------
    format, kernel : str
        Registered names of the storage format and of the kernel variant.
    device : str
        Such as ``"cpu"`` or ``"cuda"``; in published results also their names, ``"hip"`` or ``"omp"``.
    dtype : str
        One of DTYPES.
    index_bits : int
        Width of the column indices: 32 or 64.
    threads : int
        Threads that share the rows; 1 in published results, which do not give them.
    parameters : Parameters
        Arguments of the format's ``from_csr``. The format's rule chooses the others.
    vectors : int
        Columns of X in Y = A X, which count as one product.
    """

    format: str
    kernel: str
    device: str
    dtype: str
    index_bits: int
    threads: int
    parameters: Parameters = NO_PARAMETERS
    vectors: int = 1

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    @property
    def index_bytes(self) -> int:
        return self.index_bits // 8

    def to_dict(self) -> dict[str, Any]:
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**named, "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Candidate:
        """Return the Candidate of `to_dict`; a KeyError or msgspec.ValidationError for something else."""
        parameters = Parameters(msgspec.convert(stored["parameters"], dict[str, Parameter]))
        return msgspec.convert({**stored, "parameters": parameters}, cls)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a measurement; None for values that the system does not report."""

    #: Mean number of threads of other programs that ran or waited for a core.
    other_processes: float | None = None
    #: Share of the processors' time that a hypervisor gave to other machines.
    stolen_share: float | None = None
    #: Seconds of reference products around that time, by the place of their data: ``"L2"``, ``"last cache"``,
    #: ``"memory read"``.
    references_s: Mapping[str, float] = field(default_factory=dict)
    #: Whether it was never measured with a core for each thread, as the machine was busy; None if this was
    #: not tested.
    waited_for_cores: bool | None = None
    #: Share of the samples at less than full speed of the cores, 1.0 if the time is that of slow cores; None
    #: if this was not tested.
    slow_share: float | None = None
    idle_w: float | None = None  # watts of the meter at rest, before the products; None without a meter
    frequency_hz: float | None = None  # mean over the cores right after the products; None if unknown


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement of a Candidate on a matrix.

    Attributes
    ----------
    candidate : Candidate
    matrix : str
        Specification of the matrix: its key in a Profile's table of matrices.
    nnz : int
    suite : str
        Purpose of the measurement: a suite of benchmark matrices, such as ``"strips"``, ``"varied"`` or
        ``"gallery"`` (no model is fitted to it, which gives the size of the errors); ``"user"`` (``measure``
        and ``evaluate``); these two or ``"synthetic"`` with ``" again"`` (once more, for the noise);
        ``"published"`` (by others).
    samples_s : tuple of float
        Seconds per product, in the order taken.
    time_s, spread, noise : float; float or None
        Of the samples, as in a Timing. `spread`, `noise`, `error` and `convert_s` are None if the time was
        published without them.
    regime : str
        ``"warm"`` or ``"cold"`` caches.
    error : float or None
        Largest over the rows of abs(y - reference) / sum of abs(a x), checked before the time counts.
    convert_s : float or None
        Seconds to build the format from CSR, 0 for CSR itself; on a device with the transfer, also for CSR.
    stored_bytes, traffic_bytes : int
        Size of the format's arrays, and bytes streamed by one product.
    energy_j, energy_source : float and str, or None
        Joules per product, and ``"rapl"``, ``"hwmon"``, ``"nvml"``, ``"command"`` or ``"published"``; None if
        not measured.
    measured_at : str
        UTC time in ISO 8601.
    version : str
        Of Sparsecast.
    kernel_version : int
        Of the kernels of the format on that device. Records of older versions do not count.
    conditions : Conditions or None
        None if not observed.
    """

    candidate: Candidate
    matrix: str
    nnz: int
    suite: str
    samples_s: tuple[float, ...]
    time_s: float
    spread: float | None
    noise: float | None
    regime: str
    error: float | None
    convert_s: float | None
    stored_bytes: int
    traffic_bytes: int
    energy_j: float | None
    energy_source: str | None
    measured_at: str
    version: str
    kernel_version: int = 1
    conditions: Conditions | None = None

    @property
    def gflops(self) -> float:
        """Speed in 1e9 floating-point operations per second."""
        return self.candidate.vectors * product_flops(self.nnz, self.candidate.dtype) / self.time_s / 1e9

    @property
    def references_s(self) -> Mapping[str, float]:
        """Seconds of reference products around that time, as in Conditions; empty where these are unknown."""
        return self.conditions.references_s if self.conditions else {}

    @property
    def is_slow(self) -> bool:
        """Whether the time is that of slow cores."""
        return self.conditions is not None and self.conditions.slow_share == 1.0

    @property
    def impossible(self) -> dict[str, float]:
        """Impossible figures, by name: NaN, infinite or negative, and a time of 0.

        A single sample may be negative, as a difference of two times.
        """
        figures = {name: getattr(self, name) for name in ("time_s", "noise", "convert_s", "energy_j")}
        found = {name: value for name, value in figures.items() if value is not None and not 0 <= value < inf}
        if self.time_s == 0:
            found["time_s"] = self.time_s
        unknown = [value for value in self.samples_s if not isfinite(value)]
        return found | ({"samples_s": unknown[0]} if unknown else {})

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key of a Record: a newer one replaces an older one of the same key."""
        return self.candidate, self.matrix, self.suite, self.regime, self.kernel_version

    def to_row(self) -> dict[str, Any]:
        """Return one flat dictionary: the fields of the Candidate, of the Conditions and of the Record.

        Parameters and references are texts in JSON, because their names are open.
        """
        row = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        candidate, conditions = row.pop("candidate").to_dict(), row.pop("conditions")
        candidate["parameters"] = json.dumps(candidate["parameters"])
        seen = dataclasses.asdict(conditions or Conditions())
        seen["references_s"] = json.dumps(seen["references_s"]) if conditions else None
        return {**candidate, **row, "samples_s": list(self.samples_s), **seen}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Record:
        """Return the Record of `to_row`.

        A KeyError, TypeError, ValueError or msgspec.ValidationError says that a column is missing or damaged.
        """
        columns, seen = _columns(row, cls), row["references_s"]
        columns["candidate"] = _candidate(tuple(_columns(row, Candidate).items()))
        if seen is not None:  # None of a Record without conditions
            columns["conditions"] = {**_columns(row, Conditions), "references_s": json.loads(seen)}
        return msgspec.convert(columns, cls)


@cache
def _candidate(columns: tuple[tuple[str, Any], ...]) -> Candidate:
    """Return the Candidate of columns of a row: thousands of rows share one."""
    described = dict(columns)
    return Candidate.from_dict({**described, "parameters": json.loads(described["parameters"])})


def _columns(row: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {name: row[name] for name in _COLUMNS[kind]}


#: Kinds of values by the annotations of fields; Parameters and mappings stand in rows as JSON.
_KINDS = {"str": str, "int": int, "float": float, "bool": bool, "tuple[float, ...]": list}

#: The columns of each part of a row, and what they hold.
_COLUMNS: dict[type, dict[str, type]] = {
    part: {
        item.name: _KINDS.get(str(item.type).removesuffix(" | None"), str)
        for item in dataclasses.fields(part)
        if item.name not in ("candidate", "conditions")
    }
    for part in (Candidate, Record, Conditions)
}

#: What the columns of `Record.to_row` hold, or None: `str`, `int`, `float`, `bool`, or a `list` of floats.
ROW_KINDS: dict[str, type] = _COLUMNS[Candidate] | _COLUMNS[Record] | _COLUMNS[Conditions]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A measured bandwidth, the upper limit of a product's. Other fields are as in a Record."""

    #: One of BANDWIDTH_KINDS: ``"read"`` of an array and ``"copy"`` to another one on the device, ``"to
    #: device"`` and ``"from device"`` between a NumPy array and one on the device.
    kind: str
    device: str
    threads: int  # threads that share the array; 1 on a device, as in a Candidate
    #: Moved by one call. A copy reads and writes, so the array counts twice; between host and device it
    #: counts once.
    bytes: int
    time_s: float  # seconds per call
    noise: float | None
    measured_at: str
    version: str

    @property
    def bandwidth_bytes_per_s(self) -> float:
        return self.bytes / self.time_s


def reads_of(bandwidths: Iterable[Bandwidth], device: str, threads: int) -> list[Bandwidth]:
    """Return the bandwidths of reads by a device and number of threads, of the smallest array first."""
    target = "read", device, threads
    reads = [stream for stream in bandwidths if (stream.kind, stream.device, stream.threads) == target]
    return sorted(reads, key=lambda read: read.bytes)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A model's estimate of the cost of a product."""

    candidate: Candidate
    value: float  # seconds or joules, the quantity of the model
    #: low, high: interval for nine tenths of the measurements; None if unknown.
    low: float | None
    high: float | None
    why: tuple[tuple[str, float], ...] = ()  # the model's terms and their values


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a Candidate on a matrix.

    Attributes
    ----------
    low_s, high_s : float or None
        Interval for nine tenths of the measurements, from the model's errors on matrices held out of its fit;
        None if the profile has too few of them.
    bytes : int
        Bytes streamed by one product in this format.
    energy_j, energy_low_j, energy_high_j : float or None
        Joules per product, and the ends of the interval; None without measured energies.
    convert_s : float or None
        Seconds to build the format from CSR; None without measured conversions.
    built_bytes, building_bytes : int or None
        Memory beside the matrix: of the built format, and at most while it is built from CSR; on a GPU the
        first is there, the second on the host.
    why : tuple of (str, float)
        As in an Estimate.
    basis : str
        Basis of the time: ``"model"``; ``"measured"`` by a probe of this matrix, with the noise as interval;
        or ``"corrected"``, the model's forecast corrected by the measured time of CSR.
    """

    candidate: Candidate
    nnz: int
    time_s: float
    low_s: float | None
    high_s: float | None
    bytes: int
    energy_j: float | None
    convert_s: float | None
    why: tuple[tuple[str, float], ...] = ()
    energy_low_j: float | None = None
    energy_high_j: float | None = None
    basis: str = "model"
    built_bytes: int | None = None
    building_bytes: int | None = None

    @property
    def gflops(self) -> float:
        """Forecast speed in 1e9 floating-point operations per second."""
        return self.candidate.vectors * product_flops(self.nnz, self.candidate.dtype) / self.time_s / 1e9


#: Kinds of micro-benchmarks of a machine with ranks.
MICROBENCHMARK_KINDS = (
    "fma",
    "triad",
    "ping-pong",
    "allgatherv",
    "reduce",
    "bcast",
    "neighbour exchange",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to do a product on many ranks."""

    algorithm: str  # one of `sparsecast.distributed.products`
    #: format, remote_format: of the entries whose x the rank owns, and of those whose x comes from other
    #: ranks; equal for an algorithm with one matrix.
    format: str
    remote_format: str
    partition: str  # method of the Partition
    ranks: int
    nodes: int
    dtype: str = "float64"
    index_bits: int = 32  # of the column indices of the local matrices: 32 or 64

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    @property
    def index_bytes(self) -> int:
        return self.index_bits // 8

    @property
    def ranks_per_node(self) -> int:
        """Ranks of the fullest node."""
        return ceil(self.ranks / self.nodes)


@dataclass(frozen=True, slots=True)
class MicroBenchmark:
    """One measured speed of a machine with several ranks (Hossain and Saule, section III.C)."""

    kind: str  # one of MICROBENCHMARK_KINDS
    #: ranks, nodes: number of participants. A ping-pong has 2 ranks, on one node or on two.
    ranks: int
    nodes: int
    #: ``"triad"``: moved by one call of a rank, 3 arrays, while all ranks do the same. ``"ping-pong"``: of
    #: the message. ``"allgatherv"``: contributed by each rank. ``"reduce"``, ``"bcast"``: of the vector.
    #: ``"neighbour exchange"``: to each neighbour. ``"fma"``: 0.
    bytes: int
    neighbours: int | None  # number of receivers of each rank in a neighbour exchange; None for other kinds
    #: Seconds per call until the last rank is done; one way for a ping-pong; of one fused multiply-add for
    #: ``"fma"``.
    time_s: float
    noise: float | None
    is_oversubscribed: bool  # whether more ranks than cores ran
    measured_at: str
    version: str

    @property
    def ranks_per_node(self) -> int:
        """Ranks of the fullest node."""
        return ceil(self.ranks / self.nodes)

    @property
    def key(self) -> tuple[str, int, int, int, int | None]:
        """The key of a MicroBenchmark: a new one replaces an old one of the same key."""
        return self.kind, self.ranks, self.nodes, self.bytes, self.neighbours


@dataclass(frozen=True, slots=True)
class DistributedRecord:
    """One measurement of a Configuration on a matrix; other fields are as in a Record."""

    configuration: Configuration
    matrix: str
    nnz: int
    distribution: Mapping[str, Any]  # the Distribution of the matrix, as plain data
    samples_s: tuple[float, ...]  # seconds per product until the last rank is done, in the order taken
    time_s: float
    spread: float | None
    noise: float | None
    error: float | None
    is_oversubscribed: bool  # whether more ranks than cores ran
    measured_at: str
    version: str
    #: Seconds in ``"local"``, ``"communication"`` and ``"remote"``, by rank; empty if not measured.
    parts_s: Mapping[str, list[float]] = field(default_factory=dict)
    suite: str = "user"
    deviation: float | None = None  # of the row lengths of the matrix; None if unknown
