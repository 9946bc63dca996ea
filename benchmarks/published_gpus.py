"""How far off the models are on GPUs that others have measured.

    python benchmarks/published_gpus.py FILE

FILE is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. The groups of the SuiteSparse collection in alphabetical order are
fitted to and held out in turn. For each machine, format and kernel of the library:

- the strip models of Guo et al. (2014) are fitted to the matrices of their kind, whose row lengths deviate by
  at most a fifth of their mean; those of the paper's benchmark matrices do not deviate. There is no grid of
  strips and row lengths, so the relationships are fitted to all at once (models/guo.py says how);
- the linear model is fitted to every matrix of these groups; what it reads of the columns is not known here,
  so it goes without misses of x;
- the error is that of the paper, abs(forecast - measured) / measured, its mean over the matrices held out: of
  the kind, and all; beside it what the paper prints for its own kernels on a Tesla C2050.

The library's kernels are not the paper's: its CSR kernels take as many threads a row as the matrix asks for,
or divide the entries evenly, and its HYB has a threshold of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from sparsecast.benchmark.published import GPUS, published_profiles
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import group_of
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Record

#: Largest deviation over mean of the row lengths of the strip models' kind of matrices.
OF_ITS_KIND = 0.2

#: Section 5.1 of the paper: mean errors.
OF_THE_PAPER = {"csr": 0.063, "ell": 0.044, "coo": 0.022, "hyb": 0.047}


def is_of_its_kind(found: Structure) -> bool:
    """Tell whether all rows of a matrix have about one length."""
    return found.row_lengths.deviation <= OF_ITS_KIND * found.row_lengths.mean


def library_of(record: Record) -> str:
    """Return the library of a Record's kernel; each of Ginkgo's further CSR kernels is one by itself."""
    kernel = record.candidate.kernel
    if kernel.startswith(("cusp", "hipsp")):
        return "cusparse" if kernel.startswith("cusp") else "hipsparse"
    return kernel if kernel in ("csrc", "csri", "csrm") else "ginkgo"


def fitted(name: str, records: Sequence[Record], profile: Profile) -> Model | None:
    """Return a model; None where the Records do not suffice."""
    try:
        return MODELS.get(name)().fit(TrainingSet.of(profile, records))
    except ProfileError:
        return None


def error_of(model: Model | None, records: Sequence[Record], profile: Profile) -> str:
    """Return the mean error on Records in words."""
    if model is None or not records or not model.serves(records[0].candidate):
        return "-"
    errors = []
    for record in records:
        blocks = RowBlocks.of(profile.structure(record))
        time_s = float(model.values(record.candidate, blocks)[0])
        errors.append(abs(time_s - record.time_s) / record.time_s)
    return f"{fmean(errors):.1%}"


def rows_of(name: str, profile: Profile, held_out: set[str]) -> Iterator[list[str]]:
    """Give the table's rows of a machine."""
    for library in dict.fromkeys(library_of(record) for record in profile.records):
        own = [record for record in profile.records if library_of(record) == library]
        fit = [record for record in own if group_of(record.matrix) not in held_out]
        kind = [record for record in fit if is_of_its_kind(profile.structure(record))]
        strips, linear = fitted("guo", kind, profile), fitted("linear", fit, profile)
        for format_name in OF_THE_PAPER:
            every = [r for r in own if r.candidate.format == format_name and group_of(r.matrix) in held_out]
            alike = [record for record in every if is_of_its_kind(profile.structure(record))]
            if every:
                counts = (
                    sum(record.candidate.format == format_name for record in kind),
                    sum(record.candidate.format == format_name for record in fit),
                    len(alike),
                    len(every),
                )
                yield [
                    *(name, format_name, library),
                    *(f"{count:,}" for count in counts),
                    *(
                        error_of(model, tested, profile)
                        for model in (strips, linear)
                        for tested in (alike, every)
                    ),
                    f"{OF_THE_PAPER[format_name]:.1%}",
                ]


def main() -> int:
    """Print the table and return the exit status."""
    if len(sys.argv) != 2:
        print("usage: python benchmarks/published_gpus.py FILE", file=sys.stderr)
        return 2
    try:
        found = published_profiles(Path(sys.argv[1]))
    except ProfileError as error:
        print(error, file=sys.stderr)
        return 2
    profiles = {name: profile for name, profile in found.items() if name in GPUS}
    groups = sorted({group_of(record.matrix) for profile in profiles.values() for record in profile.records})
    table = Table(title=f"Mean errors on {len(groups[1::2])} of {len(groups)} groups, held out of the fits")
    for heading in ("machine", "format", "library"):
        table.add_column(heading)
    for heading in (
        *("fitted: kind", "all", "tested: kind", "all"),
        *("strips: kind", "all", "linear: kind", "all", "paper"),
    ):
        table.add_column(heading, justify="right")
    for name, profile in profiles.items():
        for row in rows_of(name, profile, set(groups[1::2])):
            table.add_row(*row)
        table.add_section()
    Console(width=140).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
