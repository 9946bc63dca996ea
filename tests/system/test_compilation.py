"""Where kernels are kept: a process without a folder for them works, slower, and says so once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparsecast.system.jit import KernelFile, inner, njit

CODE = """
import numpy as np
from scipy.sparse import csr_array
from sparsecast.devices import DEVICES
from sparsecast.formats.csr import CSR
out = np.empty(36)
DEVICES.get("cpu").kernels.get("csr").bind(CSR.from_csr(csr_array(np.eye(36))), "plain", 1)(np.ones(36), out)
print(out.sum())
"""


@pytest.fixture
def run():
    """Runs CODE with kernels to be kept in a folder and nowhere else; returns what it printed and said."""

    def run(folder: Path) -> tuple[str, list[str]]:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
        environment["NUMBA_CACHE_LOCATOR_CLASSES"] = "UserProvidedCacheLocator"
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        complaints = [line for line in done.stderr.splitlines() if "NUMBA_CACHE_DIR" in line]
        return done.stdout.strip(), complaints

    return run


def test_without_a_folder_kernels_are_compiled_anew_and_that_is_said_once(run, tmp_path):
    (tmp_path / "a file").write_text("")
    printed, complaints = run(tmp_path / "a file" / "below")
    assert printed == "36.0" and len(complaints) == 1


def test_a_folder_that_can_be_made_is_used_without_a_word(run, tmp_path):
    assert run(tmp_path / "new" / "cache") == ("36.0", [])
    assert any((tmp_path / "new" / "cache").rglob("*.nbi"))


SAVE = """
import sys
from sparsecast.system.jit import KernelFile
cache = KernelFile(sys.argv[1], "function", "stamp")
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    cache.save((sys.argv[2], number), (sys.argv[2], number))
"""


def test_processes_that_keep_code_for_different_types_at_once_get_their_own(tmp_path):
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVE, str(tmp_path), who], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for who in ("one", "other")
    ]
    for saver in savers:
        assert saver.stdout.readline() == b"ready\n"
    for saver in savers:
        saver.stdin.write(b"\n")
        saver.stdin.flush()
    for saver in savers:
        saver.communicate(timeout=300)
        assert saver.returncode == 0
    cache = KernelFile(str(tmp_path), "function", "stamp")
    for who in ("one", "other"):
        assert [cache.load((who, number)) for number in range(200)] == [(who, n) for n in range(200)]


def test_kernels_begin_at_a_multiple_of_64_bytes():
    def compiled(number):
        """Compile another kernel each time, so that they would lie anywhere."""
        return njit(nogil=True)(lambda x: x * number + 1)

    for number in range(8):
        kernel = compiled(number)
        assert kernel(2) == 2 * number + 1
        (overload,) = kernel.overloads.values()
        assert overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name) % 64 == 0


def test_an_inner_function_is_called_by_compiled_code_and_by_no_other():
    @inner
    def twice(x):
        return 2 * x

    assert njit()(lambda x: twice(x) + 1)(3) == 7
    with pytest.raises(TypeError, match="twice"):
        twice(3)


@pytest.fixture
def module(tmp_path):
    """Returns what a process finds that runs a line and then a module of a user, whose functions are kept."""

    def run(first: str, declared_by: str, cache: str = "cache") -> dict[str, Any]:
        (tmp_path / "users.py").write_text(
            f"{declared_by}\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"
            "\n@njit(cache=True)\ndef sums(x):\n    total = 0.0\n"
            "    for value in x:\n        total += value\n    return total\n"
        )
        code = (
            f"import os; before = dict(os.environ); {first}\n"
            "import json, numba, numpy, users\n"
            "users.twice(2), users.sums(numpy.ones(9))\n"
            "functions = (users.twice, users.sums)\n"
            "codes = [f.inspect_asm(f.signatures[0]) for f in functions]\n"
            "print(json.dumps({'hits': sum(sum(f.stats.cache_hits.values()) for f in functions),"
            " 'alignment': [max([int(line.split()[1].rstrip(',')) for line in code.splitlines()"
            " if '.p2align' in line] + [0]) for code in codes],"
            " 'folder': str(numba.config.CACHE_DIR), 'environment': os.environ == before,"
            " 'type': type(functions[0]).__module__}))"
        )
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
        environment["NUMBA_CPU_NAME"] = "generic"  # others align loops as we do
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


#: Kernels of ours are compiled before those of the user.
OURS_COMPILED = (
    "import sparsecast as sc, numpy as np; from sparsecast.system.jit import njit; "
    "njit(nogil=True, cache=False)(lambda x: x + 1)(1); "
    "sc.gallery('rmat', scale=2)"
)


def test_functions_of_a_user_stay_as_they_are(module):
    numbas = "from numba import njit"
    alone = module("pass", numbas)
    assert alone["hits"] == 0
    assert 0 < max(alone["alignment"]) < 6
    assert module(OURS_COMPILED, numbas)["hits"] == 2  # what the process without sparsecast kept is theirs
    assert {**module(OURS_COMPILED, numbas, "cache of its own"), "folder": alone["folder"]} == alone
