"""What another program beside a calibration does to the forecasts.

    python benchmarks/busy_calibrations.py [--budget 60] [--threads 1] [--busy 1] [MATRIX ...]
    python benchmarks/busy_calibrations.py --beside COMMAND [--budget 60] [--threads 1] [MATRIX ...]

The machine is calibrated twice, each time into a data folder of its own: undisturbed, and beside so many busy
loops, or beside a command such as a test suite. Then every matrix is forecast in every format from both, as
calibrated. The median of the difference over all forecasts is printed, what the second calibration and
its forecasts say of the disturbance, and how many measured times lie within the intervals of each: the
products are measured at the end, undisturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

MATRICES = (
    "gallery:poisson2d?n=300",
    "gallery:poisson3d?n=40&points=27",
    "gallery:banded?n=100000&half_bandwidth=4",
    "gallery:circuit?n=30000",
    "gallery:rmat?scale=14&degree=10",
    "gallery:random?n=60000&nnz_per_row=10",
    "gallery:elasticity3d?n=14",
)

_LOOP = [sys.executable, "-c", "while True: pass"]


@contextmanager
def running(commands: list[list[str]]) -> Iterator[None]:
    """Keep other processes running while the body runs."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    others = [subprocess.Popen(command, start_new_session=True, **quiet) for command in commands]
    try:
        yield
    finally:
        for other in others:
            with suppress(ProcessLookupError):  # a command may have come to its end
                os.killpg(other.pid, signal.SIGKILL)
            other.wait()


def sparsecast(home: Path, *arguments: str) -> tuple[dict, str]:
    """Return the JSON document of a command with its own data folder, and what it said on standard error."""
    code = "from sparsecast.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--json"],
        env={**os.environ, "SPARSECAST_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


Forecasts = dict[tuple[str, str], dict]


def forecast(home: Path, matrices: list[str], threads: str) -> tuple[Forecasts, set[str]]:
    """Return the forecast of each matrix and format, and what was said of them."""
    found, said = {}, set()
    for matrix in matrices:
        document, _ = sparsecast(home, "predict", matrix, "--threads", threads, "--as-met")
        said.update(document["notes"])
        found.update({(matrix, each["format"]): each for each in document["forecasts"]})
    return found, said


def measured(home: Path, matrices: list[str], threads: str) -> dict[tuple[str, str], float]:
    """Return the measured seconds of each matrix and format."""
    found = {}
    for matrix in matrices:
        document, _ = sparsecast(home, "measure", matrix, "--threads", threads, "--no-keep")
        found.update({(matrix, each["format"]): each["time_s"] for each in document["measurements"]})
    return found


def held(forecasts: Forecasts, times_s: dict[tuple[str, str], float]) -> str:
    """Return how many measured times lie within the intervals, and the median error, in words."""
    both = [(forecasts[key], time_s) for key, time_s in times_s.items() if key in forecasts]
    inside = [each["low_s"] <= time_s <= each["high_s"] for each, time_s in both if each["low_s"] is not None]
    error = np.median([abs(each["time_s"] / time_s - 1) for each, time_s in both])
    return f"{sum(inside)} of {len(inside)} times within the intervals, median error {100 * error:.1f} %"


def main() -> int:
    """Run both calibrations and print how their forecasts differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("matrices", nargs="*", default=list(MATRICES))
    parser.add_argument("--budget", default="60")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--busy", type=int, default=1)
    parser.add_argument("--beside", type=shlex.split)
    asked = parser.parse_args()
    others = [asked.beside] if asked.beside else [_LOOP] * asked.busy
    with tempfile.TemporaryDirectory() as folder:
        forecasts = {}
        for name, beside in (("warm-up", []), ("quiet", []), ("busy", others)):
            home = Path(folder) / name
            # The first one compiles the kernels.
            with running(beside):
                sparsecast(
                    home,
                    "calibrate",
                    "--budget",
                    asked.budget,
                    "--threads",
                    asked.threads,
                    "--dtype",
                    "float64",
                )
            if name != "warm-up":
                forecasts[name], said = forecast(home, asked.matrices, asked.threads)
                print(f"{name}: {len(forecasts[name])} forecasts; {' '.join(said) or 'nothing said'}")
        both = sorted(set(forecasts["quiet"]) & set(forecasts["busy"]))
        ratios = np.array(
            [forecasts["busy"][key]["time_s"] / forecasts["quiet"][key]["time_s"] for key in both]
        )
        difference = np.abs(ratios - 1)
        print(
            f"{len(both)} forecasts, {asked.threads} thread(s), beside {len(others)} other command(s): "
            f"median difference {100 * np.median(difference):.1f} %, 90th percentile "
            f"{100 * np.quantile(difference, 0.9):.1f} %, median ratio {np.median(ratios):.2f}"
        )
        times_s = measured(Path(folder) / "quiet", asked.matrices, asked.threads)
        for name, own in forecasts.items():
            print(f"{name}: {held(own, times_s)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
