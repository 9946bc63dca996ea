"""Published results: times that others measured, as Profiles of their machines.

Two layouts are read. One is a CSV table, also with gzip, with a line for each machine, matrix and format and
a header of REQUIRED and OPTIONAL columns; other columns are not looked at. The other is what Ginkgo's
benchmarks write, ginkgo-project/ginkgo-data on GitHub (CC BY 4.0): JSON, one file or a folder of them. No
such file is part of this project; the user gives its path.

A time is a mean, in double precision, without samples. Early files of Ginkgo's have nanoseconds in place of
seconds: no product takes as long as LEAST_NANOSECONDS seconds, and none is as short as so many nanoseconds.
Sizes in bytes are this project's own count, because published ones differ in meaning from machine to
machine. Of a matrix there are rows, columns, entries, and of the row lengths the five numbers (least,
quartiles, greatest) and the variance. Taken for granted is:

- between two of the five numbers the lengths follow a power of the rank, one exponent for all four quarters,
  chosen so that the lengths add up to the entries (`row_lengths`). From these lengths are the mode, the empty
  rows, `rows_at_least` and `entries_up_to`, which therefore agree with rows, entries, least and greatest;
- in what order the rows come, and where their entries lie, is not known: of the feature groups there is only
  that of the row lengths, without the changes and the mispredicted rows.

A format is one of this project's that stores the same, and the kernel has the published name of the format:
``csri`` is format ``csr`` with kernel ``csri``, ``sellp`` is ``sell`` with ``sellp``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError, ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths, row_length_statistics
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import MatrixEntry, Profile, known_profiles
from sparsecast.matrices.problem import PUBLISHED_PREFIX
from sparsecast.records import PUBLISHED_SUITE, Candidate, Record

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

#: The processor among them, from its vendor's product page: 20 cores, each with 1 MiB of L2, and 27.5 MiB of
#: L3. How many threads the products had is not published, so each cache counts as one that all of them share.
PROCESSORS = {"Xeon_Gold_6230": (20, (Cache(2, 20 * _MIB, 1), Cache(3, 55 * _MIB // 2, 1)))}

#: This project's format for a published name, by how that begins after the name of a vendor's library.
STORED_AS = {"csr": "csr", "coo": "coo", "ell": "ell", "hybrid": "hyb", "hyb": "hyb", "sell": "sell"}
_LIBRARY = re.compile("^(cusparse|hipsparse|cusp|hipsp)_?")

#: Columns of a table of matrices, and those that a table of results has besides.
OF_MATRIX = ("matrix", "rows", "cols", "nnz")
FIVE = ("rd_min", "rd_q1", "rd_median", "rd_q3", "rd_max")
REQUIRED = ("group", *OF_MATRIX, *FIVE, "rd_variance", "format", "time_s")
OPTIONAL = ("machine", "executor", "completed")
_TEXTS = ("machine", "executor", "group", "matrix", "format", "completed")

#: Times from here on are nanoseconds.
LEAST_NANOSECONDS = 1000

#: A product with so many times the entries a second of all but a hundredth of the machine's was not done: a
#: result on the Xeon is 1e5 times as fast as the others.
FASTER_THAN_POSSIBLE = 10

#: Folders of ginkgo-data for what computed; the folder before it is the machine.
_EXECUTORS = ("cuda", "hip", "omp", "dpcpp", "reference")

#: Runs of rows that `row_lengths` gives one length, or two that differ by one.
_RUNS = 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Line = Mapping[str, Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Imported:
    """A Profile of published results, and how many results were left out for which reason."""

    profile: Profile
    left_out: Mapping[str, int]


def import_published(path: Path, name: str, machine: str | None = None) -> Imported:
    """Return a Profile of the machine of published results, called `name`.

    Parameters
    ----------
    path : Path
        A table, a file of Ginkgo's benchmarks, or a folder of these.
    machine : str, optional
        Which one, by the name in the file, where there are several.

    Raises
    ------
    InputError
        If `name` is no name for a file, or that of a profile of another kind.
    ProfileError
        If the file has another layout, a time that cannot be, no machine of that name, or several and none
        is named.
    """
    _refuse_name(name)
    lines = list(_published_lines(path))
    found = list(dict.fromkeys(line["machine"] for line in lines))
    if machine is None and len(found) > 1:
        raise ProfileError(
            f"{path} has results of {len(found)} machines: expected one; name it with --machine: "
            f"{', '.join(found)}"
        )
    if machine is not None and machine not in found:
        raise ProfileError(
            f"machine '{machine}' is not in {path}: expected one of {', '.join(found)}; name one of them"
        )
    chosen = found[0] if machine is None else machine
    made = _profile([line for line in lines if line["machine"] == chosen], chosen, name)
    if not made.profile.records:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in made.left_out.items())
        raise ProfileError(f"{path} has no result that can be used ({reasons}): expected some; name another")
    return made


def published_profiles(path: Path) -> dict[str, Profile]:
    """Return a Profile of each machine in a file of published results, by the file's name of the machine.

    Raises
    ------
    ProfileError
        As `import_published`.
    """
    by_machine: defaultdict[str, list[Line]] = defaultdict(list)
    for line in _published_lines(path):
        by_machine[line["machine"]].append(line)
    return {name: _profile(lines, name, name).profile for name, lines in by_machine.items()}


def _refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"name {name!r}: expected letters, digits, '.', '_' and '-', at most 64; choose another one"
        )
    known = known_profiles()
    if name in known and Profile.load(known[name]).machine.published_as is None:
        raise InputError(
            f"name '{name}' is that of a profile which was measured: expected a new one; choose another one"
        )


def _profile(lines: Iterable[Line], machine: str, name: str) -> Imported:
    """Return the Profile of a machine; each result is a Record, or left out for a reason."""
    records: dict[Any, Record] = {}
    matrices: dict[str, MatrixEntry] = {}
    left_out: Counter[str] = Counter()
    executor = ""
    for line in lines:
        structure = _structure_or_reason(*(line[key] for key in _KEY))
        kernel = line["format"].lower()
        if not line["completed"] or line["time_s"] is None:
            left_out["not completed"] += 1
        elif isinstance(structure, str):
            left_out[structure] += 1
        elif stored_as(kernel) is None:
            left_out[f"in the unknown format {kernel}"] += 1
        else:
            executor = line["executor"] or _device(GPUS.get(machine))
            record = _record(
                line, structure, Candidate(str(stored_as(kernel)), kernel, executor, "float64", 32, 1)
            )
            records[record.identity] = record
            entry = MatrixEntry(record.matrix, f"{line['group']}/{line['matrix']}", structure)
            matrices.setdefault(record.matrix, entry)
    kept = _possible(list(records.values()))
    if len(kept) < len(records):
        left_out[f"{FASTER_THAN_POSSIBLE} times as fast as nearly all others"] = len(records) - len(kept)
    return Imported(Profile(_machine(machine, name, executor), tuple(kept), matrices), left_out)


def _possible(records: Sequence[Record]) -> list[Record]:
    """Return the Records without those of products that cannot have been done in their time.

    One such time, relative to which errors count, would rule the fit of a model.
    """
    if not records:
        return []
    rates = np.array([record.nnz / record.time_s for record in records])
    greatest = FASTER_THAN_POSSIBLE * np.quantile(rates, 0.99)
    return [record for record, rate in zip(records, rates, strict=True) if rate <= greatest]


def _machine(machine: str, name: str, device: str) -> Machine:
    known = machine if machine in {*GPUS, *PROCESSORS} else name
    cores, caches = PROCESSORS.get(known, (1, ()))
    unknown = "not published"
    return Machine(
        *(machine or unknown, unknown, cores, cores, caches, (), 0, unknown, device, GPUS.get(known)),
        published_as=name,
    )


def _device(gpu: GPU | None) -> str:
    """Return what published results without a device are taken to be of."""
    if gpu is None:
        return "unknown"
    return "hip" if gpu.compute_capability is None else "cuda"


def stored_as(kernel: str) -> str | None:
    """Return this project's format for the published name of one; None where none stores the same."""
    bare = _LIBRARY.sub("", kernel)
    return next((name for begins, name in STORED_AS.items() if bare.startswith(begins)), None)


