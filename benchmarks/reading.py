"""Speed and peak memory of `sparsecast.load` against SciPy's `mmread`, alternated in one run.

    python benchmarks/reading.py FILE.mtx[.gz] ...

Without a FILE, matrices are generated into a temporary folder. Times are medians in seconds; memory is the
growth of the largest resident size of a process that reads the file once, after everything is imported and
compiled, over the bytes of the CSR arrays.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mmread, mmwrite

from sparsecast.matrices.reading import load

REPEATS = 7
READERS: dict[str, Callable[[Path], Any]] = {
    "load": load,
    "mmread": lambda path: mmread(path, spmatrix=False),
    "mmread.tocsr": lambda path: mmread(path, spmatrix=False).tocsr(),
}


def times(path: Path) -> dict[str, float]:
    """Return the median seconds of each reader, taken in turns."""
    samples: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(REPEATS):
        for name, reader in READERS.items():
            start = time.perf_counter()
            reader(path)
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def peak(path: Path, name: str) -> int:
    """Return by how many bytes a fresh process grows while it reads `path` with the reader `name`."""
    command = [sys.executable, __file__, "--peak", name, str(path)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(path: Path, name: str) -> int:
    """Return the growth of this process, in bytes, over what imports and compiled kernels take."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.mtx"
        mmwrite(small, sparse.coo_array(np.eye(3)), symmetry="general")
        compressed(small)
        READERS[name](small)
        READERS[name](small.with_suffix(".mtx.gz"))
    before = largest_resident_bytes()
    READERS[name](path)
    return largest_resident_bytes() - before


def largest_resident_bytes() -> int:
    """Return the largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux hands the parent's peak down in getrusage, and not here.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def compressed(path: Path) -> Path:
    """Write `path` beside itself as gzip and return that file."""
    target = path.with_suffix(".mtx.gz")
    with path.open("rb") as source, gzip.open(target, "wb", compresslevel=6) as sink:
        shutil.copyfileobj(source, sink)
    return target


def generated(folder: Path) -> list[Path]:
    """Write matrices of common kinds, real, complex and pattern, general and symmetric, plain and gzip."""
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(80, 80))
    identity = sparse.eye_array(80)
    square = sparse.kron(line, identity) + sparse.kron(identity, line)
    cube = sparse.kron(square, identity) + sparse.kron(sparse.eye_array(80**2), line)
    scattered = sparse.random_array((200_000, 150_000), density=5e-5, rng=np.random.default_rng(1))
    paths = []
    for name, matrix, field, symmetry in (
        ("grid_symmetric", cube, "real", "symmetric"),
        ("grid_pattern", cube, "pattern", "symmetric"),
        ("scattered", scattered, "real", "general"),
        ("waves_symmetric", (1 + 0.1j) * cube, "complex", "symmetric"),
        ("waves", (1 + 0.1j) * scattered, "complex", "general"),
    ):
        path = folder / f"{name}.mtx"
        mmwrite(path, matrix, field=field, symmetry=symmetry)
        paths += [path, compressed(path)]
    return paths


def report(paths: list[Path]) -> None:
    """Print one row a file."""
    columns = ("load s", "mmread s", "tocsr s", "load/mmread", "load/tocsr", "load peak", "tocsr peak")
    print(f"{'file':32} {'nnz':>10} " + " ".join(f"{column:>11}" for column in columns))
    for path in paths:
        matrix = load(path)
        arrays = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        nnz = matrix.nnz
        del matrix
        taken = times(path)
        ours = taken["load"]
        figures = [*taken.values(), ours / taken["mmread"], ours / taken["mmread.tocsr"]]
        figures += [peak(path, name) / arrays for name in ("load", "mmread.tocsr")]
        print(f"{path.name:32} {nnz:10d} " + " ".join(f"{figure:11.4f}" for figure in figures))


def main() -> None:
    """Run the comparison on the files named, or on generated ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--peak", choices=READERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print(measure_peak(arguments.files[0], arguments.peak))
    elif arguments.files:
        report(arguments.files)
    else:
        with tempfile.TemporaryDirectory() as folder:
            report(generated(Path(folder)))


if __name__ == "__main__":
    main()
