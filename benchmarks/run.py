"""The runner of all experiments.

    python benchmarks/run.py                                 lists them
    python benchmarks/run.py peers --threads 2 MATRIX...     runs one; each has --help and --json

MATRIX is a file, a folder, or a specification such as ``gallery:poisson3d?n=60``. Experiments that need ranks
say how they are started under mpirun. Those that have decided what they were for are in the history; the
documents name the commit. The campaign on a GPU has a command of its own: ``make gpu-campaign``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from experiment import app

if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in ("run", "experiment", "fuzz_samples") and not path.stem.startswith("gpu_"):
            importlib.import_module(path.stem)
    sys.exit(app())
