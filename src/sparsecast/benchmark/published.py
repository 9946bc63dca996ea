"""Published results: times that others measured, as Profiles of their machines.

There are three layouts. One is a CSV table, also with gzip, with a line for each machine, matrix and format
and a header of REQUIRED and OPTIONAL columns; other columns are ignored. The second is the output of Ginkgo's
benchmarks, ginkgo-project/ginkgo-data on GitHub (CC BY 4.0): JSON, one file or a folder of them. The third is
in `published_moments`. No such file is part of this project; the user gives its path.

A time is a mean, in double precision, without samples. Early files of Ginkgo have nanoseconds instead of
seconds: no product takes LEAST_NANOSECONDS seconds or more, and none takes fewer nanoseconds. Sizes in bytes
are this project's own count, because published ones differ in meaning. For a matrix there are rows, columns,
entries, and of the row lengths the five numbers (least, quartiles, greatest) and the variance.
`lengths_of_five` gives row lengths that agree with rows, entries, least and greatest: between two of the five
numbers they follow a power of the rank. The order of the rows and the places of the entries are unknown, so
the row lengths are known without changes and mispredicted rows. How many entries SELL-P stores says what the
order of the rows makes of slices, the only other feature group.

The format is one of this project's that stores the same, and the kernel has the published name: ``csri`` is
format ``csr`` with kernel ``csri``, ``sellp`` is ``sell`` with ``sellp``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from sparsecast.benchmark.published_moments import (
    Line,
    contradicting,
    count,
    described,
    has_moments,
    moment_results,
    table_lines,
)
from sparsecast.errors import InputError, ProfileError, remedy_for
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths
from sparsecast.features.slices import SLICE_ROWS, Slices
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.data_sheet import published_machines
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import MatrixEntry, Profile, known_profiles
from sparsecast.matrices.problem import PUBLISHED_PREFIX
from sparsecast.records import PUBLISHED_SUITE, Candidate, Record
from sparsecast.results.machines import Imported
from sparsecast.system.tabular import grouped

#: This project's format for a published name, by the beginning of the name after that of a vendor's library
#: or of an author. Merge and the two vendors' libraries for processors compute from CSR.
STORED_AS = {"csr": "csr", "coo": "coo", "ell": "ell", "hybrid": "hyb", "hyb": "hyb", "sell": "sell"}
STORED_AS |= {"merge": "csr", "mkl_ie": "csr", "aocl": "csr"}
_LIBRARY = re.compile("^(cusparse|hipsparse|cusp|hipsp|naive|custom)_?")

#: Columns of a table of matrices, and of a table of results.
OF_MATRIX = ("matrix", "rows", "cols", "nnz")
FIVE = ("rd_min", "rd_q1", "rd_median", "rd_q3", "rd_max")
REQUIRED = ("group", *OF_MATRIX, *FIVE, "rd_variance", "format", "time_s")
OPTIONAL = ("machine", "executor", "completed", "storage_bytes")

#: Least time that must be in nanoseconds.
LEAST_NANOSECONDS = 1000

#: A product is impossible if it does this many times the entries per second of all but a hundredth of the
#: machine's: a result on the Xeon is 1e5 times as fast as the others.
FASTER_THAN_POSSIBLE = 10

#: Folders of ginkgo-data by executor; the folder above is the machine.
_EXECUTORS = ("cuda", "hip", "omp", "dpcpp", "reference")

#: The columns that tell one matrix from others, in a table of moments and otherwise.
_NAMES: tuple[str, ...] = ("group", "matrix")
_NUMBERS: tuple[str, ...] = ("rows", "cols", "nnz", *FIVE, "rd_variance")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def import_published(paths: Sequence[Path], name: str, machine: str | None = None) -> Imported:
    """Return a Profile, called `name`, of the machine of published results.

    `paths` are tables, files of Ginkgo's benchmarks, or folders of these; `machine` is its name in the files,
    if they have several machines, or if they name none.

    An InputError says that `name` is no name for a file, or that of a profile of another kind; a ProfileError
    that a file has another layout or an impossible time, that no machine has that name, or that there are
    several and none is named.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"name {name!r}: expected letters, digits, '.', '_' and '-', at most 64; choose another one"
        )
    profiles = known_profiles()
    if name in profiles and Profile.load(profiles[name]).machine.published_as is None:
        raise InputError(
            f"name '{name}' is that of a profile which was measured: expected a new one; choose another one"
        )
    lines = grouped((line for path in paths for line in _published_lines(path)), itemgetter("machine"))
    if machine is not None and list(lines) == [""]:
        lines = {machine: lines[""]}
    files = ", ".join(map(str, paths))
    if machine is None and len(lines) > 1:
        raise ProfileError(
            f"{files} has results of {len(lines)} machines: expected one; name it with --machine: "
            f"{', '.join(lines)}"
        )
    if machine is not None and lines and machine not in lines:
        raise ProfileError(
            f"machine '{machine}' is not in {files}: expected one of {', '.join(lines)}; "
            f"{remedy_for(machine, list(lines), 'name one of them')}"
        )
    chosen = next(iter(lines), "") if machine is None else machine
    imported = _profile(lines.get(chosen, []), chosen, name)
    if not imported.profile.records:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in imported.left_out.items())
        raise ProfileError(
            f"{files} has no result that can be used ({reasons or 'no line'}): expected some; name another"
        )
    return imported


