"""How well distributed products are forecast: measured on ranks of this machine, scored by cross-validation.

python benchmarks/distributed_forecasts.py [--mpirun PATH] [--ranks 1,2] [--formats csr,coo] MATRIX...

The machine must be calibrated, for one thread (`sparsecast calibrate --threads 1`) and for ranks (`mpirun -n
N sparsecast calibrate --ranks`). Each matrix is measured by all algorithms in one mpirun, in turn, and kept;
then `sparsecast evaluate --replay --ranks` forecasts each from the matrices of other groups. Printed are the
errors over matrices with more than --least non-zeros, whether the fastest way was found, and the seconds from
mpirun to the first product. Without a MATRIX it scores what was kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean, median
from time import perf_counter

#: The command line of the Python that runs this.
SPARSECAST = [sys.executable, "-c", "from sparsecast.cli.main import main; main()"]

#: A choice is good where it takes at most this share longer than the fastest, as in the evaluation.
GOOD = 0.05


def environment() -> dict[str, str]:
    """Return the variables of the ranks: Open MPI asks for these where the root user runs it."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {"OMP_NUM_THREADS": "1", **allowed, **os.environ}


def measure(mpirun: str, ranks: int, matrix: str, formats: str) -> str | None:
    """Measure all algorithms on so many ranks, which keeps them; return why not, or None."""
    algorithms = [] if ranks > 1 else ["--algorithm", "global-1d,local-1d,local-1d-overlap,2d"]
    command = [mpirun, "-n", str(ranks), *SPARSECAST, "measure", matrix, "--format", formats, *algorithms]
    done = subprocess.run(
        [*command, "--json"], env=environment(), capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]


def replayed() -> dict:
    """Return what `evaluate --replay --ranks` says of all that was kept."""
    command = [*SPARSECAST, "evaluate", "--replay", "--ranks", "--json"]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def print_errors(rows: list[dict]) -> None:
    """Print the errors of each model by ranks, algorithm and format."""
    print("\n| model | ranks | algorithm | format | products | median error | mean error | in the interval |")
    print("|---|---|---|---|---|---|---|---|")
    keys = [("model",), ("model", "ranks"), ("model", "ranks", "algorithm", "format")]
    for names in keys:
        for key in sorted({tuple(row[name] for name in names) for row in rows}, key=str):
            own = [row for row in rows if tuple(row[name] for name in names) == key]
            errors = [row["error"] for row in own]
            covered = [r["low_s"] <= r["measured_s"] <= r["high_s"] for r in own if r["low_s"] is not None]
            cells = [str(each) for each in key] + ["all"] * (4 - len(key))
            share = f"{100 * mean(covered):.0f} %" if covered else "-"
            figures = f"{len(own)} | {100 * median(errors):.1f} % | {100 * mean(errors):.1f} % | {share}"
            print(f"| {' | '.join(cells)} | {figures} |")


def print_choices(rows: list[dict]) -> None:
    """Print how often each model chose the fastest measured way, or one within GOOD of it."""
    print("\n| model | ranks | choices | fastest found | or within 5 % | regret of the worst |")
    print("|---|---|---|---|---|---|")
    for model, ranks in sorted({(row["model"], row["ranks"]) for row in rows}):
        fastest: dict[str, float] = {}
        for row in rows:
            if row["ranks"] == ranks:
                seconds = row["measured_s"]
                fastest[row["matrix"]] = min(seconds, fastest.get(row["matrix"], seconds))
        own = [row for row in rows if (row["model"], row["ranks"]) == (model, ranks)]
        ratios = []
        for matrix in {row["matrix"] for row in own}:
            chosen = min((r for r in own if r["matrix"] == matrix), key=lambda row: row["predicted_s"])
            ratios.append(chosen["measured_s"] / fastest[matrix])
        found, good = mean(r == 1 for r in ratios), mean(r <= 1 + GOOD for r in ratios)
        worst = 100 * (max(ratios) - 1)
        figures = f"{100 * found:.0f} % | {100 * good:.0f} % | {worst:.0f} %"
        print(f"| {model} | {ranks} | {len(ratios)} | {figures} |")


def print_start_up(mpirun: str, ranks: list[int]) -> None:
    """Print the seconds from mpirun to the first product of a small matrix, with compiled kernels."""
    code = (
        "from sparsecast.records import Configuration; "
        "from sparsecast.distributed import compile, world; "
        "c = world(); w = Configuration('local-1d', 'csr', 'csr', 'rows', c.size, 1); "
        "op = compile('gallery:poisson2d?n=100', w, c); op.matvec(op.domain.zeros())"
    )
    print("\n| ranks | from mpirun to the end of the first product |")
    print("|---|---|")
    for count in ranks:
        took = []
        for _ in range(3):
            start = perf_counter()
            command = [mpirun, "-n", str(count), sys.executable, "-c", code]
            subprocess.run(command, env=environment(), check=True)
            took.append(perf_counter() - start)
        print(f"| {count} | {min(took):.2f} s |")


def main() -> None:
    """Measure, and print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(sys.executable).with_name("mpirun")
    arguments.add_argument("--mpirun", default=str(beside) if beside.exists() else "mpirun")
    arguments.add_argument("--ranks", default="1,2")
    arguments.add_argument("--formats", default="csr,coo")
    arguments.add_argument("--least", type=int, default=100_000, metavar="NNZ")
    arguments.add_argument("matrices", nargs="*", metavar="FILE|MATRIX", help="none: score what was kept")
    asked = arguments.parse_args()
    ranks = [int(each) for each in asked.ranks.split(",")]
    for matrix in asked.matrices:
        for count in ranks:
            why = measure(asked.mpirun, count, matrix, asked.formats)
            if why is not None:
                print(f"left out: {matrix} on {count} ranks: {why}", file=sys.stderr, flush=True)
    found = replayed()
    rows = [row for row in found["rows"] if row["nnz"] > asked.least and row["ranks"] in ranks]
    if not rows:
        sys.exit(f"no forecast of a matrix with more than {asked.least:,} non-zeros")
    matrices = {row["matrix"] for row in rows}
    print(f"{len(matrices)} matrices with more than {asked.least:,} non-zeros on {found['profile']}")
    print_errors(rows)
    print_choices(rows)
    print_start_up(asked.mpirun, ranks)


if __name__ == "__main__":
    main()
