"""Experiments on campaigns: what is lost where processes are killed; what differs between equal runs."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Annotated

import numpy as np
import typer
from scipy import stats

from experiment import Matrices, Rows, experiment, timed
from sparsecast.benchmark.journal import read_journal
from sparsecast.benchmark.record_files import (
    FALSE_SHARE,
    MergedRecord,
    MergedRecords,
    by_product,
    differences,
)
from sparsecast.machines.machine import detect
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


#: Measures a shard in CSR and COO, with the least effort, and goes on where it was stopped.
_SHARD = """
import sys
from dataclasses import replace
from sparsecast import Session
from sparsecast.api import campaigns, executing, session
from sparsecast.measuring.timing import Effort

executing.DEFAULT_EFFORT, choose = Effort(3, 1e-6, 1e-4, 0.0), Session.choice

def choice(self, problem):
    found = choose(self, problem)
    return replace(found, candidates=[each for each in found.candidates if each.format in ("csr", "coo")])

Session.choice = choice
names = [f"gallery:banded?n={{n}}" for n in range(50, 50 + {matrices})]
done = campaigns.measure_all(session(threads=1), names, shard={shard!r}, resume=True)
print(len(done.rows), done.taken_over)
"""


@experiment("Campaigns")
def killed_shards(
    matrices: Annotated[int, typer.Option(min=8)] = 3000,
    shards: Annotated[int, typer.Option(min=1)] = 8,
    at_once: Annotated[int, typer.Option(min=1, help="Processes that run at the same time.")] = 2,
) -> Rows:
    """Measure small matrices in shards, kill each process once at some moment, and let it go on."""
    with tempfile.TemporaryDirectory() as home:
        parts = [f"{number}/{shards}" for number in range(1, shards + 1)]
        with ThreadPoolExecutor(at_once) as pool, patched_home(home):
            machine = detect()
            before = list(pool.map(lambda part: _killed(matrices, part, home, machine.name), parts))
            _, killed_s = timed(lambda: list(pool.map(lambda part: _run(matrices, part, home), parts)))
            line, whole_s = timed(lambda: _run(matrices, None, home))
            yield from _reading(Path(home) / "measurements" / machine.name)
            (found, merge_s) = timed(lambda: MergedRecords.of([Path(home) / "measurements"]))
        products = {(m.record.matrix, m.record.candidate) for m in found.records}
        yield (
            f"{len(before)} processes were killed, with {sum(before):,} records written before. Merged: "
            f"{len(found.records):,} records of {len({matrix for matrix, _ in products}):,} matrices, "
            f"{len(products):,} different products, {len(found.notes)} journals cut in a line; read in "
            f"{merge_s:.2f} s. The rest took {killed_s:.0f} s. One process over all took {line[1]:,} of "
            f"{matrices:,} matrices over, and gave {line[0]:,} records, in {whole_s:.0f} s."
        )


@contextmanager
def patched_home(home: str) -> Iterator[None]:
    """Let `home` be the data folder of this process and of those that it starts."""
    before = os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = home
    try:
        yield
    finally:
        os.environ.pop(HOME_VARIABLE)
        if before is not None:
            os.environ[HOME_VARIABLE] = before


def _started(matrices: int, shard: str | None) -> subprocess.Popen[str]:
    code = _SHARD.format(matrices=matrices, shard=shard)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def _killed(matrices: int, shard: str, home: str, machine: str) -> int:
    """Kill a process somewhere in its shard; return the records that it had written."""
    number, count = map(int, shard.split("/"))
    wanted = 2 * matrices // count * number // (count + 1)  # another share of each shard
    known = set(Path(home).glob(f"measurements/{machine}/*"))
    with _started(matrices, shard) as process:
        while process.poll() is None:
            own = f"-{process.pid}-"
            paths = [path for path in Path(home).glob(f"measurements/{machine}/*") if own in path.name]
            written = sum(path.read_bytes().count(b'"record"') for path in paths if path not in known)
            if written >= wanted:
                process.send_signal(signal.SIGKILL)
                break
            sleep(0.02)
    return sum(path.read_bytes().count(b'"record"') for path in paths)


def _run(matrices: int, shard: str | None, home: str) -> list[int]:
    with _started(matrices, shard) as process:
        assert process.stdout is not None
        return [int(number) for number in process.stdout.read().split()]


def _reading(folder: Path) -> Rows:
    """Read a quarter, half and all of the journals, to see that the time grows as they do."""
    paths = sorted(folder.glob("*.jsonl"))
    for share in (4, 2, 1):
        chosen = paths[: len(paths) // share]
        found, taken_s = timed(lambda chosen=chosen: [read_journal(path) for path in chosen])
        records = sum(len(each.records) for each in found)
        yield {
            "journals": len(chosen),
            "records": records,
            "bytes": sum(path.stat().st_size for path in chosen),
            "reading_s": taken_s,
            "a record_s": taken_s / records,
        }


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