def _record(line: Line, found: Structure, candidate: Candidate) -> Record:
    stored = int(FORMATS.get(candidate.format).predicted_bytes(RowBlocks.of(found), 8, 4)[0])
    return Record(
        candidate=candidate,
        nnz=found.nnz,
        matrix=f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}",
        suite=PUBLISHED_SUITE,
        samples_s=(),
        time_s=line["time_s"],
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
        version=PUBLISHED_SUITE,
    )


def _published_lines(path: Path) -> Iterator[Line]:
    """Give a line for each result, its times in seconds, once none of them cannot be."""
    if path.is_dir() or path.suffix.lower() == ".json":
        lines = list(_ginkgo_lines(path))
    else:
        lines = list(table_lines(path, REQUIRED, OPTIONAL))
    for line in lines:
        time_s, completed = line["time_s"], line["completed"]
        if completed and time_s is not None and not 0 < time_s < math.inf:
            raise ProfileError(
                f"{path} has the time {time_s:g} for {line['group']}/{line['matrix']} in format "
                f"{line['format']}: expected more than 0; correct the file, or leave it out"
            )
    times = [line["time_s"] for line in lines if line["completed"] and line["time_s"] is not None]
    unit = 1e-9 if times and min(times) >= LEAST_NANOSECONDS else 1.0
    if unit == 1.0 and times and max(times) >= LEAST_NANOSECONDS:
        raise ProfileError(
            f"{path} has times from {min(times):g} to {max(times):g}: expected seconds in all of it, or "
            f"nanoseconds in all of it; name a file of one unit"
        )
    for line in lines:
        yield {**line, "time_s": line["time_s"] * unit if line["completed"] and line["time_s"] else None}


