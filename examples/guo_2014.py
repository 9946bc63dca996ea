"""The experiment of Guo, Wang and Chen (2014): how far the times of their models are off.

    python examples/guo_2014.py [--profile NAME|PATH] [--threads N] [--device NAME]
        [--dtype NAME] [--figure FILE] [MATRIX...]
    python examples/guo_2014.py --published TABLE.csv [--figure FILE]

The first form fits the models to the paper's benchmark matrices, as they were measured on a machine. It
tries them on each MATRIX, which is measured here, or on the gallery matrices of the profile, which no model
is fitted to. Without --profile it is this machine's; where it has no such times, the matrices are measured
first, for a minute.

The second form reads the results of others on GPUs (README.md, "Machines nobody here has"). They are on no
grid of strips and row lengths, so the models are fitted to matrices of nearly constant row length in half of
the groups, and tried on such matrices in the other half.

--figure draws the times of the matrices beside the forecasts, format by format, as figures 13 to 16 of the
paper do, and the mean errors beside those of its figure 17.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import sparsecast as sc
from sparsecast.api.matrices import read_matrix
from sparsecast.api.targets import calibrated_profile, model_records, require_own
from sparsecast.benchmark.published import published_profiles
from sparsecast.devices.naming import machine_of
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, ProfileError, SparsecastError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import group_of
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.papers import published as published_numbers
from sparsecast.papers.guo_2014.models.guo import GuoModel
from sparsecast.records import Record
from sparsecast.reports.charts.chart import Chart, axis, look, panels, refuse_undrawable, render, tooltip

#: Mean errors.
OF_THE_PAPER = published_numbers("guo_2014")["mean_errors"]

#: Of its benchmark matrices all rows have one length; of ours from others, these deviate by less of the mean.
SMALL_DEVIATION = 0.2

#: Ginkgo's kernels for the formats of the paper.
GINKGO = ("csr", "ell", "coo", "hybrid")

#: What charts show, in the order of their colours.
SHOWN = ["our fits", "fits as printed", "measured", "of the paper, Tesla C2050"]

Measured = list[tuple[Record, Structure]]


@dataclass(frozen=True)
class Tried:
    """One measurement, and what the models forecast of it by our fits and by those of the paper."""

    matrix: str
    format: str
    measured_s: float
    ours_s: float
    printed_s: float


def tried(training: TrainingSet, measured: Measured) -> list[Tried]:
    """Return what both models forecast of each measurement that they serve, the shortest time first."""
    ours, printed = (GuoModel(as_printed=each).fit(training) for each in (False, True))
    found = []
    for record, structure in measured:
        if ours.serves(record.candidate):
            asked = record.candidate, RowBlocks.of(structure)
            seconds = (float(model.values(*asked)[0]) for model in (ours, printed))
            found.append(Tried(record.matrix, record.candidate.format, record.time_s, *seconds))
    return sorted(found, key=lambda each: each.measured_s)


def mean_errors(found: list[Tried]) -> dict[str, tuple[int, float, float]]:
    """Return for each format the number of measurements, and both means of |forecast - time| / time."""
    errors = defaultdict(list)
    for each in found:
        forecasts = each.ours_s, each.printed_s
        errors[each.format].append([abs(own - each.measured_s) / each.measured_s for own in forecasts])
    return {name: (len(own), *map(fmean, zip(*own, strict=True))) for name, own in errors.items()}


def show(title: str, training: TrainingSet, measured: Measured) -> list[Tried]:
    """Print the errors with our fits and with those of the paper, and what the paper prints."""
    found = tried(training, measured)
    errors = mean_errors(found)
    print(f"{title}\nformat  measured  our fits  fits as printed  the paper")
    for name in OF_THE_PAPER:
        if name in errors:
            count, ours, printed = errors[name]
            print(f"{name:6}{count:10}{ours:10.1%}{printed:17.1%}{OF_THE_PAPER[name]:11.1%}")
    return found


def draw(shown: dict[str, list[Tried]], path: Path) -> None:
    """Draw for each machine the times by format, and the mean errors."""
    shown = {title: found for title, found in shown.items() if found}
    if not shown:
        raise InputError(f"figure {path} would show nothing: expected measurements; name a matrix")
    charts = []
    for title, found in shown.items():
        for name in OF_THE_PAPER:
            if own := [each for each in found if each.format == name]:
                charts.append(times_chart(f"{title}: {name.upper()}", own))
        charts.append(errors_chart(mean_errors(found)))
    render(panels("guo", "", charts, 3), "Models of Guo et al. (2014)", path)


def times_chart(caption: str, found: list[Tried]) -> Chart:
    """Return measured times and forecasts of the matrices, the shortest time first."""
    rows = [
        {"matrix": each.matrix, "place": place, "what": what, "time_s": seconds}
        for place, each in enumerate(found, 1)
        for what, seconds in zip(SHOWN, (each.ours_s, each.printed_s, each.measured_s), strict=False)
    ]
    shown = {
        "x": {"field": "place", "type": "ordinal", "title": "matrices, by their measured time"},
        "y": axis("time_s", "one product", [row["time_s"] for row in rows], "s"),
        **look("what", SHOWN),
        "tooltip": tooltip({"matrix": "matrix", "what": "kind"}, time_s="time, s"),
    }
    spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 40},
        "encoding": shown,
    }
    return Chart("times", caption, {**spec, "width": 300, "height": 220})


def errors_chart(errors: dict[str, tuple[int, float, float]]) -> Chart:
    """Return the mean errors of the formats, ours beside those of the paper's figure 17."""
    rows = [
        {"format": name.upper(), "what": what, "error": 100 * error}
        for name, paper in OF_THE_PAPER.items()
        if name in errors
        for what, error in ((SHOWN[0], errors[name][1]), (SHOWN[1], errors[name][2]), (SHOWN[3], paper))
    ]
    shown = {
        "x": {"field": "format", "type": "nominal", "sort": None, "title": None},
        "xOffset": {"field": "what", "sort": SHOWN},
        "y": axis("error", "mean error, %"),
        "color": look("what", SHOWN)["color"],
    }
    spec = {"data": {"values": rows}, "mark": "bar", "encoding": shown, "width": 300, "height": 220}
    return Chart("errors", "Mean errors; the paper: figure 17.", spec)


