"""The data that packages exchange: Candidate, Record, Bandwidth, Estimate, Forecast.

Units are SI and stand in the name. Missing is ``None``, never 0 and never a default constant.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite
from types import MappingProxyType
from typing import Any

#: Version of the columns below; a stored file of another version is refused, never guessed at.
SCHEMA_VERSION = 4

Parameter = int | str | tuple[int, ...]

#: Bytes of a value of each type that is computed with, by NumPy's name; the types, the most usual first.
VALUE_BYTES = {"float64": 8, "float32": 4, "complex128": 16, "complex64": 8}
DTYPES = tuple(VALUE_BYTES)

#: Suites of matrices that rate a machine, and to which no model is fitted: measured once, and some again.
RATING_SUITES = ("synthetic", "synthetic again")

#: Suite of the results that others published.
PUBLISHED_SUITE = "published"

#: Suite of Records that nobody measured: times of published results, scaled by data sheets.
DATA_SHEET_SUITE = "data sheet"

#: What a Bandwidth moves, and between where.
BANDWIDTH_KINDS = ("read", "copy", "to device", "from device")


def product_flops(nnz: int, dtype: str) -> int:
    """Return the floating-point operations of one product of `nnz` entries, without padding.

    An entry costs a multiplication and an addition, 2 operations. With complex values these are four
    multiplications and two additions for the product, and two for the sum: 8 operations.
    """
    return (8 if dtype.startswith("complex") else 2) * nnz


class Parameters(Mapping[str, Parameter]):
    """Named parameters of a Candidate, such as the block size of BCSR: frozen, and alike in any order."""

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do the product.

    Attributes
    ----------
    format, kernel : str
        Registered names of the storage format and of the kernel variant.
    device : str
        Such as ``"cpu"`` or ``"cuda"``; in published results also what they call it, ``"hip"`` or ``"omp"``.
    dtype : str
        One of DTYPES.
    index_bits : int
        Width of the column indices: 32 or 64.
    threads : int
        That share the rows; 1 in published results, which do not say.
    parameters : Parameters
        What the format's ``from_csr`` takes. The format's rule chooses those that are not named.
    """

    format: str
    kernel: str
    device: str
    dtype: str
    index_bits: int
    threads: int
    parameters: Parameters = NO_PARAMETERS

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
        return cls(**{**stored, "parameters": Parameters(stored["parameters"])})


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the machine did during a measurement; None is what the system did not tell.

    Attributes
    ----------
    other_processes : float or None
        Threads of other programs that ran or waited for a core, in the mean.
    stolen_share : float or None
        Share of the processors' time that a hypervisor gave to other machines.
    pressure_share : float or None
        Share of the time in which some thread, of this program or another, waited for a core.
    references_s : mapping of str to float
        Seconds of reference products around that time, by where their data lie: ``"L2"``, ``"L3"``,
        ``"memory"``.
    waited_for_cores : bool or None
        Whether plain CSR took longer with all threads than with one, although it is large and the machine was
        busy: its threads waited for cores. None where that was not looked at.
    slow_share : float or None
        Share of the samples during which the cores were slower than they can be, 1.0 where the time is that
        of slow cores; None where that was not looked at.
    idle_w : float or None
        Watts of the meter while nothing was done, before the products; None where no meter told them.
    frequency_hz : float or None
        Mean of the cores right after the products; None where the system does not tell it.
    """

    other_processes: float | None = None
    stolen_share: float | None = None
    pressure_share: float | None = None
    references_s: Mapping[str, float] = field(default_factory=dict)
    waited_for_cores: bool | None = None
    slow_share: float | None = None
    idle_w: float | None = None
    frequency_hz: float | None = None


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
        Why it was measured: ``"strips"`` and ``"entry strips"`` (the benchmark matrices of Guo et al. for
        CSR and ELL, and for COO), ``"row lengths"`` (those of Wang et al.: normal, uniform, binomial and
        fixed row lengths), ``"hossain"`` (random ones with so many non-zeros a row),
        ``"varied"`` (rows of varied length, columns near and far), ``"blocks"`` (dense blocks),
        ``"symmetric"`` (rows of varied length, mirrored), ``"diagonals"`` (full diagonals), ``"gallery"``
        (not fitted to, to learn the size of the errors), ``"synthetic"`` (the five-minute benchmark of
        Gahvari et al.), ``"synthetic again"`` (some of its points once more, for the noise), ``"user"``,
        ``"user again"`` (once more, minutes later, for the noise) ``"published"`` (by others), or
        ``"data sheet"`` (by nobody: scaled from published times).
    samples_s : tuple of float
        Seconds a product, in the order taken.
    time_s, spread, noise : float; float or None
        Of the samples, as in a Timing. `spread`, `noise`, `error` and `convert_s` are None where others
        published the time without them.
    regime : str
        ``"warm"`` or ``"cold"`` caches.
    error : float or None
        Largest over the rows of abs(y - reference) / sum of abs(a x), checked before the time counts.
    convert_s : float or None
        Seconds to build the format from CSR, 0 for CSR itself; on a device with the transfer, CSR's too.
    stored_bytes, traffic_bytes : int
        Size of the format's arrays, and bytes streamed by one product.
    energy_j, energy_source : float and str, or None
        Joules a product, and ``"rapl"``, ``"hwmon"``, ``"nvml"``, ``"command"`` or ``"published"``; None
        where nothing measured it.
    measured_at : str
        UTC time in ISO 8601.
    version : str
        Of Sparsecast.
    kernel_version : int
        Of the kernels of the format on that device. After one changed, its old Records count no longer.
    conditions : Conditions or None
        None where nobody looked.
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
        """Speed in 1e9 floating-point operations a second."""
        return product_flops(self.nnz, self.candidate.dtype) / self.time_s / 1e9

    @property
    def is_slow(self) -> bool:
        """Whether the time is that of cores that were slower than they can be."""
        return self.conditions is not None and self.conditions.slow_share == 1.0

    @property
    def impossible(self) -> dict[str, float]:
        """Figures that nobody can have measured, by name: NaN, infinite or negative, and a time of 0.

        A single sample may be negative: it is a difference of two times.
        """
        figures = {name: getattr(self, name) for name in ("time_s", "noise", "convert_s", "energy_j")}
        found = {name: value for name, value in figures.items() if value is not None and not 0 <= value < inf}
        if self.time_s == 0:
            found["time_s"] = self.time_s
        unknown = [value for value in self.samples_s if not isfinite(value)]
        return found | ({"samples_s": unknown[0]} if unknown else {})

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a newer Record must share with this one to take its place."""
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
        """Return the Record that `to_row` made.

        Raises
        ------
        KeyError, ValueError
            If a column is missing or holds something else.
        """
        own = _columns(row, cls)
        own["samples_s"] = tuple(own["samples_s"])
        candidate = _candidate(tuple(_columns(row, Candidate).items()))
        seen, told = row["references_s"], None  # None of a Record without conditions
        if seen is not None:
            told = Conditions(**{**_columns(row, Conditions), "references_s": json.loads(seen)})
        return cls(candidate=candidate, conditions=told, **own)


