"""What shells are told to complete, from a real bash, and from the functions that answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.cli import completing
from sparsecast.matrices.gallery import gallery_names
from sparsecast.models import MODELS


def test_every_gallery_matrix_is_completed_and_only_those():
    found = [name for name in completing.matrices("gallery:") if name.startswith("gallery:")]
    assert found == [f"gallery:{name}" for name in gallery_names()]
    assert completing.matrices("gallery:poisson2") == ["gallery:poisson2d"]


def test_files_and_folders_are_completed(tmp_path, monkeypatch):
    (tmp_path / "mine.mtx").touch()
    (tmp_path / "more" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden.mtx").touch()
    monkeypatch.chdir(tmp_path)
    assert completing.matrices("m") == ["mine.mtx", "more/"]
    assert completing.matrices("more/") == ["more/deep/"]
    assert completing.matrices(f"{tmp_path}/mi") == [f"{tmp_path}/mine.mtx"]
    assert not [each for each in completing.matrices("") if "hidden" in each]
    assert completing.matrices("absent/x") == []


def test_models_and_profiles_are_completed(foreign):
    assert completing.models("") == MODELS.names()
    assert foreign in completing.profiles(foreign[:3])


def test_an_unknown_shell_is_refused_with_the_nearest(run):
    done = run("completion", "bsh")
    assert done.status == 2
    assert "'bsh': expected one of bash, zsh, fish; did you mean 'bash'?" in done.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_matrices(tmp_path):
    script = """
    eval "$(sparsecast completion bash)"
    ask() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _sparsecast_completion sparsecast
        echo "${COMPREPLY[*]}"
    }
    ask sparsecast pred
    ask sparsecast predict gallery:poisson2
    ask sparsecast predict x --dty
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["predict", "gallery:poisson2d", "--dtype"]
