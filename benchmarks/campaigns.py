"""Experiments on campaigns: what differs between runs of the same code."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy import stats

from experiment import Matrices, Rows, experiment
from sparsecast.benchmark.record_differences import FALSE_SHARE, by_product, differences
from sparsecast.benchmark.record_files import MergedRecord, MergedRecords
from sparsecast.machines.storage import HOME_VARIABLE

_MATRICES = (
    *(f"gallery:poisson2d?n={n}" for n in (20, 60, 200)),
    *(f"gallery:poisson3d?n={n}" for n in (12, 40)),
    *(f"gallery:banded?n={n}" for n in (300, 3000)),
    *(f"gallery:rmat?scale={scale}" for scale in (8, 11, 14)),
    *(f"gallery:{name}?n={n}" for name in ("circuit", "random") for n in (900, 9000)),
    "gallery:arrow?n=2000",
)

#: Of the products, what share is made slower, and by what factors.
_CHANGED, _FACTORS = 0.2, (1.05, 1.1, 1.2)

_COMMAND = "from sparsecast.cli.main import main; main()"


@experiment("Campaigns")
def repeated_runs(
    matrices: Matrices = None,
    runs: Annotated[int, typer.Option(min=2, help="Processes that measure the same.")] = 4,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the runs there; those that are there are not done again.")
    ] = None,
) -> Rows:
    """Measure the same several times, and tell how many products are said to differ, and what is found.

    The second test is that of Mann and Whitney on all samples, corrected as ours is. In the rows with a
    factor, a fifth of the products of one side are slower by it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        homes = [(folder or Path(temporary)).resolve() / f"run-{number}" for number in range(runs)]
        for home in homes:
            if not home.exists():
                line = [sys.executable, "-c", _COMMAND, "measure", *(matrices or _MATRICES), "--threads", "1"]
                environment = {**os.environ, HOME_VARIABLE: str(home)}
                subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, check=True)
        measured = [MergedRecords.of([home / "measurements"]).records for home in homes]
    pairs = [([a], [b]) for a, b in itertools.combinations(measured, 2)]
    rests = [([other for other in measured if other is not own], [own]) for own in measured]
    for name, sides in {"one and one": pairs, f"{runs - 1} and one": rests}.items():
        for factor in (1.0, *_FACTORS):
            found = np.array([_shares(_joined(a), _joined(b), factor) for a, b in sides])
            changed, unchanged, by_ranks = np.nanmean(found, axis=0) if factor > 1 else found.mean(axis=0)
            yield {
                "runs": name,
                "comparisons": len(sides),
                "factor": factor,
                "found share": float(changed) if factor > 1 else None,
                "wrong share": float(unchanged),
                "by ranks share": float(by_ranks),
            }


def _joined(runs: list[list[MergedRecord]]) -> list[MergedRecord]:
    return [record for run in runs for record in run]


def _shares(before: list[MergedRecord], after: list[MergedRecord], factor: float) -> tuple[float, ...]:
    """Return the share found of the products that a factor makes slower, that of the others, and by ranks."""
    sides = [by_product(side, is_across=False) for side in (before, after)]
    keys = sorted(sides[0].keys() & sides[1].keys(), key=repr)
    slower = set(np.random.default_rng(0).permutation(len(keys))[: round(_CHANGED * len(keys))])
    chosen = [keys[number] for number in sorted(slower)] if factor > 1 else []
    for key in chosen:
        sides[1][key] = [_scaled(merged, factor) for merged in sides[1][key]]
    one, other = (MergedRecords(records=[m for of_key in side.values() for m in of_key]) for side in sides)
    names = {(side[0].record.matrix, side[0].record.candidate) for side in (sides[1][key] for key in chosen)}
    rows = differences(one, other).rows
    flags = {(row.specification, row.candidate): row.differs for row in rows}
    changed = [flag for name, flag in flags.items() if name in names]
    unchanged = [flag for name, flag in flags.items() if name not in names]
    samples = [
        [np.concatenate([merged.record.samples_s for merged in side[key]]) for side in sides]
        for key in keys
        if key not in chosen
    ]
    ranks = stats.false_discovery_control([stats.mannwhitneyu(*pair).pvalue for pair in samples])
    found = float(np.mean(changed)) if changed else 0.0
    return found, float(np.mean(unchanged)), float(np.mean(ranks < FALSE_SHARE))


def _scaled(merged: MergedRecord, factor: float) -> MergedRecord:
    record = merged.record
    samples_s = tuple(factor * sample for sample in record.samples_s)
    slower = dataclasses.replace(record, time_s=factor * record.time_s, samples_s=samples_s)
    return dataclasses.replace(merged, record=slower)
