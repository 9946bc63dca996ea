"""The experiment of Wang, Gu and Li (2017): benchmark matrices whose rows vary in length, or do not.

    python examples/wang_2017.py [--profile NAME|PATH] [--threads N] [--device NAME]
        [--dtype NAME] [--figure FILE] [MATRIX...]

Models of normal, uniform and binomial row lengths, and the model of one length that the paper compares with,
are fitted to their benchmark matrices, as they were measured on a machine. They are tried on each MATRIX,
which is measured here, or on the gallery matrices of the profile, which no model is fitted to. Without
--profile it is this machine's; where it has no such times, the matrices are measured first, for two minutes.

Published results do not suffice: no one has times of matrices with such row lengths, nor of JAD.

--figure draws the error of each model by matrix, as figures 8 to 10 of the paper do, and the means that the
paper prints.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import sparsecast as sc
from sparsecast.api.matrices import read_matrix
from sparsecast.api.targets import calibrated_profile, model_records, require_own
from sparsecast.devices.naming import machine_of
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, SparsecastError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.models import MODELS
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.papers import published
from sparsecast.records import Record
from sparsecast.reports.charts.chart import Chart, log_from_0, look, panels, refuse_undrawable, render

#: Mean errors; "wang-fixed" is the model of its reference 16.
OF_THE_PAPER = published("wang_2017")["mean_errors"]


def measured_profile(threads: int | None, device: str, dtype: str) -> Profile:
    """Return this machine's profile with the paper's benchmark matrices; they are measured if it has none."""
    profile = calibrated_profile(machine_of(device))
    records = model_records(profile, Target.on(profile.machine, dtype, threads))
    if any(record.suite == "row lengths" for record in records):
        return profile
    print("This machine has no times of the paper's matrices: measuring them for 120 s", file=sys.stderr)
    return sc.calibrate(120.0, threads=threads, dtype=dtype, device=device, suites=["wang"])


def tried_on(
    profile: Profile, records: list[Record], target: Target, device: str, matrices: list[str]
) -> Iterator[tuple[Record, Structure]]:
    """Give what is measured, here or in the gallery of the profile, with the Structure of its matrix."""
    for problem in map(read_matrix, matrices):
        asked = {"threads": target.threads, "dtype": target.dtype, "device": device}
        for record in sc.measure(problem, **asked, keeps=False):
            yield record, problem.structure
    if not matrices:
        for record in records:
            if record.suite == HELD_OUT_SUITE and record.regime == "warm":
                yield record, profile.structure(record)


def draw(title: str, found: dict[str, dict[str, list[tuple[str, float]]]], path: Path) -> None:
    """Draw the errors of each model by matrix, a panel for each format, and the means of the paper."""
    formats = sorted({name for own in found.values() for name in own})
    if not formats:
        raise InputError(f"figure {path} would show nothing: expected measurements; name a matrix")
    charts = [
        errors_chart(name, {model: own.get(name, []) for model, own in found.items()}) for name in formats
    ]
    caption = "Dashed: the mean error that the paper prints for the model of that colour (section 4)."
    render(panels("wang", caption, charts, 3), f"Models of Wang et al. (2017) on {title}", path)


def errors_chart(name: str, found: dict[str, list[tuple[str, float]]]) -> Chart:
    """Return the errors of the models on one format by matrix."""
    rows = [
        {
            "matrix": matrix.removeprefix("gallery:").partition("?")[0][:20],
            "model": model,
            "error": 100 * error,
        }
        for model, errors in found.items()
        for matrix, error in errors
    ]
    papers = [
        {"model": model, "error": 100 * means[name]} for model, means in OF_THE_PAPER.items() if name in means
    ]
    y = log_from_0("error", "|forecast - time| / time, %", math.ceil(max(row["error"] for row in rows)))
    models = look("model", OF_THE_PAPER, "model")
    points = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 50},
        "encoding": {
            "x": {"field": "matrix", "type": "nominal", "sort": None, "title": None},
            "y": y,
            **models,
        },
    }
    lines = {
        "data": {"values": papers},
        "mark": {"type": "rule", "strokeDash": [5, 3]},
        "encoding": {"y": y, "color": models["color"]},
    }
    return Chart("errors", name.upper(), {"layer": [points, lines], "width": 320, "height": 260})


def show(profile: Profile, target: Target, device: str, matrices: list[str], figure: Path | None) -> None:
    """Print each model's mean of |forecast - time| / time (equation 7), and what the paper prints."""
    if matrices:
        require_own(profile.name, machine_of(device))
    records = model_records(profile, target)
    training = TrainingSet.of(profile, records)
    models = {name: MODELS.get(name)().fit(training) for name in OF_THE_PAPER}
    tested = list(tried_on(profile, records, target, device, matrices))
    every = {}
    print(f"{profile.name}\nmodel          format  measured     here  the paper")
    for name, model in models.items():
        errors = defaultdict(list)
        for record, found in tested:
            if model.serves(record.candidate):
                time_s = float(model.values(record.candidate, RowBlocks.of(found))[0])
                error = abs(time_s - record.time_s) / record.time_s
                errors[record.candidate.format].append((record.matrix, error))
        every[name] = dict(errors)
        for format_name, each in sorted(errors.items()):
            papers = OF_THE_PAPER[name].get(format_name)
            printed = "-" if papers is None else f"{papers:.1%}"
            print(
                f"{name:15}{format_name:6}{len(each):10}{fmean(error for _, error in each):9.1%}{printed:>11}"
            )
    if figure:
        draw(profile.name, every, figure)


def main() -> int:
    """Run the experiment and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--profile")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu", help="where MATRIX is measured")
    parser.add_argument("--dtype", default="float64", help="the paper: float32")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors by matrix")
    asked = parser.parse_args()
    try:
        if asked.figure:
            refuse_undrawable(asked.figure)
        profile = (
            sc.profile(asked.profile)
            if asked.profile
            else measured_profile(asked.threads, asked.device, asked.dtype)
        )
        target = Target.on(profile.machine, asked.dtype, asked.threads)
        show(profile, target, asked.device, asked.matrices, asked.figure)
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