@cache
def _candidate(columns: tuple[tuple[str, Any], ...]) -> Candidate:
    """Return the Candidate of columns of a row: thousands of rows share one."""
    described = dict(columns)
    return Candidate.from_dict({**described, "parameters": json.loads(described["parameters"])})


def _columns(row: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {name: row[name] for name in _names(kind)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the columns of a kind of part of a row: a profile has many thousand rows."""
    nested = "candidate", "conditions"
    return tuple(each.name for each in dataclasses.fields(kind) if each.name not in nested)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """How fast bytes that lie in order move: no product can exceed it. Other fields are as in a Record.

    Attributes
    ----------
    kind : str
        One of BANDWIDTH_KINDS: ``"read"`` of an array and ``"copy"`` to another one where the device
        computes, ``"to device"`` and ``"from device"`` between a NumPy array and one there.
    threads : int
        That share the array; 1 on a device, as in a Candidate.
    bytes : int
        Moved by one call. A copy reads and writes, so the array's count twice; between host and device they
        count once.
    time_s : float
        Seconds a call.
    """

    kind: str
    device: str
    threads: int
    bytes: int
    time_s: float
    noise: float | None
    measured_at: str
    version: str

    @property
    def bandwidth_bytes_per_s(self) -> float:
        return self.bytes / self.time_s


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a model expects that a product of a whole matrix costs.

    Attributes
    ----------
    value : float
        Seconds or joules, whichever the model forecasts.
    low, high : float or None
        Ends of the interval that should hold nine tenths of the measurements; None where it is not known.
    why : tuple of (str, float)
        The model's terms and their values.
    """

    candidate: Candidate
    value: float
    low: float | None
    high: float | None
    why: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a model expects of a Candidate on a matrix.

    Attributes
    ----------
    low_s, high_s : float or None
        The interval that should hold nine tenths of the measurements, from the model's errors on matrices
        held out of its fit; None where the profile has too few of them.
    bytes : int
        Bytes streamed by one product in this format.
    energy_j, energy_low_j, energy_high_j : float or None
        Joules a product, and the ends of the interval; None where no energy was ever measured.
    convert_s : float or None
        Seconds to build the format from CSR; None where no conversion was ever timed.
    why : tuple of (str, float)
        As in an Estimate.
    basis : str
        What the time rests on: ``"model"``; ``"measured"`` by a probe of this matrix, where the interval is
        the noise; or ``"corrected"``, the model's forecast corrected by the measured time of CSR.
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

    @property
    def gflops(self) -> float:
        """Forecast speed in 1e9 floating-point operations a second."""
        return product_flops(self.nnz, self.candidate.dtype) / self.time_s / 1e9