def published_profiles(path: Path) -> dict[str, Profile]:
    """Return a Profile of each machine in a file of published results, by its name in the file."""
    by_machine = grouped(_published_lines(path), itemgetter("machine"))
    return {name: _profile(lines, name, name).profile for name, lines in by_machine.items()}


def _profile(lines: Iterable[Line], machine: str, name: str) -> Imported:
    """Return the Profile of a machine; each result is a Record, or left out with a reason."""
    published = published_machines().get(machine)
    device = "unknown" if published is None else published.device
    records: dict[Any, Record] = {}
    matrices: dict[str, MatrixEntry] = {}
    left_out: Counter[str] = Counter()
    for line in lines:
        structure, kernel = line["structure"], line["format"].lower()
        format_name = stored_as(kernel)
        if not line["completed"] or line["time_s"] is None:
            left_out["not completed"] += 1
        elif isinstance(structure, str):
            left_out[structure] += 1
        elif format_name is None:
            left_out[f"in the unknown format {kernel}"] += 1
        else:
            device = line["executor"] or device
            record = _record(line, structure, Candidate(format_name, kernel, device, "float64", 32, 1))
            records[record.identity] = record
            slices = _slices(line, structure)
            if slices or record.matrix not in matrices:
                known, title = structure.having(*slices), f"{line['group']}/{line['matrix']}"
                matrices[record.matrix] = MatrixEntry(record.matrix, title, known)
    # Impossible times, since one of them would dominate the fit of a model.
    rates = [record.nnz / record.time_s for record in records.values()]
    most = FASTER_THAN_POSSIBLE * float(np.quantile(rates, 0.99)) if rates else 0.0
    possible = [record for record, rate in zip(records.values(), rates, strict=True) if rate <= most]
    if len(possible) < len(records):
        reason = f"{FASTER_THAN_POSSIBLE} times as fast as nearly all others"
        left_out[reason] = len(records) - len(possible)
    return Imported(Profile(_machine(machine, name, device), tuple(possible), matrices), left_out)


