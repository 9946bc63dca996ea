"""Fixtures of the tests of the command line: profiles, a data folder, and two ways of running a command."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sparsecast.cli.main import main
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


def document_of(outcome: Outcome) -> Any:
    """Return the one JSON document on standard output; there is nothing beside it."""
    assert (outcome.status, outcome.err) == (0, "")
    found, end = json.JSONDecoder().raw_decode(outcome.out)
    assert outcome.out[end:] == "\n"
    return found


def complains(outcome: Outcome, pattern: str = "") -> None:
    """Check the one line: what is wrong, and no trace of our insides."""
    assert (outcome.status, outcome.out) == (2, ""), outcome
    (line,) = outcome.err.splitlines()
    assert line.startswith("sparsecast: ") and re.search(pattern, line), line


@pytest.fixture
def calibrated(own: Profile) -> Profile:
    """Let this machine be calibrated: the recorded times, single-threaded, as its own."""
    return own


@pytest.fixture
def streaming(calibrated: Profile) -> Profile:
    """Let this machine be calibrated, with speeds of reads that are made up: 10 GB/s."""
    sizes = (1 << 14, 1 << 20, 1 << 26)
    reads = [Bandwidth("read", "cpu", 1, size, size / 1e10, 0.0, "", "") for size in sizes]
    profile = calibrated.with_bandwidths(reads)
    profile.save()
    return profile


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command in this process."""

    def command(*arguments: str | Path) -> Outcome:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["sparsecast", *map(str, arguments)])
            with pytest.raises(SystemExit) as leaving:
                main()
        texts = (stream.buffer.getvalue().decode() for stream in (out, err))
        return Outcome(int(leaving.value.code or 0), *texts)

    return command


@pytest.fixture(scope="session")
def ask(run: Run) -> Callable[..., Any]:
    """Return the JSON document of a command, beside which there may be notes."""

    def document(*arguments: str | Path) -> Any:
        outcome = run(*arguments, *(() if "--json" in arguments else ("--json",)))
        assert outcome.status == 0, outcome.err
        return json.loads(outcome.out)

    return document


@pytest.fixture(scope="session")
def process() -> Run:
    """Run a command in a process of its own."""

    def command(*arguments: str | Path) -> Outcome:
        code = "from sparsecast.cli.main import main; main()"
        line = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return command


@pytest.fixture
def foreign(recorded: Profile, data_folder: Path) -> str:
    """The name of a profile of another machine, known here."""
    machine = dataclasses.replace(recorded.machine, processor="foreign machine")
    other = dataclasses.replace(recorded, machine=machine)
    other.save()
    return other.name


@pytest.fixture(scope="session")
def exact(check_keys: Callable[[Any, str], None]) -> Callable[..., Any]:
    """Return the document of a command, which has exactly the keys that are listed under a name."""

    def document(outcome: Outcome, name: str) -> Any:
        assert outcome.status == 0, outcome.err
        value = json.loads(outcome.out)
        check_keys(value, name)
        return value

    return document
