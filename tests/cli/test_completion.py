"""What a shell completes, from a real bash, and from the functions that answer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecast.cli import options
from sparsecast.models import MODELS


def test_models_and_profiles_are_completed(foreign):
    assert options.matching_models("") == MODELS.names()
    assert foreign in options.matching_profiles(foreign[:3])


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_options_and_names(tmp_path):
    script = """
    eval "$(sparsecast --show-completion)"
    ask() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _sparsecast_completion sparsecast
        echo "${COMPREPLY[*]}"
    }
    ask sparsecast pred
    ask sparsecast predict x --dty
    ask sparsecast predict x --model roof
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["predict", "--dtype", "roofline"]
