"""The runner of all experiments.

    python benchmarks/run.py                                 lists them
    python benchmarks/run.py peers --threads 2 MATRIX...     runs one; each has --help and --json

MATRIX is a file, or a specification such as ``gallery:poisson3d?n=60``. Experiments that need ranks say how
they are started under mpirun. The campaign on a GPU has a command of its own: ``make gpu-campaign``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from experiment import app

#: Files beside this one that hold no experiments of this runner.
_OTHERS = {"run", "experiment", "libraries", "petsc_product"}

if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _OTHERS and not path.stem.startswith("gpu_"):
            importlib.import_module(path.stem)
    sys.exit(app())