def here(profile: Profile, target: Target, device: str, matrices: list[str]) -> dict[str, list[Tried]]:
    """Try the models on matrices measured here, or on the gallery matrices of a profile."""
    records = model_records(profile, target)
    if matrices:
        require_own(profile.name, machine_of(device))
        asked = {"threads": target.threads, "dtype": target.dtype, "device": device}
        measured = []
        for problem in map(read_matrix, matrices):
            found = sc.measure(problem, **asked, keeps=False)
            measured += [(record, problem.structure) for record in found]
    else:
        own = [r for r in records if r.suite == HELD_OUT_SUITE and r.regime == "warm"]
        measured = [(record, profile.structure(record)) for record in own]
    return {profile.name: show(profile.name, TrainingSet.of(profile, records), measured)}


def measured_profile(threads: int | None, device: str, dtype: str) -> Profile:
    """Return this machine's profile with the paper's benchmark matrices; they are measured if it has none."""
    profile = calibrated_profile(machine_of(device))
    records = model_records(profile, Target.on(profile.machine, dtype, threads))
    if any(record.suite == "entry strips" for record in records):
        return profile
    print("This machine has no times of the paper's matrices: measuring them for 60 s", file=sys.stderr)
    return sc.calibrate(60.0, threads=threads, dtype=dtype, device=device, suites=["guo"])


def published(table: Path) -> dict[str, list[Tried]]:
    """Try the models on the results of others, of Ginkgo's own kernels."""
    shown = {}
    for name, profile in published_profiles(table).items():
        if profile.machine.gpu is None:
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
            shown[name] = show(name, fit, tested)
        except ProfileError as error:
            print(f"{name}: {error}")
    return shown


def main() -> int:
    """Run the experiment and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--profile")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu", help="where MATRIX is measured")
    parser.add_argument("--dtype", default="float64", help="the paper: float32")
    parser.add_argument("--published", type=Path, metavar="TABLE.csv")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw times and errors")
    asked = parser.parse_args()
    try:
        if asked.figure:
            refuse_undrawable(asked.figure)
        if asked.published:
            shown = published(asked.published)
        else:
            profile = (
                sc.profile(asked.profile)
                if asked.profile
                else measured_profile(asked.threads, asked.device, asked.dtype)
            )
            target = Target.on(profile.machine, asked.dtype, asked.threads)
            shown = here(profile, target, asked.device, asked.matrices)
        if asked.figure:
            draw(shown, asked.figure)
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
