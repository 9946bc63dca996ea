"""The experiment of Guo, Wang and Chen (2014): how far the times of their models are off.

    python examples/guo_2014.py [--profile NAME|PATH] [--threads N] [MATRIX...]
    python examples/guo_2014.py --published TABLE.csv

The first form fits the models to the paper's benchmark matrices, as they were measured on a machine. It
tries them on each MATRIX, which is measured here, or on the gallery matrices of the profile, which no model
is fitted to. Without --profile it is this machine's; where it has no such times, the matrices are measured
first, for a minute.

The second form reads the results of others on GPUs (README.md, "Machines nobody here has"). They are on no
grid of strips and row lengths, so the models are fitted to matrices of nearly constant row length in half of
the groups, and tried on such matrices in the other half.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import sparsecast as sc
from sparsecast.api.resolving import calibrated_profile, machine_of, model_records, read_matrix, stored_target
from sparsecast.benchmark.published import GPUS, published_profiles
from sparsecast.errors import ProfileError, SparsecastError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import group_of
from sparsecast.models.guo import GuoModel
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.records import Record

#: Section 5.1 and figure 17: mean errors on 22 matrices, on a Tesla C2050.
OF_THE_PAPER = {"csr": 0.063, "ell": 0.044, "coo": 0.022, "hyb": 0.047}

#: Of its benchmark matrices all rows have one length; of ours from others, these deviate by less of the mean.
SMALL_DEVIATION = 0.2

#: Ginkgo's kernels for the formats of the paper.
GINKGO = ("csr", "ell", "coo", "hybrid")

Measured = list[tuple[Record, Structure]]


def mean_errors(model: GuoModel, measured: Measured) -> dict[str, tuple[int, float]]:
    """Return for each format the number of measurements, and the mean of |forecast - time| / time."""
    errors = defaultdict(list)
    for record, found in measured:
        if model.serves(record.candidate):
            time_s = float(model.values(record.candidate, RowBlocks.of(found))[0])
            errors[record.candidate.format].append(abs(time_s - record.time_s) / record.time_s)
    return {name: (len(each), fmean(each)) for name, each in errors.items()}


def show(title: str, training: TrainingSet, measured: Measured) -> None:
    """Print the errors with our fits and with those of the paper, and what the paper prints."""
    ours, printed = (mean_errors(GuoModel(as_printed=each).fit(training), measured) for each in (False, True))
    print(f"{title}\nformat  measured  our fits  fits as printed  the paper")
    for name in OF_THE_PAPER:
        if name in ours:
            count, error = ours[name]
            print(f"{name:6}{count:10}{error:10.1%}{printed[name][1]:17.1%}{OF_THE_PAPER[name]:11.1%}")


def here(profile: Profile, threads: int | None, matrices: list[str]) -> None:
    """Try the models on matrices measured here, or on the gallery matrices of a profile."""
    target = stored_target(profile.machine, "float64", threads)
    records = model_records(profile, target)
    if matrices:
        measured = []
        for problem in map(read_matrix, matrices):
            found = sc.measure(problem, threads=target.threads, dtype="float64", keeps=False)
            measured += [(record, problem.structure) for record in found]
    else:
        own = [r for r in records if r.suite == HELD_OUT_SUITE and r.regime == "warm"]
        measured = [(record, profile.structure(record)) for record in own]
    show(profile.name, TrainingSet.of(profile, records), measured)


def measured_profile(threads: int | None) -> Profile:
    """Return this machine's profile with the paper's benchmark matrices; they are measured if it has none."""
    profile = calibrated_profile(machine_of("cpu"))
    records = model_records(profile, stored_target(profile.machine, "float64", threads))
    if any(record.suite == "entry strips" for record in records):
        return profile
    print("This machine has no times of the paper's matrices: measuring them for 60 s", file=sys.stderr)
    return sc.calibrate(60.0, threads=threads, dtype="float64", suites=["guo"])


def published(table: Path) -> None:
    """Try the models on the results of others, of Ginkgo's own kernels."""
    for name, profile in published_profiles(table).items():
        if name not in GPUS:
            continue
        alike = [
            record
            for record in profile.records
            if record.candidate.kernel in GINKGO
            and (lengths := profile.structure(record).row_lengths).deviation <= SMALL_DEVIATION * lengths.mean
        ]
        held_out = set(sorted({group_of(record.matrix) for record in profile.records})[1::2])
        fit = TrainingSet.of(profile, [r for r in alike if group_of(r.matrix) not in held_out])
        tested = [(r, profile.structure(r)) for r in alike if group_of(r.matrix) in held_out]
        try:
            show(name, fit, tested)
        except ProfileError as error:
            print(f"{name}: {error}")


def main() -> int:
    """Run the experiment and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--profile")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--published", type=Path, metavar="TABLE.csv")
    asked = parser.parse_args()
    try:
        if asked.published:
            published(asked.published)
        else:
            profile = sc.profile(asked.profile) if asked.profile else measured_profile(asked.threads)
            here(profile, asked.threads, asked.matrices)
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
