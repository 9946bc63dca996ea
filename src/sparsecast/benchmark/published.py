"""Published results: times that others measured, as Profiles of their machines.

The file is that of Ginkgo's benchmarks on the SuiteSparse collection: ginkgo-project/ginkgo-data on GitHub,
commit b9082895, under CC BY 4.0, gathered into one table with a line for each machine, matrix and format. It
is no part of this project; the user gives its path.

A time is a mean, in double precision, of which the file has no samples. Sizes in bytes are this project's
own count, because the file's differ in meaning from machine to machine. Of a matrix it has rows, columns,
entries, and of the row lengths the five numbers (least, quartiles, greatest) and the deviation. Taken for
granted is:

- between two of the five numbers the lengths follow a power of the rank, one exponent for all four quarters,
  chosen so that the lengths add up to the entries (`row_lengths`). From these lengths are the mode, the empty
  rows, `rows_at_least` and `entries_up_to`, which therefore agree with rows, entries, least and greatest;
- in what order the rows come, and where their entries lie, is not known: of the feature groups there is only
  that of the row lengths, without the changes and the mispredicted rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths, row_length_statistics
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.records import Candidate, Record

SOURCE = "ginkgo-project/ginkgo-data b9082895"

_MIB, _GIB, _MHZ = 1 << 20, 1 << 30, 1_000_000

#: The machines by the file's names, from what their vendors publish: of NVIDIA the board specifications of
#: Tesla K20X and K40, the whitepapers on the architectures Kepler GK110, Pascal P100, Volta V100 and Ampere
#: A100, and the CUDA C++ Programming Guide's table of compute capabilities (warps a multiprocessor, threads a
#: block); of AMD the product pages of Radeon VII and Instinct MI100, and the ISA documents of Vega 7 nm and
#: CDNA (10 wavefronts on each of a compute unit's 4 SIMDs). The file does not say which P100 it was: the
#: clock is that of the one for the socket SXM2. No model reads clocks.
GPUS = {
    "K20Xm": GPU("Tesla K20Xm", 14, 64, 32, 1024, 6 * _GIB, 3 * _MIB // 2, 732 * _MHZ, 2600 * _MHZ, (3, 5)),
    "K40m": GPU("Tesla K40m", 15, 64, 32, 1024, 12 * _GIB, 3 * _MIB // 2, 875 * _MHZ, 3004 * _MHZ, (3, 5)),
    "P100": GPU("Tesla P100", 56, 64, 32, 1024, 16 * _GIB, 4 * _MIB, 1480 * _MHZ, 715 * _MHZ, (6, 0)),
    "V100_SXM2": GPU(
        "Tesla V100-SXM2", 80, 64, 32, 1024, 16 * _GIB, 6 * _MIB, 1530 * _MHZ, 877 * _MHZ, (7, 0)
    ),
    "A100": GPU("A100", 108, 64, 32, 1024, 40 * _GIB, 40 * _MIB, 1410 * _MHZ, 1215 * _MHZ, (8, 0)),
    "RadeonVII": GPU("Radeon VII", 60, 40, 64, 1024, 16 * _GIB, 4 * _MIB, 1800 * _MHZ, 1000 * _MHZ),
    "MI100": GPU("Instinct MI100", 120, 40, 64, 1024, 32 * _GIB, 8 * _MIB, 1502 * _MHZ, 1200 * _MHZ),
}

#: The file's formats: this project's, and the library's kernel.
KERNELS = {
    "csr": ("csr", "ginkgo"),
    "csrc": ("csr", "ginkgo classical"),
    "csri": ("csr", "ginkgo load-balanced"),
    "csrm": ("csr", "ginkgo merge"),
    "coo": ("coo", "ginkgo"),
    "ell": ("ell", "ginkgo"),
    "hybrid": ("hyb", "ginkgo"),
    "sellp": ("sell", "ginkgo"),
    "cuspcsr": ("csr", "cusparse"),
    "cuspcoo": ("coo", "cusparse"),
    "cuspell": ("ell", "cusparse"),
    "cusphybrid": ("hyb", "cusparse"),
    "hipsp_csr": ("csr", "hipsparse"),
}

#: Runs of rows that `row_lengths` gives one length, or two that differ by one.
_RUNS = 1024

_FIVE = ["rd_min", "rd_q1", "rd_median", "rd_q3", "rd_max"]
_OF_MATRIX = ["rows", "cols", "nnz", *_FIVE, "rd_variance"]
_COLUMNS = ["machine", "executor", "group", "matrix", *_OF_MATRIX, "format", "time_s", "completed"]

Integers = NDArray[np.int64]


def published_profiles(path: Path) -> dict[str, Profile]:
    """Return a Profile of each GPU in the file, by the file's name of the machine.

    Left out are processors, products that were not completed, and matrices whose row lengths the file does
    not have or that contradict its rows and entries. The matrix' name in a Record is ``"GROUP/MATRIX"``, the
    suite ``"published"``.

    Raises
    ------
    ProfileError
        If the file is missing or is not such a table, or has a format that is not known here.
    """
    lines = [
        line
        for line in _lines(path)
        if line["machine"] in GPUS and line["completed"] and line["time_s"] and line["time_s"] > 0
    ]
    if others := {line["format"] for line in lines} - set(KERNELS):
        raise ProfileError(
            f"{path} has format {', '.join(sorted(others))}: expected {', '.join(KERNELS)}; "
            f"give the table of {SOURCE}"
        )
    structures: dict[tuple[Any, ...], Structure | None] = {}
    records: defaultdict[str, list[Record]] = defaultdict(list)
    entries: defaultdict[str, dict[str, MatrixEntry]] = defaultdict(dict)
    for line in lines:
        # A matrix is the same on most machines; some have left out zeros, or lack the row lengths.
        key = tuple(line[name] for name in ("group", "matrix", *_OF_MATRIX))
        if key not in structures:
            structures[key] = _structure(line)
        found = structures[key]
        if found is not None:
            record = _record(line, found)
            records[line["machine"]].append(record)
            entry = MatrixEntry(record.matrix, record.matrix, found)
            entries[line["machine"]].setdefault(record.matrix, entry)
    profiles, unknown = {}, "not published"
    for name, own in records.items():
        device = "hip" if GPUS[name].compute_capability is None else "cuda"
        machine = Machine(unknown, unknown, 1, 1, (), (), 0, unknown, device, GPUS[name])
        profiles[name] = Profile(machine, tuple(own), entries[name])
    return profiles


def _lines(path: Path) -> list[dict[str, Any]]:
    import pyarrow.csv

    try:
        options = pyarrow.csv.ConvertOptions(include_columns=_COLUMNS, column_types={"completed": "bool"})
        return list(pyarrow.csv.read_csv(path, convert_options=options).to_pylist())
    except (OSError, pyarrow.ArrowException) as error:
        raise ProfileError(
            f"{path} cannot be read as published results ({' '.join(str(error).split())}): expected the "
            f"table of {SOURCE}; name another file"
        ) from error


def _record(line: dict[str, Any], found: Structure) -> Record:
    format_name, kernel = KERNELS[line["format"]]
    stored = int(FORMATS.get(format_name).predicted_bytes(RowBlocks.of(found), 8, 4)[0])
    return Record(
        candidate=Candidate(format_name, kernel, line["executor"], "float64", 32, 1),
        nnz=found.nnz,
        matrix=f"{line['group']}/{line['matrix']}",
        suite="published",
        samples_s=(),
        time_s=float(line["time_s"]),
        spread=None,
        noise=None,
        retaken=0,
        regime="warm",
        error=None,
        convert_s=None,
        stored_bytes=stored,
        traffic_bytes=stored,
        energy_j=None,
        energy_source=None,
        measured_at="",
        version=SOURCE,
    )


def _structure(line: dict[str, Any]) -> Structure | None:
    """Return what is known of a line's matrix; None where numbers are missing or contradict each other."""
    rows, cols, nnz = int(line["rows"]), int(line["cols"]), int(line["nnz"])
    five = [line[name] for name in _FIVE]
    found = None if None in five else row_lengths(rows, nnz, five)
    if found is None:
        return None
    statistics = row_length_statistics(*found)
    statistics["deviation"] = math.sqrt(max(float(line["rd_variance"]), 0.0))
    known = RowLengths(**statistics, changes=None, mispredicted=None)
    return Structure(rows, cols, nnz, {known.name: known})


