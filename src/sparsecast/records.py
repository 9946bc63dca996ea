"""What travels between the rooms: Structure, Candidate, Record, Bandwidth, Forecast.

All are frozen, hold SI units with the unit in the name, and turn into plain dictionaries and back
without loss. Missing is ``None``, never 0 and never a default constant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Version of the columns below; a stored file of another version is refused, never guessed at.
SCHEMA_VERSION = 2

_EXACT_LEVELS = 64
_LEVELS_PER_OCTAVE = 8

#: Row lengths at which a Structure counts rows: every length up to 64, then eight steps an octave, up to
#: 2**31. Every statistic of a row block that a model needs follows from differences of such counts.
ROW_LENGTH_LEVELS: tuple[int, ...] = (
    *range(_EXACT_LEVELS),
    *(
        base + step * (base // _LEVELS_PER_OCTAVE)
        for base in (2**exponent for exponent in range(6, 31))
        for step in range(_LEVELS_PER_OCTAVE)
    ),
    2**31,
)

#: Types of values that are computed with, by their NumPy names, the most usual first. Whoever takes, lists or
#: tests types reads them here.
DTYPES: tuple[str, ...] = ("float64", "float32", "complex128", "complex64")

#: What a Bandwidth moves, and between where.
BANDWIDTH_KINDS: tuple[str, ...] = ("read", "copy", "to device", "from device")

#: Square block sizes whose fill a Structure estimates.
BLOCK_SIZES: tuple[int, ...] = (2, 3, 4, 6, 8)

#: Entries of x that share a cache line: 64 bytes of float64. Other types share it with more or fewer, which a
#: Structure, made before the type is known, leaves aside.
X_LINE_COLUMNS = 8


def product_flops(nnz: int, dtype: str) -> int:
    """Return the floating-point operations of one product of `nnz` entries.

    An entry costs a multiplication and an addition, 2 operations. With complex values these are four
    multiplications and two additions for the product, and two for the sum: 8 operations.

    Parameters
    ----------
    nnz : int
        Entries of the matrix, without padding.
    dtype : str
        One of DTYPES.
    """
    return (8 if dtype.startswith("complex") else 2) * nnz


@dataclass(frozen=True, slots=True)
class Structure:
    """What models read of a matrix; of its values, how many are 0 and whether they mirror each other.

    Attributes
    ----------
    rows, cols, nnz : int
        Dimensions and stored entries (explicit zeros included).
    explicit_zeros : int or None
        Stored entries whose value is 0; None when only the pattern was read.
    row_length_mean, row_length_deviation : float
        Mean and population standard deviation of the entries a row.
    row_length_mode, row_length_min, row_length_max : int
        Most frequent (the smallest of equals), least and largest number of entries a row.
    empty_rows : int
        Rows without an entry.
    row_length_changes : int
        Rows whose length differs from that of the row before.
    mispredicted_rows : int
        Rows whose length is not the one that followed the same four lengths the last time: an estimate of
        the mispredicted ends of the row loop, from a table of 65,536 histories.
    rows_at_least : tuple of int
        For each level of ROW_LENGTH_LEVELS up to the first that is >= row_length_max: the rows with at
        least that many entries.
    entries_up_to : tuple of int
        For the same levels: the sum over rows of min(length, level).
    half_bandwidth : int
        Largest abs(row - column) of an entry; 0 without entries.
    band_histogram : tuple of float
        Shares of the entries in ten bands: distance from the diagonal between 10 (k - 1) and 10 k percent
        of the dimension (Gahvari et al. 2007, section III). For rectangular matrices the diagonal is that
        of the rectangle.
    diagonals : int
        Number of distinct column - row values that hold an entry.
    triangle_nnz : int or None
        Entries on and below the diagonal of a matrix that equals its transpose and whose rows are sorted and
        free of duplicates; None for every other matrix.
    block_fill : tuple of float
        For each size b of BLOCK_SIZES: values stored in aligned b x b blocks over nnz (>= 1), estimated
        on sampled block rows; 1.0 without entries.
    x_line_changes : int
        Entries that read another cache line of x than the entry stored before them.
    x_reuse_histogram : tuple of float
        Shares of those line changes by the number of line changes since the same line was last read:
        element k counts [2**k, 2**(k+1)); the last element counts first reads.
    """

    rows: int
    cols: int
    nnz: int
    explicit_zeros: int | None
    row_length_mean: float
    row_length_deviation: float
    row_length_mode: int
    row_length_min: int
    row_length_max: int
    empty_rows: int
    row_length_changes: int
    mispredicted_rows: int
    rows_at_least: tuple[int, ...]
    entries_up_to: tuple[int, ...]
    half_bandwidth: int
    band_histogram: tuple[float, ...]
    diagonals: int
    triangle_nnz: int | None
    block_fill: tuple[float, ...]
    x_line_changes: int
    x_reuse_histogram: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do the product.

    Attributes
    ----------
    format, kernel : str
        Registered names of the storage format and of the kernel variant.
    device : str
        ``"cpu"`` or ``"cuda"``; ``"hip"`` in published results of AMD's GPUs.
    dtype : str
        NumPy name of the values' type, one of DTYPES.
    index_bits : int
        Width of the column indices: 32 or 64.
    threads : int
        Threads that share the rows.
    block : (int, int), optional
        Rows and columns of the blocks of a format that has some; None where the format's own rule chooses.
    """

    format: str
    kernel: str
    device: str
    dtype: str
    index_bits: int
    threads: int
    block: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement of a Candidate on a matrix.

    Attributes
    ----------
    candidate : Candidate
        What was measured.
    structure : Structure
        Of the matrix it was measured on.
    matrix : str
        The matrix's name: a file name, a gallery specification, or that of a benchmark matrix.
    suite : str
        Why it was measured: ``"strips"`` and ``"entry strips"`` (the benchmark matrices of Guo et al. for
        CSR and ELL, and for COO), ``"row lengths"`` (those of Wang et al.: normal and uniform row lengths),
        ``"varied"`` (rows of varied length, columns near and far), ``"blocks"`` (dense blocks),
        ``"symmetric"`` (rows of varied length, mirrored), ``"diagonals"`` (full diagonals), ``"gallery"``
        (held out of the fit, to learn the size of the errors), ``"synthetic"`` (the five-minute benchmark of
        Gahvari et al.), ``"synthetic again"`` (some of its points once more, for the noise), ``"user"`` or
        ``"published"`` (by others).
    samples_s : tuple of float
        Every sample that was kept, in the order taken: seconds a product.
    time_s : float
        Their low quantile: a tenth of them is shorter.
    spread : float or None
        Their interquartile range over `time_s`.
    noise : float or None
        Relative difference of the low quantiles of the earlier and the later half of the samples. It and
        `spread` are None of a single sample; they, `error` and `convert_s` are None where others published
        the time without them.
    retaken : int
        Samples that were thrown away: none today; earlier versions did.
    regime : str
        ``"warm"`` or ``"cold"`` caches.
    error : float or None
        Largest over the rows of abs(y - oracle) / sum of abs(a x), checked before the time is believed.
    convert_s : float or None
        Seconds to build the format from CSR, 0 for CSR itself; on a device with the transfer, CSR's too.
    stored_bytes, traffic_bytes : int
        Size of the format's arrays, and bytes streamed by one product.
    energy_j : float or None
        Joules a product; None where nothing measured it.
    energy_source : str or None
        ``"rapl"``, ``"nvml"`` or None.
    measured_at : str
        UTC time in ISO 8601.
    version : str
        Version of Sparsecast that measured.
    """

    candidate: Candidate
    structure: Structure
    matrix: str
    suite: str
    samples_s: tuple[float, ...]
    time_s: float
    spread: float | None
    noise: float | None
    retaken: int
    regime: str
    error: float | None
    convert_s: float | None
    stored_bytes: int
    traffic_bytes: int
    energy_j: float | None
    energy_source: str | None
    measured_at: str
    version: str

    @property
    def gflops(self) -> float:
        """Speed in 1e9 floating-point operations a second, as `product_flops` counts them."""
        return product_flops(self.structure.nnz, self.candidate.dtype) / self.time_s / 1e9

    def to_row(self) -> dict[str, Any]:
        """Return one flat dictionary: the candidate's fields, ``matrix_`` of the Structure, the rest."""
        row = dataclasses.asdict(self)
        candidate, structure = row.pop("candidate"), row.pop("structure")
        return {**candidate, **{f"matrix_{key}": value for key, value in structure.items()}, **row}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Record:
        """Return the Record that `to_row` made; lists become tuples.

        Raises
        ------
        KeyError
            If a column other than ``block`` is missing, which a profile from before it lacks.
        """
        candidate = {field.name: row[field.name] for field in dataclasses.fields(Candidate)[:-1]}
        candidate["block"] = row.get("block")
        row = dict(row)
        if "matrix_row_length_surprises" in row:  # the name of the column before it was called so
            row["matrix_mispredicted_rows"] = row.pop("matrix_row_length_surprises")
        structure = {field.name: row[f"matrix_{field.name}"] for field in dataclasses.fields(Structure)}
        own = {
            field.name: row[field.name]
            for field in dataclasses.fields(cls)
            if field.name not in ("candidate", "structure")
        }
        return cls(
            candidate=Candidate(**_tuples(candidate)),
            structure=Structure(**_tuples(structure)),
            **_tuples(own),
        )


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """How fast bytes that lie in order move: no product can exceed it.

    A journal does not keep it: it is measured in a second, so a run that was killed measures it again.

    Attributes
    ----------
    kind : str
        One of BANDWIDTH_KINDS: ``"read"`` of an array and ``"copy"`` to another one where the device
        computes, ``"to device"`` and ``"from device"`` between a NumPy array and one there.
    device : str
        ``"cpu"`` or ``"cuda"``.
    threads : int
        Threads that share the array; 1 on a device, as in a Candidate.
    bytes : int
        Moved by one call. A copy reads and writes, so the array's count twice; between host and device they
        count once.
    time_s : float
        Low quantile of the samples: seconds a call.
    noise : float or None
        As in a Record.
    measured_at : str
        UTC time in ISO 8601.
    version : str
        Version of Sparsecast that measured.
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
        """Bytes moved in a second."""
        return self.bytes / self.time_s


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a model expects of a Candidate on a matrix.

    Attributes
    ----------
    candidate : Candidate
        The way of doing the product.
    nnz : int
        Stored entries of the matrix.
    time_s : float
        Seconds a product.
    low_s, high_s : float or None
        The interval that is to hold nine tenths of the measurements, from the model's errors on matrices
        held out of its fit; None where the profile has too few of them.
    bytes : int
        Bytes streamed by one product in this format.
    energy_j : float or None
        Joules a product; None where no energy was ever measured.
    convert_s : float or None
        Forecast seconds to build the format from CSR; None where no conversion was ever timed.
    why : tuple of (str, float)
        The model's terms and their values, for a reader who asks.
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

    @property
    def gflops(self) -> float:
        """Forecast speed in 1e9 floating-point operations a second, as `product_flops` counts them."""
        return product_flops(self.nnz, self.candidate.dtype) / self.time_s / 1e9


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
