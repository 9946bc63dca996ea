"""A worker of the tests that dies: the run ends, and names the test and its example."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

DYING = """
import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("k", range(5))
def test_others(k):
    pass


@given(st.integers(0, 10_000))
def test_dying(number):
    if number > 77:
        os.kill(os.getpid(), signal.SIGSEGV)
"""


#: The hooks of our own tests, without their fixtures.
CONFTEST = f"""
import sys

sys.path.insert(0, {str(ROOT)!r})
from tests import scheduling as suite

globals().update((name, hook) for name, hook in vars(suite).items() if name.startswith("pytest_"))
"""


def test_the_run_ends_and_names_the_test_and_its_example(tmp_path):
    (tmp_path / "test_dying.py").write_text(DYING)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: of our own\n")
    line = [sys.executable, "-m", "pytest", "--numprocesses", "2", str(tmp_path)]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 5 passed" in done.stdout
    assert "crashed while running 'test_dying.py::test_dying'" in done.stdout
    assert "status -11 at test_dying(" in done.stdout and "number=" in done.stdout
    assert 'test_dying.py", line' in done.stdout  # where, of faulthandler
