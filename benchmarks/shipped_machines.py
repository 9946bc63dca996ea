"""The shipped profiles of machines that others measured, and what they lose against all that was published.

    python benchmarks/shipped_machines.py FILE [--check] [NAME...]

FILE is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes. Written is one profile for each machine, or for those that are
named, of NAMES. The same FILE gives the same bytes again. Kept are, of each machine:

- every kernel, for the first MATRICES matrices in an order that takes one of each group of the SuiteSparse
  collection, then a second one, and so on; groups and matrices come in the order of a digest of their names;
- of a matrix its counts, the five numbers of its row lengths and their deviation: the rest follows from them;
- times in single precision.

With --check nothing is written. A fifth of the groups is held out. Printed are median and ninetieth
percentile of abs(forecast - measured) / measured on all that was published of them, the share inside of the
intervals and the regret of the kernel that is forecast to be the fastest: first learned from everything else
that was published, then from everything else that is shipped.

The repository of the National Technical University of Athens (cslab-ntua/SpMV-Research) names no licence for
its results, so nothing of them is shipped.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sparsecast.benchmark.published import FIVE, OPTIONAL, REQUIRED, published_profiles
from sparsecast.benchmark.published_tables import table_lines
from sparsecast.features.row_lengths import RowLengths
from sparsecast.machines import profile as profiles
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX, group_of
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Record

#: Names of the profiles, by the names of the file.
NAMES = {
    "K20Xm": "nvidia-k20xm",
    "K40m": "nvidia-k40m",
    "P100": "nvidia-p100",
    "V100_SXM2": "nvidia-v100",
    "A100": "nvidia-a100",
    "RadeonVII": "amd-radeon-vii",
    "MI100": "amd-mi100",
    "Xeon_Gold_6230": "intel-xeon-gold-6230",
}

SOURCE = "ginkgo-project/ginkgo-data, commit b9082895, CC BY 4.0; reduced to some of its matrices"

#: Matrices that are kept of each machine.
MATRICES = 800

#: Parts of the groups, one of which is held out.
PARTS = 5


def digest(text: str) -> str:
    """Return what orders names as good as at random, alike everywhere."""
    return hashlib.sha256(text.encode()).hexdigest()


def chosen_matrices(matrices: Iterable[str]) -> list[str]:
    """Return the specifications of the matrices that are kept, in the order of their choice."""
    of_group = defaultdict(list)
    for matrix in sorted(matrices, key=digest):
        of_group[group_of(matrix)].append(matrix)
    rounds = [(turn, digest(matrix), matrix) for own in of_group.values() for turn, matrix in enumerate(own)]
    return [matrix for _, _, matrix in sorted(rounds)][:MATRICES]


def summaries(path: Path) -> dict[str, dict[str, Any]]:
    """Return what is kept of each matrix of a table, by specification: what `Structure.from_dict` reads."""
    found = {}
    for line in table_lines(path, REQUIRED, OPTIONAL):
        if None in (*(line[name] for name in FIVE), line["rd_variance"]):
            continue
        rows, cols, nnz = (int(line[name]) for name in ("rows", "cols", "nnz"))
        lengths = {
            "version": RowLengths.version,
            "rows": rows,
            "nnz": nnz,
            "five": [line[name] for name in FIVE],
            "deviation": math.sqrt(line["rd_variance"]),
        }
        key = f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}"
        found[key] = {"rows": rows, "cols": cols, "nnz": nnz, RowLengths.name: lengths}
    return found


def reduced(whole: Profile, name: str, known: Mapping[str, dict[str, Any]]) -> Profile:
    """Return what is shipped of a machine."""
    kept = set(chosen_matrices(whole.matrices))
    records = [
        replace(record, time_s=float(np.float32(record.time_s)))
        for record in whole.records
        if record.matrix in kept
    ]
    records.sort(key=lambda record: (record.candidate.kernel, record.matrix))
    matrices = {
        key: MatrixEntry(key, entry.name, known[key])
        for key, entry in sorted(whole.matrices.items())
        if key in kept
    }
    machine = replace(whole.machine, published_as=name, source=SOURCE)
    return Profile(machine, tuple(records), matrices)


def score(learned: Sequence[Record], asked: Sequence[Record], whole: Profile) -> list[str]:
    """Return how forecasts of Records fare that were learned from others, in words."""
    model = SparsecastModel().fit(TrainingSet.of(whole, learned))
    errors, inside = [], []
    of_matrix: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in asked:
        for each in model.estimates(whole.structure(record), [record.candidate]):
            errors.append(abs(each.value / record.time_s - 1))
            inside.append((each.low or 0) <= record.time_s <= (each.high or math.inf))
            of_matrix[record.matrix].append((each.value, record.time_s))
    ratios = [min(own)[1] / min(time_s for _, time_s in own) for own in of_matrix.values() if len(own) > 1]
    return [
        f"{len({record.matrix for record in learned}):,}",
        f"{np.median(errors):.1%} ({np.quantile(errors, 0.9):.0%})",
        f"{np.mean(inside):.0%}",
        f"{math.exp(np.mean(np.log(ratios))) - 1:.1%}",
    ]


def check(wholes: Mapping[str, Profile], small: Mapping[str, Profile]) -> None:
    """Print how forecasts fare that were learned from all, and from what is shipped."""
    table = Table(title="Groups that are held out: learned from all that was published, and from the shipped")
    for heading in ("machine", "asked", *("matrices", "error", "inside", "regret") * 2):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for name, whole in wholes.items():
        groups = sorted({group_of(matrix) for matrix in whole.matrices}, key=digest)
        out = set(groups[::PARTS])
        asked = [record for record in whole.records if group_of(record.matrix) in out]
        learned = [
            [record for record in each.records if group_of(record.matrix) not in out]
            for each in (whole, small[name])
        ]
        cells = [cell for own in learned for cell in score(own, asked, whole)]
        table.add_row(NAMES[name], f"{len(asked):,}", *cells)
    Console(width=130).print(table)


def main() -> None:
    """Write the profiles, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("path", type=Path, metavar="FILE")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*NAMES.values(), []])
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    wholes = {
        name: profile
        for name, profile in published_profiles(asked.path).items()
        if not asked.names or NAMES[name] in asked.names
    }
    known = summaries(asked.path)
    small = {name: reduced(profile, NAMES[name], known) for name, profile in wholes.items()}
    if asked.check:
        check(wholes, small)
        return
    folder = Path(profiles.__file__).parent / "profiles"
    for profile in small.values():
        path = profile.save(folder / f"{profile.name}{profiles.SUFFIX}", is_packed=True)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB, {profile.table_caption()}")


if __name__ == "__main__":
    main()