def _slices(line: Line, structure: Structure) -> list[Slices]:
    """Return the slices of a matrix from a result of SELL-P; none from any other, or from another size.

    The size is in bytes: columns in four, start and width of a slice in eight. Early files have entries.
    """
    size, counts = line.get("storage_bytes"), (structure.rows, structure.cols, structure.nnz)
    if line["format"] != "sellp" or not size:
        return []
    entries = (size - 16 * -(-structure.rows // SLICE_ROWS) - 8) / 12, size
    whole = [Slices(int(count)) for count in entries if count == int(count)]
    return [slices for slices in whole if not slices.contradiction(*counts)][:1]


def _machine(machine: str, name: str, device: str) -> Machine:
    published = published_machines().get(machine) or published_machines().get(name)
    sheet, gpu = (published.sheet, published.gpu) if published else (None, None)
    of_cores = sheet if gpu is None else None
    cores, unknown = of_cores.cores if of_cores else 1, "not published"
    sizes = ((2, of_cores.l2_bytes), (3, of_cores.l3_bytes)) if of_cores else ()
    return Machine(
        processor=machine or unknown,
        architecture=unknown,
        cores=cores,
        threads=cores,
        # Each level as one cache of all cores.
        caches=tuple(Cache(level, size, 1) for level, size in sizes if size),
        simd=(),
        memory_bytes=0,
        system=unknown,
        device=device,
        gpu=gpu,
        published_as=name,
        sheet=sheet,
    )


def stored_as(kernel: str) -> str | None:
    """Return this project's format for a published name; None if none stores the same."""
    bare = _LIBRARY.sub("", kernel)
    return next((name for begins, name in STORED_AS.items() if bare.startswith(begins)), None)


def _record(line: Line, structure: Structure, candidate: Candidate) -> Record:
    stored = int(FORMATS.get(candidate.format).predicted_bytes(RowBlocks.of(structure), 8, 4)[0])
    return Record(
        candidate=candidate,
        nnz=structure.nnz,
        matrix=f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}",
        suite=PUBLISHED_SUITE,
        samples_s=(),
        time_s=line["time_s"],
        spread=None,
        noise=None,
        regime="warm",
        error=None,
        convert_s=None,
        stored_bytes=stored,
        traffic_bytes=stored,
        energy_j=line.get("energy_j"),
        energy_source=None if line.get("energy_j") is None else PUBLISHED_SUITE,
        measured_at="",
        version=PUBLISHED_SUITE,
    )


def _published_lines(path: Path) -> Iterator[Line]:
    """Yield a line for each result, with its time in seconds, after a check of all times.

    ``structure`` is the Structure of its matrix, or the reason why it is of no use; ``machine`` is empty
    where the line names none.
    """
    is_of_ginkgo = path.is_dir() or path.suffix.lower() == ".json"
    if not is_of_ginkgo and has_moments(path):
        lines, structure_of, of_matrix = list(moment_results(path)), described, _NAMES
    else:
        read = _ginkgo_lines(path) if is_of_ginkgo else table_lines(path, REQUIRED, OPTIONAL)
        lines, structure_of, of_matrix = _in_seconds(list(read), path), summarised, _NUMBERS
    structures: dict[tuple[Any, ...], Structure | str] = {}
    for line in lines:
        matrix = tuple(line[name] for name in of_matrix)
        if matrix not in structures:
            try:
                structure = structure_of(line)
                has_lengths = bool(structure.groups)
                structures[matrix] = structure if has_lengths else "of a matrix without row lengths"
            except InputError:
                structures[matrix] = "of a matrix whose numbers contradict each other"
        yield {**line, "machine": line["machine"] or "", "structure": structures[matrix]}


def _in_seconds(lines: list[Line], path: Path) -> list[Line]:
    """Return lines with their times in seconds, after a check of all times; None for those that failed."""
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
    return [
        {**line, "time_s": line["time_s"] * unit if line["completed"] and line["time_s"] else None}
        for line in lines
    ]


def _ginkgo_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of Ginkgo's benchmarks: one file, or all files of a folder.

    Machine and executor are those of the folders of ginkgo-data: .../MACHINE/EXECUTOR/...
    """
    lines: list[Line] = []
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        parts = file.absolute().parts[:-1]
        place = next((place for place, part in enumerate(parts) if part in _EXECUTORS and place), None)
        machine, executor = ("", None) if place is None else (parts[place - 1], parts[place])
        try:
            problems = json.loads(file.read_text(encoding="utf-8"))
            for problem in problems if isinstance(problems, list) else [problems]:
                lines += _lines_of_problem(problem, machine, executor)
        except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise ProfileError(
                f"{file} cannot be read as published results ({why}): expected JSON that Ginkgo's benchmark "
                f"of SpMV wrote; name another file"
            ) from error
    if not lines:
        raise ProfileError(
            f"{path} has no times of products: expected JSON that Ginkgo's benchmark of SpMV wrote, with "
            f"'problem' and 'spmv'; name another file or folder"
        )
    yield from lines


def _lines_of_problem(about: Mapping[str, Any], machine: str, executor: str | None) -> Iterator[Line]:
    if "spmv" not in about:  # of another benchmark, such as that of preconditioners
        return
    problem = about["problem"]
    lengths = problem.get("row_distribution", {})
    for name, result in about["spmv"].items():
        time_s = result.get("time")
        yield {
            "machine": machine,
            "executor": executor,
            "group": problem["group"],
            "matrix": problem["name"],
            "rows": problem["rows"],
            "cols": problem["cols"] if "cols" in problem else problem["columns"],
            "nnz": problem["nonzeros"],
            **{name: lengths.get(name.removeprefix("rd_")) for name in (*FIVE, "rd_variance")},
            "format": name,
            "time_s": None if time_s is None else float(time_s),
            "completed": bool(result["completed"]),
            "storage_bytes": result.get("storage"),
        }


def summarised(line: Line) -> Structure:
    """Return the Structure of a matrix from its counts and, if given, FIVE and the variance.

    An InputError names the first number that no matrix can have.
    """
    rows, cols, nnz = (count(line, name) for name in ("rows", "cols", "nnz"))
    values = [line.get(name) for name in (*FIVE, "rd_variance")]
    if None in values:
        return Structure(rows, cols, nnz).checked()
    *five, variance = map(float, values)  # type: ignore[arg-type]
    deviation = math.sqrt(variance) if variance >= 0 else math.nan  # refused below
    is_finite = all(map(math.isfinite, five)) and rows
    lengths = RowLengths.of_five(rows, nnz, five, deviation) if is_finite else None
    if lengths is None:
        text = ", ".join(f"{length:g}" for length in five)
        raise contradicting(
            line,
            f"no {rows:,} rows with {nnz:,} entries have the lengths {text} (least, quartiles, greatest)",
        )
    if not 0 <= variance <= max(five[-1], 1.0) ** 2:
        raise contradicting(line, f"no such rows have the variance {variance:g}")
    return Structure(rows, cols, nnz, {lengths.name: lengths}).checked()
