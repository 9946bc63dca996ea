"""Plug-ins for processes of the command line, as ``pip install tests/proof/toys/NAME`` leaves them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile

from ..cli.conftest import Outcome

TOYS = Path(__file__).parent / "toys"

Install = Callable[..., Path]
Document = dict[str, Any]

#: Runs commands one after another, each to its end, and prints what each left. A calibration measures all its
#: matrices, and serves, however slow the machine is: the clock of its budget stands still, and nothing makes
#: it useless.
COMMANDS = """
import contextlib, io, json, sys
from quick import take_few_trees_and_samples
from sparsecast.cli.main import main
take_few_trees_and_samples()
outcomes = []
for asked in json.loads(sys.argv.pop()):
    if asked[0] == "calibrate":
        from sparsecast.benchmark import run
        from sparsecast.measuring import condition_monitor
        run.perf_counter = float
        condition_monitor.UNUSABLE = float("inf")
    sys.argv[1:], status, out, err = asked, 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as leaving:
            status = leaving.code or 0
    outcomes.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(outcomes))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a folder of TOYS, or of the test's own, for the processes of this test; return the folder."""
    site = tmp_path / "site"

    def put(toy: str | Path) -> Path:
        folder = TOYS / toy  # itself, as an editable installation: compiled kernels stay beside it
        before = [path for path in (os.environ.get("PYTHONPATH"),) if path]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*before, str(folder), str(site)]))
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        described = site / f"{project['name']}-{project['version']}.dist-info"
        described.mkdir(parents=True)
        names = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
        (described / "METADATA").write_text("".join(f"{key}: {value}\n" for key, value in names.items()))
        lines = []
        for group, points in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {module}" for name, module in points.items())]
        (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return folder

    return put


@pytest.fixture(scope="session")
def sparsecast() -> Callable[..., list[Outcome]]:
    """Run commands of the command line in one process of their own, which is quicker than one for each."""

    def commands(*asked: tuple[str | Path, ...]) -> list[Outcome]:
        line = [sys.executable, "-W", "error", "-c", COMMANDS]
        line.append(json.dumps([list(map(str, arguments)) for arguments in asked]))
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return [Outcome(*each) for each in json.loads(done.stdout)]

    return commands


@pytest.fixture(scope="session")
def documents(sparsecast: Callable[..., list[Outcome]]) -> Callable[..., list[Document]]:
    """Run commands that succeed in one process, and return their JSON documents."""

    def commands(*asked: tuple[str | Path, ...]) -> list[Document]:
        outcomes = sparsecast(*((*arguments, "--json") for arguments in asked))
        assert all(outcome.status == 0 for outcome in outcomes), outcomes
        return [json.loads(outcome.out) for outcome in outcomes]

    return commands


@pytest.fixture(scope="session")
def document(documents: Callable[..., list[Document]]) -> Callable[..., Document]:
    """Run a command that succeeds in a process of its own, and return its JSON document."""
    return lambda *arguments: documents(arguments)[0]


@pytest.fixture
def faster_than_csr(recorded: Profile, data_folder: Path) -> Callable[..., Path]:
    """Let this machine be calibrated: CSR as recorded, and a format that takes a share of its times.

    On benchmark matrices of its own suite where one is named; those that are held out stay so.
    """

    def calibrated(name: str, kernel: str, share: float, suite: str | None = None) -> Path:
        plain = recorded.select(format="csr", dtype="float64")
        own = [
            dataclasses.replace(
                r,
                candidate=dataclasses.replace(r.candidate, format=name, kernel=kernel),
                suite=r.suite if suite is None or r.suite == "gallery" else suite,
                time_s=share * r.time_s,
                kernel_version=1,
            )
            for r in plain
        ]
        return Profile(detect(), (*plain, *own), recorded.matrices).save()

    return calibrated
