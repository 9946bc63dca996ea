"""Plug-ins for processes of the command line, as ``pip install tests/proof/toys/NAME`` leaves them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOYS = Path(__file__).parent / "toys"

Install = Callable[..., Path]
Document = dict[str, Any]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a folder of TOYS, or of the test's own, for the processes of this test; return where."""
    site = tmp_path / "site"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*os.environ.get("PYTHONPATH", "").split(), str(site)]))

    def put(toy: str | Path) -> Path:
        folder = TOYS / toy
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        described = site / f"{project['name']}-{project['version']}.dist-info"
        described.mkdir(parents=True)
        for module in folder.glob("*.py"):
            shutil.copy(module, site)
        names = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
        (described / "METADATA").write_text("".join(f"{key}: {value}\n" for key, value in names.items()))
        lines = []
        for group, points in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {module}" for name, module in points.items())]
        (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return site

    return put


@pytest.fixture(scope="session")
def sparsecast() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own."""

    def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        code = "from sparsecast.cli.main import main; main()"
        line = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)

    return command


@pytest.fixture(scope="session")
def document(sparsecast: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Document]:
    """Run a command that succeeds, and return its JSON document."""

    def command(*arguments: str | Path) -> Document:
        done = sparsecast(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        found: Document = json.loads(done.stdout)
        return found

    return command
