"""What is said of Python in several files is the same, and the public workflow runs what we run."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def test_the_same_versions_of_python_everywhere():
    classified = {
        name.rpartition(":: ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)
    }
    package = (ROOT / "tools/package.py").read_text(encoding="utf-8")
    oldest, newest = map(int, re.search(r"OLDEST, NEWEST = (\d+), (\d+)", package).groups())
    assert classified == {f"3.{minor}" for minor in range(oldest, newest + 1)}
    assert PROJECT["requires-python"] == f">=3.{oldest}"
    assert {*re.findall(r"3\.\d+", WORKFLOW)} == classified


def test_the_public_workflow_runs_what_every_change_must_pass():
    assert re.search(r"^ +- run: \.ci/run$", WORKFLOW, re.MULTILINE)
    assert (ROOT / ".ci/run").is_file()