def row_lengths(rows: int, nnz: int, five: list[float]) -> tuple[Integers, Integers] | None:
    """Return row lengths that have five given numbers and a given sum, or None where no rows have.

    One row has the least length and one the greatest. For the others, a quarter at a time, the length at the
    share u of the quarter's rows is left + (right - left) u**p, and p is the one with which the lengths of
    all quarters add up. Runs of rows get the whole numbers around their mean.

    The five are least, first quartile, median, third quartile and greatest length.

    Returns
    -------
    tuple of int64 arrays of shape (lengths,) or None
        The lengths, ascending, and the number of rows of each.
    """
    if not all(low <= high for low, high in zip([0.0, *five], five, strict=False)):
        return None
    least, greatest = int(five[0]), int(five[-1])
    if rows <= 2:
        whole = [nnz] if rows == 1 else [least, greatest]
        return _counted(whole, [1] * rows) if sum(whole) == nnz and whole[-1] == greatest else None
    others, entries = rows - 2, nnz - least - greatest
    left, right = np.array(five[:-1]), np.array(five[1:])
    span = float((right - left).sum())
    excess = 4 * entries / others - float(left.sum())
    if not 0 <= excess <= span:
        return None
    share = excess / span if span else 0.0  # 1 / (p + 1)
    bounds = np.unique(np.linspace(0, others, min(others, _RUNS) + 1).round().astype(np.int64))
    quarter = np.minimum(4 * bounds // others, 3)
    u = 4 * bounds / others - quarter
    before = np.concatenate(([0.0], np.cumsum(left + (right - left) * share)))[quarter]
    within = left[quarter] * u + (right - left)[quarter] * share * u ** (1 / max(share, 1e-300))
    up_to = np.round(others * (before + within) / 4).astype(np.int64)
    up_to[-1] = entries
    in_run, of_run = np.diff(bounds), np.diff(up_to)
    longer = of_run % in_run
    lengths = np.concatenate(([least, greatest], of_run // in_run, of_run // in_run + 1))
    return _counted(lengths, np.concatenate(([1, 1], in_run - longer, longer)))


def _counted(lengths: Any, counts: Any) -> tuple[Integers, Integers]:
    """Return each length once, ascending, with the sum of its counts, where that is not 0."""
    distinct, place = np.unique(np.asarray(lengths, dtype=np.int64), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, place, counts)
    return distinct[sums > 0], sums[sums > 0]