def table_lines(path: Path, required: Sequence[str], optional: Sequence[str]) -> Iterator[Line]:
    """Give the lines of a CSV table, plain or gzip: texts, and numbers where they are; None where nothing is.

    Raises
    ------
    ProfileError
        If the file cannot be read, or lacks one of the columns `required`.
    """
    import pyarrow.csv

    types = {name: "string" if name in _TEXTS else "float64" for name in (*required, *optional)}
    options = pyarrow.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
    try:
        table = pyarrow.csv.read_csv(path, convert_options=options)
    except (OSError, pyarrow.ArrowException) as error:
        why = " ".join(str(error).split())
        raise ProfileError(
            f"{path} cannot be read as a table ({why}): expected CSV with the columns "
            f"{', '.join(required)}; name another file"
        ) from error
    if missing := [name for name in required if name not in table.column_names]:
        raise ProfileError(
            f"{path} has no column {', '.join(missing)}: expected {', '.join(required)}; add it, or name "
            f"another file"
        )
    nothing = dict.fromkeys((*required, *optional), None)
    for line in table.select([name for name in types if name in table.column_names]).to_pylist():
        completed = (line.get("completed") or "true").lower() == "true"
        yield {**nothing, "machine": "", **line, "completed": completed}


def _ginkgo_lines(path: Path) -> Iterator[Line]:
    """Give the lines of what Ginkgo's benchmarks wrote: one file, or all files of a folder."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    found = [line for file in files for line in _lines_of_file(file)]
    if not found:
        raise ProfileError(
            f"{path} has no times of products: expected JSON that Ginkgo's benchmark of SpMV wrote, with "
            f"'problem' and 'spmv'; name another file or folder"
        )
    yield from found


def _lines_of_file(file: Path) -> Iterator[Line]:
    try:
        problems = json.loads(file.read_text(encoding="utf-8"))
        for about in problems if isinstance(problems, list) else [problems]:
            yield from _lines_of_problem(about, *_folders(file))
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        why = f"lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise ProfileError(
            f"{file} cannot be read as published results ({why}): expected JSON that Ginkgo's benchmark of "
            f"SpMV wrote; name another file"
        ) from error


def _lines_of_problem(about: Mapping[str, Any], machine: str, executor: str | None) -> Iterator[Line]:
    if "spmv" not in about:  # of another benchmark, such as that of preconditioners
        return
    problem = about["problem"]
    lengths = problem.get("row_distribution", {})
    known = {"machine": machine, "executor": executor, "group": problem["group"], "matrix": problem["name"]}
    known |= {"rows": problem["rows"], "nnz": problem["nonzeros"]}
    known["cols"] = problem["cols"] if "cols" in problem else problem["columns"]
    known |= {name: lengths.get(name.removeprefix("rd_")) for name in (*FIVE, "rd_variance")}
    for name, result in about["spmv"].items():
        time_s = result.get("time")
        completed = bool(result["completed"])
        yield {
            **known,
            "format": name,
            "time_s": None if time_s is None else float(time_s),
            "completed": completed,
        }


def _folders(file: Path) -> tuple[str, str | None]:
    """Return machine and executor of a file in the folders of ginkgo-data: .../MACHINE/EXECUTOR/..."""
    parts = file.absolute().parts[:-1]
    place = next((place for place, part in enumerate(parts) if part in _EXECUTORS and place), None)
    return ("", None) if place is None else (parts[place - 1], parts[place])


_KEY = ("rows", "cols", "nnz", *FIVE, "rd_variance")


@cache
def _structure_or_reason(*known: float | None) -> Structure | str:
    """Return what is known of a matrix, or in words why it is of no use."""
    try:
        found = summarised(dict(zip(_KEY, known, strict=True)))
    except InputError:
        return "of a matrix whose numbers contradict each other"
    return found if found.groups else "of a matrix without row lengths"


def summarised(line: Line) -> Structure:
    """Return the Structure of a matrix from its counts and, where they are there, FIVE and the variance.

    Raises
    ------
    InputError
        If no matrix has such numbers; the message names the first of them.
    """
    rows, cols, nnz = (_count(line, name) for name in ("rows", "cols", "nnz"))
    given = [line.get(name) for name in (*FIVE, "rd_variance")]
    if None in given:
        return Structure(rows, cols, nnz).checked()
    five, variance = [float(each) for each in given[:-1]], float(given[-1])  # type: ignore[arg-type]
    found = row_lengths(rows, nnz, five) if all(map(math.isfinite, five)) and rows else None
    if found is None:
        text = ", ".join(f"{each:g}" for each in five)
        raise _contradicting(
            line,
            f"no {rows:,} rows with {nnz:,} entries have the lengths {text} (least, quartiles, greatest)",
        )
    if not 0 <= variance <= max(five[-1], 1.0) ** 2:
        raise _contradicting(line, f"no such rows have the variance {variance:g}")
    statistics = row_length_statistics(*found)
    statistics["deviation"] = math.sqrt(variance)
    known = RowLengths(**statistics, changes=None, mispredicted=None)
    return Structure(rows, cols, nnz, {known.name: known}).checked()


def _count(line: Line, name: str) -> int:
    value = line[name]
    if value is None or not math.isfinite(value) or value < 0 or value != int(value) or value >= 2**53:
        raise _contradicting(line, f"{name} is {'missing' if value is None else format(value, 'g')}")
    return int(value)


def _contradicting(line: Line, what: str) -> InputError:
    name = "/".join(str(line[key]) for key in ("group", "matrix") if line.get(key))
    return InputError(
        f"matrix {name or 'of a table'}: {what}; expected numbers that one matrix can have; correct them"
    )


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
