"""Plug-ins for processes of the command line, as ``pip install tests/proof/toys/NAME`` leaves them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile

TOYS = Path(__file__).parent / "toys"

Install = Callable[..., Path]
Document = dict[str, Any]

#: Runs commands one after another, up to the first that fails. A calibration measures all its matrices, and
#: serves, however slow the machine is: the clock of its budget stands still, and nothing makes it useless.
COMMANDS = """
import json, sys
from quick import take_few_trees_and_samples
from sparsecast.cli.main import main
take_few_trees_and_samples()
for asked in json.loads(sys.argv.pop()):
    if asked[0] == "calibrate":
        from sparsecast.benchmark import run
        from sparsecast.measuring import condition_monitor
        run.perf_counter = float
        condition_monitor.UNUSABLE = float("inf")
    sys.argv[1:] = asked
    try:
        main()
    except SystemExit as leaving:
        if leaving.code:
            raise
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
def sparsecast() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own."""

    return lambda *arguments: in_a_process([arguments])


@pytest.fixture(scope="session")
def documents() -> Callable[..., list[Document]]:
    """Run commands that succeed in one process, which is quicker, and return their JSON documents."""

    def commands(*asked: tuple[str | Path, ...]) -> list[Document]:
        done = in_a_process([(*arguments, "--json") for arguments in asked])
        assert done.returncode == 0, done.stderr
        found, rest = [], done.stdout
        while rest:
            item, end = json.JSONDecoder().raw_decode(rest)
            found, rest = [*found, item], rest[end:].lstrip()
        assert len(found) == len(asked)
        return found

    return commands


@pytest.fixture(scope="session")
def document(documents: Callable[..., list[Document]]) -> Callable[..., Document]:
    """Run a command that succeeds in a process of its own, and return its JSON document."""
    return lambda *arguments: documents(arguments)[0]


@pytest.fixture
def faster_than_csr(recorded: Profile, data_folder: Path) -> Callable[..., None]:
    """Let this machine be calibrated: CSR as recorded, and a format that takes a share of its times.

    On benchmark matrices of its own suite where one is named; those that are held out stay so.
    """

    def calibrated(name: str, kernel: str, share: float, suite: str | None = None) -> None:
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
        Profile(detect(), (*plain, *own), recorded.matrices).save()

    return calibrated


def in_a_process(commands: Sequence[tuple[str | Path, ...]]) -> subprocess.CompletedProcess[str]:
    """Run commands of the command line."""
    asked = json.dumps([list(map(str, arguments)) for arguments in commands])
    line = [sys.executable, "-W", "error", "-c", COMMANDS, asked]
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)
