"""Every CUDA kernel against the oracle: in the simulator of numba-cuda, and on a device if there is one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.devices.cuda import detect_gpu
from sparsecast.errors import DeviceError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda, which has the simulator, is missing"
)


def run(simulator):
    tests = Path(__file__).with_name("on_device.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tests)]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": simulator}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "passed" in done.stdout and "skipped" not in done.stdout, done.stdout


@pytest.mark.slow
def test_every_kernel_in_the_simulator():
    run("1")


def test_every_kernel_on_the_device():
    try:
        detect_gpu()
    except DeviceError as error:
        pytest.skip(str(error))
    run("0")
