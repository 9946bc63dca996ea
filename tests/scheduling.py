"""How tests are run: the same examples each time, slow ones first, what shares fits in one process."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from sparsecast.formats import FORMATS

__all__ = [
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_handlecrashitem",
    "pytest_runtest_setup",
    "pytest_xdist_make_scheduler",
]

#: With --hypothesis-seed, examples are fresh, and tests that would begin after so many seconds are left out.
FRESH_S = 240.0


def pytest_configure(config: pytest.Config) -> None:
    """Take the same examples in every run, unless a seed asks for others.

    A fixed example decides whether a change lands: a fresh one that fails belongs to whoever can look at it.
    """
    is_fixed, slow = config.getoption("hypothesis_seed") is None, [HealthCheck.too_slow]
    settings.register_profile(
        "sparsecast", deadline=None, database=None, derandomize=is_fixed, suppress_health_check=slow
    )
    settings.load_profile("sparsecast")
    if hasattr(providers, "_get_local_constants"):
        # Examples have constants of the modules that a process has imported: another one has others.
        providers._get_local_constants = providers.Constants
    config.stash[BEGAN_S] = time.monotonic()


BEGAN_S = pytest.StashKey[float]()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any, sched: Any) -> None:
    """Say where and at which example the process of a test died: run it again, alone, with its examples."""
    seed = sched.config.getoption("hypothesis_seed")
    fresh = [] if seed is None else [f"--hypothesis-seed={seed}"]
    again = ["-q", "-s", "-n0", "--hypothesis-verbosity=verbose", *fresh, crashitem]
    line, root = [sys.executable, "-u", "-m", "pytest", *again], sched.config.rootpath
    try:
        done = subprocess.run(line, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired as error:
        report.longrepr += f"\n{error}"
        return
    name = crashitem.rpartition("::")[2].partition("[")[0]
    _, found, example = done.stdout.rpartition(f"{name}(")
    ended = f"alone, it ends with status {done.returncode}" + (f" at {name}({example}" if found else "")
    report.longrepr += f"\n{ended}\n{done.stderr[:3000]}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    seed, began_s = item.config.getoption("hypothesis_seed"), item.config.stash[BEGAN_S]
    if seed is not None and time.monotonic() - began_s > FRESH_S:
        pytest.skip(f"after {FRESH_S:g} s")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the formats' tests, then the slow ones: whatever starts last should be short.

    The slow ones find the kernels compiled that they need from the host.
    """
    items.sort(key=lambda item: 0 if _format_of(item.nodeid) else 1 if item.get_closest_marker("slow") else 2)


def pytest_collection_finish() -> None:
    """Have garbage looked for seldom, and not in what was imported until now: that takes a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one process run all tests of a format: two would compile the same kernels at once.

    One process, too, runs the tests that look at what a command left, or one mpirun, or that share fits: each
    process would do it for itself.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFormat(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _format_of(nodeid) or next((each for each in _SHARED if each in nodeid), nodeid)

        # After a worker died, the scheduler of xdist 3.8 repeats the test that it died of, and gives the next
        # worker a single test, which that begins when it knows of a second one: never.
        def remove_node(self, node: Any) -> str | None:
            units = self.assigned_work.pop(node)
            left = [(unit, test) for unit in units.values() for test, is_done in unit.items() if not is_done]
            if not left:
                return None
            (unit, died_of), *_ = left
            unit[died_of] = True
            self.workqueue.update({scope: unit for scope, unit in units.items() if not all(unit.values())})
            for other in self.nodes:
                self._reschedule(other)
            return died_of

        def schedule(self) -> None:
            is_begun = self.collection is not None
            super().schedule()
            for node in self.nodes if is_begun else ():
                self._reschedule(node)

    config.option.loadscopereorder = False
    return ByFormat(config, log)


_SHARED = (
    "tests/matrices/",
    "tests/models/",
    "tests/planning/",
    "test_gpu_campaign.py",
    "test_mpi.py",
    "test_notebooks.py",
    "test_pages.py",
    "test_published_machines.py",
    "test_report.py",
)


def _format_of(nodeid: str) -> str | None:
    """Return the format whose kernels or conversions a test compiles."""
    path, _, parameters = nodeid.partition("[")
    names = "|".join(FORMATS.names())
    found = re.search(rf"/test_({names})\.py", path) or re.search(rf"(?:^|-)({names})(?:-|]$)", parameters)
    return found[1] if found and re.search("/(conformance|formats)/test_", path) else None
