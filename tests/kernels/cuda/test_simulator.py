"""Every CUDA kernel against the oracle, in the simulator of numba-cuda and so without a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

needs_numba_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda, whose simulator this is, is missing"
)


@needs_numba_cuda
def test_every_kernel_in_the_simulator():
    # In a process of its own: the simulator is chosen when numba.cuda is imported, once and for all.
    tests = Path(__file__).with_name("in_simulator.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "passed" in done.stdout and "skipped" not in done.stdout, done.stdout
