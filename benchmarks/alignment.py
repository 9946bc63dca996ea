"""What aligned code and arrays bring: times of all formats in processes with and without them, in turn.

    python benchmarks/alignment.py FILE...

One thread, float64. Each way has a cache of kernels of its own, and three processes: the first one compiles,
the others load what it kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

PROCESSES = 3


def measured(is_aligned: bool, files: list[str]) -> None:
    """Print the seconds of each format of each matrix as JSON: what a process does."""
    from sparsecast.system import jit, memory

    if not is_aligned:  # before anything that uses them is imported
        jit.ALIGNED = jit.USUAL
        memory.aligned_empty = np.empty
    import sparsecast as sc
    from sparsecast.api.forecasting import choice
    from sparsecast.matrices.problem import Problem

    found = {}
    for file in files:
        problem = Problem.named(file)
        candidates = choice(problem, threads=1, dtype="float64").candidates
        for record in sc.measure(problem, candidates, keeps=False):
            found[f"{record.candidate.format} {problem.name}"] = record.time_s
    print(json.dumps(found))


def ran(way: str, files: list[str], caches: Path) -> dict[str, float]:
    """Return what a process of its own measured."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(caches / way)}
    command = [sys.executable, __file__, f"--{way}", *files]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Print a line for each format and return the exit status."""
    match sys.argv[1:]:
        case ["--aligned" | "--plain" as way, *files]:
            measured(way == "--aligned", files)
            return 0
        case []:
            print("no files: expected matrix files; name some", file=sys.stderr)
            return 2
        case files:
            pass
    runs: dict[str, list[dict[str, float]]] = {"plain": [], "aligned": []}
    with tempfile.TemporaryDirectory() as caches:
        for _ in range(PROCESSES):
            for way, own in runs.items():
                own.append(ran(way, files, Path(caches)))
    log = {way: np.log(pd.DataFrame(own)) for way, own in runs.items()}
    formats = pd.Series({name: name.partition(" ")[0] for name in log["plain"]})
    compared = pd.DataFrame({"time": np.exp(log["aligned"].iloc[2] - log["plain"].iloc[2])})
    for way, own in log.items():
        compared[f"first {way}"] = np.abs(own.iloc[0] - own.iloc[1])
        compared[f"later {way}"] = np.abs(own.iloc[2] - own.iloc[1])
    table = Table("format", "time, aligned over not", *compared.columns[1:], title="medians")
    for name, row in compared.groupby(formats).median().iterrows():
        table.add_row(str(name), f"{row['time']:.3f}", *(f"{100 * value:.1f} %" for value in row.iloc[1:]))
    console = Console()
    console.print(table)
    console.print(
        "first: by how much the process that compiles and the next differ; later: two that load the kernels"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
